"""The rows of a block of consecutive positions, sorted by their keys, with what ranges of them add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes import Interval, Keys, Live, SortedRun, frozen, kernel
from operators.aggregates.prefix_sums import PrefixSums, Ranks
from operators.aggregates.range_extremes import RankedValues
from operators.protocol.columns import Int64

Part = PrefixSums | RankedValues | None
"""What one aggregate needs of a block; None: it has no short form, and the matches have to be listed."""

_NONE = frozen(np.empty(0, np.int64))


@dataclass(frozen=True)
class SortedBlock:
    """`rows` rows from position `first` on. Rows without a valid key are in no range.

    keys:   of the first dimension, ascending.
    second: of the second dimension, ascending among equal keys; empty without one.
    order:  the row of each rank.
    parts:  one of each aggregate.

    Rows that satisfy an equality in the first dimension and an interval in the second are a range of ranks:

        keys    1 1 1 2 2      an equality with 1 and the interval [4, 9]: ranks [1, 3)
        second  3 5 8 4 6
    """

    first: int
    rows: int
    keys: np.ndarray
    second: np.ndarray
    order: np.ndarray
    parts: tuple[Part, ...]

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self.first + self.rows

    @property
    def nbytes(self) -> int:
        held = self.keys.nbytes + self.second.nbytes + self.order.nbytes
        return int(held + sum(part.nbytes for part in self.parts if part is not None))

    def ranks(self, intervals: Sequence[Interval]) -> Ranks:
        """The ranks within each probe row's intervals; with two dimensions the first asks for one value each.

        Cost: O(log n) for each probe row.
        """
        begins, ends = SortedRun(self.keys, self.order, self.rows).ranges(intervals[0])
        if len(intervals) == 1:
            return begins, ends
        begins, ends = begins.copy(), ends.copy()
        _narrow(self.second, intervals[1].low, intervals[1].high, begins, ends)
        return begins, ends

    def count(self, met: Ranks, live: Live, counts: Int64) -> None:
        """Add the number of rows that each probe row meets. Cost: as `PrefixSums.add`."""
        _count(self.order, self.first, self.rows, *met, live.start, live.end, counts)

    def find(self, intervals: Sequence[Interval], live: Live, ends: Int64, positions: Int64 | None = None) -> None:
        """Count the rows that each probe row meets, adding to `ends`; with `positions` put them there, from `ends` on.

        The intervals of the first dimension need not be points. Cost: O(log n + ranks) for each probe row.
        """
        met = SortedRun(self.keys, self.order, self.rows).ranges(intervals[0])
        low, high = (intervals[1].low, intervals[1].high) if len(intervals) > 1 else (_NONE, _NONE)
        listed = np.empty(0, np.int64) if positions is None else positions
        _find(self.order, self.first, self.rows, *met, live.start, live.end, self.second, low, high, ends, listed)

    def merged(self, later: SortedBlock) -> SortedBlock:
        """One block of both, of which the later one begins where this one ends. Cost: O(n)."""
        source = np.empty(len(self.order) + len(later.order), np.int32)
        _merge(self.keys, self.second, later.keys, later.second, source)
        source = frozen(source)
        order = np.concatenate([self.order, later.order + np.int32(self.rows)])[source]
        keys = np.concatenate([self.keys, later.keys])[source]
        second = np.concatenate([self.second, later.second])
        parts = tuple(self._merged(*pair, source) for pair in zip(self.parts, later.parts, strict=True))
        return SortedBlock(
            self.first, self.rows + later.rows, frozen(keys), frozen(second[source] if len(second) else second),
            frozen(order), parts,
        )  # fmt: skip

    def _merged(self, own: Part, other: Part, source: np.ndarray) -> Part:
        if isinstance(own, PrefixSums) and isinstance(other, PrefixSums):
            return own.merged(other, source)
        if isinstance(own, RankedValues) and isinstance(other, RankedValues):
            return own.merged(other, source, self.rows)
        return None

    def check_invariants(self) -> None:
        # there is a row for each rank, none twice
        assert len(np.unique(self.order)) == len(self.order) == len(self.keys) <= self.rows
        # keys ascend, and the second ones among equals
        rises = self.keys[1:] > self.keys[:-1]
        assert (rises | (self.keys[1:] == self.keys[:-1])).all()
        assert not len(self.second) or (rises | (self.second[1:] >= self.second[:-1])).all()


def sorted_rows(keys: Sequence[Keys]) -> np.ndarray:
    """The rows that have a valid key in every dimension, by their keys. Cost: O(n log n)."""
    valid = [each.valid for each in keys if each.valid is not None]
    rows = np.flatnonzero(np.logical_and.reduce(valid)) if valid else np.arange(len(keys[0]))
    if len(keys) == 1:
        order = np.argsort(keys[0].values[rows], kind="stable")
    else:
        order = np.lexsort([each.values[rows] for each in reversed(keys)])
    return frozen(rows[order], np.int32)


def sorted_block(first: int, keys: Sequence[Keys], order: np.ndarray, parts: tuple[Part, ...]) -> SortedBlock:
    """A block of rows whose order `sorted_rows` has found."""
    columns = [frozen(each.values[order]) for each in keys]
    second = columns[1] if len(columns) > 1 else _NONE
    return SortedBlock(first, len(keys[0]), columns[0], second, order, parts)


@kernel
def _narrow(second: np.ndarray, low: np.ndarray, high: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> None:
    """Cut ranges of equal keys to those whose second key is in the interval."""
    for probe in range(begins.size):
        begin, end = begins[probe], ends[probe]
        lower, upper = begin, end
        while lower < upper:
            middle = (lower + upper) // 2
            if second[middle] < low[probe]:
                lower = middle + 1
            else:
                upper = middle
        begins[probe] = lower
        upper = end
        while lower < upper:
            middle = (lower + upper) // 2
            if second[middle] <= high[probe]:
                lower = middle + 1
            else:
                upper = middle
        ends[probe] = lower


@kernel
def _count(
    order: np.ndarray,
    first: int,
    rows: int,
    begins: np.ndarray,
    ends: np.ndarray,
    starts: Int64,
    stops: Int64,
    counts: Int64,
) -> None:
    for probe in range(begins.size):
        begin, end = begins[probe], ends[probe]
        start, stop = starts[probe] - first, stops[probe] - first
        if begin >= end or start >= rows or stop <= 0:
            continue
        if start <= 0 and stop >= rows:
            counts[probe] += end - begin
            continue
        for rank in range(begin, end):
            if start <= order[rank] < stop:
                counts[probe] += 1


@kernel
def _find(
    order: np.ndarray,
    first: int,
    rows: int,
    begins: np.ndarray,
    ends: np.ndarray,
    starts: Int64,
    stops: Int64,
    second: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    found: Int64,
    positions: Int64,
) -> None:
    for probe in range(begins.size):
        start, stop = starts[probe] - first, stops[probe] - first
        if start >= rows or stop <= 0:
            continue
        for rank in range(begins[probe], ends[probe]):
            if not start <= order[rank] < stop:
                continue
            if low.size != 0 and not low[probe] <= second[rank] <= high[probe]:
                continue
            if positions.size != 0:
                positions[found[probe]] = first + order[rank]
            found[probe] += 1


@kernel
def _merge(
    left: np.ndarray, left_second: np.ndarray, right: np.ndarray, right_second: np.ndarray, source: np.ndarray
) -> None:
    """The ranks of two sorted blocks, those of the right one after those of the left, in the order of their keys."""
    lefts, rights = left.size, right.size
    i, j = 0, 0
    for rank in range(source.size):
        if i == lefts:
            later = True
        elif j == rights:
            later = False
        elif left_second.size == 0 or left[i] != right[j]:
            later = right[j] < left[i]
        else:
            later = right_second[j] < left_second[i]
        if later:
            source[rank] = lefts + j
            j += 1
        else:
            source[rank] = i
            i += 1
