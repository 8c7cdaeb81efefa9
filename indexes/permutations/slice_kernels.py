"""Write the matches that a merge-sort tree gives as slices of its rows."""

from __future__ import annotations

import numpy as np

from indexes.kernels.bit_array import ONE, ZERO, level_starts, trailing_zeros
from indexes.kernels.compiled import kernel
from indexes.permutations.bit_kernels import settle
from indexes.permutations.row_order import order_rows


@kernel
def collect_slices(
    i: int,
    target: np.ndarray,
    tree_rows: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    ends: np.ndarray,
    leaf_begins: np.ndarray,
    leaf_bits: np.ndarray,
    start: int,
    total: np.uint64,
) -> np.uint64:
    """Write probe row i's rows, `start` added, to `target` from `total` on; return where they end.

    Cost: O(rows), about 0.6 ns each.
    """
    for k in range(np.uint64(ends[i]), np.uint64(ends[i + 1])):
        begin, length = np.uint64(begins[k]), np.uint64(lengths[k])
        for j in range(length):
            target[total + j] = start + tree_rows[begin + j]
        total += length
    for side in range(2):
        begin, bits = np.uint64(leaf_begins[side, i]), leaf_bits[side, i]
        while bits != ZERO:
            target[total] = start + tree_rows[begin + trailing_zeros(bits)]
            bits &= bits - ONE
            total += ONE
    return total


@kernel
def place_slices(
    cursor: np.ndarray,
    positions: np.ndarray,
    scratch: np.ndarray,
    words: np.ndarray,
    tree_rows: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    ends: np.ndarray,
    leaf_begins: np.ndarray,
    leaf_bits: np.ndarray,
    rows: int,
    start: int,
    ordered: bool,
) -> None:
    """Write every probe row's rows of a merge-sort tree from its place in `cursor` on, and advance the cursor.

    Cost: O(rows).
    """
    level1, level2 = level_starts(rows)
    for i in range(cursor.size):
        place = np.uint64(cursor[i])
        if ordered:
            count = collect_slices(
                i, scratch, tree_rows, begins, lengths, ends, leaf_begins, leaf_bits, 0, ZERO
            )  # fmt: skip
            if count > ONE:
                order_rows(scratch, count, words, level1, level2)
            for k in range(count):
                positions[place + k] = start + scratch[k]
            cursor[i] = place + count
        else:
            cursor[i] = collect_slices(
                i, positions, tree_rows, begins, lengths, ends, leaf_begins, leaf_bits, start, place
            )  # fmt: skip


@kernel
def place_rows(cursor: np.ndarray, positions: np.ndarray, offsets: np.ndarray, found: np.ndarray) -> None:
    """Write every probe row's positions from its place in `cursor` on, and advance the cursor. Cost: O(matches)."""
    for i in range(cursor.size):
        place = np.uint64(cursor[i])
        for k in range(np.uint64(offsets[i]), np.uint64(offsets[i + 1])):
            positions[place] = found[k]
            place += ONE
        cursor[i] = place


@kernel
def filter_slices(
    done: int,
    offsets: np.ndarray,
    positions: np.ndarray,
    scratch: np.ndarray,
    words: np.ndarray,
    tree_rows: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    ends: np.ndarray,
    leaf_begins: np.ndarray,
    leaf_bits: np.ndarray,
    rows: int,
    start: int,
    ordered: bool,
    windowed: bool,
    live_low: np.ndarray,
    live_high: np.ndarray,
    ranks: np.ndarray,
    other_dimensions: np.ndarray,
    other_a: np.ndarray,
    other_b: np.ndarray,
    other_negated: np.ndarray,
) -> tuple[int, np.int64]:
    """Per probe row, keep its rows of a merge-sort tree that are live and pass the other dimensions.

    Stops and resumes as `scan_permutation` does. Cost: O(candidates).
    """
    level1, level2 = level_starts(rows)
    total = np.uint64(offsets[done])
    for i in range(done, leaf_bits.shape[1]):
        if not (windowed and live_low[i] >= live_high[i]):
            count = collect_slices(
                i, scratch, tree_rows, begins, lengths, ends, leaf_begins, leaf_bits, 0, ZERO
            )  # fmt: skip
            if count > ZERO:
                count = settle(
                    scratch, count, i, windowed, live_low, live_high, ranks, other_dimensions,
                    other_a, other_b, other_negated, ordered, words, level1, level2,
                )  # fmt: skip
            after = total + count
            if after > np.uint64(positions.size):
                return i, np.int64(after)
            for k in range(count):
                positions[total + k] = start + scratch[k]
            total = after
        offsets[i + 1] = total
    return leaf_bits.shape[1], np.int64(total)
