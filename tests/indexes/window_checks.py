"""Checks of longer lives than the contract's: shapes of data, memory, many slides."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from indexes import Interval, Keys, LinearScan, Live, WindowIndex
from indexes.one_key.subwindows import SubwindowIndex
from tests.indexes.generated import assert_same

ROWS = 1500


def _drifting(rng: np.random.Generator) -> np.ndarray:
    return (rng.normal(0, 300, ROWS) + np.arange(ROWS) * 3).astype(np.int64)


SHAPES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "uniform": lambda rng: rng.integers(-1000, 1000, ROWS),
    "drifting": _drifting,
    "heavy-tailed": lambda rng: np.exp(rng.normal(3, 3, ROWS)).astype(np.int64),
    "all equal": lambda rng: np.full(ROWS, 7),
    "two values": lambda rng: rng.choice([-(2**63), 2**63 - 1], ROWS),
    "whole range": lambda rng: rng.integers(-(2**63), 2**63 - 1, ROWS, endpoint=True),
    "ascending": lambda rng: np.arange(ROWS),
    "descending": lambda rng: np.arange(ROWS)[::-1],
    "one frequent": lambda rng: np.where(rng.random(ROWS) < 0.7, 0, rng.integers(-500, 500, ROWS)),
}

shapes = pytest.mark.parametrize("shape", SHAPES)


def check_shape(make: Callable[[], WindowIndex], shape: str, batch: int, window: int = 700) -> WindowIndex:
    """Slide a window over the data and compare with a linear scan after every batch."""
    rng = np.random.default_rng(1)
    column = SHAPES[shape](rng)
    index, reference = make(), LinearScan(0)
    for first in range(0, ROWS, batch):
        keys = [Keys(column[first : first + batch])]
        index.insert(keys)
        reference.insert(keys)
        end = first + len(keys[0])
        below = max(0, end - window)
        index.expire(below)
        reference.expire(below)
        chosen = np.sort(rng.choice(column[:end], (2, 20)), axis=0)
        live = Live(np.full(20, below), np.full(20, end))
        for bounds in (Interval(chosen[0], chosen[1]), Interval(chosen[0], chosen[0], True)):
            expected = reference.probe([bounds], live)
            assert_same(index.probe([bounds], live), expected)
            np.testing.assert_array_equal(index.count([bounds], live), expected.counts())
        index.check_invariants()
    return index


def check_little_room(make: Callable[[int], SubwindowIndex]) -> None:
    """With room for the matches of only some bands, a visit stops at the right band and resumes there.

    Three cases: every row passes, half of the rows are not live, another dimension filters.
    """
    rng = np.random.default_rng(1)
    for dimensions, first in ((1, 0), (1, 60), (2, 0)):
        index = make(dimensions)
        for rows in (70, 5, 25):
            index.insert([Keys(rng.integers(0, 30, rows)) for _ in range(dimensions)])
        low = rng.integers(0, 30, 40)
        bounds = [Interval(low, low + rng.integers(0, 12, 40)) for _ in range(dimensions)]
        alive = Live(np.full(40, first), np.full(40, 100))
        probe = index._probe(bounds, alive)
        everything = index.probe(bounds, alive)
        for room in (0, 1, 7, 30):
            found: list[list[int]] = [[] for _ in range(40)]
            for visit in index._visits(probe):
                positions, ends = np.empty(room, np.int64), np.empty(40, np.int64)
                band = used = 0
                while band < 40:
                    band, used, needed = visit(band, used, positions, ends, probe)
                    assert used <= len(positions)
                    assert band == 40 or needed > len(positions)
                    positions = np.concatenate([positions[:used], np.empty(needed - used, np.int64)])
                for b, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                    found[probe.row[b]] += positions[begin:end].tolist()
            for row in range(40):
                expected = everything.positions[everything.offsets[row] : everything.offsets[row + 1]]
                assert sorted(found[row]) == expected.tolist()


def check_memory(make: Callable[[], WindowIndex], rows: int) -> None:
    """`nbytes` equals the allocated memory within a tenth."""
    rng = np.random.default_rng(1)

    def filled() -> WindowIndex:
        index = make()
        for _ in range(0, rows, 1000):
            index.insert([Keys(rng.integers(0, 2**40, 1000))])
        return index

    filled()
    gc.collect()
    tracemalloc.start()
    try:
        index = filled()
        gc.collect()
        allocated, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert allocated == pytest.approx(index.nbytes, rel=0.1)


def check_no_growth(make: Callable[[], WindowIndex], slides: int = 1500, window: int = 200) -> None:
    """However long the window slides, it takes no more memory than after the first windows."""
    rng = np.random.default_rng(1)
    index = make()
    held = []
    for slide in range(slides):
        index.insert([Keys(rng.integers(0, 1000, 10))])
        index.expire((slide + 1) * 10 - window)
        held.append(index.nbytes)
    assert max(held[slides // 2 :]) <= max(held[: slides // 2])
