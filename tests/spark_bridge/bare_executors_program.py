"""A plain session, classic or of Spark Connect, whose Python workers have nothing of ours, feeds a join."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge import InterlaceDataSource, feed
from tests.spark_bridge.micro_batches import add_files, as_source, random_batches, streamed, trips_join
from tests.spark_bridge.readings import plain
from topology import LocalRuntime


def main(kind: str, hidden: str, folder: Path) -> None:
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
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = (builder.master("local[2]") if kind == "classic" else builder.remote("local[2]")).getOrCreate()
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
    if kind == "classic":
        with trips_join().launch(LocalRuntime()) as running:
            bounded = spark.range(100).selectExpr("id", "id AS ts", "id AS x")
            print(f"bounded: {feed(bounded, running, 'R', progress=False).rows} rows")
    spark.stop()
    logs = [path.read_text() for path in (folder / "events").rglob("*") if path.is_file() and path.suffix != ".crc"]
    assert any("SparkListenerJobStart" in log for log in logs), "there is an event log"
    print("tokens in the event log:", sum(token in log for token in tokens for log in logs))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
