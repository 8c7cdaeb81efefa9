"""All engines on all workloads, end to end on the embedded runtime, with what `using="auto"` picks marked.

Micro-batches of R and S take turns; the windows are full when the measurement begins; each engine's results are
compared with the first one's, as multisets of id pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data import datacentre_readings
from benchmarks.measure import run_join
from operators import (
    CountWindow,
    Engine,
    HandshakeJoin,
    IndexJoin,
    PanJoin,
    ScaleJoin,
    SplitJoin,
    SPOJoin,
    StreamJoin,
)

WINDOW, BATCH = 1 << 17, 10_000

AUTO = "auto"

HOPELESS = 20
"""Times slower than the best from which on an engine is run once only."""

ENGINES: dict[str, Callable[[], Engine]] = {
    "SPOJoin": SPOJoin,
    "IndexJoin": IndexJoin,
    "IndexJoin, chosen": lambda: IndexJoin("auto"),
    "IndexJoin, chosen, 1 thread": lambda: IndexJoin("auto", 1),
    "PanJoin": PanJoin,
    "ScaleJoin, indexed": lambda: ScaleJoin(index="auto"),
    "SplitJoin, indexed": lambda: SplitJoin(index="auto"),
    "ScaleJoin": ScaleJoin,
    "SplitJoin": SplitJoin,
    "HandshakeJoin": HandshakeJoin,
}


def _uniform(rows: int, seed: int, space: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"id": np.arange(rows), "x": rng.integers(0, space, rows), "y": rng.integers(0, space, rows)})


def _readings(noise: float) -> Callable[[int, int], pa.Table]:
    return lambda rows, seed: datacentre_readings(rows, noise, seed)


Q1 = "R.power < S.power AND R.cool > S.cool"
WORKLOADS: dict[str, tuple[str, Callable[[int, int], pa.Table]]] = {
    "two inequalities, sparse": (Q1, _readings(0.05)),
    "two inequalities, dense": (Q1, _readings(5.0)),
    "band": (f"abs(R.x - S.x) <= {(1 << 31) // WINDOW}", lambda rows, seed: _uniform(rows, seed, 1 << 31)),
    "two bands": (
        "abs(R.x - S.x) <= 10 AND abs(R.y - S.y) <= 10",
        lambda rows, seed: _uniform(rows, seed, 10_000),
    ),
    "equality": ("R.x = S.x", lambda rows, seed: _uniform(rows, seed, WINDOW // 2)),
}


def run(quick: bool) -> dict[str, Any]:
    """Measure every engine on every workload, all in turns, so that a busy moment of the machine meets all."""
    rows = []
    measured = 50_000 if quick else 100_000
    prefill = (1 << 15 if quick else WINDOW) // BATCH * BATCH
    repeats = 2 if quick else 4
    print(f"windows of {prefill:,} rows, micro-batches of {BATCH:,}; best of {repeats} runs, in turns:")
    print("tuples/s of both sides by the clock, and for each second of processor time; * is what auto picks")
    for workload, (on, data) in WORKLOADS.items():
        tables = data(prefill + measured, 1), data(prefill + measured, 2)
        expected: pa.Table | None = None
        joins = {name: _join(on, prefill, make()) for name, make in ENGINES.items()}
        joins[AUTO] = _join(on, prefill, AUTO)
        (choice,) = joins[AUTO].engines
        rates = dict.fromkeys(joins, (0.0, 0.0))
        for _ in range(repeats):
            for name, join in joins.items():
                if 0 < rates[name][0] < max(rate for rate, _ in rates.values()) / HOPELESS:
                    continue
                result = run_join(join, tables, BATCH, prefill)
                expected = _check(expected, result.results, name, workload)
                worked = 2 * measured / result.processor
                rates[name] = max(rates[name][0], result.rate), max(rates[name][1], worked)
        print(f"{workload}: {choice}")
        best = tuple(max(each[i] for each in rates.values()) for i in (0, 1))
        for name, (rate, worked) in rates.items():
            mark = "*" if joins[name].engines[0].engine == choice.engine else " "
            print(
                f"  {name:<30}{mark}{rate:>12,.0f}{rate / best[0]:>6.2f}{worked:>14,.0f}{worked / best[1]:>6.2f}",
                flush=True,
            )
        rows.append(
            {
                "case": workload,
                "ours": {name: rate for name, (rate, _) in rates.items()},
                "processor": {name: worked for name, (_, worked) in rates.items()},
                "auto": str(choice),
                "ratio": rates[AUTO][0] / best[0],
                "processor_ratio": rates[AUTO][1] / best[1],
                "peers": {},
            }
        )
    return {"name": "engines", "rows": rows}


def _join(on: str, window: int, engine: Any) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        on,
        CountWindow(window),
        select=["R.id", "S.id"],
        event_time="block",
        using=engine,
        ordering="outer",
        step_rows=2 * BATCH,
    )


def _check(expected: pa.Table | None, found: pa.Table, name: str, workload: str) -> pa.Table:
    ordered = found.sort_by([("R.id", "ascending"), ("S.id", "ascending")]).combine_chunks()
    if expected is not None and not expected.equals(ordered):
        raise AssertionError(f"{name} differs on {workload}: {ordered.num_rows} and {expected.num_rows} pairs")
    return ordered
