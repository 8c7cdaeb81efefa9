"""One subwindow at a worker: its structure over the key, and the other dimensions' keys as filters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import (
    NO_BOUNDS,
    NO_ROWS,
    Interval,
    Live,
    Matches,
    Probe,
    RowColumns,
    Subindex,
    bands_of,
    collect,
    frozen,
    ordered_integers,
    sorted_rows,
)
from operators.engines.pan_join.commands import Create, Insert
from operators.engines.pan_join.structures import SubwindowStructure


class Subwindow:
    """The rows so far at the positions [first, first + capacity) of one side.

    Rows are inserted in order and never removed: the subwindow expires as a whole. The live range of each probe row
    leaves out rows that expire before that, which is the paper's filtering of the oldest subwindow (section III-G1).
    """

    def __init__(
        self, create: Create, structure: SubwindowStructure, dimensions: int, key: int, previous: Subindex | None
    ) -> None:
        self.first = create.first
        self.capacity = create.capacity
        self.end = create.first
        self.entries = 0
        self.subindex = structure.open(create.capacity, previous)
        self._structure = structure
        self._key = key
        self._filters = [d for d in range(dimensions) if d != key]
        self._columns = RowColumns(dimensions - 1) if dimensions > 1 else None

    @property
    def rows(self) -> int:
        """Rows inserted, valid or not."""
        return self.end - self.first

    @property
    def full(self) -> bool:
        return self.rows == self.capacity

    @property
    def nbytes(self) -> int:
        return self.subindex.nbytes + (self._columns.nbytes if self._columns is not None else 0)

    def insert(self, insert: Insert) -> None:
        """Cost: O(n log n) to sort the rows, plus the structure's insertion."""
        assert insert.first == self.end, "rows come without gaps"
        rows = len(insert.keys[0])
        assert self.rows + rows <= self.capacity, "the manager sends no more rows than there is room for"
        if self._columns is not None:
            columns = [ordered_integers(insert.keys[d].values) for d in self._filters]
            self._columns.append(insert.first, columns, self.first)
        keys, positions = sorted_rows(insert.keys, self._key, insert.first)
        if len(keys):
            self.subindex.add(keys, positions)
        self.entries += len(keys)
        self.end += rows
        if self.full:
            self._structure.seal(self.subindex)

    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """Write the rows that the bands match; see `candidates.Visit`."""
        if self._columns is not None:
            values = self._columns.values
            probe = probe._replace(mask=values.shape[1] - 1, others=frozen(values))
        return self.subindex.visit(band, used, positions, ends, probe)

    def check_invariants(self) -> None:
        keys, positions = self.subindex.entries()
        # All valid rows are in the structure.
        assert len(keys) == len(positions) == self.entries <= self.rows <= self.capacity
        # They belong to the subwindow.
        assert not len(positions) or self.first <= positions.min() <= positions.max() < self.end
        if self.entries:
            self.subindex.check_invariants()


def probe_subwindows(
    subwindows: Sequence[Subwindow], intervals: Sequence[Interval], live: Live, key: int, limit: int, ordered: bool
) -> Matches | None:
    """The matches in subwindows of one side, None if more than `limit`. The bands are sorted once for all."""
    least, _, _, greatest = live.extent
    met = [each for each in subwindows if each.entries and each.first < greatest and each.end > least]
    if not met:
        return Matches.empty(len(live))
    bands = bands_of(intervals[key])
    if not len(bands[0]):
        return Matches.empty(len(live))
    others = [interval for d, interval in enumerate(intervals) if d != key]
    low, high = NO_BOUNDS, NO_BOUNDS
    if others:
        low = frozen(np.stack([ordered_integers(interval.low) for interval in others]))
        high = frozen(np.stack([ordered_integers(interval.high) for interval in others]))
    negated = frozen(np.array([interval.negated for interval in others], np.bool_))
    probe = Probe(*bands, live.start, live.end, NO_ROWS.shape[1] - 1, NO_ROWS, low, high, negated)
    return collect([each.visit for each in met], probe, len(live), limit, ordered)


def key_dimension(points: Sequence[bool], negated: Sequence[bool]) -> int:
    """The dimension to index: an equality, or else a range, or else an exclusion."""
    return min(range(len(points)), key=lambda d: (negated[d], not points[d]))
