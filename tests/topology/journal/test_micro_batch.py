"""The order of a micro-batch's rows follows from the rows alone."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from topology.journal import micro_batch
from topology.journal.micro_batch import in_order, unordered_column

TYPES = pa.schema(
    [
        ("ts", pa.int64()),
        ("f", pa.float64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("when", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.int32())),
        ("place", pa.struct([("x", pa.int8()), ("y", pa.string())])),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("nothing", pa.null()),
        ("half", pa.float32()),
    ]
)


def random_rows(random: np.random.Generator, count: int) -> pa.Table:
    """Rows with few values, so that many are equal in some columns and some in all."""

    def some(*values: object) -> object:
        return values[random.integers(len(values))]

    rows = [
        {
            "ts": some(1, 2, 3, 4, None),
            "f": some(0.0, -0.0, float("nan"), 1.5, None),
            "text": some("", "a", "ä", None),
            "bytes": some(b"", b"\0", b"\xff", None),
            "flag": some(True, False, None),
            "day": some(datetime.date(2020, 1, 1), None),
            "price": some(Decimal("1.25"), Decimal("-1"), None),
            "when": some(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), None),
            "tags": some([], [1], [1, 2], [None], None),
            "place": some({"x": 1, "y": "a"}, {"x": None, "y": "a"}, None),
            "map": some([("a", 1)], [], None),
            "kind": some("red", "green", None),
            "nothing": None,
            "half": some(0.5, None),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, TYPES)


def divided(random: np.random.Generator, table: pa.Table) -> list[pa.RecordBatch]:
    """The rows in another order, cut into batches."""
    mixed = table.take(pa.array(random.permutation(table.num_rows))).combine_chunks().to_batches()[0]
    cuts = sorted(random.integers(0, table.num_rows + 1, 3))
    return [mixed.slice(start, end - start) for start, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]


def shown(batches: list[pa.RecordBatch]) -> list[str]:
    return [repr(row) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("event_time", ["ts", "f", None])
@pytest.mark.parametrize("seed", range(10))
def test_the_order_does_not_depend_on_how_rows_are_divided(event_time: str | None, seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random_rows(random, 60)
    orders = [shown(list(in_order(divided(random, table), event_time))) for _ in range(4)]
    assert orders[1:] == orders[:-1]
    assert sorted(orders[0]) == sorted(shown(table.to_batches()))


def test_rows_are_in_order_of_time_and_those_without_one_come_last() -> None:
    table = pa.table({"ts": [3, None, 1, 2, None, 1], "x": [1, 9, 8, 3, 2, 7]})
    (rows,) = in_order(table.to_batches(), "ts")
    assert rows.to_pydict() == {"ts": [1, 1, 2, 3, None, None], "x": [7, 8, 3, 1, 2, 9]}


def test_a_type_that_cannot_be_moved_is_named() -> None:
    assert unordered_column(TYPES) is None
    assert unordered_column(pa.schema([("ts", pa.int64()), ("view", pa.string_view())])) == "view"


def test_batches_are_cut_by_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch, "BATCH_ROWS", 4)
    parts = [pa.record_batch({"ts": [number]}) for number in range(10)]
    assert [rows.num_rows for rows in in_order(parts, "ts")] == [4, 4, 2]
    assert list(in_order([], "ts")) == []
