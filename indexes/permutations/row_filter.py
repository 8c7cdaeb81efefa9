"""Filter and sort one probe row's candidates.

Kernels write a probe row's candidate rows to a scratch array that stays in the cache. These functions keep the live
ones that pass the remaining dimensions, and sort them by position.
"""

from __future__ import annotations

import numpy as np

from indexes.kernels.bit_array import LAST, ONE, SIX, drain_bits, set_bit, unpack_word
from indexes.kernels.compiled import kernel

INSERTION = 12
"""Up to so many rows, insertion sort is the fastest (28 rows: 160 ns, as with bits)."""


@kernel
def keep_between(rows: np.ndarray, count: np.uint64, low: int, high: int) -> np.uint64:
    """Keep the rows of [low, high), in place. Cost: O(count)."""
    width = np.uint32(max(high - low, 0))
    kept = np.uint64(0)
    for i in range(count):
        row = rows[i]
        rows[kept] = row
        kept += np.uint64(np.uint32(row - low) < width)
    return kept


@kernel
def keep_ranked(rows: np.ndarray, count: np.uint64, ranks: np.ndarray, low: int, high: int, negated: bool) -> np.uint64:
    """Keep the rows whose rank lies in [low, high), in place; if negated, those that have a rank outside it.

    A rank of -1 means no valid key: as an unsigned number it lies outside every range, and if negated it is rejected
    separately. Cost: O(count).
    """
    width = np.uint32(high - low)
    kept = np.uint64(0)
    for i in range(count):
        row = rows[i]
        rank = ranks[np.uint64(row)]
        rows[kept] = row
        inside = np.uint32(rank - low) < width
        kept += np.uint64((inside != negated) and rank >= 0)
    return kept


@kernel
def sort_rows(rows: np.ndarray, count: np.uint64, words: np.ndarray, level1: np.uint64, level2: np.uint64) -> None:
    """Sort distinct rows ascending, in place; `words` is an empty bit array and stays empty.

    Few rows are sorted by insertion. A moderate number goes through all levels of the bit array, which costs per row.
    Many go through its lowest level only, which costs per word but takes no branch: 1.4 to 3.6 ns per row.
    Cost: O(count + min(n / 64, count)).
    """
    if count <= np.uint64(INSERTION):
        for i in range(1, np.int64(count)):
            row = rows[i]
            j = i - 1
            while j >= 0 and rows[j] > row:
                rows[j + 1] = rows[j]
                j -= 1
            rows[j + 1] = row
    elif (count << np.uint64(2)) < level1:
        for i in range(count):
            set_bit(words, level1, level2, np.uint64(rows[i]))
        drain_bits(words, level1, level2, rows)
    else:
        for i in range(count):
            row = np.uint64(rows[i])
            words[row >> SIX] |= ONE << (row & LAST)
        placed = np.uint64(0)
        for word in range(level1):
            bits = words[word]
            words[word] = np.uint64(0)
            placed = unpack_word(bits, word << SIX, rows, placed)
