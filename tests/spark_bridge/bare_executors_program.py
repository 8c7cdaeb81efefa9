"""Plain sessions, classic, of Spark Connect or both, whose Python workers have nothing of ours, feed a join."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge import InterlaceDataSource, feed
from tests.spark_bridge.micro_batches import add_files, as_source, random_batches, streamed, trips_join
from tests.spark_bridge.readings import plain
from topology import LocalRuntime


def main(kind: str, hidden: str, folder: Path) -> None:
    """Print what each session has done. `kind`: classic, connect, or both: both sessions of one Spark."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # the name of a machine may have no address
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    settings = {
        "spark.executorEnv.PYTHONPATH": hidden,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
    }
    (folder / "events").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    if kind == "both":
        settings["spark.plugins"] = "org.apache.spark.sql.connect.SparkConnectPlugin"
        settings["spark.connect.grpc.binding.port"] = str(port)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = (builder.remote("local[2]") if kind == "connect" else builder.master("local[2]")).getOrCreate()
    if kind == "both":
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        remote = RemoteSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        feed_both_ways(remote, folder / "connect")
        remote.stop()  # before its server: it would call that for minutes
    tokens = feed_both_ways(spark, folder / "own")
    if kind != "connect":
        with trips_join().launch(LocalRuntime()) as running:
            bounded = spark.range(100).selectExpr("id", "id AS ts", "id AS x")
            print(f"bounded: {feed(bounded, running, 'R', progress=False).rows} rows")
    spark.stop()
    logs = [path.read_text() for path in (folder / "events").rglob("*") if path.is_file() and path.suffix != ".crc"]
    assert any("SparkListenerJobStart" in log for log in logs), "there is an event log"
    print("tokens in the event log:", sum(token in log for token in tokens for log in logs))


def feed_both_ways(spark: Any, folder: Path) -> list[str]:
    """Feed a join by `feed`, and one by format; return the tokens."""
    folder.mkdir()
    batches = random_batches(31, 2)
    add_files(folder / "r", batches)
    s = as_source(random_batches(32, 2))
    with trips_join().launch(LocalRuntime(), sources={"R": ["trips"]}) as running:
        tokens = [str(running.endpoint("R", control).token) for control in (True, False)]
        fed = feed(
            streamed(spark, folder / "r", 2), running, "R", name="trips", checkpoint=folder / "c",
            trigger={"availableNow": True},
        )  # fmt: skip
        fed.awaitTermination(300)
        rows = running.next_offset("R", "trips")
        running.send("S", s, source="s")
        running.finish()
        got = plain(pa.Table.from_batches(list(running.results())))
    expected = plain(trips_join().collect({"R": {"trips": as_source(batches)}, "S": {"s": s}}))
    print(f"streaming: {rows} rows, {'equal' if got == expected else 'different'}")
    spark.dataSource.register(InterlaceDataSource)  # without tokens: this one is in Spark's configuration
    with trips_join().launch(LocalRuntime()) as running:
        endpoint = running.endpoint("R")
        tokens.append(str(endpoint.token))
        spark.conf.set("spark.interlace.token", str(endpoint.token))
        writer = streamed(spark, folder / "r").writeStream.format("interlace").option("endpoint", endpoint.uri)
        writer = writer.option("stream", "R").option("feed", "f").option("checkpointLocation", str(folder / "c2"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(300)
        print(f"by format: {running.next_offset('R', 'f')} rows")
    return tokens


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
