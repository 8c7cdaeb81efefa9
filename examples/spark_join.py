"""From Spark through SPO-Join on Ray and back: two DataFrames in, a DataFrame of matches out.

    python -m examples.spark_join                  # Spark and Ray on this machine; needs Java 17 or newer
    python -m examples.spark_join --local          # the join in this process instead of on Ray
    python -m examples.spark_join --rows 1000000

Which racks of one data centre draw less power than a rack of the other at that time, and yet need more cooling? The
readings of both come from Spark. Its executors send them straight to the join over Arrow Flight, and one of them reads
the matches; the driver sees neither. At the end Spark checks a sample of the matches by brute force.
"""

from __future__ import annotations

import argparse
import sys
import time

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

import interlace as il

PARTITIONS = 6
SAMPLE = 97
"""Spark checks every 97th reading."""


def readings(spark: SparkSession, rows: int, centre: int) -> DataFrame:
    """Describe the readings of one data centre: power, and the cooling it needs. The centres take turns in time."""
    power = (sql.rand(seed=10 + centre) * 10_000).alias("power")
    return (
        spark.range(0, rows, numPartitions=PARTITIONS)
        .select("id", (sql.col("id") * 2 + centre).alias("ts"), power)
        .withColumn("cool", sql.col("power") + sql.randn(seed=20 + centre) * 0.5)
    )


def data_centre_join(window: il.CountWindow) -> il.StreamJoin:
    """Describe the join; nothing runs yet."""
    return il.StreamJoin(
        left="R",
        right="S",
        on="R.power < S.power AND R.cool > S.cool",
        window=window,
        select=["R.id", "S.id", "R.power", "S.power", "R.cool", "S.cool"],
        event_time="ts",
        using=il.SPOJoin(elements=4),
    )


def expected_in_sample(r: DataFrame, s: DataFrame, window: il.CountWindow) -> int:
    """Count, by brute force in Spark, the matches that sampled readings of S must have found when they came.

    Reading `id` of S comes after readings 0 to `id` of R. The window has moved on by whole slides.
    """
    sampled = s.where(sql.col("id") % SAMPLE == 0).select(*(sql.col(name).alias(f"s_{name}") for name in s.columns))
    before: Column = sql.col("s_id") + 1
    oldest = sql.greatest(sql.lit(0), sql.ceil((before - window.size) / window.slide) * window.slide)
    live = (sql.col("id") < before) & (sql.col("id") >= oldest)
    matching = (sql.col("power") < sql.col("s_power")) & (sql.col("cool") > sql.col("s_cool"))
    return r.join(sql.broadcast(sampled), live & matching).count()


def run(spark: SparkSession, runtime: il.Runtime, rows: int) -> None:
    """Feed the join, show its results, check a sample."""
    r, s = readings(spark, rows, 0), readings(spark, rows, 1)
    window = il.CountWindow(max(10, rows // 5), slide=max(1, rows // 20))
    join = data_centre_join(window)
    print(f"starting SPO-Join with 4 PO-Join elements on {type(runtime).__name__}", flush=True)
    with join.launch(runtime) as running:
        started = time.perf_counter()
        for stream, df in (("R", r), ("S", s)):
            il.feed(df, running, stream=stream, event_time="ts")  # shows its progress
        results = il.results_dataframe(running, spark)
        found = results.count()
        print(f"{found:,} matches, {time.perf_counter() - started:.1f} s after the first row was fed")
    results.show(5)
    sampled = results.where((sql.col("S_id") % SAMPLE == 0) & (sql.col("R_id") <= sql.col("S_id"))).count()
    expected = expected_in_sample(r, s, window)
    if sampled != expected:
        sys.exit(f"the join found {sampled:,} matches for the sampled readings, but there are {expected:,}")
    print(f"checked: all {expected:,} matches of every {SAMPLE}th reading of S, by brute force in Spark")


def main() -> None:
    """Read the command line, start Spark, run, stop."""
    parser = argparse.ArgumentParser(description="Join two Spark DataFrames with SPO-Join on Ray.")
    parser.add_argument("--rows", type=int, default=100_000, help="readings of each data centre (default: 100,000)")
    parser.add_argument("--local", action="store_true", help="run the join in this process instead of on Ray")
    arguments = parser.parse_args()

    runtime: il.Runtime = il.LocalRuntime()
    if not arguments.local:
        runtime = il.RayRuntime()
    print("starting Spark", flush=True)
    try:
        spark = il.local_session("spark_join", master="local[2]")
    except il.SparkUnavailableError as error:
        sys.exit(str(error))
    try:
        run(spark, runtime, arguments.rows)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
