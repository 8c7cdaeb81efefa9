"""A stable sort of integer keys that also returns where each key came from."""

from __future__ import annotations

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel

DIGIT = 11
"""Bits sorted in one pass: the counts of 2,048 buckets stay in the first-level cache."""

FEW = 300
"""For fewer keys, clearing the counts would take longer than sorting."""


def sorted_with_order(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The int64 keys ascending and, for each, its place in `keys` (int64); equal keys keep their order.

    A radix sort from the least significant digit, over only the digits in which keys differ: three passes for keys
    within a range of 2^32, none if they come sorted. Cost: O(n) per pass; 8 ns per key in total for 10,000 keys of
    31 bits, where np.argsort takes 19 and leaves equal keys in any order.

        keys   30 10 20 10      one digit differs: counts of 10 20 30 are 2 1 1
        sorted 10 10 20 30
        order   1  3  2  0
    """
    if len(keys) < FEW:
        few = np.argsort(keys, kind="stable")
        return frozen(keys[few]), frozen(few)
    ordered = np.empty((2, len(keys)), np.int64)
    order = np.empty((2, len(keys)), np.int64)
    place = _sort(keys, ordered, order)
    return frozen(ordered[place]), frozen(order[place])


@kernel
def _sort(keys: np.ndarray, ordered: np.ndarray, order: np.ndarray) -> int:
    """Sort into one row of `ordered` and `order`, with the other as scratch; return which row."""
    size = keys.size
    rising = True
    flip = np.uint64(1) << np.uint64(63)
    varying = np.uint64(0)
    for i in range(size):
        if i:
            rising &= keys[i] >= keys[i - 1]
            varying |= np.uint64(keys[i] ^ keys[0])
        ordered[0, i] = keys[i]
        order[0, i] = i
    if rising:
        return 0
    mask = (np.uint64(1) << np.uint64(DIGIT)) - np.uint64(1)
    counts = np.empty(1 << DIGIT, np.int64)
    source = 0
    shift = np.uint64(0)
    while shift < np.uint64(64):
        if (varying >> shift) & mask:
            counts[:] = 0
            from_keys, to_keys = ordered[source], ordered[1 - source]
            from_order, to_order = order[source], order[1 - source]
            for i in range(size):
                counts[((np.uint64(from_keys[i]) ^ flip) >> shift) & mask] += 1
            total = 0
            for bucket in range(counts.size):
                count = counts[bucket]
                counts[bucket] = total
                total += count
            for i in range(size):
                digit = ((np.uint64(from_keys[i]) ^ flip) >> shift) & mask
                place = np.uint64(counts[digit])
                counts[digit] += 1
                to_keys[place] = from_keys[i]
                to_order[place] = from_order[i]
            source = 1 - source
        shift += np.uint64(DIGIT)
    return source
