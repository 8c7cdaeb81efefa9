"""Marking rows that have pairs: the kernels of `results.unmatched`."""

from __future__ import annotations

import numpy as np

from indexes import kernel


@kernel
def mark(positions: np.ndarray, base: int, matched: np.ndarray) -> None:
    """Mark the rows at some positions."""
    for i in range(positions.size):
        matched[positions[i] - base] = True


@kernel
def mark_first(positions: np.ndarray, base: int, matched: np.ndarray, found: np.ndarray) -> int:
    """Mark rows; list the newly marked ones, and return how many."""
    size = 0
    for i in range(positions.size):
        if not matched[positions[i] - base]:
            matched[positions[i] - base] = True
            found[size] = positions[i]
            size += 1
    return size


@kernel
def mark_first_pairs(
    left_seqs: np.ndarray,
    right_seqs: np.ndarray,
    left_first: int,
    left_offsets: np.ndarray,
    left_positions: np.ndarray,
    right_offsets: np.ndarray,
    right_positions: np.ndarray,
    base: int,
    matched: np.ndarray,
    found: np.ndarray,
) -> int:
    """Mark the left rows of all pairs, list the newly marked ones at their first pairs, and return how many.

    Takes the rows of both sides in order. A left row's first pair is the one with the smallest position.
    """
    size, left, right = 0, 0, 0
    while left < left_seqs.size or right < right_seqs.size:
        take_left = left < left_seqs.size and (right == right_seqs.size or left_seqs[left] <= right_seqs[right])
        take_right = right < right_seqs.size and (left == left_seqs.size or right_seqs[right] <= left_seqs[left])
        own = left_first + left
        pending = take_left and left_offsets[left + 1] > left_offsets[left] and not matched[own - base]
        earliest = np.int64(0)
        if pending:
            earliest = left_positions[left_offsets[left]]
            for i in range(left_offsets[left], left_offsets[left + 1]):
                earliest = min(earliest, left_positions[i])
        if take_right:
            for i in range(right_offsets[right], right_offsets[right + 1]):
                position = right_positions[i]
                # in a self-join the row itself is the left row of a pair with `earliest`
                if pending and earliest <= position:
                    matched[own - base] = True
                    found[size] = own
                    size += 1
                    pending = False
                if not matched[position - base]:
                    matched[position - base] = True
                    found[size] = position
                    size += 1
        if pending:
            matched[own - base] = True
            found[size] = own
            size += 1
        left += take_left
        right += take_right
    return size
