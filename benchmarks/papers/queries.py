"""The queries of the SPO-Join paper, Q1 to Q3, as workloads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.data import datacentre_readings
from benchmarks.papers import joins
from examples.recorded_data import FOLDER, Rows, green_taxi, taxi_pickups
from operators import CountWindow, Engine, StreamJoin, TimeWindow

Q1 = "R.power < S.power AND R.cool > S.cool"
Q1_EQUAL = "R.power = S.power AND R.cool = S.cool"
Q2 = "abs(T1.lon - T2.lon) <= 0.03 AND abs(T1.lat - T2.lat) <= 0.03"
Q3 = "T1.distance > T2.distance AND T1.fare < T2.fare"
MINUTE = 60_000_000
"""In microseconds."""

NOISE = 0.05


def q1(engine: Engine, window: int, slide: int, batch: int, on: str = Q1) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        on,
        CountWindow(window, slide),
        select=["R.id", "S.id"],
        event_time="block",
        using=engine,
        step_rows=2 * batch,
    )


def q1_feed(window: int, measured: int, batch: int, noise: float = NOISE, seed: int = 1) -> joins.Feed:
    """Readings of two data centres: `measured` of each after the windows are full."""
    total = -(-window // batch) * batch + measured
    return joins.alternating([datacentre_readings(total, noise, seed + side) for side in (0, 1)], batch, window)


def equal_feed(window: int, measured: int, batch: int) -> joins.Feed:
    """Readings in whole numbers, so that a reading equals one of a full window on average."""
    total = -(-window // batch) * batch + measured
    tables = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        power = rng.integers(0, window, total)
        tables.append(pa.table({"id": np.arange(total), "power": power, "cool": power // 2}))
    return joins.alternating(tables, batch, window)


def q2(engine: Engine, minutes: int, slide: int, batch: int) -> StreamJoin:
    return StreamJoin(
        "T",
        "T",
        Q2,
        TimeWindow(minutes * MINUTE, slide * MINUTE),
        select=["T1.id", "T2.id"],
        event_time="ts",
        using=engine,
        step_rows=batch,
    )


def q2_feed(batch: int, rows: int | None = None) -> joins.Feed:
    """Recorded taxi trips; the second half is measured."""
    trips = _said(taxi_pickups()).slice(0, rows)
    return joins.single(trips.select(["id", "ts", "lon", "lat"]), batch, trips.num_rows // 2)


def q3(engine: Engine, window: int, slide: int, batch: int, on: str = Q3) -> StreamJoin:
    return StreamJoin(
        "T",
        "T",
        on,
        CountWindow(window, slide),
        select=["T1.id", "T2.id"],
        event_time="ts",
        using=engine,
        step_rows=batch,
    )


def q3_feed(window: int, measured: int, batch: int) -> joins.Feed:
    """Recorded taxi trips after a full window of them."""
    trips = _said(green_taxi()).slice(0, window + measured)
    return joins.single(trips.select(["id", "ts", "distance", "fare"]), batch, window)


def _said(rows: Rows) -> pa.Table:
    """The table; prints where generated rows stand in for recorded ones."""
    table, what = rows
    if not what.startswith("recorded"):
        print(f"  {what}: the recorded data is not in {FOLDER}")
    return table


def made_q3_feed(window: int, measured: int, batch: int, noise: float) -> joins.Feed:
    """Generated trips, whose fare follows the distance up to noise: the more noise, the more matches."""
    trips = datacentre_readings(window + measured, noise, 1).rename_columns(["id", "distance", "fare"])
    return joins.single(trips.append_column("ts", trips["id"]), batch, window)
