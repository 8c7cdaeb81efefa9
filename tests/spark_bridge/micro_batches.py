"""Streaming DataFrames whose micro-batches a test decides: a folder of Parquet files, one for each."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from operators import StreamJoin, TimeWindow

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64())])
SPARK_SCHEMA = "id LONG, ts LONG, x LONG"
DELAY = 50


def trips_join(**settings: object) -> StreamJoin:
    return StreamJoin(
        "R", "S", "R.x < S.x AND R.x + 20 > S.x", TimeWindow(40), select=["R.id", "S.id"], event_time="ts",
        **{"out_of_order": DELAY, **settings},  # type: ignore[arg-type]
    )  # fmt: skip


def random_batches(seed: int, count: int, rows: int = 30) -> list[pa.Table]:
    """Micro-batches that overlap in time by less than the delay; times are seldom unique."""
    choose = random.Random(seed)
    tables = []
    for number in range(count):
        content = [
            {"id": number * rows + row, "ts": number * 30 + choose.randrange(DELAY), "x": choose.randrange(100)}
            for row in range(rows)
        ]
        tables.append(pa.Table.from_pylist(content, SCHEMA))
    return tables


def add_files(folder: Path, batches: Sequence[pa.Table]) -> None:
    """Add one file for each micro-batch; Spark takes them in the order of their times."""
    folder.mkdir(exist_ok=True)
    first = len(list(folder.glob("*.parquet")))
    for number, table in enumerate(batches, first):
        hidden, shown = folder / f".{number}", folder / f"{number:04d}.parquet"
        pq.write_table(table, hidden)
        os.utime(hidden, (1_600_000_000 + 10 * number,) * 2)
        hidden.rename(shown)


def streamed(spark: SparkSession, folder: Path, partitions: int = 1) -> DataFrame:
    """The files as a streaming DataFrame, a micro-batch for each, in so many partitions."""
    df = spark.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return df if partitions == 1 else df.repartition(partitions)


def as_source(batches: Sequence[pa.Table]) -> pa.Table:
    """The rows of a feed as one source must have them: each micro-batch by time, then by content."""
    order = [("ts", "ascending"), ("id", "ascending"), ("x", "ascending")]
    return pa.concat_tables([batch.sort_by(order) for batch in batches])
