"""Tables on a terminal: numbers to the right, columns that fit, values as people read them."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from rich.console import Console

from interlace.foreground.table_view import TableView, shown


def printed(table: pa.Table, width: int) -> tuple[list[str], list[str]]:
    out = io.StringIO()
    view = TableView(Console(file=out, width=width), table.schema)
    for batch in table.to_batches(max_chunksize=2):
        view.print(batch)
    return out.getvalue().splitlines(), view.hidden


def test_numbers_stand_to_the_right_and_text_to_the_left() -> None:
    table = pa.table({"id": [1, 200, None], "who": ["ann", "bob [b]", "e\nve"], "x": [0.5, 12.25, 3.0]})
    assert printed(table, 80) == (
        [
            "  id  who          x",
            "────  ───────  ─────",
            "   1  ann        0.5",
            " 200  bob [b]  12.25",
            "null  e ve         3",
        ],
        [],
    )


def test_columns_that_do_not_fit_are_left_out_of_the_middle() -> None:
    table = pa.table({f"column{number}": [number] for number in range(10)})
    lines, hidden = printed(table, 40)
    assert lines[0] == "column0  column1  …  column8  column9"
    assert lines[2] == "      0        1  …        8        9"
    assert hidden == [f"column{number}" for number in range(2, 8)]


def test_long_text_is_cut_as_far_as_columns_need_it() -> None:
    lines, _ = printed(pa.table({"text": ["x" * 100]}), 80)
    assert lines[2] == "x" * 39 + "…"
    lines, hidden = printed(pa.table({"one": ["x" * 32], "n": [1234567], "other": ["y" * 32]}), 70)
    assert lines[2] == f"{'x' * 27}…  1234567  {'y' * 27}…"
    assert hidden == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (5.827000141143799, "5.827000141"),
        (1e300, "1e+300"),
        (datetime(2024, 2, 29, 8), "2024-02-29 08:00:00"),
        (datetime(2024, 2, 29, 8, 0, 0, 500000), "2024-02-29 08:00:00.500000"),
        (timedelta(minutes=5), "0:05:00"),
    ],
)
def test_values_are_shown_as_people_read_them(value: object, text: str) -> None:
    assert shown(value) == text
