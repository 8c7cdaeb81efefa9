"""`il.join`: frames of every kind in, the same kind out, judged by DuckDB."""

from __future__ import annotations

import datetime
import doctest
import sys
from collections import Counter
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import interlace as il
from tests.interlace.frames_of_every_kind import LIBRARIES, NAN, ZONE, as_arrow, frame, table

ALL = il.UnboundedWindow()
KINDS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}


def ids(rows: pa.Table) -> Counter[tuple[int | None, int | None]]:
    return Counter(zip(rows["left_id"].to_pylist(), rows["right_id"].to_pylist(), strict=True))


def by_duckdb(kind: str, condition: str, left: pa.Table, right: pa.Table) -> Counter[tuple[int | None, int | None]]:
    """NaN is as unknown as null here, and a number in DuckDB."""
    known = "* REPLACE (CASE WHEN isnan(x) THEN NULL ELSE x END AS x)"
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", right)
        query = f'SELECT "left".id, "right".id FROM (SELECT {known} FROM l) AS "left" {KINDS[kind]} '
        return Counter(connection.sql(f'{query} (SELECT {known} FROM r) AS "right" ON {condition}').fetchall())


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame_and_join(library: str, kind: str) -> None:
    left, right = table(1, 40), table(2, 30)
    condition = '"left".x < "right".x AND "left".k >= "right".k AND "left".word = "right".word'
    found = il.join(frame(library, left), frame(library, right), on=condition.replace('"', ""), window=ALL, kind=kind)
    result = as_arrow(library, found)
    assert ids(result) == by_duckdb(kind, condition, left, right)
    assert result.schema.names == [f"{side}_{name}" for side in ("left", "right") for name in left.schema.names]


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_in_no_order_are_joined_by_event_time(library: str) -> None:
    left, right = table(3, 60), table(4, 60)
    condition = '"left".x <= "right".x AND abs(epoch_us("left".ts) - epoch_us("right".ts)) <= 2 * 3600000000'
    found = il.join(
        frame(library, left),
        frame(library, right),
        on="left.x <= right.x",
        window=il.TimeWindow("2 h"),
        event_time="ts",
        select=["left.id", "left.ts", "right.id", "right.ts"],
    )
    result = as_arrow(library, found)
    assert ids(result) == by_duckdb("inner", condition, left, right)
    later = [max(pair) for pair in zip(result["left_ts"].to_pylist(), result["right_ts"].to_pylist(), strict=True)]
    assert later == sorted(later)


def test_rows_of_equal_time_keep_their_order_and_the_left_comes_first() -> None:
    for names in (("left", "right"), ("z", "a")):
        left, right = names
        found = il.join(
            {"id": [1, 2, 3], "ts": [5, 1, 5]},
            {"id": [7, 8], "ts": [5, 5]},
            on=f"{left}.id < {right}.id",
            window=(il.CountWindow(1), il.TimeWindow(0)),  # a right row meets the last left row; no left row meets any
            event_time="ts",
            names=names,
        )
        assert found == {f"{left}_id": [3, 3], f"{left}_ts": [5, 5], f"{right}_id": [7, 8], f"{right}_ts": [5, 5]}


def test_event_time_may_have_other_names_and_be_an_index() -> None:
    left = pd.DataFrame({"id": [1, 2]}, index=pd.Index(pd.array([20, 10], "Int64"), name="when"))
    right = pl.DataFrame({"id": [7, 8], "at": [11, 40]})
    found = il.join(
        left, right, on="left.id < right.id", window=il.TimeWindow(5), event_time={"left": "when", "right": "at"}
    )
    assert found.to_dict("records") == [{"left_when": 10, "left_id": 2, "right_id": 7, "right_at": 11}]
    assert found["left_when"].dtype == "Int64"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_empty_frames_give_their_columns(library: str, empty: str) -> None:
    sides = {side: table(5, 6).slice(0, 0 if empty in (side, "both") else 6) for side in ("left", "right")}
    if library in ("dict", "dicts") or (library == "pandas" and empty == "both"):
        sides = {side: rows.select(["id"]) for side, rows in sides.items()}
    if library in ("dict", "dicts"):
        with pytest.raises(il.InputError):  # lists without values have no types
            il.join(*(frame(library, rows) for rows in sides.values()), on="left.id <= right.id", window=ALL)
        return
    left, right = (frame(library, rows) for rows in sides.values())
    for kind in ("inner", "full"):
        result = as_arrow(library, il.join(left, right, on="left.id <= right.id", window=ALL, kind=kind))
        expected = [] if kind == "inner" else [rows.num_rows for rows in sides.values() if rows.num_rows]
        assert result.num_rows == sum(expected)
        names = [f"{side}_{name}" for side, rows in sides.items() for name in rows.schema.names]
        assert result.schema.names == names


def test_pandas_types_come_back() -> None:
    left = pd.DataFrame(
        {
            "id": pd.array([1, 2**62 + 1, None], "Int64"),
            "name": pd.array(["a", None, "c"], "string"),
            "kind": pd.Categorical(["u", "v", "u"], categories=["v", "u", "never"], ordered=True),
            "when": pd.to_datetime(["2024-01-01", "2024-01-02", None]).tz_localize(ZONE),
            "month": pd.period_range("2024-01", periods=3, freq="M"),
            "x": [1.5, NAN, 2.5],
            "flag": [True, False, True],
        }
    )
    found = il.join(left, left, on="left.flag = right.flag", window=ALL, select=["left.*"])
    found = found.rename(columns=lambda name: name.removeprefix("left_"))
    assert found.dtypes.to_dict() == left.dtypes.to_dict()
    for _, row in left.iterrows():
        same = found[found["month"] == row["month"]]
        assert len(same) == (left["flag"] == row["flag"]).sum()
        for _, copy in same.iterrows():
            pd.testing.assert_series_equal(copy, row, check_names=False)


def test_whole_numbers_beside_nulls_lose_no_digit() -> None:
    big = 2**60 + 1
    found = il.join(
        pd.DataFrame({"id": [big, 1], "ok": [True, False]}),
        pd.DataFrame({"id": [big], "ok": [True]}),
        on="left.id = right.id",
        window=ALL,
        kind="left",
    )
    assert found["right_id"].tolist() == [big, pd.NA]
    assert found["right_ok"].tolist() == [True, pd.NA]


def test_polars_types_come_back() -> None:
    colours = pl.Enum(["red", "blue", "never"])
    left = pl.DataFrame(
        {
            "id": [1, 2],
            "colour": pl.Series(["red", "blue"], dtype=colours),
            "word": pl.Series(["a", "b"], dtype=pl.Categorical),
            "x": [NAN, None],
            "day": [datetime.date(2024, 2, 29)] * 2,
            "parts": [[1], []],
        }
    )
    found = il.join(left, left, on="left.id = right.id", window=ALL, select=["left.*"])
    assert found.rename(lambda name: name.removeprefix("left_")).equals(left, null_equal=True)
    assert list(found.schema.values()) == list(left.schema.values())


def test_columns_are_named_as_select_says() -> None:
    left, right = il.stream("left"), il.stream("right")
    found = il.join(
        {"id": [1], "x": [3], "a.b": [0]},
        {"id": [7], "x": [5]},
        on=left.x < right.x,
        window=ALL,
        select=["left.id", "left.a.b", right.id.alias("offer"), (right.x - left.x).alias("gap")],
    )
    assert found == {"left_id": [1], "left_a.b": [0], "offer": [7], "gap": [2]}


def test_the_kind_of_the_left_frame_decides() -> None:
    found = il.join(pl.DataFrame({"x": [1]}), pd.DataFrame({"x": [2]}), on="left.x < right.x", window=ALL)
    assert found.equals(pl.DataFrame({"left_x": [1], "right_x": [2]}))


def test_a_frame_meets_itself() -> None:
    rows = {"x": [1, 2]}
    assert il.join(rows, rows, on="left.x = right.x", window=ALL) == {"left_x": [1, 2], "right_x": [1, 2]}


def test_semi_anti_and_count() -> None:
    left, right = {"x": [1, 5]}, {"x": [3, 4]}
    on = "left.x < right.x"
    assert il.join(left, right, on=on, window=ALL, kind="semi") == {"left_x": [1]}
    assert il.join(left, right, on=on, window=ALL, kind="anti") == {"left_x": [5]}
    counted = il.join(left, right, on=on, window=ALL, kind="count", select=["left.x", "right.x"])
    assert counted == {"left_x": [1, None, 5, None], "right_x": [None, 3, None, 4], "matches": [0, 1, 0, 1]}


def spark_frame(streaming: bool) -> Any:
    """Looks like a DataFrame of Spark from outside."""
    kind = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", "isStreaming": streaming})
    return kind()


ROWS = {"x": [1]}
MISTAKES: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("not a frame", {"right": "s.csv"}, il.InputError, r"frame 'right' takes an Arrow table, .*, not str"),
    (
        "a named frame",
        {"right": 5, "names": ("a", "b"), "on": "a.x < b.x"},
        il.InputError,
        "frame 'b' takes .*, not int",
    ),
    ("one name", {"names": "ab"}, il.JoinError, "names must be two different names"),
    ("names twice", {"names": ("a", "a")}, il.JoinError, "names must be two different names"),
    (
        "unknown side",
        {"on": "R.x < right.x"},
        il.QueryError,
        "there is no stream R in this join: its sides are left and",
    ),
    (
        "no column",
        {"on": "left.y < right.x"},
        il.SchemaError,
        "stream 'left': column 'y', which the join needs, is missing",
    ),
    ("no time", {"event_time": "ts"}, il.SchemaError, "stream 'left': event-time column 'ts' is missing; columns: x"),
    ("no window", {"window": None}, il.JoinError, "the join has no window"),
    (
        "a name twice",
        {"left": {"x": [1], "b_x": [1]}, "names": ("a", "a_b"), "on": "a.x < a_b.x"},
        il.JoinError,
        "two columns of the result would be called 'a_b_x'",
    ),
    ("Spark and others", {"left": spark_frame(False)}, il.JoinError, "frame 'right' is Python and the other one Spark"),
    (
        "Spark without order",
        {"left": spark_frame(False), "right": spark_frame(False), "window": il.CountWindow(5)},
        il.JoinError,
        "no order of their own: name their event time",
    ),
]


@pytest.mark.parametrize(("given", "error", "message"), [each[1:] for each in MISTAKES], ids=[e[0] for e in MISTAKES])
def test_mistakes_are_explained(given: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {"left": ROWS, "right": ROWS, "on": "left.x < right.x", "window": ALL, **given}
    with pytest.raises(error, match=message):
        il.join(arguments.pop("left"), arguments.pop("right"), **arguments)


def test_columns_of_spark_are_refused_with_the_way_to_write_them() -> None:
    column = type("Column", (), {"__module__": "pyspark.sql.classic.column"})()
    with pytest.raises(
        il.PredicateError, match=r"on is a Column of Spark, .*on=\"R.a < S.a\", or .*il.stream\('R'\).a <"
    ):
        il.StreamJoin("R", "S", column, ALL)
    with pytest.raises(il.PredicateError, match="where is a Column of Spark"):
        il.StreamJoin("R", "S", "R.a < S.a", ALL, where=column)
    with pytest.raises(il.JoinError, match=r"select: a Column of Spark, .*write 'R.id'"):
        il.StreamJoin("R", "S", "R.a < S.a", ALL, select=[column])


def test_the_example_of_its_description_holds() -> None:
    tried = doctest.testmod(sys.modules[il.join.__module__])
    assert (tried.failed, tried.attempted) == (0, 2)
