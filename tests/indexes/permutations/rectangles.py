"""Random points and ranges for tests of trees that answer two ranges at once."""

import numpy as np

EDGES = (0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 640, 1000, 4096)
"""Sizes about those at which a word, a leaf or a level begins."""

Ranges = tuple[np.ndarray, np.ndarray]


def some_partner(rng: np.random.Generator, points: int, spare_positions: int, spare_values: int) -> np.ndarray:
    """A permutation with positions that have no point and values that do not occur."""
    values = rng.choice(points + spare_values, points, replace=False)
    partner = np.full(points + spare_positions, -1, np.int32)
    partner[rng.choice(points + spare_positions, points, replace=False)] = values
    return partner


def some_ranges(rng: np.random.Generator, end: int, count: int) -> Ranges:
    """Ranges of any width, narrow ones, and ones with an open end or two."""
    a, b = np.sort(rng.integers(0, end + 1, (2, count)), axis=0)
    kind = rng.integers(0, 5, count)
    a[kind == 0] = 0
    b[kind == 1] = end
    b = np.where(kind == 2, np.minimum(a + rng.integers(0, 70, count), end), b)
    a[(kind == 0) & (rng.random(count) < 0.2)] = 0
    b[(kind == 0) & (a == 0) & (rng.random(count) < 0.2)] = end
    return a.astype(np.int32), b.astype(np.int32)


def met(partner: np.ndarray, values: Ranges, positions: Ranges) -> list[np.ndarray]:
    """By definition, the positions of each probe row's points."""
    found = []
    for a, b, first, end in zip(*values, *positions, strict=True):
        within = partner[first:end]
        found.append(first + np.flatnonzero((within >= a) & (within < b) & (within >= 0)))
    return found
