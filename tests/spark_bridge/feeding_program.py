"""A program with a Spark of its own, several executors, and speculation: feeds two folders of files to a running join.

Run by tests as `python -m tests.spark_bridge.feeding_program <json>`; it prints a line for each committed micro-batch,
and ends when it is killed, or when a query fails.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from spark_bridge import InterlaceDataSource, local_session
from tests.spark_bridge.micro_batches import streamed

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "3",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.task.maxFailures": "4",
}


def main(master: str, folder: str, partitions: int, endpoints: dict[str, list[str]]) -> None:
    spark = local_session("feeding", master=master, memory="512m", settings=SETTINGS)
    spark.dataSource.register(InterlaceDataSource)
    queries = []
    for stream, (uri, token) in endpoints.items():
        spark.conf.set("spark.interlace.token", token)
        writer = streamed(spark, Path(folder) / stream, partitions).writeStream.format("interlace")
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
