"""The band join of the PIM-Tree paper as a workload: two streams of random keys, two matches for each tuple.

`index_rates` measures an index alone, on one thread: each tuple probes the other window and enters its own. `band_run`
and `self_run` measure a whole join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from benchmarks.index_workloads import KEY_SPACE, Steady, Workload, steady
from benchmarks.papers import joins
from benchmarks.papers.figure import Point
from indexes import WindowIndex
from operators import CountWindow, Engine, StreamJoin

MATCHES = 2
BATCH = 10_000
Makes = Mapping[str, Callable[[Workload], WindowIndex]]


def index_rates(makes: Makes, workloads: Mapping[float, Workload], tuples: int, seconds: float) -> Iterator[Point]:
    """Tuples/s of processor time of each index, at each place."""
    for x, workload in workloads.items():
        for name, make in makes.items():
            yield Point(name, x, measured(workload, make, tuples, seconds).rate)


def measured(workload: Workload, make: Callable[[Workload], WindowIndex], tuples: int, seconds: float) -> Steady:
    """The steady state, after a short run that compiles."""
    warm = Workload(1 << 14, 256)
    steady(warm, lambda: make(warm), 1024)
    return steady(workload, lambda: make(workload), tuples, seconds=seconds)


def windows(exponents: Sequence[int], batch: int = BATCH) -> dict[float, Workload]:
    """A workload for each window, at its number of rows."""
    return {float(1 << each): Workload(1 << each, min(batch, (1 << each) // 4)) for each in exponents}


def half_band(window: int, matches: float = MATCHES) -> int:
    """The c of `abs(R.key - S.key) <= c` with so many matches in a window of uniform keys."""
    return max(0, round((matches * KEY_SPACE / window - 1) / 2))


def keyed(rows: int, seed: int, keys: np.ndarray | None = None) -> pa.Table:
    """Rows with an `id`, their number, and a uniform `key`."""
    rng = np.random.default_rng(seed)
    return pa.table({"id": np.arange(rows), "key": rng.integers(0, KEY_SPACE, rows) if keys is None else keys})


def band_join(engine: Engine, window: int, half: int, batch: int) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        f"abs(R.key - S.key) <= {half}",
        CountWindow(window),
        select=["R.id", "S.id"],
        event_time="block",
        using=engine,
        step_rows=2 * batch,
    )


def self_join(engine: Engine, window: int, half: int, batch: int) -> StreamJoin:
    return StreamJoin(
        "T",
        "T",
        f"abs(T1.key - T2.key) <= {half}",
        CountWindow(window),
        select=["T1.id", "T2.id"],
        event_time="id",
        using=engine,
        step_rows=batch,
    )


def band_run(engine: Engine, window: int, batch: int, measured: int, rate: float | None = None) -> joins.Run:
    """The whole two-way join: `measured` rows of each stream after the windows are full."""
    tables = [keyed(-(-window // batch) * batch + measured, seed) for seed in (1, 2)]
    feed = joins.alternating(tables, batch, window)
    return joins.run(band_join(engine, window, half_band(window), batch), feed, rate)


def self_run(engine: Engine, window: int, batch: int, measured: int, keys: np.ndarray | None = None) -> joins.Run:
    """The whole self-join."""
    total = -(-window // batch) * batch + measured
    feed = joins.single(keyed(total, 1, keys), batch, window)
    return joins.run(self_join(engine, window, half_band(window), batch), feed)
