"""`il.join` of Spark DataFrames, and what it says about those that it cannot take."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import interlace as il

LEFT = pa.table({"id": list(range(12)), "ts": [7 * i % 12 for i in range(12)], "x": [i % 5 / 2 for i in range(12)]})
RIGHT = pa.table(
    {"id": list(range(9)), "ts": [5 * i % 12 for i in range(9)], "x": [*[i % 3 / 2 for i in range(8)], None]}
)


def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    left, right = (spark.createDataFrame(table.to_pylist(), "id long, ts long, x double") for table in (LEFT, RIGHT))
    return left.repartition(3), right.repartition(2)


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_data_frames_join_as_tables_do(spark: SparkSession, kind: str) -> None:
    left, right = frames(spark)
    arguments: dict[str, Any] = {
        "on": "a.x < b.x",
        "window": il.TimeWindow(3),
        "event_time": "ts",
        "kind": kind,
        "names": ("a", "b"),
    }
    found = il.join(left, right, **arguments)
    expected = il.join(LEFT, RIGHT, **arguments)
    assert found.columns == expected.schema.names
    rows = Counter(tuple(row) for row in found.collect())
    assert rows == Counter(tuple(row.values()) for row in expected.to_pylist())
    assert found.select("a_id", "b_ts").count() == expected.num_rows  # names that need no backticks


def test_an_empty_frame_shows_its_columns(spark: SparkSession) -> None:
    left, right = frames(spark)
    nothing = right.where("id < 0")
    found = il.join(left, nothing, on="left.x < right.x", window=il.UnboundedWindow(), kind="left")
    assert found.columns == ["left_id", "left_ts", "left_x", "right_id", "right_ts", "right_x"]
    assert {row.right_id for row in found.collect()} == {None}
    assert found.count() == LEFT.num_rows


def test_results_may_have_names_without_dots(spark: SparkSession) -> None:
    join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(5), select=["R.x", "S.x"])
    with join.launch() as running:
        running.send("R", {"x": [1]})
        running.send("S", {"x": [2]})
        with pytest.raises(il.InputError, match="separator must be text"):
            il.results_dataframe(running, spark, separator=5)  # type: ignore[arg-type]
        assert il.results_dataframe(running, spark, separator="_").collect() == [(1, 2)]


def test_conditions_of_spark_are_refused(spark: SparkSession) -> None:
    left, right = frames(spark)
    condition = sql.col("left.x") < sql.col("right.x")
    with pytest.raises(il.PredicateError, match=r'write on="left.a < right.a", or columns of this join'):
        il.join(left, right, on=condition, window=il.UnboundedWindow())


def test_a_streaming_frame_is_refused_and_what_the_message_says_works(spark: SparkSession, tmp_path: Path) -> None:
    left, right = frames(spark)
    left.coalesce(1).write.parquet(str(tmp_path / "left"))
    streaming = spark.readStream.schema(left.schema).parquet(str(tmp_path / "left"))
    window = il.UnboundedWindow()
    with pytest.raises(il.JoinError, match=r"frame 'left' is a streaming DataFrame.*foreachBatch"):
        il.join(streaming, right, on="left.x < right.x", window=window)
    join = il.StreamJoin("left", "right", "left.x < right.x", il.CountWindow(100), select=["left.id", "right.id"])
    with join.launch() as running:
        writing = streaming.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writing.foreachBatch(lambda rows, number: running.send("left", rows.toArrow())).trigger(
            availableNow=True
        )
        assert query.start().awaitTermination(120)
        running.send("right", RIGHT.drop_columns(["ts"]))
        running.finish()
        found = sum(rows.num_rows for rows in running.results())
    assert found == il.join(LEFT, RIGHT, on="left.x < right.x", window=window).num_rows
