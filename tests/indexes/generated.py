"""Random columns, intervals and live ranges, of few distinct values, so that ties and edges happen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from indexes import Interval, Keys, Live, Matches

INTEGERS = (-(2**63), -(2**63) + 1, -2, -1, 0, 1, 2, 3, 4, 5, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1)
FLOATS = (-np.inf, -1e300, -2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e300, np.inf)

seeds = st.integers(0, 2**32 - 1)

without_deadline = settings(deadline=None)
"""The first example may compile a kernel."""

thorough = settings(without_deadline, max_examples=150)


def values(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    """A few small values, all values of the pool, or many distinct ones."""
    pool: np.ndarray = np.array(INTEGERS if dtype is np.int64 else FLOATS, dtype)
    kind = rng.integers(0, 3)
    if kind == 0:
        return rng.choice(pool[3:8], count)
    if kind == 1:
        return rng.choice(pool, count)
    return rng.integers(-50, 50, count).astype(dtype)


def keys(rng: np.random.Generator, dtype: type, count: int) -> Keys:
    column = values(rng, dtype, count)
    if rng.random() < 0.5:
        return Keys(column)
    valid = rng.random(count) < rng.choice([0.0, 0.5, 0.95])
    if dtype is np.float64:
        column = np.where(valid, column, np.nan)
    return Keys(column, valid)


def interval(rng: np.random.Generator, dtype: type, count: int, negated: bool) -> Interval:
    """Half-lines, intervals with two ends, points, and empty intervals."""
    low, high = values(rng, dtype, count), values(rng, dtype, count)
    extremes = (-np.inf, np.inf) if dtype is np.float64 else (-(2**63), 2**63 - 1)
    kind = rng.integers(0, 5)
    if kind == 0:
        low = np.full(count, extremes[0], dtype)
    elif kind == 1:
        high = np.full(count, extremes[1], dtype)
    elif kind == 2:
        high = low
    elif kind == 3:
        low, high = np.minimum(low, high), np.maximum(low, high)
    return Interval(low, high, negated)


def intervals(rng: np.random.Generator, dtypes: Sequence[type], count: int) -> list[Interval]:
    return [interval(rng, dtype, count, bool(rng.random() < 0.25)) for dtype in dtypes]


def live(rng: np.random.Generator, first: int, end: int, count: int) -> Live:
    """Everything, one range for all rows, or one range per row; never below `first`."""
    kind = rng.integers(0, 3)
    if kind == 0:
        return Live(np.full(count, first), Live.everything(count).end)
    bounds = rng.integers(first, end + 2, (2, 1 if kind == 1 else count))
    return Live(np.broadcast_to(bounds[0], count), np.broadcast_to(bounds[1], count))


def dtypes(rng: np.random.Generator, dimensions: int) -> list[type]:
    return [np.int64 if rng.random() < 0.5 else np.float64 for _ in range(dimensions)]


def assert_same(found: Matches | None, expected: Matches | None) -> None:
    assert found is not None
    assert expected is not None
    assert found.offsets.dtype == found.positions.dtype == np.int64
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    np.testing.assert_array_equal(found.positions, expected.positions)
