"""`il.join` of Spark DataFrames, and what it says about those that it cannot take."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import interlace as il
from tests.spark_bridge.micro_batches import DELAY, add_files, as_source, random_batches, streamed
from tests.topology.waiting import wait_for

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
        found = il.results_dataframe(running, spark)
        assert (found.columns, found.collect()) == (["R_x", "S_x"], [(1, 2)])
    with join.launch() as running:
        for name in "RS":
            running.pin(name, pa.schema([("x", pa.int64())]))
        assert il.results_dataframe(running, spark, separator=".").columns == ["R.x", "S.x"]


def test_conditions_of_spark_are_refused(spark: SparkSession) -> None:
    left, right = frames(spark)
    condition = sql.col("left.x") < sql.col("right.x")
    with pytest.raises(il.PredicateError, match=r'write on="left.a < right.a", or columns of this join'):
        il.join(left, right, on=condition, window=il.UnboundedWindow())


def test_names_of_frames_that_are_not_both_spark_are_told(spark: SparkSession) -> None:
    left, _ = frames(spark)
    with pytest.raises(il.JoinError, match=r"frame 'right' is .* and the other one Spark"):
        il.join(left, RIGHT, on="left.x < right.x", window=il.UnboundedWindow())


def files(spark: SparkSession, folder: Path, seed: int, count: int = 2) -> tuple[DataFrame, list[pa.Table]]:
    """A streaming DataFrame with a micro-batch for each file."""
    batches = random_batches(seed, count)
    add_files(folder, batches)
    return streamed(spark, folder, 2), batches


def until(query: Any, table: str, spark: SparkSession, count: int) -> list[tuple[Any, ...]]:
    """The rows of a query into memory, once there are so many."""
    while spark.table(table).count() < count:
        query.processAllAvailable()
    return [tuple(row) for row in spark.table(table).collect()]


STREAMS: dict[str, Any] = {
    "on": "a.x < b.x AND a.x + 20 > b.x",
    "window": il.TimeWindow(40),
    "select": ["a.id", "b.id"],
    "event_time": "ts",
    "names": ("a", "b"),
}
PATIENCE = 300


def described(**settings: Any) -> il.StreamJoin:
    arguments = {key: value for key, value in STREAMS.items() if key != "names"}
    return il.StreamJoin("a", "b", **{**arguments, "out_of_order": DELAY, **settings})


def expected_of(left: pa.Table, right: pa.Table) -> Counter[tuple[Any, ...]]:
    """What has come when the streams have not ended: all pairs but those of the rows that may have predecessors."""
    found = described().collect({"a": {"left": left}, "b": {"right": right}})
    return Counter(tuple(row.values()) for row in found.to_pylist())


def test_streaming_frames_join_and_everything_ends_with_the_query(spark: SparkSession, tmp_path: Path) -> None:
    before = {query.id for query in spark.streams.active}
    left, r = files(spark, tmp_path / "r", 71, 3)
    right, s = files(spark, tmp_path / "s", 72, 3)
    found = il.join(left, right, out_of_order=DELAY, **STREAMS)
    assert found.isStreaming
    assert found.columns == ["a_id", "b_id"]
    others = il.join(right, left, out_of_order=DELAY, **STREAMS)  # it does not disturb the first
    query = found.writeStream.format("memory").queryName("one_line").start()
    last = pa.table({"id": [1000], "ts": [10_000], "x": [-1000]})
    for folder in "rs":
        add_files(tmp_path / folder, [last])
    expected = expected_of(as_source(r), as_source(s))
    assert sum(expected.values()) > 50
    assert Counter(until(query, "one_line", spark, sum(expected.values()))) == expected
    feeds = {active.id for active in spark.streams.active} - before - {query.id}
    assert len(feeds) == 4, "two of each join"
    query.stop()
    wait_for(lambda: len({active.id for active in spark.streams.active} - before) == 2)
    del others
    for active in spark.streams.active:
        if active.id not in before:
            active.stop()  # a feed that ends takes the rest with it
            break
    wait_for(lambda: {active.id for active in spark.streams.active} <= before)


def test_a_streaming_frame_joins_a_bounded_one(spark: SparkSession, tmp_path: Path) -> None:
    left, r = files(spark, tmp_path / "r", 73)
    right = random_batches(74, 1)[0].sort_by([("ts", "ascending"), ("id", "ascending")])
    frame = spark.createDataFrame(right.to_pylist(), "id long, ts long, x long")
    found = il.join(left, frame, out_of_order={"a": DELAY}, **STREAMS)
    query = found.writeStream.format("memory").queryName("with_bounded").start()
    add_files(tmp_path / "r", [pa.table({"id": [1000], "ts": [10_000], "x": [-1000]})])
    expected = expected_of(as_source(r), right)
    assert sum(expected.values()) > 10
    assert Counter(until(query, "with_bounded", spark, sum(expected.values()))) == expected
    query.stop()
    wait_for(lambda: not spark.streams.active)


def test_with_a_state_and_a_checkpoint_the_same_call_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    got: list[tuple[Any, ...]] = []

    def keep(rows: DataFrame, number: int) -> None:
        got.extend(tuple(row) for row in rows.collect())

    tables: dict[str, list[pa.Table]] = {"r": random_batches(75, 4), "s": random_batches(76, 4)}
    for life in range(2):
        for name, batches in tables.items():
            add_files(tmp_path / name, batches[2 * life : 2 * life + 2])
        if life:
            for name in tables:
                add_files(tmp_path / name, [pa.table({"id": [1000], "ts": [10_000], "x": [-1000]})])
        found = il.join(
            streamed(spark, tmp_path / "r"), streamed(spark, tmp_path / "s"), out_of_order=DELAY,
            runtime=il.LocalRuntime(state=tmp_path / "state"), checkpoint=tmp_path / "feeds", **STREAMS,
        )  # fmt: skip
        query = found.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "out")).start()
        expected = expected_of(as_source(tables["r"]), as_source(tables["s"]))
        while len(got) < (sum(expected.values()) if life else 1):
            query.processAllAvailable()
        query.stop()
        wait_for(lambda: not spark.streams.active)
    assert Counter(got) == expected
    assert sum(expected.values()) > 50


def test_what_a_streaming_join_cannot_keep_or_order_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    left, _ = files(spark, tmp_path / "r", 77)
    right, _ = files(spark, tmp_path / "s", 78)
    bounded = frames(spark)[1]
    durable = il.LocalRuntime(state=tmp_path / "state")
    for given, said in (
        ((left, right, {"out_of_order": None}), "feed 'left': it declares no delay"),
        ((left, right, {"checkpoint": tmp_path}), r"checkpoint= is given and runtime=il.LocalRuntime\(.* is not"),
        ((left, right, {"runtime": durable}), "state= is given and checkpoint= is not"),
        ((left, bounded, {"runtime": durable}), "frame 'b' is bounded and the other one streaming"),
        ((left, right, {"event_time": None, "out_of_order": None}), "name their event time, event_time="),
        ((bounded, bounded, {}), "out_of_order= has no effect on bounded frames"),
        ((bounded, bounded, {"out_of_order": None, "checkpoint": tmp_path}), "checkpoint= has no effect"),
    ):
        first, second, changed = given
        with pytest.raises((il.JoinError, il.InputError), match=said):
            il.join(first, second, **{**STREAMS, "out_of_order": DELAY, **changed})
    assert not spark.streams.active


def test_the_checkpoint_of_a_query_of_another_run_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    left, _ = files(spark, tmp_path / "r", 79)
    right, _ = files(spark, tmp_path / "s", 80)
    for run in range(2):
        found = il.join(left, right, out_of_order=DELAY, **STREAMS)
        writer = found.writeStream.foreachBatch(lambda rows, number: None)
        query = writer.option("checkpointLocation", str(tmp_path / "out")).start()
        if run:
            with pytest.raises(StreamingQueryException, match="belongs to another run, whose results are gone"):
                query.awaitTermination(PATIENCE)
        else:
            while query.lastProgress is None:
                query.processAllAvailable()
        query.stop()
        for active in spark.streams.active:
            active.stop()
        wait_for(lambda: not spark.streams.active)


TOTALS: dict[str, Any] = {
    "aggregate": {"n": il.count(), "total": il.sum("b.x"), "last": il.max("b.id")},
    "select": ["a.id"],
    "event_time": "ts",
}


def test_rows_come_with_aggregates_over_their_matches(spark: SparkSession) -> None:
    left, right = frames(spark)
    for on, window in (("a.x < b.x", il.TimeWindow(4)), ("a.x < b.x AND b.ts BETWEEN a.ts - 2 AND a.ts + 3", None)):
        found = il.join(left, right, on=on, window=window, names=("a", "b"), **TOTALS)
        rows = {"a": LEFT.sort_by("ts"), "b": RIGHT.sort_by("ts")}
        expected = il.StreamJoin("a", "b", on, window, **TOTALS).collect(rows)
        assert found.columns == ["a_id", "n", "total", "last"]
        assert Counter(map(tuple, found.collect())) == Counter(tuple(row.values()) for row in expected.to_pylist())


@pytest.mark.slow
def test_streaming_frames_come_with_aggregates_when_their_interval_has_closed(
    spark: SparkSession, tmp_path: Path
) -> None:
    left, r = files(spark, tmp_path / "r", 81)
    right, s = files(spark, tmp_path / "s", 82)
    near = "a.x < b.x AND b.ts BETWEEN a.ts - 10 AND a.ts + 20"
    found = il.join(left, right, on=near, window=None, names=("a", "b"), out_of_order=DELAY, **TOTALS)
    assert found.isStreaming
    query = found.writeStream.format("memory").queryName("totals").start()
    for folder in "rs":
        for time in (10_000, 20_000):  # intervals close at the first row, which passes when the second is there
            add_files(tmp_path / folder, [pa.table({"id": [1000], "ts": [time], "x": [-1000]})])
    described = il.StreamJoin("a", "b", near, out_of_order=DELAY, **TOTALS)
    expected = described.collect({"a": {"left": as_source(r)}, "b": {"right": as_source(s)}})
    assert Counter(until(query, "totals", spark, expected.num_rows)) == Counter(
        tuple(row.values()) for row in expected.to_pylist()
    )
    query.stop()
    wait_for(lambda: not spark.streams.active)
