"""Cut a range of keys into parts of equally many rows: PanJoin's adjustment algorithm."""

from __future__ import annotations

import numpy as np

from indexes.kernels.ordered_integers import GREATEST


def adjusted(count: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """New splitters from the rows, least and greatest key of each of P partitions (PanJoin, section III-B1).

    Returns P - 1 ascending keys. Partition i holds the keys in (splitter i - 1, splitter i], so a key that equals a
    splitter is in one partition, however often it comes. Splitter j should have bal = N * j / P rows up to it. The
    prefix sums of the counts tell which partition has that row; its keys are assumed to be uniform between its least
    and greatest. Keys that come more often than N / P times give equal splitters, with empty partitions between them.
    Cost: O(P log P).

        P=4  count 1 4 5 6   prefix sums 1 5 10 16   bal 4 8 12
             least..greatest 2..2 4..7 8..13 20..50
             splitter 1: row 4 is the 3rd of 4 in 4..7: 4 + 3/4 * 3 = 6; then 8 + 3/5 * 5 = 11, 20 + 2/6 * 30 = 30

    The sums are compared exactly, as integers. A range of keys may be wider than int64, so it is unsigned; a fraction
    of it is computed in floats and clipped to the range.
    """
    partitions, total = len(count), int(count.sum())
    assert total, "there are rows to learn from"
    sums = np.cumsum(count)
    # bal_j <= sum_i, both times P.
    sought = total * np.arange(1, partitions, dtype=np.int64)
    partition = np.searchsorted(sums * partitions, sought)
    before = sums[partition] - count[partition]
    share = (sought - before * partitions) / (count[partition] * partitions)
    width = highest[partition].view(np.uint64) - lowest[partition].view(np.uint64)
    whole = share >= 1.0
    part = np.where(whole, 0.0, share) * width.astype(np.float64)
    step = np.where(whole, width, np.minimum(part.astype(np.uint64), width))
    return (lowest[partition].view(np.uint64) + step).view(np.int64)


def quantiles(keys: np.ndarray, partitions: int) -> np.ndarray:
    """The splitters that cut these ascending keys evenly, as far as equal keys allow. Cost: O(P)."""
    ranks = len(keys) * np.arange(1, partitions, dtype=np.int64) // partitions
    return keys[np.maximum(ranks - 1, 0)]


def spread(partitions: int, low: int = 0, high: int = GREATEST) -> np.ndarray:
    """Splitters at equal distances between two keys, for when only the range of keys is known. Cost: O(P)."""
    width = high - low
    return np.array([low + width * j // partitions for j in range(1, partitions)], np.int64)
