"""A sorted array into which rows are merged, with samples that are searched first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.memory import prefetch
from indexes.kernels.ordered_integers import GREATEST
from indexes.pan.rebounding_search import GROUP, rebound, rebound_group

AHEAD = 8
"""Keys after a band's first that are compared at once: most bands end among them."""


class Arrays(NamedTuple):
    """The form that kernels take: the first `size` of keys and rows count, and keys[::stride] of these are sampled."""

    keys: np.ndarray
    rows: np.ndarray  # position - base
    samples: np.ndarray
    stride: int
    size: int
    base: int


class IndexedArray:
    """The main array and the index array of BI-Sort (PanJoin, section III-D), for up to `capacity` rows.

    The samples are every `stride`-th key. They stay in the cache when the array does not, so a search costs about one
    cache miss. The stride is fixed, where the paper divides the current size by a fixed number of partitions: here a
    short array has few samples rather than narrow partitions.

        stride=3   keys    10 12 12 | 15 17 20 | 21        12 <= key <= 16: of the samples only 10 is below 12,
                   rows     4  0  6 |  1  5  2 |  3        so the search goes on in ranks 1 and 2 and finds 1;
                   samples 10         15         21        looking ahead from there, three keys are <= 16: [1, 4)
    """

    def __init__(self, capacity: int, stride: int) -> None:
        self.capacity = capacity
        self.stride = stride
        self.size = 0
        self.base = 0
        # GREATEST follows the last key, so that searches and looking ahead need no check for the end.
        self.keys = np.empty(capacity + stride + AHEAD, np.int64)
        self.rows = np.empty(capacity + AHEAD, np.int32)
        self.samples = np.empty(-(-capacity // stride), np.int64)

    @property
    def arrays(self) -> Arrays:
        return Arrays(self.keys, self.rows, self.samples, self.stride, self.size, self.base)

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        return self.keys.nbytes + self.rows.nbytes + self.samples.nbytes

    def merge(self, keys: np.ndarray, rows: np.ndarray) -> None:
        """Merge rows in, keys ascending. Cost: O(rows held and new), from the least new key on."""
        assert self.size + len(keys) <= self.capacity, "the array has room for all rows of its subwindow"
        merge_into(self.keys, self.rows, self.samples, self.stride, self.size, frozen(keys), frozen(rows))
        self.size += len(keys)

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and positions. Cost: O(n)."""
        return self.keys[: self.size].copy(), self.rows[: self.size] + np.int64(self.base)

    def check_invariants(self) -> None:
        keys = self.keys[: self.size]
        # Keys ascend.
        assert (keys[1:] >= keys[:-1]).all()
        # Samples are every stride-th key.
        assert (self.samples[: -(-self.size // self.stride)] == keys[:: self.stride]).all()
        # It never outgrows its capacity.
        assert self.size <= self.capacity
        # The greatest key follows the last one, as far as a search may look.
        assert not self.size or (self.keys[self.size : self.size + self.stride + AHEAD] == GREATEST).all()


@kernel
def merge_into(
    keys: np.ndarray,
    rows: np.ndarray,
    samples: np.ndarray,
    stride: int,
    size: int,
    new_keys: np.ndarray,
    new_rows: np.ndarray,
) -> None:
    """Merge sorted rows into the first `size` of a sorted array, in place, the greatest first."""
    end = size
    for new in range(new_keys.size - 1, -1, -1):
        key = new_keys[np.uint64(new)]
        while end > 0 and keys[np.uint64(end - 1)] > key:
            end -= 1
            keys[np.uint64(end + new + 1)] = keys[np.uint64(end)]
            rows[np.uint64(end + new + 1)] = rows[np.uint64(end)]
        keys[np.uint64(end + new)] = key
        rows[np.uint64(end + new)] = new_rows[np.uint64(new)]
    size += new_keys.size
    for sample in range(end // stride, (size + stride - 1) // stride):
        samples[np.uint64(sample)] = keys[np.uint64(sample * stride)]
    keys[size : size + stride + AHEAD] = GREATEST


@kernel
def group_ranks(
    arrays: Arrays,
    begin: int,
    low: np.ndarray,
    high: np.ndarray,
    band: int,
    group: int,
    start: np.ndarray,
    end: np.ndarray,
) -> int:
    """The ranks [start[k], end[k]) of the closed bands band + k, k < group <= GROUP, which ascend by low.

    It searches the samples from number `begin` on, then the parts between two samples all at once.
    Returns the number of the sample from which the next group may search.
    """
    keys, rows, stride, size = arrays.keys, arrays.rows, arrays.stride, arrays.size
    if size == 0:
        start[:] = 0
        end[:] = 0
        return 0
    count = (size + stride - 1) // stride
    rebound_group(arrays.samples, begin, count, low, band, group, start)
    following = start[group - 1]
    for k in range(GROUP):
        start[k] = max((start[k] - 1) * stride + 1, 0)
        end[k] = low[min(band + k, band + group - 1)]
    span = stride - 1
    while span > 1:
        half = span >> 1
        for k in range(GROUP):
            start[k] += half * (keys[start[k] + half - 1] < end[k])
        span -= half
    for k in range(GROUP):
        start[k] += keys[start[k]] < end[k]
        prefetch(rows, start[k])
    for k in range(group):
        first = start[k]
        bound = high[band + k]
        within = 0
        for i in range(AHEAD):
            within += keys[np.uint64(first + i)] <= bound
        end[k] = min(first + within, size)
        if within == AHEAD and first + AHEAD < size:
            end[k] = rebound(keys, first + AHEAD, size, bound, True)
    return following
