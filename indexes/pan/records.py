"""Results of a probe as ranges of ranks in a sorted array, not yet enumerated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indexes.kernels.columns import Live, Matches, frozen
from indexes.kernels.compiled import kernel


@dataclass(frozen=True)
class Records:
    """The `<start, end>` records of PanJoin (section III-D): row[i] met the ranks [start[i], end[i]) of an array.

    If `negated`, it met all other ranks: the label of `!=`. A probe row has one or more records, with no rank in
    common. Rank r stands for position base + rows[r]; no position lies beyond `newest`. Live ranges then leave out
    positions that the probe row may not meet. Records refer to the array itself and are valid until rows are added.

        rows 4 0 6 1 5 2 3, base 70      record [1, 4)           positions 70 76 71
                                         record [1, 4) negated   positions 74 75 72 73
    """

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    negated: bool
    rows: np.ndarray
    base: int
    newest: int

    def __len__(self) -> int:
        return len(self.row)

    def counts(self) -> np.ndarray:
        """The rows of each record, live or not. Cost: O(records)."""
        within = self.end - self.start
        return len(self.rows) - within if self.negated else within

    def live_counts(self, live: Live) -> np.ndarray:
        """The number of live rows of each probe row. Cost: O(records), and O(rows) of records that are partly live."""
        total = np.zeros(len(live), np.int64)
        _count(*self._arguments(live), self.newest, total)
        return total

    def matches(self, live: Live) -> Matches:
        """The live positions of each probe row, in any order. Cost: O(records + rows of the records)."""
        offsets = np.zeros(len(live) + 1, np.int64)
        np.cumsum(self.live_counts(live), out=offsets[1:])
        positions = np.empty(offsets[-1], np.int64)
        _expand(*self._arguments(live), offsets[:-1].copy(), positions)
        return Matches(offsets, positions)

    def _arguments(self, live: Live) -> tuple[np.ndarray | bool | int, ...]:
        arrays = [frozen(array) for array in (self.row, self.start, self.end, self.rows)]
        return *arrays, self.negated, self.base, live.start, live.end


@kernel
def _count(
    row: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    rows: np.ndarray,
    negated: bool,
    base: int,
    live_start: np.ndarray,
    live_end: np.ndarray,
    newest: int,
    total: np.ndarray,
) -> None:
    for i in range(row.size):
        probe = row[i]
        least, last = live_start[probe], live_end[probe] - 1
        if least > newest or last < base or least > last:
            continue
        if least <= base and last >= newest:
            within = end[i] - start[i]
            total[probe] += rows.size - within if negated else within
            continue
        found = 0
        for part in range(2):
            begin, stop = _part(part, start[i], end[i], negated, rows.size)
            for rank in range(begin, stop):
                position = base + rows[rank]
                found += (position >= least) & (position <= last)
        total[probe] += found


@kernel
def _expand(
    row: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    rows: np.ndarray,
    negated: bool,
    base: int,
    live_start: np.ndarray,
    live_end: np.ndarray,
    cursor: np.ndarray,
    positions: np.ndarray,
) -> None:
    for i in range(row.size):
        probe = row[i]
        place = cursor[probe]
        for part in range(2):
            begin, stop = _part(part, start[i], end[i], negated, rows.size)
            for rank in range(begin, stop):
                position = base + rows[rank]
                if position >= live_start[probe] and position < live_end[probe]:
                    positions[place] = position
                    place += 1
        cursor[probe] = place


@kernel
def _part(part: int, start: int, end: int, negated: bool, size: int) -> tuple[int, int]:
    """The ranks of a record as two ranges; the first is empty unless the record is negated."""
    if part == 0:
        return 0, start if negated else 0
    return (end, size) if negated else (start, end)
