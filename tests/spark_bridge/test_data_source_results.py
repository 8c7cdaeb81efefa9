"""`format("interlace")` in reads: results of a topology as DataFrames, batch and streaming."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from operators import CountWindow, RunningJoin, StreamJoin, TimeWindow
from spark_bridge import InterlaceDataSource, connect_spark, results_reader
from spark_bridge.options import TOKEN
from spark_bridge.results_reader import divided
from tests.spark_bridge.encrypted import encrypt
from tests.spark_bridge.micro_batches import add_files, as_source, random_batches, streamed, trips_join
from tests.spark_bridge.readings import plain
from tests.topology.waiting import LONG
from topology import LocalRuntime

JOIN = StreamJoin("R", "S", "R.x < S.x", CountWindow(1_000_000), select=["R.x", "S.x"])


@pytest.fixture
def running() -> Iterator[RunningJoin]:
    """A join whose sink holds few results at a time."""
    with JOIN.launch(LocalRuntime(edge_bytes=20_000), sources={"R": ["R-0"], "S": ["S-0"]}) as running:
        yield running


def send(running: RunningJoin, first: int, count: int) -> None:
    """Rows of which the next `count` on each side have count * (count - 1) / 2 pairs among themselves."""
    rows = pa.table({"x": range(first, first + count)})
    running.send("R", rows, source="R-0")
    running.send("S", rows, source="S-0")


def pairs(count: int) -> list[tuple[int, int]]:
    return [(left, right) for right in range(count) for left in range(right)]


def options(running: RunningJoin, sink: str = "results", **others: Any) -> dict[str, str]:
    return {"endpoint": running.endpoint(sink).uri, "sink": sink, **{key: str(value) for key, value in others.items()}}


def in_micro_batches(frame: DataFrame, checkpoint: Path, into: list[list[tuple[int, ...]]], fail_at: int = -1) -> Any:
    """Start a query that keeps the rows of each micro-batch, and runs until nothing is available."""

    def keep(rows: DataFrame, number: int) -> None:
        found = [tuple(row) for row in rows.collect()]
        if number == fail_at:
            raise ValueError("planted: the sink failed")
        into.append(found)

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def test_results_can_be_read_any_number_of_times_in_order_and_in_parallel(
    spark: SparkSession, running: RunningJoin
) -> None:
    send(running, 0, 100)
    running.finish()
    connect_spark(spark, running)
    frame = spark.read.format("interlace").options(**options(running)).load()
    assert frame.columns == ["R_x", "S_x"]
    assert [tuple(row) for row in frame.collect()] == pairs(100), "far more than the sink holds in memory"
    assert frame.where("R_x = 7").count() == 92
    again = spark.read.format("interlace").options(**options(running)).schema("S_x LONG, R_x INT").load()
    assert again.first() == (1, 0)


def test_ranges_of_numbers_cover_all_results_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_reader, "PARTITION_ROWS", 4)
    for first, end in [(0, 0), (3, 4), (0, 4), (0, 5), (7, 30)]:
        ranges = divided(first, end)
        covered = [number for each in ranges for number in range(each.first, each.end or 0)]
        assert covered == list(range(first, end))
        assert all(0 < (each.end or 0) - each.first <= 4 for each in ranges)


def test_the_columns_are_known_before_any_row(spark: SparkSession, running: RunningJoin) -> None:
    for stream in "RS":
        running.pin(stream, pa.schema([("x", pa.decimal128(9, 2))]))
    connect_spark(spark, running)
    frame = spark.readStream.format("interlace").options(**options(running)).load()
    assert [field.simpleString() for field in frame.schema] == ["R_x:decimal(9,2)", "S_x:decimal(9,2)"]
    running.finish()
    assert spark.read.format("interlace").options(**options(running)).load().collect() == []


def test_a_stream_is_read_in_bounded_micro_batches_and_acknowledged(
    spark: SparkSession, running: RunningJoin, tmp_path: Path
) -> None:
    send(running, 0, 100)
    connect_spark(spark, running)
    stream = spark.readStream.format("interlace").options(**options(running, maxRowsPerTrigger=400)).load()
    found: list[list[tuple[int, ...]]] = []
    query = in_micro_batches(stream, tmp_path, found)
    assert query.awaitTermination(LONG), "the query does not wait for results that have not come"
    assert 0 < sum(map(len, found)) < 4950, "what is available is what the small sink holds"
    assert max(map(len, found)) == 400
    send(running, 100, 1)
    running.finish()
    while sum(map(len, found)) < 5050:
        assert in_micro_batches(stream, tmp_path, found).awaitTermination(LONG)
    assert [pair for batch in found for pair in batch] == pairs(101), "the query went on where it was"


def test_a_micro_batch_that_fails_comes_again_as_it_was(
    spark: SparkSession, running: RunningJoin, tmp_path: Path
) -> None:
    send(running, 0, 30)
    running.finish()
    connect_spark(spark, running)
    stream = spark.readStream.format("interlace").options(**options(running, maxRowsPerTrigger=100)).load()
    found: list[list[tuple[int, ...]]] = []
    query = in_micro_batches(stream, tmp_path, found, fail_at=2)
    with pytest.raises(PySparkException, match="planted"):
        query.awaitTermination(LONG)
    assert list(map(len, found)) == [100, 100]
    stream = spark.readStream.format("interlace").options(**options(running, maxRowsPerTrigger=150)).load()
    assert in_micro_batches(stream, tmp_path, found).awaitTermination(LONG)
    assert [pair for batch in found for pair in batch] == pairs(30)
    assert list(map(len, found)) == [100, 100, 100, 135]


def test_a_query_that_goes_on_frees_the_sink(spark: SparkSession, running: RunningJoin, tmp_path: Path) -> None:
    connect_spark(spark, running)
    for stream in "RS":
        running.pin(stream, pa.schema([("x", pa.int64())]))
    frame = spark.readStream.format("interlace").options(**options(running)).load()
    query = frame.writeStream.format("memory").queryName("freed").start()
    try:
        send(running, 0, 150)  # waits for room at the sink, again and again
        running.finish()
        query.processAllAvailable()
        while spark.table("freed").count() < 11_175:
            query.processAllAvailable()
        assert {tuple(row) for row in spark.table("freed").collect()} == set(pairs(150))
    finally:
        query.stop()


def test_late_rows_are_a_stream_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    join = StreamJoin("R", "S", "R.x < S.x", TimeWindow(10), event_time="ts", out_of_order=1)
    with join.launch(LocalRuntime(), sources={"R": ["R-0"], "S": ["S-0"]}) as running:
        running.send("R", pa.table({"ts": [5, 1, 6], "x": [1, 2, 3]}), source="R-0")
        running.finish()
        connect_spark(spark, running)
        late = spark.readStream.format("interlace").options(**options(running, "late")).load()
        found: list[list[tuple[int, ...]]] = []
        assert in_micro_batches(late.select("offset", "event_time"), tmp_path, found).awaitTermination(LONG)
        assert found == [[(1, 1)]]


def test_the_token_of_the_session_is_enough(spark: SparkSession, running: RunningJoin) -> None:
    send(running, 0, 3)
    running.finish()
    spark.conf.set(TOKEN, running.endpoint("results").token)
    try:
        spark.dataSource.register(InterlaceDataSource)
    finally:
        spark.conf.unset(TOKEN)
    frame = spark.read.format("interlace").options(**options(running)).load()
    assert frame.count() == 3
    token = str(running.endpoint("results").token)
    assert token not in frame._jdf.queryExecution().toString()


def test_formats_work_over_tls_with_tokens_by_name_that_nothing_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypt(monkeypatch)
    r, s = random_batches(91, 1), as_source(random_batches(92, 1))
    add_files(tmp_path / "r", r)
    with trips_join().launch(LocalRuntime(), sources={"R": ["trips"], "S": ["s"]}) as running:
        running.send("S", s, source="s")
        endpoint = running.endpoint("R")
        assert endpoint.location.startswith("grpc+tls://")
        tokens = {f"{TOKEN}.R": str(endpoint.token), f"{TOKEN}.results": str(running.endpoint("results").token)}
        for key, token in tokens.items():
            spark.conf.set(key, token)
        try:
            spark.dataSource.register(InterlaceDataSource)
            writer = streamed(spark, tmp_path / "r").writeStream.format("interlace").option("endpoint", endpoint.uri)
            writer = writer.option("stream", "R").option("feed", "trips")
            written = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        finally:
            for key in tokens:
                spark.conf.unset(key)
        assert written.awaitTermination(LONG)
        running.finish()
        frame = spark.read.format("interlace").options(**options(running)).load()
        expected = trips_join().collect({"R": {"trips": as_source(r)}, "S": {"s": s}})
        assert [tuple(row) for row in frame.collect()] == plain(expected)
        stream = spark.readStream.format("interlace").options(**options(running)).load()
        found: list[list[tuple[int, ...]]] = []
        query = in_micro_batches(stream, tmp_path / "c2", found)
        assert query.awaitTermination(LONG)
        assert [pair for batch in found for pair in batch] == plain(expected)
    told = [frame._jdf.queryExecution().toString(), stream._jdf.queryExecution().toString()]
    for each in (written, query):
        told += [each._jsq.explainInternal(True), each.lastProgress.json]
    assert all(text and token not in text for text in told for token in tokens.values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sink": ""}, "needs the option sink"),
        ({"sink": "late"}, "does not grant the right to read 'late'"),
        ({"endpoint": "http://example.org"}, "is not the location of an endpoint"),
        ({"maxRowsPerTrigger": "-3"}, "must be a number of rows above 0"),
    ],
)
def test_wrong_options_are_explained(
    spark: SparkSession, running: RunningJoin, changed: dict[str, str], said: str
) -> None:
    send(running, 0, 3)
    spark.conf.set(TOKEN, running.endpoint("results").token)
    spark.dataSource.register(InterlaceDataSource)
    spark.conf.unset(TOKEN)
    given = {**options(running), **changed}
    if "maxRowsPerTrigger" in changed:
        with pytest.raises(PySparkException, match=said):
            query = spark.readStream.format("interlace").options(**given).load().writeStream.format("noop").start()
            query.processAllAvailable()
    else:
        with pytest.raises(PySparkException, match=said):
            spark.read.format("interlace").options(**given).load().count()


def test_a_missing_token_is_explained(spark: SparkSession, running: RunningJoin) -> None:
    spark.conf.unset(TOKEN)
    spark.dataSource.register(InterlaceDataSource)
    with pytest.raises(PySparkException, match=r"'results': Spark's configuration has no token: call connect_spark"):
        spark.read.format("interlace").options(**options(running)).load()
