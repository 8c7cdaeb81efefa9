"""A program with a Spark of its own, several executors, and speculation: feeds two folders of files to a running join.

The first task at the first partition of R stalls, so that only its speculative copy can finish.

Run by tests as `python -m tests.spark_bridge.feeding_program <json>`; it prints a line for each committed micro-batch,
and ends when it is killed, or when a query fails.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from spark_bridge import InterlaceDataSource, local_session
from tests.spark_bridge.micro_batches import SPARK_SCHEMA, streamed

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "3",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.task.maxFailures": "4",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}
STALLED_SECONDS = 600


@dataclass(frozen=True)
class StallsOnce:
    """Passes rows on, except in the first task at partition 0 of all; Spark stops that when its copy has finished."""

    marker: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            try:
                Path(self.marker).touch(exist_ok=False)
                time.sleep(STALLED_SECONDS)
            except FileExistsError:
                pass
        yield from batches


def main(master: str, folder: str, partitions: int, endpoints: dict[str, list[str]]) -> None:
    events = Path(folder) / "events"
    events.mkdir(exist_ok=True)
    settings = {**SETTINGS, "spark.eventLog.dir": events.as_uri()}
    spark = local_session("feeding", master=master, memory="512m", settings=settings)
    spark.dataSource.register(InterlaceDataSource)
    queries = []
    for stream, (uri, token) in endpoints.items():
        spark.conf.set("spark.interlace.token", token)
        rows = streamed(spark, Path(folder) / stream, partitions)
        rows = rows.mapInArrow(StallsOnce(f"{folder}/stalled"), SPARK_SCHEMA) if stream == "R" else rows
        writer = rows.writeStream.format("interlace")
        writer = writer.option("endpoint", uri).option("stream", stream).option("feed", f"files of {stream}")
        queries.append(writer.option("checkpointLocation", f"{folder}/checkpoint-{stream}").start())
    last: dict[str, int] = {}
    while all(query.isActive for query in queries):
        for stream, query in zip(endpoints, queries, strict=True):
            progress = query.lastProgress
            if progress is not None and last.get(stream) != progress["batchId"]:
                last[stream] = progress["batchId"]
                print(stream, last[stream], flush=True)
        time.sleep(0.05)
    for query in queries:
        if query.exception() is not None:
            print("failed", str(query.exception()).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
