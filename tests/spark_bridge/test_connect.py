"""Sessions of Spark Connect: results both ways, and what is refused there."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

import interlace as il
from spark_bridge import UnsupportedSessionError, connect_spark, feed, feed_batch, results_dataframe
from tests.spark_bridge.micro_batches import trips_join
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


def test_what_needs_a_classic_session_says_so(connected: SparkSession) -> None:
    bounded: Any = connected.range(3).selectExpr("id", "id AS ts", "id AS x")
    with trips_join().launch(il.LocalRuntime()) as running:
        with pytest.raises(UnsupportedSessionError, match="bounded DataFrame needs a classic session"):
            feed(bounded, running, "R")
        with pytest.raises(UnsupportedSessionError, match="runs the function of foreachBatch on its server"):
            pickle.dumps(feed_batch(running, "R"))  # as the session would, to send it there
    with pytest.raises(UnsupportedSessionError, match="bounded DataFrame needs a classic session"):
        il.join(bounded, bounded, on="left.x < right.x", window=il.UnboundedWindow())
