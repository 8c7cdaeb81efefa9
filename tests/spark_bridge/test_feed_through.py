"""Partitions that enter one after the other: the result is that of all rows in order, whatever tasks do."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from operators import RunningJoin
from spark_bridge import feed
from tests.spark_bridge import faulty_functions
from tests.spark_bridge.readings import join, plain, readings
from tests.topology.waiting import LONG
from topology import Handle, InputError, LocalRuntime, OutOfOrderError

SLOTS = 2


def in_one_order(df: DataFrame, *order: str) -> pa.Table:
    """All rows as one source, in the order of these columns."""
    table = df.toArrow().sort_by([(name, "ascending") for name in order])
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


def results(running: RunningJoin) -> list[tuple[object, ...]]:
    running.finish()
    return plain(pa.Table.from_batches(list(running.results())))


def staging(running: Handle) -> Any:
    inner: Any = running._running if isinstance(running, RunningJoin) else running
    return inner._group.ingest._streams["R"].staging


def started(running: Handle, prefix: str = "R/0000") -> set[str]:
    """The sources of R whose rows are staged, or have been committed."""
    waiting = staging(running)
    return {source for source, _ in waiting._attempts} | set(waiting._committed)


def with_ties(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    """Readings with few different times, so that equal times meet the borders of partitions."""
    return readings(spark, rows, partitions, seed=5).withColumn("ts", sql.col("ts") % 40)


def test_more_partitions_than_slots_pass_in_order_although_two_are_tried_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["spark_bridge.feed"], "StagePartition", faulty_functions.RepeatsAndDiffers)
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", "6")
    try:
        r, s = with_ties(spark, 330, 3), with_ties(spark, 100, 2).withColumn("power", sql.col("power") + 1)
        with join().launch(LocalRuntime()) as running:
            running.send("S", in_one_order(s, "ts", "id"))
            fed = feed(r, running, stream="R", ties=["id"], through=True, progress=False)
            got = results(running)
            assert running.metrics().total("late") == 0
            assert staging(running).nbytes == 0
    finally:
        spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "true")
        spark.conf.set("spark.sql.shuffle.partitions", "4")
    assert fed.partitions > 2 * SLOTS
    assert fed.rows == 330
    assert list(fed.sources) == sorted(fed.sources)
    expected = join().collect({"R": in_one_order(r, "ts", "id"), "S": in_one_order(s, "ts", "id")})
    assert expected.num_rows > 100
    assert got == plain(expected)


def test_rows_are_visible_and_few_partitions_are_staged_before_the_others_have_started(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = readings(spark, 240, 12, seed=6).withColumn("ts", sql.col("id"))
    full = threading.Event()
    first = pa.table({"id": [1], "ts": [-1], "power": [99.0], "cool": [-1]})
    with join(600).launch(LocalRuntime()) as running:
        running.send("S", first)
        running.finish("S")
        inner: Any = running
        ask = inner._running.next_offset
        monkeypatch.setattr(inner._running, "next_offset", lambda *names: ask(*names) if full.is_set() else 0)
        done: list[Any] = []
        feeding = threading.Thread(target=lambda: done.append(feed(df, running, through=True, presorted=True)))
        feeding.start()
        committed: set[str] = set()
        while len(committed) < SLOTS + 1:  # all that may be staged while the topology takes nothing
            committed = {name for name in ledger(running).sources if ledger(running).is_committed(name)}
            time.sleep(0.02)
        time.sleep(0.5)  # a task too many would come now
        assert feeding.is_alive()
        assert set(ledger(running).sources) == {f"R/0000/{number:06d}" for number in range(SLOTS + 2)}
        assert started(running) <= committed
        found, batches, rows = running.results(timeout=LONG), [], 0
        while rows < 40:  # what two partitions have
            batches.append(next(found))
            rows += batches[-1].num_rows
        assert feeding.is_alive()
        full.set()
        feeding.join(LONG)
        assert done[0].rows == 240
        running.finish()
        got = plain(pa.Table.from_batches([*batches, *found]))
    assert len(got) == 240
    assert got == plain(join(600).collect({"R": in_one_order(df, "ts"), "S": first}))


def ledger(running: Handle) -> Any:
    inner: Any = running
    return inner._running._group.ingest._streams["R"].ledger


def test_partitions_out_of_turn_fail_the_feed_and_leave_the_topology_usable(spark: SparkSession) -> None:
    df = readings(spark, 60, 6, seed=7).withColumn("ts", sql.abs(sql.col("id") - 25))  # goes down, then up
    with join().launch(LocalRuntime()) as running:
        with pytest.raises(OutOfOrderError, match="'R', source 'R/0000/000000': 'ts' goes backwards"):
            feed(df, running, through=True, presorted=True, progress=False)
        falling = df.sortWithinPartitions("ts")
        with pytest.raises(OutOfOrderError, match=r"partition 1 has the event time .* must follow each other in time"):
            feed(falling, running, through=True, presorted=True, progress=False)
        assert not staging(running)._attempts
        assert running.next_offset("R", "R/0001/000001") == 0
        report = feed(df, running, name="later", through=True, progress=False)
        assert report.rows == 60
        running.finish()
        assert list(running.results()) == []


def test_a_failed_job_ends_the_feed_behind_the_partitions_before(spark: SparkSession) -> None:
    df = readings(spark, 300, 6, seed=8).withColumn("ts", sql.col("id"))
    failing = df.mapInArrow(faulty_functions.fails_in_the_third_partition, df.schema)
    with join().launch(LocalRuntime()) as running:
        with pytest.raises(PySparkException, match="the user's own code failed"):
            feed(failing, running, through=True, presorted=True, progress=False)
        assert [name for name in ledger(running).sources if ledger(running).is_open(name)] == []
        assert not staging(running)._attempts


def test_what_cannot_enter_in_turn_is_refused(spark: SparkSession) -> None:
    df = readings(spark, 10, 1, seed=9)
    for described, said in (
        (replace(join(), event_time=None), "needs an event time"),
        (replace(join(), idle_after=5), "idle_after= exclude each other"),
    ):
        with described.launch(LocalRuntime()) as running:
            with pytest.raises(InputError, match=said):
                feed(df, running, through=True, progress=False)
            assert running.next_offset("R", "R/0000/000000") == 0
