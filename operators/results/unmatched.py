"""Rows that may still find a pair: the state of outer, semi and anti joins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from indexes import Matches, frozen, kernel
from operators.results.probe_rows import TakenRows
from operators.routing.growing_array import GrowingArray

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class MatchedRows:
    """For the rows of one side, by position, whether a pair has been found, and their places in the total order.

    Rows are kept until they have expired. Say rows 0 to 4 have arrived and 1 and 3 have pairs; at the next two rows of
    the total order, with seq 7 and 8, the first live positions are 1 and 3:

        position   0  1  2  3  4        at seq 7 row 0 has expired, without a pair: it comes out there
        matched    .  x  .  x  .        at seq 8 rows 1 and 2: row 2 comes out; rows 3 and 4 wait
    """

    def __init__(self) -> None:
        self._matched = GrowingArray(np.bool_)
        self._seqs = GrowingArray(np.int64)

    @property
    def first(self) -> int:
        """The position of the first row that has not expired."""
        return self._matched.base

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._matched.nbytes + self._seqs.nbytes

    def append(self, seqs: Int64, hidden: Bool | None) -> None:
        """Add rows at the next positions; hidden ones are never unmatched. Cost: O(rows)."""
        self._matched.append(np.zeros(len(seqs), np.bool_) if hidden is None else hidden)
        self._seqs.append(seqs)

    def mark(self, positions: Int64) -> None:
        """Mark rows that have pairs; a row may be named several times. Cost: O(positions)."""
        _mark(frozen(positions), self.first, self._matched.values)

    def mark_later(self, rows: TakenRows, matches: Matches) -> None:
        """Mark the complete rows of this side that have matches. Cost: O(rows)."""
        own = self._matched.values[rows.first - self.first :][: len(matches)]
        own |= matches.counts() > 0

    def mark_first(self, positions: Int64) -> Int64:
        """As `mark`; returns the newly marked positions, each once, in the given order."""
        found = np.empty(min(len(positions), len(self._matched)), np.int64)
        return found[: _mark_first(frozen(positions), self.first, self._matched.values, found)]

    def mark_first_pairs(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches]) -> Int64:
        """Mark the left rows of all pairs of complete rows; return the newly marked ones, at their first pairs.

        This is the left side. Cost: O(rows + matches).
        """
        left, right = matches
        found = np.empty(len(self._matched), np.int64)
        size = _mark_first_pairs(
            frozen(rows[0].seq), frozen(rows[1].seq), rows[0].first,
            frozen(left.offsets), frozen(left.positions), frozen(right.offsets), frozen(right.positions),
            self.first, self._matched.values, found,
        )  # fmt: skip
        return found[:size]

    def expire(self, borders: Int64, places: Int64) -> tuple[Int64, Int64, Int64]:
        """Drop the rows that have expired at one of the rows at `places`, and return those without a pair.

        borders: for each place the first live position, ascending.
        Returns their positions, their places, and their own sequence numbers. Cost: O(places + rows that expire).
        """
        end = int(borders[-1]) if len(borders) else self.first
        rows = max(0, end - self.first)
        positions = self.first + np.flatnonzero(~self._matched.values[:rows])
        at = places[np.searchsorted(borders, positions, side="right")]
        seqs = self._seqs.values[positions - self.first].copy()
        self._matched.drop_before(end)
        self._seqs.drop_before(end)
        return positions, at, seqs

    def expire_listed(self, positions: Int64, below: int) -> tuple[Bool, Int64]:
        """As `expire`, for rows that expire one by one: those without a pair, and their sequence numbers.

        below: all rows before this position have been listed. Cost: O(positions + rows forgotten).
        """
        at = positions - self.first
        alone = ~self._matched.values[at]
        seqs = self._seqs.values[at]
        self._matched.values[at] = True  # they have come out, and must not come out again at the end
        self._matched.drop_before(below)
        self._seqs.drop_before(below)
        return alone, seqs

    def expire_all(self) -> tuple[Int64, Int64]:
        """Drop all rows and return those without a pair: positions and sequence numbers."""
        positions = self.first + np.flatnonzero(~self._matched.values)
        seqs = self._seqs.values[positions - self.first].copy()
        end = self.first + len(self._matched)
        self._matched.drop_before(end)
        self._seqs.drop_before(end)
        return positions, seqs

    def check_invariants(self) -> None:
        # a row is remembered as a whole
        assert self._matched.base == self._seqs.base
        assert len(self._matched) == len(self._seqs)


@kernel
def _mark(positions: np.ndarray, base: int, matched: np.ndarray) -> None:
    """Mark the rows at some positions."""
    for i in range(positions.size):
        matched[positions[i] - base] = True


@kernel
def _mark_first(positions: np.ndarray, base: int, matched: np.ndarray, found: np.ndarray) -> int:
    """Mark rows; list the newly marked ones, and return how many."""
    size = 0
    for i in range(positions.size):
        if not matched[positions[i] - base]:
            matched[positions[i] - base] = True
            found[size] = positions[i]
            size += 1
    return size


@kernel
def _mark_first_pairs(
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
