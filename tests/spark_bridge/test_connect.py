"""Sessions of Spark Connect: rows and results as from a classic session, and what is refused there."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect import functions as sql
from pyspark.sql.connect.session import SparkSession

import interlace as il
from spark_bridge import UnsupportedSessionError, connect_spark, feed, feed_batch, results_dataframe
from tests.spark_bridge import faulty_functions
from tests.spark_bridge.micro_batches import trips_join
from tests.spark_bridge.readings import SCHEMA, join, plain
from tests.topology.waiting import LONG

JOIN = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(100), select=["R.x", "S.x"])
PAIRS = [(left, right) for right in range(9) for left in range(right)]


def send(running: il.RunningJoin) -> None:
    for stream in "RS":
        running.send(stream, {"x": list(range(9))}, source="a")
    running.finish()


def tuples(frame: Any) -> list[tuple[int, ...]]:
    return [tuple(row) for row in frame.collect()]


def test_results_come_in_all_three_ways(connected: SparkSession, tmp_path: Path) -> None:
    sources = {"R": ["a"], "S": ["a"]}
    with JOIN.launch(il.LocalRuntime(), sources=sources) as running:
        send(running)
        connect_spark(connected, running)
        options = {"endpoint": running.endpoint("results").uri, "sink": "results"}
        assert tuples(connected.read.format("interlace").options(**options).load()) == PAIRS
        stream = connected.readStream.format("interlace").options(**options).load()
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "found"))
        assert query.awaitTermination(int(LONG))
        assert sorted(tuples(connected.read.parquet(str(tmp_path / "found")))) == sorted(PAIRS)
    with JOIN.launch(il.LocalRuntime(), sources=sources) as running:
        send(running)
        found = results_dataframe(running, connected)
    assert found.columns == ["R_x", "S_x"]
    assert tuples(found) == PAIRS
    assert found.count() == len(PAIRS)


def rows_of(session: SparkSession, rows: int, partitions: int, seed: int) -> Any:
    """As `readings`, of a session of Spark Connect: no two times are equal."""
    number = sql.col("id")
    columns = [number, ((number * 7919 + seed) % 100_003).alias("ts"), ((number * 31 + seed) % 101 / 10).alias("power")]
    return session.range(0, rows, 1, partitions).select(*columns, ((number * 57 + seed) % 103).alias("cool"))


def in_partitions(df: Any, names: Sequence[str]) -> dict[str, pa.Table]:
    """The rows that each partition must deliver, by the name of its source."""
    table = df.withColumn("partition", sql.spark_partition_id()).toArrow()
    schema = pa.schema([field.with_nullable(True) for field in table.drop_columns("partition").schema])
    return {
        name: table.filter(pc.equal(table["partition"], number)).drop_columns("partition").sort_by("ts").cast(schema)
        for number, name in enumerate(names)
    }


def staged(running: il.RunningJoin) -> Any:
    inner: Any = running
    return inner._running._group.ingest._streams["R"].staging._attempts


def test_bounded_frames_are_fed_as_from_a_classic_session(
    connected: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """More partitions than slots, one of them empty; a job that fails leaves nothing behind."""
    r, s = rows_of(connected, 300, 7, seed=1).where("id >= 50"), rows_of(connected, 200, 2, seed=2)
    failing = r.mapInArrow(faulty_functions.fails_in_the_third_partition, SCHEMA)
    with join().launch(il.LocalRuntime()) as running:
        with pytest.raises(PySparkException, match="the user's own code failed"):
            feed(failing, running, "R", name="failed", progress=False)
        assert not staged(running)
        fed_r = feed(r, running, "R")
        assert capsys.readouterr().err.startswith("feeding R: 7 partitions, 250 rows, ")
        fed_s = feed(s, running, "S", progress=False)
        nothing = feed(s.where("id < 0"), running, "S", progress=False)
        assert nothing.rows == 0
        found = results_dataframe(running, connected)
        got = plain(found.toArrow())
        assert not staged(running)
    assert (fed_r.rows, fed_r.partitions, fed_s.partitions) == (250, 7, 2)
    expected = join().collect({"R": in_partitions(r, fed_r.sources), "S": in_partitions(s, fed_s.sources)})
    assert expected.num_rows > 100
    assert got == plain(expected)


def test_the_one_line_joins_bounded_frames(connected: SparkSession) -> None:
    left, right = rows_of(connected, 40, 3, seed=3), rows_of(connected, 30, 2, seed=4)
    arguments: dict[str, Any] = {
        "on": "left.power < right.power", "window": il.TimeWindow(20_000), "event_time": "ts", "kind": "left",
    }  # fmt: skip
    found = il.join(left, right, **arguments)
    expected = il.join(left.toArrow(), right.toArrow(), **arguments)
    assert found.columns == expected.schema.names
    assert sorted(map(repr, tuples(found))) == sorted(map(repr, plain(expected)))


def test_what_needs_a_classic_session_says_so(connected: SparkSession) -> None:
    bounded: Any = connected.range(3).selectExpr("id", "id AS ts", "id AS x")
    with trips_join().launch(il.LocalRuntime()) as running:
        with pytest.raises(UnsupportedSessionError, match="through=True runs a job for each partition"):
            feed(bounded, running, "R", through=True)
        with pytest.raises(UnsupportedSessionError, match="runs the function of foreachBatch on its server"):
            pickle.dumps(feed_batch(running, "R"))  # as the session would, to send it there
