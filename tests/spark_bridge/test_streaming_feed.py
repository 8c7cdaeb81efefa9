"""`feed` of a streaming DataFrame, and `feed_batch` in `foreachBatch`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from operators import RunningJoin, TimeWindow
from spark_bridge import feed, feed_batch
from spark_bridge.schemas import watermark_delays
from tests.spark_bridge.micro_batches import SCHEMA as MICRO_BATCH
from tests.spark_bridge.micro_batches import add_files, as_source, random_batches, streamed, trips_join
from tests.spark_bridge.readings import plain, readings
from tests.topology.waiting import wait_for
from topology import FlightClient, InputError, LocalRuntime, SchemaError

LONG = 300
NOW = {"availableNow": True}


def results(running: RunningJoin) -> list[tuple[object, ...]]:
    running.finish()
    return plain(pa.Table.from_batches(list(running.results())))


def test_feeds_of_two_streams_equal_collect_and_the_handle_is_that_of_a_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    """R by `feed`, restarted once with other partitions; S by `feed_batch`."""
    r, s = random_batches(11, 2, rows=60), random_batches(12, 2, rows=60)
    add_files(tmp_path / "s", s)
    with trips_join().launch(LocalRuntime()) as running:
        for partitions, batch in enumerate(r, 1):
            add_files(tmp_path / "r", [batch])
            fed = feed(
                streamed(spark, tmp_path / "r", partitions), running, "R", name="trips", checkpoint=tmp_path / "c1",
                trigger="1 second",
            )  # fmt: skip
            fed.processAllAvailable()
            assert fed.isActive
            assert fed.exception() is None
            assert fed.lastProgress["batchId"] >= 0
            fed.stop()
            assert fed.awaitTermination(LONG)
            assert not fed.isActive
        s_writer = streamed(spark, tmp_path / "s").writeStream.foreachBatch(feed_batch(running, "S", "cabs"))
        query = s_writer.option("checkpointLocation", str(tmp_path / "c2")).trigger(availableNow=True).start()
        assert query.awaitTermination(LONG)
        assert running.metrics().total("late") == 0
        got = results(running)
    expected = trips_join().collect({"R": {"trips": as_source(r)}, "S": {"cabs": as_source(s)}})
    assert expected.num_rows > 50
    assert got == plain(expected)


def test_a_micro_batch_that_foreach_batch_repeats_enters_once(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "r", random_batches(13, 2))
    with trips_join().launch(LocalRuntime()) as running:
        send = feed_batch(running, "R", "trips")
        planted = [RuntimeError("planted: after the commit")]

        def send_and_fail_once(df: DataFrame, number: int) -> None:
            send(df.repartition(3) if planted else df, number)
            if planted:
                raise planted.pop()

        for fails in (True, False):
            writer = streamed(spark, tmp_path / "r").writeStream.foreachBatch(send_and_fail_once)
            query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
            with pytest.raises(StreamingQueryException, match="planted") if fails else nullcontext():
                assert query.awaitTermination(LONG)
            assert running.next_offset("R", "trips") == (30 if fails else 60)


def test_a_feed_that_cannot_work_is_refused_before_any_query_starts(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "r", random_batches(14, 1))
    df = streamed(spark, tmp_path / "r")
    with trips_join(out_of_order=None).launch(LocalRuntime()) as running:
        with pytest.raises(InputError, match=r"feed 'trips': it declares no delay.*out_of_order="):
            feed(df, running, "R", name="trips", checkpoint=tmp_path / "c")
        with pytest.raises(InputError, match="feed 'R': it declares no delay"):
            feed_batch(running, "R")
    with trips_join().launch(LocalRuntime()) as running:
        with pytest.raises(InputError, match="presorted= has no effect on a streaming DataFrame"):
            feed(df, running, "R", presorted=True)
        with pytest.raises(InputError, match="trigger= has no effect on a bounded DataFrame"):
            feed(readings(spark, 10, 1, seed=1), running, "R", trigger=NOW)  # type: ignore[call-overload]
        with pytest.raises(SchemaError, match="column 'x', which the join needs, is missing"):
            feed(df.drop("x"), running, "R", checkpoint=tmp_path / "c")
        feed(df.select("x", "ts", "id"), running, "R", checkpoint=tmp_path / "c", trigger=NOW).awaitTermination(LONG)
        add_files(tmp_path / "r", random_batches(15, 1))  # columns in another order fit by name
        feed(df, running, "R", checkpoint=tmp_path / "c", trigger=NOW).awaitTermination(LONG)
        assert running.next_offset("R", "R") == 60
        with pytest.raises(SchemaError, match="'x' is string, expected int64"):
            feed(df.withColumn("x", sql.col("x").cast("string")), running, "R", checkpoint=tmp_path / "c")
        other = feed(df, running, "R", checkpoint=tmp_path / "another", trigger=NOW)
        with pytest.raises(InputError, match=r"^stream 'R', feed 'R': it belongs to query .* takeOver=true"):
            other.awaitTermination(LONG)
        assert isinstance(other.exception(), InputError)


def test_a_silent_feed_does_not_hold_back_a_join_with_idle_after(spark: SparkSession, tmp_path: Path) -> None:
    r, s = random_batches(16, 1), random_batches(17, 2)
    with trips_join(idle_after="2 s").launch(LocalRuntime()) as running:
        for folder, stream, batches in (("r", "R", r), ("s", "S", s)):
            add_files(tmp_path / folder, batches)
            df = streamed(spark, tmp_path / folder)
            feed(df, running, stream, checkpoint=tmp_path / f"c{stream}", trigger=NOW).awaitTermination(LONG)
        wait_for(lambda: running.metrics().total("merged") == 90)  # though neither feed has ended
        assert running.metrics().total("late") == 0


def test_a_watermark_of_the_query_is_a_delay_too(spark: SparkSession, tmp_path: Path) -> None:
    """Of rows that come back from the past, those within the watermark's delay take part, and the others are late."""
    described = replace(trips_join(out_of_order=None), window=TimeWindow(timedelta(seconds=40)))
    first, second = [0, 100], [49, 51, 99]
    for number, seconds in enumerate((first, second)):
        content = [{"id": number, "ts": each, "x": 1} for each in seconds]
        add_files(tmp_path / "r", [pa.Table.from_pylist(content, MICRO_BATCH)])
    df = streamed(spark, tmp_path / "r").withColumn("ts", sql.timestamp_seconds("ts")).withWatermark("ts", "50 seconds")
    with described.launch(LocalRuntime(), sources={"R": ["trips"]}) as running:
        feed(df, running, "R", name="trips", checkpoint=tmp_path / "c", trigger=NOW).awaitTermination(LONG)
        s_rows = pa.table({"id": [7], "ts": pa.array([100_000_000], pa.timestamp("us", "UTC")), "x": [2]})
        running.send("S", s_rows, source="s")
        got = results(running)
        late = [row for batch in running.late() for row in batch.to_pylist()]
    assert [(row["offset"], row["reason"]) for row in late] == [(2, "out of order")]
    assert sorted(got) == [(0, 7), (1, 7)]


def test_of_several_watermarks_that_of_the_event_time_counts() -> None:
    columns = StructType().add("x", "long")
    for name, milliseconds in (("seen", 3), ("ts", 7)):
        columns = columns.add(name, "timestamp", metadata={"spark.watermarkDelayMs": milliseconds})
    delays = watermark_delays(columns)
    assert delays == {"seen": 3_000, "ts": 7_000}
    with trips_join(out_of_order=None).launch(LocalRuntime()) as running, FlightClient(running.endpoint("R")) as client:
        with pytest.raises(InputError, match="declares no delay"):
            client.open_feed("R", "trips", "query", delays={"seen": 3_000})
        assert client.open_feed("R", "trips", "query", delays=delays) == -1
        with pytest.raises(InputError, match="a delay of 7000, and this query has a delay of 3"):
            client.open_feed("R", "trips", "query", delays={"ts": 3})
