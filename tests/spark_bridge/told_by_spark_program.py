"""A program with a Spark of its own, with its web pages: says in which of them the tokens of a topology are.

Run by tests as `python -m tests.spark_bridge.told_by_spark_program <folder>`; prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from spark_bridge import InterlaceDataSource, connect_spark, feed, local_session
from spark_bridge.options import TOKEN
from tests.spark_bridge.micro_batches import add_files, random_batches, streamed, trips_join
from topology import Handle, LocalRuntime

REDACTED = "*********(redacted)"
PAGES = ("environment/", "SQL/", "StreamingQuery/", "jobs/", "stages/", "executors/", "SQL/execution/?id=0")
PLANS = "sql?details=true&planDescription=true&length=1000"
ANSWERS = ("environment", PLANS, "jobs", "stages?details=true", "allexecutors")


def tokens_of(running: Handle) -> dict[str, str]:
    """The tokens of all streams and sinks of a topology."""
    names = [*running.topology.inputs, *running.topology.sinks]
    found = {f"{name}, control={may}": running.endpoint(name, control=may) for name in names for may in (False, True)}
    return {name: str(endpoint.token) for name, endpoint in found.items()}


def to_interlace(df: DataFrame, running: Handle, stream: str, checkpoint: Path) -> StreamingQuery:
    """Write what is there, with the token that the session has."""
    writer = df.writeStream.format("interlace").option("endpoint", running.endpoint(stream).uri)
    writer = writer.option("stream", stream).option("feed", "trips").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def from_interlace(spark: SparkSession, running: Handle) -> DataFrame:
    """The results of a topology whose streams have been finished."""
    reader = spark.read.format("interlace").option("endpoint", running.endpoint("results").uri)
    return reader.option("sink", "results").load()


def main(folder: Path) -> None:
    spark = local_session("told", settings={"spark.ui.enabled": "true", "spark.ui.port": "0"})
    batches = random_batches(1, 1)
    add_files(folder / "r", batches)
    bounded = spark.createDataFrame(batches[0].to_pylist(), "id LONG, ts LONG, x LONG")
    with trips_join().launch(LocalRuntime()) as running:
        spark.conf.set(TOKEN, str(running.endpoint("R").token))
        spark.dataSource.register(InterlaceDataSource)
        query = to_interlace(streamed(spark, folder / "r"), running, "R", folder / "c")
        query.awaitTermination()
        connect_spark(spark, running)
        feed(bounded, running, "S", progress=False)
        running.finish()
        from_interlace(spark, running).collect()
        tokens = tokens_of(running)
        shown = dict(pages(spark))
    leaks = [f"{name}: {page}" for page, text in shown.items() for name, token in tokens.items() if token in text]
    said = {"redacted": REDACTED, "queries": str(query.id)}  # so that the pages are those that could tell
    found = {name: any(text in page for page in shown.values()) for name, text in said.items()}
    print(json.dumps({"leaks": leaks, **found}))
    spark.stop()


def pages(spark: SparkSession) -> Iterator[tuple[str, str]]:
    """The pages and answers of this application."""
    base = spark.sparkContext.uiWebUrl
    assert base is not None
    interface = f"{base}/api/v1/applications/{spark.sparkContext.applicationId}"
    for address in (*(f"{base}/{page}" for page in PAGES), *(f"{interface}/{answer}" for answer in ANSWERS)):
        with urlopen(address) as answer:
            yield address, answer.read().decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
