"""Forms that one meets rarely: conditions that name no column, keys that are lists, and sums of dates and numbers."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin, TimeWindow

R = {"id": [1, 2, 3], "x": [1, 2, 3]}
S = {"id": [7, 8], "x": [2, 9]}
NEVER = ["1 = 0", "NULL = 2", "'a' LIKE 'b'"]


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*found.to_pydict().values(), strict=True))


@pytest.mark.parametrize("never", NEVER)
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
def test_where_may_be_a_condition_that_is_never_true(kind: str, never: str) -> None:
    sql = f"SELECT R.id FROM R {kind} S ON R.x < S.x WHERE {never} WINDOW AS (ROWS 9)"
    if kind == "RIGHT JOIN":
        sql = sql.replace("R.id", "S.id", 1)
    assert rows(StreamJoin.from_sql(sql).collect({"R": R, "S": S})) == []


def test_what_names_no_column_is_about_the_streams_that_the_others_name() -> None:
    def counted(where: str) -> list[tuple[Any, ...]]:
        join = StreamJoin("R", "S", "R.x < S.x", CountWindow(9), kind="count", where=where, select=["R.id", "S.id"])
        return rows(join.collect({"R": R, "S": S}))

    assert counted("1 = 0") == []
    assert counted("R.x > 0 AND 1 = 0") == [(None, 7, 0), (None, 8, 0)]
    assert counted("R.x > 0 AND S.x > 0 AND 1 = 0") == []
    assert counted("1 = 1") == [(1, None, 0), (None, 7, 1), (2, None, 0), (None, 8, 2), (3, None, 1)]


@pytest.mark.parametrize("never", NEVER)
def test_an_as_of_join_heeds_a_condition_without_columns(never: str) -> None:
    for on in (f"R.x >= S.x AND {never}", f"R.id < 9 AND R.x >= S.x AND {never} AND S.id < 9"):
        join = StreamJoin.from_sql(f"SELECT R.id, S.id FROM R ASOF LEFT JOIN S ON {on}", event_time="x")
        assert rows(join.collect({"R": R, "S": S})) == [(1, None), (2, None), (3, None)]
    none = StreamJoin.from_sql(f"SELECT R.id FROM R ASOF JOIN S ON R.x >= S.x WHERE {never}", event_time="x")
    assert rows(none.collect({"R": R, "S": S})) == []


KEYS = {
    "lists": pa.array([[1], [1, None], [], None], pa.list_(pa.int8())),
    "structs": pa.array([{"a": 1}, {"a": None}, {"a": 2}, None]),
    "intervals": pa.array([pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 31, 0]), pa.MonthDayNano([0, 0, 1]), None]),
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_keys_may_be_lists_structs_and_intervals(keys: pa.Array) -> None:
    """Of as-of joins, and of windows of the last rows of each key."""
    left = pa.table({"id": [1, 2, 3, 4], "k": keys, "ts": [5, 5, 5, 5]})
    right = pa.table({"id": range(8), "k": pa.concat_arrays([keys, keys]), "ts": [1, 1, 1, 1, 2, 2, 2, 2]})
    as_of = StreamJoin("L", "R", "L.k = R.k", kind="asof", event_time="ts", select=["L.id", "R.id"])
    assert rows(as_of.collect({"L": left, "R": right})) == [(1, 4), (2, 5), (3, 6), (4, None)]
    windows = (TimeWindow(0), CountWindow(1, per_key=True))
    last = StreamJoin("L", "R", "L.k = R.k", windows, event_time="ts", select=["L.id", "R.id"])
    assert rows(last.collect({"L": left, "R": right})) == [(1, 4), (2, 5), (3, 6)]


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("[S.i] BETWEEN R.l AND [9]", False),
        ("[S.i] = R.l", False),
        ("[S.i] < [NULL, R.id]", True),
        ("coalesce([S.i], R.l)", [None]),
        ("CASE WHEN S.i IS NULL THEN R.l ELSE [S.i] END", [1, None]),
        ("list_contains([S.i, R.id], 1)", True),
        ("list_contains([S.i], R.id)", False),
        ("len([S.i])", 1),
        ("S.l[1]", None),
    ],
)
def test_lists_of_a_stream_that_has_sent_nothing(item: str, value: Any) -> None:
    """Its types are not known then."""
    sql = f"SELECT R.id, {item} AS value FROM R LEFT JOIN S ON R.id = S.id WINDOW AS (ROWS 1)"
    rows_of_r = pa.table({"id": [1, 2], "l": pa.array([[1, None], None], pa.list_(pa.int64()))})
    with StreamJoin.from_sql(sql).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", rows_of_r)
        running.finish()
        (first, *_) = [row for batch in running.results() for row in batch.to_pylist()]
    assert first == {"R.id": 1, "value": value}


def test_a_number_of_days_later_is_a_date() -> None:
    table = {"id": [1], "d": [date(2024, 1, 30)], "n": [2]}
    items = {
        "(R.d + 1) + R.n": date(2024, 2, 2), "R.d - 30 - 1": date(2023, 12, 30),
        "CAST(R.d + 1 AS VARCHAR)": "2024-01-31",
        "R.d + 2 + INTERVAL '1' MONTH": date(2024, 3, 1), "(R.d + 1) - S.d = 1": True,
        "R.d + INTERVAL '1' DAY": datetime(2024, 1, 31),
        "TIMESTAMP '2024-01-31 00:00:00' + INTERVAL '1' MONTH > R.d": True,
        "greatest(R.d, TIMESTAMP '2024-01-31 06:00:00' + INTERVAL '1' MONTH)": datetime(2024, 2, 29, 6),
    }  # fmt: skip
    shown = ", ".join(f"{item} AS v{number}" for number, item in enumerate(items))
    sql = f"SELECT {shown} FROM R JOIN S ON R.d + 1 - 1 = S.d WINDOW AS (ROWS 9)"
    (found,) = rows(StreamJoin.from_sql(sql).collect({"R": table, "S": table}))
    assert dict(zip(items, found, strict=True)) == items
