"""The contract of every window index: agree with `LinearScan` after any sequence of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from indexes import LinearScan, WindowIndex
from tests.indexes.generated import assert_same, dtypes, intervals, keys, live

STEPS = ("insert", "insert", "insert", "probe", "probe", "expire", "restore")

Make = Callable[[int, int], WindowIndex]
"""Makes an empty index, given the number of dimensions and the first position."""


def check_against_linear_scan(make: Make, seed: int, dimensions: int, steps: Sequence[str]) -> None:
    """Make the same calls on a new index and on a linear scan, and compare every result."""
    rng = np.random.default_rng(seed)
    types = dtypes(rng, dimensions)
    first = int(rng.choice([0, 5, 2**40]))
    index, reference = make(dimensions, first), LinearScan(first)
    end = below = first
    for step in [*steps, "probe"]:
        if step == "insert":
            rows = int(rng.choice([0, 1, 1, 2, 7, 30]))
            batch = [keys(rng, dtype, rows) for dtype in types]
            index.insert(batch)
            reference.insert(batch)
            end += rows
        elif step == "expire":
            # Often all rows but the newest, or all: structures drop whole parts there.
            below = max(below, int(rng.choice([int(rng.integers(below, end + 1)), end - 1, end])))
            index.expire(below)
            reference.expire(below)
        elif step == "restore":
            index = type(index).restore(index.snapshot())
            reference = LinearScan.restore(reference.snapshot())
        if step in ("probe", "expire"):
            probes = int(rng.choice([0, 1, 3, 40, 40]))
            bounds = intervals(rng, types, probes)
            alive = live(rng, below, end, probes)
            expected = reference.probe(bounds, alive)
            assert_same(index.probe(bounds, alive), expected)
            assert_same(index.probe(bounds, alive, ordered=False).sorted_by_position(), expected)
            np.testing.assert_array_equal(index.count(bounds, alive), expected.counts())
            total = len(expected.positions)
            assert_same(index.probe_within(total, bounds, alive), expected)
            if total:
                assert index.probe_within(total - 1, bounds, alive) is None
        index.check_invariants()
