"""Bounded rows are sorted by event time, and rows of equal time keep their order."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from operators import in_time_order
from topology import SchemaError


def shuffled(kind: pa.DataType, rows: int = 3000) -> pa.Table:
    """Few different times, so that most rows have equals; in several chunks, with a type that `take` lacks."""
    chance = random.Random(5)
    times = pa.array([chance.randrange(7) for _ in range(rows)], kind)
    words = pa.array([str(number) for number in range(rows)], pa.string_view())
    table = pa.table({"ts": times, "id": range(rows), "word": words})
    return pa.concat_tables([table.slice(0, 1000), table.slice(1000)])


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.date32(), pa.timestamp("us", "Europe/Vienna")], ids=str)
def test_the_order_is_that_of_a_stable_sort(kind: pa.DataType) -> None:
    table = shuffled(kind)
    ordered = in_time_order("R", table, "ts")
    assert ordered.schema == table.schema
    assert ordered.to_pylist() == sorted(table.to_pylist(), key=lambda row: row["ts"])


def test_rows_in_order_are_not_copied_and_rows_without_a_time_are_kept() -> None:
    table = pa.table({"ts": [1.0, None, 2.0, float("nan"), 2.0]})
    assert in_time_order("R", table, "ts") is table
    assert in_time_order("R", table.slice(0, 0), "ts").num_rows == 0
    ordered = in_time_order("R", pa.table({"ts": [5, None, 3], "id": [1, 2, 3]}), "ts").to_pylist()
    assert [row["id"] for row in ordered if row["ts"] is not None] == [3, 1]
    assert len(ordered) == 3


def test_a_column_that_is_missing_or_no_time_is_refused() -> None:
    table = pa.table({"x": ["a"]})
    with pytest.raises(SchemaError, match="stream 'R': event-time column 'ts' is missing"):
        in_time_order("R", table, "ts")
    with pytest.raises(SchemaError, match="event-time column 'x' is string"):
        in_time_order("R", table, "x")
