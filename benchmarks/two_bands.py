"""Two bands over one window: the cost of inserting and probing a row with each index, on one thread.

The data is CellJoin's: uniform in 1..10,000, one attribute an integer and the other a float, within 10 of both. The
window is full; each round inserts a batch, probes with as many other rows, and expires as many. Figures are of
processor time. All indexes must find the same pairs.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from indexes import Interval, Keys, Live, make_index

INDEXES = ("GridIndex", "TieredRuns", "LeveledTrees", "NestedLoop")
NEAR = 10


def run(quick: bool) -> dict[str, Any]:
    """Measure each index at each window and batch size."""
    rows = []
    title = f"{'window':>10}{'batch':>9}  {'index':<16}"
    print(title + "".join(f"{name:>12}" for name in ("insert, ns", "probe, ns", "tuples/s")) + "  matches     MB")
    for window in (1 << 14, 1 << 17) if quick else (1 << 14, 1 << 17, 1 << 20):
        for batch in (1_000, 10_000) if quick else (1_000, 10_000, 65_536):
            if batch > window // 2:
                continue
            found = set()
            for name in INDEXES:
                steps = max(4, (1 << 14 if name == "NestedLoop" else 1 << 18) // batch)
                insert, probe, pairs, size = _measure(name, window, batch, steps)
                if name != "NestedLoop":
                    found.add(pairs)
                matches = pairs / (steps * batch)
                rate = 1e9 / (insert + probe)
                print(
                    f"{window:>10,}{batch:>9,}  {name:<16}{insert:>12.0f}{probe:>12.0f}{rate:>12,.0f}{matches:>9.2f}"
                    f"{size / 1e6:>7.0f}",
                    flush=True,
                )
                case = f"{name} window={window} batch={batch}"
                rows.append({"case": case, "ours": rate, "insert": insert, "probe": probe, "peers": {}, "ratio": 1.0})
            assert len(found) == 1, "all indexes must find the same"
    return {"name": "two-bands", "rows": rows}


def _measure(name: str, window: int, batch: int, steps: int) -> tuple[float, float, int, int]:
    """Nanoseconds to insert and to probe a row, the pairs found, and the bytes held."""
    rng = np.random.default_rng(1)
    index = make_index(name, window=window, batch=batch, dimensions=2)
    filling = -(-window // batch)
    times, pairs, end = [0.0, 0.0], 0, 0
    for step in range(filling + steps):
        keys, bounds = [Keys(column) for column in _rows(rng, batch)], _rows(rng, batch)
        start = time.thread_time()
        index.insert(keys)
        inserted = time.thread_time()
        end += batch
        live = Live(np.full(batch, max(0, end - window)), np.full(batch, end))
        # A few probes before the window is full show the index the intervals.
        if step >= filling or step < 2:
            met = index.probe([Interval(column - NEAR, column + NEAR) for column in bounds], live)
            if step >= filling:
                times[0] += inserted - start
                times[1] += time.thread_time() - inserted
                pairs += len(met.positions)
        index.expire(end - window)
    insert, probe = (seconds / (steps * batch) * 1e9 for seconds in times)
    return insert, probe, pairs, index.nbytes


def _rows(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(1, 10_001, count), rng.uniform(1, 10_000, count)
