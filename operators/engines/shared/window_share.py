"""One core's share of one side's window: every so-many-th row, in an index of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import Interval, Keys, Live, Matches, WindowIndex


class WindowShare:
    """Stores the rows at positions number, number + cores, number + 2 * cores, ... and finds matches among them.

    The index counts its rows 0, 1, 2, ...; positions and live ranges are translated on the way in and out. Round robin
    by position needs no coordinator: every core can tell its rows from their positions alone.

        cores=3, number=1      positions 1 4 7 10 are rows 0 1 2 3
        live [2, 8)            rows [1, 3), that is the positions 4 and 7
    """

    def __init__(self, index: WindowIndex, number: int = 0, cores: int = 1) -> None:
        """`index` is empty and starts at row 0."""
        assert 0 <= number < cores
        self.index = index
        self._number = number
        self._cores = cores
        self.stored = 0

    def insert(self, first: int, keys: Sequence[Keys]) -> None:
        """Store the own ones of the rows at positions first, first + 1, ...; none is left out between two calls."""
        begin = (self._number - first) % self._cores
        own = list(keys)
        if self._cores > 1:
            part = slice(begin, None, self._cores)
            own = [Keys(one.values[part], None if one.valid is None else one.valid[part]) for one in keys]
        assert not len(own[0]) or self._row(first + begin) == self.stored, "rows come without gaps"
        self.stored += len(own[0])
        self.index.insert(own)

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """The stored rows' positions that each probe row matches, None if they are more than `limit`."""
        if self._cores == 1:
            return self.index.probe_within(limit, intervals, live, ordered=ordered)
        own = Live(self._rows(live.start), self._rows(live.end))
        matches = self.index.probe_within(limit, intervals, own, ordered=ordered)
        if matches is None:
            return None
        return Matches(matches.offsets, matches.positions * self._cores + self._number)

    def count(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """How many of the stored rows each probe row matches."""
        return self.index.count(intervals, Live(self._rows(live.start), self._rows(live.end)))

    def expire(self, below: int) -> None:
        """Positions < `below` will never be asked for again."""
        self.index.expire(max(0, self._row(below)))

    def _row(self, position: int) -> int:
        """The number of own rows before a position, which is the row at it if it is an own one."""
        return -((self._number - position) // self._cores)

    def _rows(self, positions: np.ndarray) -> np.ndarray:
        return -((self._number - positions) // self._cores) if self._cores > 1 else positions
