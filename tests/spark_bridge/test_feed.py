from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from operators import RunningJoin, StreamJoin, TimeWindow
from spark_bridge import feed, results_dataframe
from spark_bridge.progress import FeedProgress, with_waits
from spark_bridge.stage_partition import StagePartition
from tests.operators.intake.out_of_order import in_order, late_rows, reported
from tests.spark_bridge import faulty_functions
from tests.spark_bridge.encrypted import encrypt
from tests.spark_bridge.readings import SCHEMA, as_sources, join, plain, readings
from tests.topology.waiting import wait_for
from topology import (
    Handle,
    Input,
    InputError,
    LocalRuntime,
    OutOfOrderError,
    RunningTopology,
    SchemaError,
    TopologyBuilder,
    UnknownInputError,
)


def ingest(running: Handle) -> Any:
    inner: Any = running._running if isinstance(running, RunningJoin) else running
    return inner._group.ingest


def staged_attempts(running: Handle) -> list[tuple[str, str]]:
    """The attempts at sources of R whose rows wait for a commit."""
    return list(ingest(running)._streams["R"].staging._attempts)


def rows_of(running: Handle) -> list[tuple[object, ...]]:
    running.finish()
    return plain(pa.Table.from_batches(list(running.results())))


def numbers_to_sink(event_time: str | None = "ts") -> RunningTopology:
    builder = TopologyBuilder("pass on")
    builder.input("R", Input(event_time=event_time))
    builder.sink().global_grouping("R")
    return LocalRuntime().launch(builder.build())


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_fed_join_equals_collect_on_the_same_partitions(spark: SparkSession, partitions: int) -> None:
    r, s = readings(spark, 400, partitions, seed=1), readings(spark, 300, 2, seed=2)
    with join().launch(LocalRuntime()) as running:
        fed_r = feed(r, running, stream="R", event_time="ts", progress=False)
        fed_s = feed(s, running, stream="S", event_time="ts", progress=False)
        got = results_dataframe(running, spark).toArrow()
    assert (fed_r.rows, fed_r.partitions, fed_s.rows) == (400, partitions, 300)
    expected = join().collect({"R": as_sources(r, fed_r.sources), "S": as_sources(s, fed_s.sources)})
    assert expected.num_rows > 100
    assert got.column_names == [name.replace(".", "_") for name in expected.column_names]
    assert plain(got) == plain(expected)


def test_a_fed_join_on_ray_equals_collect(spark: SparkSession, ray_cluster: None) -> None:
    from topology import RayRuntime

    r, s = readings(spark, 400, 5, seed=3), readings(spark, 300, 2, seed=4)
    with join().launch(RayRuntime()) as running:
        fed_r = feed(r, running, stream="R", progress=False)
        fed_s = feed(s, running, stream="S", progress=False)
        got = results_dataframe(running, spark).toArrow()
    expected = join().collect({"R": as_sources(r, fed_r.sources), "S": as_sources(s, fed_s.sources)})
    assert plain(got) == plain(expected)


def test_executors_reach_an_encrypted_topology_with_what_its_endpoint_carries(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypt(monkeypatch)
    df = readings(spark, 300, 3, seed=21)
    with numbers_to_sink() as running:
        assert running.endpoint("R").location.startswith("grpc+tls://")
        feed(df, running, progress=False)
        got = results_dataframe(running, spark).toArrow()
    assert sorted(plain(got)) == sorted(plain(df.toArrow()))


def test_more_partitions_than_slots_do_not_wait_for_each_other(spark: SparkSession) -> None:
    r, s = readings(spark, 370, 37, seed=5), readings(spark, 100, 3, seed=6)
    with join().launch(LocalRuntime()) as running:
        fed = feed(r, running, stream="R", progress=False)
        fed_s = feed(s, running, stream="S", progress=False)
        got = rows_of(running)
    assert fed.partitions == 37
    assert list(fed.sources) == sorted(fed.sources)
    expected = join().collect({"R": as_sources(r, fed.sources), "S": as_sources(s, fed_s.sources)})
    assert got == plain(expected)


@pytest.mark.parametrize("faulty", [faulty_functions.FailsHalfway, faulty_functions.FailsAtTheEnd])
def test_retried_tasks_leave_no_trace(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, faulty: type[StagePartition]
) -> None:
    monkeypatch.setattr(sys.modules["spark_bridge.feed"], "StagePartition", faulty)
    df = readings(spark, 600, 3, seed=7)
    with numbers_to_sink() as running:
        staged: list[tuple[str, str, int]] = []
        entry, stage = ingest(running), ingest(running).stage

        def noted(stream: str, source: str, attempt: str, rows: pa.RecordBatch, quotas: Any) -> None:
            staged.append((source, attempt, rows.num_rows))
            stage(stream, source, attempt, rows, quotas)

        entry.stage = noted
        fed = feed(df, running, progress=False)
        got = rows_of(running)
        assert staged_attempts(running) == []
    attempts = {attempt for source, attempt, _ in staged if source == fed.sources[1]}
    lost = sum(rows for _, _, rows in staged) - 600
    assert len(attempts) >= 2, "the first attempt must stage something before it fails"
    assert lost >= 50
    assert sorted(got) == sorted(plain(df.toArrow()))


def test_empty_partitions_and_empty_frames(spark: SparkSession) -> None:
    with numbers_to_sink() as running:
        some = feed(readings(spark, 400, 4, seed=8).where("id < 100 OR id >= 390"), running, progress=False)
        none = feed(spark.createDataFrame([], SCHEMA), running, progress=False)
        no_partitions = spark.createDataFrame(spark.sparkContext.emptyRDD(), SCHEMA)
        nothing = feed(no_partitions, running, progress=False)
        got = rows_of(running)
    assert (some.rows, some.partitions) == (110, 4)
    assert none.rows == nothing.rows == nothing.partitions == 0
    assert nothing.sources == ()
    assert len(got) == 110


def test_a_feed_whose_tasks_wait_for_slots_is_not_idle(spark: SparkSession) -> None:
    df, s = readings(spark, 60, 6, seed=23), readings(spark, 40, 1, seed=24)
    slow = df.mapInArrow(faulty_functions.waits_before_its_rows, SCHEMA)
    described = replace(join(), idle_after=0.5)
    with described.launch(LocalRuntime()) as running, ThreadPoolExecutor(1) as threads:
        feeding = threads.submit(feed, slow, running, "R", progress=False)
        wait_for(lambda: "R/0000/000005" in ingest(running).sources("R"))
        (given,) = as_sources(s, ["S"]).values()
        running.send("S", given)
        running.finish("S")
        fed = feeding.result(300)
        got = rows_of(running)
        assert running.metrics().total("late") == 0
    assert got == plain(join().collect({"R": as_sources(df, fed.sources), "S": given}))


def test_unsorted_partitions_are_put_in_order_and_what_is_late_comes_back_as_a_dataframe(spark: SparkSession) -> None:
    bound = 60_000
    disordered = replace(join(), out_of_order=bound)
    r, s = readings(spark, 400, 3, seed=11), readings(spark, 300, 2, seed=12)
    with disordered.launch(LocalRuntime()) as running:
        fed = [feed(df, running, stream=stream, presorted=True, progress=False) for stream, df in (("R", r), ("S", s))]
        got = results_dataframe(running, spark).toArrow()
        late = results_dataframe(running, spark, "late").toArrow()
    given = {
        stream: {name: table.sort_by("id") for name, table in as_sources(df, each.sources).items()}
        for stream, df, each in (("R", r, fed[0]), ("S", s, fed[1]))
    }
    expected = late_rows(given, bound)
    assert sum(map(len, expected.values())) > 20
    assert reported(late) == {source: rows for source, rows in expected.items() if rows}
    assert plain(got) == plain(join().collect(in_order(given, bound)))


def test_rows_without_event_time_are_rejected_and_counted(spark: SparkSession) -> None:
    r = readings(spark, 100, 2, seed=9).withColumn("ts", sql.when(sql.col("id") % 10 != 0, sql.col("ts")))
    s = readings(spark, 100, 1, seed=10)
    with join().launch(LocalRuntime()) as running:
        fed = feed(r, running, stream="R", progress=False)
        fed_s = feed(s, running, stream="S", progress=False)
        got = rows_of(running)
        assert running.metrics().total("rejected", "gate") == 10
    assert fed.rows == 100
    kept = {name: table.filter(table["ts"].is_valid()) for name, table in as_sources(r, fed.sources).items()}
    assert got == plain(join().collect({"R": kept, "S": as_sources(s, fed_s.sources)}))


def test_two_feeds_of_one_stream_are_different_sources(spark: SparkSession) -> None:
    first, second = readings(spark, 100, 2, seed=11), readings(spark, 120, 3, seed=12)
    s = readings(spark, 100, 2, seed=13)
    with join().launch(LocalRuntime()) as running:
        fed = [feed(df, running, stream="R", progress=False) for df in (first, second)]
        fed_s = feed(s, running, stream="S", progress=False)
        got = rows_of(running)
    assert not {*fed[0].sources} & {*fed[1].sources}
    sources = {**as_sources(first, fed[0].sources), **as_sources(second, fed[1].sources)}
    assert got == plain(join().collect({"R": sources, "S": as_sources(s, fed_s.sources)}))


def test_ties_are_ordered_by_the_columns_named(spark: SparkSession) -> None:
    df = readings(spark, 200, 1, seed=14).withColumn("ts", sql.col("ts") % 3)
    with numbers_to_sink() as running:
        feed(df, running, ties=["cool", "id"], progress=False)
        got = rows_of(running)
    assert got == sorted(plain(df.toArrow()), key=lambda row: (row[1], row[3], row[0]))


def test_without_event_time_rows_come_in_the_order_of_the_partition(spark: SparkSession) -> None:
    df = readings(spark, 100, 1, seed=15)
    with numbers_to_sink(event_time=None) as running:
        feed(df, running, progress=False)
        assert rows_of(running) == plain(df.toArrow())


def test_timestamps_are_instants_whatever_the_sessions_time_zone(spark: SparkSession) -> None:
    window = TimeWindow(timedelta(hours=2))
    described = StreamJoin("R", "S", "R.power < S.power", window, select=["R.id", "S.ts"], event_time="ts")
    r, s = (
        readings(spark, 60, 2, seed=seed).withColumn("ts", sql.timestamp_seconds(sql.col("ts") % 86_400))
        for seed in (16, 17)
    )
    with described.launch(LocalRuntime()) as running:
        fed_r = feed(r, running, stream="R", ties=["id"], progress=False)
        fed_s = feed(s, running, stream="S", ties=["id"], progress=False)
        frame = results_dataframe(running, spark)
        assert dict(frame.dtypes)["S_ts"] == "timestamp"
        got = frame.toArrow()
    expected = described.collect({"R": as_sources(r, fed_r.sources), "S": as_sources(s, fed_s.sources)})
    assert expected.num_rows > 10
    assert plain(got) == plain(expected)


def test_what_does_not_fit_is_refused_before_any_job_starts(spark: SparkSession) -> None:
    df = readings(spark, 50, 2, seed=18)
    with join().launch(LocalRuntime()) as running:
        jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
        with pytest.raises(SchemaError, match="column 'cool', which the join needs, is missing"):
            feed(df.drop("cool"), running, stream="R", progress=False)
        with pytest.raises(SchemaError, match="'ts' is missing"):
            feed(df.withColumnRenamed("ts", "TS"), running, stream="R", progress=False)
        with pytest.raises(SchemaError, match="more than once"):
            feed(df.select("*", "ts"), running, stream="R", progress=False)
        with pytest.raises(InputError, match="'when' as event time, but the topology was built with 'ts'"):
            feed(df, running, stream="R", event_time="when", progress=False)
        with pytest.raises(UnknownInputError, match="no input stream 'T'"):
            feed(df, running, stream="T", progress=False)
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs
        feed(df, running, stream="R", progress=False)
        with pytest.raises(SchemaError, match="'cool' is string, expected int64"):
            feed(df.withColumn("cool", sql.col("cool").cast("string")), running, stream="R", progress=False)
        with pytest.raises(InputError, match="has been used"):
            feed(df, running, stream="R", source_prefix="R/0000", progress=False)


def test_rows_declared_sorted_that_are_not_are_refused_and_nothing_is_fed(spark: SparkSession) -> None:
    df = readings(spark, 300, 3, seed=19)
    with numbers_to_sink() as running:
        with pytest.raises(OutOfOrderError, match="goes backwards"):
            feed(df, running, presorted=True, progress=False)
        assert staged_attempts(running) == []
        feed(df.sortWithinPartitions("ts"), running, presorted=True, progress=False)
        assert sorted(rows_of(running)) == sorted(plain(df.toArrow()))


def test_a_failed_job_feeds_nothing_and_leaves_the_topology_usable(spark: SparkSession) -> None:
    df = readings(spark, 300, 4, seed=20)
    with numbers_to_sink() as running:
        with pytest.raises(PySparkException, match="the user's own code failed"):
            feed(df.mapInArrow(faulty_functions.fails_in_the_third_partition, df.schema), running, progress=False)
        assert staged_attempts(running) == []
        feed(df, running, progress=False)
        assert len(rows_of(running)) == 300


def test_interrupting_cancels_the_job_and_leaves_the_topology_usable(spark: SparkSession) -> None:
    slow = readings(spark, 100_000, 2, seed=21).mapInArrow(faulty_functions.stalls_at_the_end, SCHEMA)
    with numbers_to_sink(event_time=None) as running:

        def interrupt() -> None:
            while not staged_attempts(running):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            feed(slow, running, progress=False)
        assert staged_attempts(running) == []
        df = readings(spark, 100, 2, seed=22)
        feed(df, running, progress=False)
        assert len(rows_of(running)) == 100


def test_the_line_in_a_cell_says_who_waits_for_whom() -> None:
    with numbers_to_sink() as running:
        line = FeedProgress("R", 4, Reports(), False, running=running)._cell_line()
        assert line.startswith("feeding R: 2/4 partitions, 350 rows")
    with join().launch(LocalRuntime()) as joined:
        joined.send("R", {"id": [1], "ts": [1], "power": [1.0], "cool": [1]}, source="a")
        told = ", event time 1, waiting for stream 'S': no source has sent rows"
        wait_for(lambda: with_waits("reading", joined).startswith(f"reading{told}"))


class Reports:
    value = (100, 250)


def test_progress_is_a_bar_on_a_terminal_and_a_line_elsewhere() -> None:
    plain_file, terminal, hidden = io.StringIO(), io.StringIO(), io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    for out, shown in ((plain_file, True), (terminal, True), (hidden, False)):
        with FeedProgress("R", 4, Reports(), shown, out):
            pass
    assert plain_file.getvalue().startswith("feeding R: 2/4 partitions, 350 rows")
    assert plain_file.getvalue().count("\n") == 1
    assert "[############............] 2/4 partitions" in terminal.getvalue()
    assert hidden.getvalue() == ""
