"""Putting matches in result order.

Results are ordered by the later row's sequence number, then by the earlier row's (design, section 3); in a self-join,
of the two directions of one pair the one with the later row on the left comes first. Each element answers with the
positions it knows, in order within each probe row; here the answers of all elements become one list of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from indexes import Matches

Int64 = npt.NDArray[np.int64]


def merge_answers(answers: Sequence[Matches], ordered: bool) -> Matches:
    """Join the answers to the same probe rows; ordered: by position within each row, as each answer is.

    Cost: O(matches), times the number of answers that have any when ordered.
    """
    filled = [answer for answer in answers if len(answer.positions)]
    if len(filled) <= 1:
        return filled[0] if filled else answers[0]
    offsets = np.stack([answer.offsets for answer in filled])
    positions = np.concatenate([answer.positions for answer in filled])
    starts = np.cumsum([0, *(len(answer.positions) for answer in filled[:-1])])
    total = offsets.sum(axis=0)
    return Matches(total, _merge_rows(offsets, starts, positions, total, ordered))


def pair_up(
    seqs: tuple[Int64, Int64], firsts: tuple[int, int], matches: tuple[Matches, Matches], interleave: bool
) -> tuple[Int64, Int64]:
    """Return (left positions, right positions) of all pairs, in result order.

    seqs, firsts: the sequence numbers of each side's probe rows, and the position of the first of them.
    interleave:   within one sequence number (self-join) merge the two directions by position.
    """
    left, right = matches
    if not len(right.positions):
        return _repeat(firsts[0], left), left.positions
    if not len(left.positions):
        return right.positions, _repeat(firsts[1], right)
    total = len(left.positions) + len(right.positions)
    left_positions, right_positions = np.empty(total, np.int64), np.empty(total, np.int64)
    _pair_up(
        seqs[0],
        seqs[1],
        firsts[0],
        firsts[1],
        left.offsets,
        left.positions,
        right.offsets,
        right.positions,
        interleave,
        left_positions,
        right_positions,
    )
    return left_positions, right_positions


def _repeat(first: int, matches: Matches) -> Int64:
    return np.repeat(np.arange(first, first + len(matches)), np.diff(matches.offsets))


@njit(nogil=True, cache=True)
def _merge_rows(offsets: npt.NDArray[np.int64], starts: Int64, positions: Int64, total: Int64, ordered: bool) -> Int64:
    answers, rows = offsets.shape[0], offsets.shape[1] - 1
    result = np.empty(total[rows], np.int64)
    cursor = np.empty(answers, np.int64)
    stop = np.empty(answers, np.int64)
    for row in range(rows):
        at = total[row]
        end = total[row + 1]
        if at == end:
            continue
        for answer in range(answers):
            cursor[answer] = starts[answer] + offsets[answer, row]
            stop[answer] = starts[answer] + offsets[answer, row + 1]
        if not ordered:
            for answer in range(answers):
                for source in range(cursor[answer], stop[answer]):
                    result[at] = positions[source]
                    at += 1
            continue
        while at < end:
            # take a run from the answer with the smallest head: as long as it stays below all other heads
            best = -1
            limit = np.iinfo(np.int64).max
            smallest = np.iinfo(np.int64).max
            for answer in range(answers):
                if cursor[answer] < stop[answer]:
                    head = positions[cursor[answer]]
                    if best < 0 or head < smallest:
                        if best >= 0:
                            limit = min(limit, smallest)
                        smallest = head
                        best = answer
                    else:
                        limit = min(limit, head)
            source = cursor[best]
            last = stop[best]
            while source < last and positions[source] <= limit:
                result[at] = positions[source]
                at += 1
                source += 1
            cursor[best] = source
    return result


@njit(nogil=True, cache=True)
def _pair_up(
    left_seq: Int64,
    right_seq: Int64,
    left_first: int,
    right_first: int,
    left_offsets: Int64,
    left_matches: Int64,
    right_offsets: Int64,
    right_matches: Int64,
    interleave: bool,
    left_positions: Int64,
    right_positions: Int64,
) -> None:
    lefts, rights = len(left_seq), len(right_seq)
    at = left = right = 0
    while left < lefts or right < rights:
        take_left = left < lefts and (right == rights or left_seq[left] <= right_seq[right])
        take_right = right < rights and (left == lefts or right_seq[right] <= left_seq[left])
        a = left_offsets[left] if take_left else 0
        a_end = left_offsets[left + 1] if take_left else 0
        b = right_offsets[right] if take_right else 0
        b_end = right_offsets[right + 1] if take_right else 0
        if interleave and take_left and take_right:
            while a < a_end and b < b_end:
                if left_matches[a] <= right_matches[b]:  # the later row on the left first
                    left_positions[at] = left_first + left
                    right_positions[at] = left_matches[a]
                    a += 1
                else:
                    left_positions[at] = right_matches[b]
                    right_positions[at] = right_first + right
                    b += 1
                at += 1
        for source in range(a, a_end):
            left_positions[at] = left_first + left
            right_positions[at] = left_matches[source]
            at += 1
        for source in range(b, b_end):
            left_positions[at] = right_matches[source]
            right_positions[at] = right_first + right
            at += 1
        if take_left:
            left += 1
        if take_right:
            right += 1
