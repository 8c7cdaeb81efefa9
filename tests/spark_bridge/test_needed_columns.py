"""Columns that the join does not use are not sent, whichever way rows come; results are those of all columns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from operators import CountWindow, MultiJoin, RunningJoin
from spark_bridge import connect_spark, feed, feed_batch
from spark_bridge.schemas import needed_names
from tests.spark_bridge.micro_batches import add_files, as_source, random_batches, streamed, trips_join
from tests.spark_bridge.readings import as_sources, join, plain, readings
from topology import LocalRuntime

LONG = 300


def with_more(df: DataFrame) -> DataFrame:
    """More columns than the join reads, first and last, one of a type that cannot be fed."""
    return df.select(
        (sql.col("id") * 2).alias("noise"), *df.columns, sql.parse_json(sql.col("id").cast("string")).alias("a.variant")
    )


def names_of_r(running: RunningJoin) -> list[str]:
    return list(running.schemas["R"].names)


def results(running: RunningJoin) -> list[tuple[object, ...]]:
    running.finish()
    return plain(pa.Table.from_batches(list(running.results())))


@pytest.mark.parametrize("kind", ["inner", "anti"])
def test_a_bounded_feed_sends_what_the_join_reads(spark: SparkSession, kind: str) -> None:
    r, s = readings(spark, 200, 2, seed=1), readings(spark, 150, 2, seed=2)
    described = replace(join(), kind=kind, select=["R.id", "R.ts"])
    with described.launch(LocalRuntime()) as running:
        fed_r = feed(with_more(r), running, stream="R", progress=False)
        fed_s = feed(with_more(s), running, stream="S", progress=False)
        feed(with_more(s).limit(0), running, stream="S", progress=False)  # the schema is known now
        assert {stream: schema.names for stream, schema in running.schemas.items()} == {
            "R": ["id", "ts", "power", "cool"],
            "S": ["ts", "power", "cool"],
        }
        got = results(running)
    expected = described.collect({"R": as_sources(r, fed_r.sources), "S": as_sources(s, fed_s.sources)})
    assert expected.num_rows > 5
    assert got == plain(expected)


def test_a_join_of_several_streams_gets_what_it_reads(spark: SparkSession) -> None:
    frames = {stream: readings(spark, 120, 2, seed=seed) for seed, stream in enumerate("abc")}
    described = MultiJoin(
        list(frames), "a.power = b.power AND b.cool < c.cool AND c.power = b.power", CountWindow(100),
        select=["a.id", "c.id"], event_time="ts",
    )  # fmt: skip
    with described.launch(LocalRuntime()) as running:
        fed = {stream: feed(with_more(df), running, stream, progress=False) for stream, df in frames.items()}
        assert {stream: schema.names for stream, schema in running.schemas.items()} == {
            "a": ["id", "ts", "power"],
            "b": ["ts", "power", "cool"],
            "c": ["id", "ts", "power", "cool"],
        }
        got = results(running)
    expected = described.collect({stream: as_sources(df, fed[stream].sources) for stream, df in frames.items()})
    assert expected.num_rows > 10
    assert got == plain(expected)


def test_columns_that_are_retained_shown_or_pinned_are_sent(spark: SparkSession) -> None:
    r = with_more(readings(spark, 20, 1, seed=1)).drop("a.variant")
    retained = replace(join(), retain=["R.noise"])
    with retained.launch(LocalRuntime()) as running:
        feed(r, running, progress=False)
        assert names_of_r(running) == ["noise", "id", "ts", "power", "cool"]
    with replace(join(), select=None).launch(LocalRuntime()) as running:
        feed(r.withColumn("more", sql.lit(1)), running, progress=False)
        assert names_of_r(running) == ["noise", "id", "ts", "power", "cool", "more"]
    with join().launch(LocalRuntime()) as running:
        running.send("R", pa.table({"power": [1.0], "noise": [1], "ts": [-1], "id": [1], "cool": [1]}), source="first")
        feed(r.withColumn("more", sql.lit(1)), running, progress=False)
        assert names_of_r(running) == ["power", "noise", "ts", "id", "cool"]


def test_a_query_that_goes_on_from_a_state_sends_what_the_stream_has(spark: SparkSession, tmp_path: Path) -> None:
    early = with_more(readings(spark, 40, 1, seed=1)).where("ts < 50000")
    late = with_more(readings(spark, 40, 1, seed=1)).where("ts >= 50000")
    retained = replace(join(), retain=["R.noise"])
    with retained.launch(LocalRuntime(state=tmp_path), sources={"R": ["a/000000", "b/000000"]}) as running:
        feed(early, running, "R", name="a", progress=False)
    narrow = replace(join(), on="R.power < S.power", using="auto", select=["R.id", "S.id"])
    assert "noise" not in narrow.needed_columns("R", pa.schema([]))
    with narrow.launch(LocalRuntime(state=tmp_path, new_query=True)) as running:
        report = feed(late, running, "R", name="b", progress=False)
        assert report.rows == late.count() > 0
        assert names_of_r(running) == ["noise", "id", "ts", "power", "cool"]


def test_rows_are_ordered_by_columns_that_are_not_sent(spark: SparkSession) -> None:
    rows = readings(spark, 60, 1, seed=1).withColumn("ts", sql.lit(5)).withColumn("rank", (sql.col("id") * 37) % 61)
    with join().launch(LocalRuntime()) as running:
        fed_r = feed(rows, running, "R", ties=["rank"], progress=False)
        fed_s = feed(rows, running, "S", ties=["rank"], progress=False)
        assert "rank" not in names_of_r(running)
        got = results(running)
    ordered = rows.orderBy("rank").toArrow().drop_columns("rank")
    whole = ordered.cast(pa.schema([field.with_nullable(True) for field in ordered.schema]))
    expected = join().collect({"R": {fed_r.sources[0]: whole}, "S": {fed_s.sources[0]: whole}})
    assert expected.num_rows > 20
    assert got == plain(expected)


@pytest.mark.parametrize("way", ["feed", "foreachBatch", "format"])
def test_streaming_queries_send_what_the_join_reads(spark: SparkSession, tmp_path: Path, way: str) -> None:
    r, s = random_batches(1, 2), random_batches(2, 1)
    add_files(tmp_path / "r", r)
    df = streamed(spark, tmp_path / "r").select((sql.col("id") * 2).alias("noise"), "x", "id", "ts")
    with trips_join().launch(LocalRuntime(), sources={"S": ["S"]}) as running:
        if way == "feed":
            options: Any = {"checkpoint": tmp_path / "c", "trigger": {"availableNow": True}}
            with ThreadPoolExecutor(1) as threads:  # Spark has no active session there
                query = threads.submit(lambda: feed(df, running, "R", **options)).result().query
        else:
            writer = df.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
            if way == "format":
                connect_spark(spark, running)
                options = {"endpoint": running.endpoint("R").uri, "stream": "R", "feed": "R"}
                query = writer.format("interlace").options(**options).start()
            else:
                query = writer.foreachBatch(feed_batch(running, "R")).start()
        assert query.awaitTermination(LONG)
        assert names_of_r(running) == ["x", "id", "ts"]
        running.send("S", as_source(s))
        got = results(running)
    expected = trips_join().collect({"R": as_source(r), "S": as_source(s)})
    assert expected.num_rows > 10
    assert sorted(got) == sorted(plain(expected))


def test_which_names_are_sent() -> None:
    known = pa.schema([("b", pa.int64())])
    assert needed_names(["a", "b", "c"], None, known) == ["a", "b", "c"]
    assert needed_names(["a", "b", "c"], ("c", "d"), None) == ["c"]
    assert needed_names(["a", "b", "c"], ("c", "d"), known) == ["b", "c"]
    assert needed_names(["a", "b"], (), None) == ["a"]  # rows have to be counted
    assert needed_names(["a", "A", "b"], ("a",), None) == ["a", "A", "b"]  # Spark cannot tell them apart
