"""`il.join(aggregate=...)`: each row of a frame with values over its matches, judged by DuckDB."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import interlace as il
from tests.interlace.frames_of_every_kind import LIBRARIES, as_arrow, frame, table

ALL = il.UnboundedWindow()

VALUES = {
    "n": "count(r.id)", "known": "count(r.x)", "total": "sum(r.k)", "mean": "avg(r.x)", "least": "min(r.word)",
    "last": "max(r.id)",
}  # fmt: skip
"""What DuckDB computes over the rows of `r` that match; NaN is as unknown as null to us, and a number to it."""
AGGREGATES = {
    "n": il.count(), "known": il.count("right.x"), "total": il.sum("right.k"), "mean": il.avg("right.x"),
    "least": il.min("right.word"), "last": il.max("right.id"),
}  # fmt: skip


def by_duckdb(condition: str, left: pa.Table, right: pa.Table) -> Counter[tuple[Any, ...]]:
    known = "* REPLACE (CASE WHEN isnan(x) THEN NULL ELSE x END AS x)"
    with duckdb.connect() as connection:
        connection.register("lefts", left)
        connection.register("rights", right)
        query = f"SELECT l.id, {', '.join(VALUES.values())} FROM (SELECT {known} FROM lefts) AS l "
        query += f"LEFT JOIN (SELECT {known} FROM rights) AS r ON {condition} GROUP BY l.id"
        return Counter(connection.sql(query).fetchall())


def rows(library: str, found: Any) -> list[tuple[Any, ...]]:
    result = as_arrow(library, found)
    assert result.schema.names == ["left_id", *VALUES]
    return [tuple(row.values()) for row in result.to_pylist()]


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_of_frame_aggregates_over_earlier_rows(library: str) -> None:
    left, right = table(21, 40), table(22, 50)
    found = il.join(
        frame(library, left), frame(library, right), on="left.x <= right.x", window=ALL, aggregate=AGGREGATES,
        select=["left.id"], event_time="ts",
    )  # fmt: skip
    listed = rows(library, found)
    assert Counter(listed) == by_duckdb("l.x <= r.x AND r.ts < l.ts", left, right)
    in_order = left.append_column("n", pa.array(range(40))).sort_by([("ts", "ascending"), ("n", "ascending")])
    assert [row[0] for row in listed] == in_order["id"].to_pylist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_and_over_all_rows_of_an_interval(library: str) -> None:
    left, right = table(23, 40), table(24, 50)
    near = "{r}.ts BETWEEN {l}.ts - INTERVAL '2' HOUR AND {l}.ts + INTERVAL '1' HOUR AND {l}.k = {r}.k"
    found = il.join(
        frame(library, left), frame(library, right), on=near.format(l="left", r="right"), window=None,
        aggregate=AGGREGATES, select=["left.id"], event_time="ts",
    )  # fmt: skip
    assert Counter(rows(library, found)) == by_duckdb(near.format(l="l", r="r"), left, right)


def test_rows_of_the_right_frame_come_out_if_the_aggregates_name_the_left() -> None:
    found = il.join(
        {"x": [1, 2, 9]}, {"id": [7, 8], "y": [2, 5]}, on="a.x <= b.y", window=ALL, names=("a", "b"),
        aggregate={"n": il.count(), "most": il.max("a.x")},
    )  # fmt: skip
    assert found == {"b_id": [7, 8], "b_y": [2, 5], "n": [1, 2], "most": [1, 2]}


def test_columns_without_a_value_keep_their_type() -> None:
    import pandas as pd

    left, right = pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [0, 5], "y": [2**60 + 1, 1]})
    found = il.join(left, right, on="left.x < right.x", window=ALL, aggregate={"total": il.sum("right.y")})
    assert found["total"].tolist() == [pd.NA, pd.NA]
    assert found["total"].dtype == "Int64"


ONE: dict[str, Any] = {"left": {"x": [1]}, "right": {"x": [2]}, "on": "left.x < right.x", "window": ALL}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"aggregate": {"left_x": il.count()}}, "two columns of the result would be called 'left_x'"),
        ({"aggregate": {"n": il.count()}, "kind": "left"}, "leave kind out"),
        ({"aggregate": {"n": "count"}}, "aggregate 'n' must be one such as in {'n': count"),
        ({"aggregate": {"n": il.sum("R.x")}}, "aggregate 'n': 'R.x' must start with 'left.' or 'right.'"),
        ({"aggregate": {"n": il.count()}, "select": ["right.x"]}, "each result is a row of 'left'"),
    ],
)
def test_mistakes_are_explained(given: dict[str, Any], message: str) -> None:
    arguments = {**ONE, **given}
    with pytest.raises(il.JoinError) as error:
        il.join(arguments.pop("left"), arguments.pop("right"), **arguments)
    assert message in str(error.value)
