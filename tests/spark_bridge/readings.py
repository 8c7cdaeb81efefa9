"""Data-centre readings for the tests, as Spark sees them and as Arrow does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from operators import CountWindow, SPOJoin, StreamJoin

SCHEMA = "id LONG, ts LONG, power DOUBLE, cool LONG"


def join(window: int = 150) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        on="R.power < S.power AND R.cool > S.cool",
        window=CountWindow(window, slide=window // 3),
        select=["R.id", "S.id", "S.ts"],
        event_time="ts",
        using=SPOJoin(elements=2),
    )


def readings(spark: SparkSession, rows: int, partitions: int, seed: int) -> DataFrame:
    """Scattered readings: each partition holds times from everywhere, in no order; no two times are equal."""
    number = sql.col("id")
    return (
        spark.range(0, rows, 1, partitions)
        .select(
            number,
            ((number * 7919 + seed) % 100_003).alias("ts"),
            ((number * 31 + seed * 17) % 101 / 10).alias("power"),
            ((number * 57 + seed * 5) % 103).alias("cool"),
        )
        .select(*[name.split()[0] for name in SCHEMA.split(", ")])
    )


def as_sources(df: DataFrame, names: Sequence[str]) -> dict[str, pa.Table]:
    """The rows that each partition must deliver, by the name of its source."""
    table = df.withColumn("partition", sql.spark_partition_id()).toArrow()
    schema = pa.schema([field.with_nullable(True) for field in table.drop_columns("partition").schema])
    return {
        name: table.filter(pc.equal(table["partition"], number))
        .drop_columns("partition")
        .sort_by([("ts", "ascending"), ("id", "ascending")])
        .cast(schema)
        for number, name in enumerate(names)
    }


def plain(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def multiset(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(plain(table))
