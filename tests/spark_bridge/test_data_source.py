"""Streaming queries that write to a running join with `format("interlace")`."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

from operators import RunningJoin
from spark_bridge import InterlaceDataSource
from spark_bridge.feed_writer import FeedWriter
from tests.spark_bridge import faulty_functions
from tests.spark_bridge.micro_batches import add_files, as_source, random_batches, streamed, trips_join
from tests.spark_bridge.readings import plain
from topology import AuthenticationError, Handle, InputError, LocalRuntime

LONG = 300


@pytest.fixture(scope="session")
def source(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(InterlaceDataSource)
    return spark


def write(df: DataFrame, running: Handle, stream: str, feed: str, checkpoint: Path, **options: str) -> StreamingQuery:
    """Start a query that writes all micro-batches that are there, and then ends."""
    endpoint = running.endpoint(stream)
    df.sparkSession.conf.set("spark.interlace.token", str(endpoint.token))
    writer = df.writeStream.format(options.pop("format", "interlace"))
    writer = writer.option("endpoint", endpoint.uri).option("stream", stream)
    writer = writer.option("feed", feed).option("checkpointLocation", str(checkpoint)).options(**options)
    return writer.trigger(availableNow=True).start()


def finish(query: StreamingQuery) -> None:
    assert query.awaitTermination(LONG)


def results(running: RunningJoin) -> list[tuple[object, ...]]:
    running.finish()
    return plain(pa.Table.from_batches(list(running.results())))


def test_a_join_fed_by_streaming_queries_equals_collect_after_both_have_died(
    source: SparkSession, tmp_path: Path
) -> None:
    """The topology is launched again; Spark repeats a committed micro-batch in other partitions; one is empty.

    Stream S has two feeds, one of them in the first life only.
    """
    r, s, more = random_batches(1, 3), random_batches(2, 2), random_batches(3, 1)
    r[1] = r[1].slice(0, 0)
    for folder, batches in (("r", r[:2]), ("s", s), ("t", more)):
        add_files(tmp_path / folder, batches)
    sources = {"R": ["trips"], "S": ["slow", "swift"]}
    with trips_join().launch(LocalRuntime(state=tmp_path / "state"), sources=sources) as running:
        queries = [
            write(streamed(source, tmp_path / "r", 3), running, "R", "trips", tmp_path / "c1"),
            write(streamed(source, tmp_path / "t"), running, "S", "swift", tmp_path / "c3"),
        ]
        for query in queries:
            finish(query)
    (tmp_path / "c1" / "commits" / "1").unlink()  # as if Spark had died before it knew of the commit
    (tmp_path / "c1" / "commits" / ".1.crc").unlink()
    add_files(tmp_path / "r", r[2:])
    with trips_join().launch(LocalRuntime(state=tmp_path / "state"), sources=sources) as running:
        finish(write(streamed(source, tmp_path / "r", 2), running, "R", "trips", tmp_path / "c1"))
        finish(write(streamed(source, tmp_path / "s", 2), running, "S", "slow", tmp_path / "c2"))
        assert running.metrics().total("late") == 0
        got = results(running)
    given = {"R": {"trips": as_source(r)}, "S": {"slow": as_source(s), "swift": as_source(more)}}
    expected = trips_join().collect(given)
    assert expected.num_rows > 50
    assert got == plain(expected)


def test_everything_enters_once_whoever_dies(source: SparkSession, tmp_path: Path) -> None:
    """Processes of tasks die, the query between all its steps, the topology; the checkpoint goes away and comes back.

    Each life of the query has other partitions. `tests/spark_bridge/test_exactly_once.py` does the same with executors,
    and with Spark's own speculation.
    """
    r, s = random_batches(6, 4, rows=120), random_batches(7, 1, rows=120)
    add_files(tmp_path / "r", r)
    faults = tmp_path / "faults"
    faults.mkdir()
    for name in ("half-0-0", "late-0-1", "twice-0-2", "after-0", "half-1-1", "before-1", "before-2", "twice-3-0"):
        (faults / name).touch()
    state, sources = LocalRuntime(state=tmp_path / "state"), {"R": ["trips"], "S": ["s"]}
    lives = [(3, 0, "after the commit"), (2, 1, "before the commit"), (3, 2, "before the commit"), (1, 4, "")]
    source.dataSource.register(faulty_functions.FaultyDataSource)
    for life, (partitions, committed, fails) in enumerate(lives):
        with trips_join().launch(state, sources=sources) as running:
            df, options = streamed(source, tmp_path / "r", partitions), {"faults": str(faults), "format": "faulty"}
            query = write(df, running, "R", "trips", tmp_path / "c", **options)
            with pytest.raises(StreamingQueryException, match=fails) if fails else nullcontext():
                finish(query)
            entered = sum(batch.num_rows for batch in r[: max(1, committed)])
            assert running.next_offset("R", "trips") == entered
            if life == 1:
                (tmp_path / "c").rename(tmp_path / "away")
                lost = write(streamed(source, tmp_path / "r"), running, "R", "trips", tmp_path / "c")
                with pytest.raises(StreamingQueryException, match="feed 'trips': it belongs to query"):
                    finish(lost)
                shutil.rmtree(tmp_path / "c")
                (tmp_path / "away").rename(tmp_path / "c")
                assert running.next_offset("R", "trips") == entered
            if fails:
                continue
            running.send("S", as_source(s), source="s")
            assert running.metrics().total("late") == 0
            got = results(running)
    assert not list(faults.iterdir()), "every fault has happened"
    expected = trips_join().collect({"R": {"trips": as_source(r)}, "S": {"s": as_source(s)}})
    assert expected.num_rows > 100
    assert got == plain(expected)


def test_a_deleted_checkpoint_is_refused_unless_the_query_takes_over(source: SparkSession, tmp_path: Path) -> None:
    batches = random_batches(4, 1)
    add_files(tmp_path / "r", batches)
    with trips_join().launch(LocalRuntime()) as running:
        finish(write(streamed(source, tmp_path / "r"), running, "R", "trips", tmp_path / "c"))
        query = write(streamed(source, tmp_path / "r"), running, "R", "trips", tmp_path / "another")
        with pytest.raises(StreamingQueryException, match="feed 'trips': it belongs to query"):
            query.awaitTermination(LONG)
        assert running.next_offset("R", "trips") == 30
        finish(write(streamed(source, tmp_path / "r"), running, "R", "trips", tmp_path / "another", takeOver="true"))
        assert running.next_offset("R", "trips") == 60


def test_what_is_missing_is_named(source: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "r", random_batches(5, 1))
    df = streamed(source, tmp_path / "r")
    with trips_join(out_of_order=None).launch(LocalRuntime()) as running:
        query = write(df, running, "R", "trips", tmp_path / "no delay")
        with pytest.raises(StreamingQueryException, match="feed 'trips': it declares no delay"):
            query.awaitTermination(LONG)
        uri = running.endpoint("R").uri
    columns = StructType().add("id", "long")
    for options, said in (
        ({"endpoint": uri, "stream": "R"}, "needs the option feed"),
        ({"endpoint": "elsewhere", "stream": "R", "feed": "f"}, "not the URI of an endpoint"),
        ({"endpoint": uri, "stream": "R", "feed": "f", "takeOver": "yes"}, "takeOver must be true or false"),
    ):
        with pytest.raises(InputError, match=said):
            FeedWriter.of(options, columns, {})
    with pytest.raises(AuthenticationError, match="configuration has no token"):
        FeedWriter.of({"endpoint": uri, "stream": "R", "feed": "f"}, columns, {}).write(iter(()))
