"""One element's share of one side's window: every so-many-th row, in an index of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from indexes import Interval, Keys, Live, Matches, NestedLoop, WindowIndex
from operators.engines.shared.index_setting import IndexSetting
from operators.protocol.columns import Int64


class WindowShare:
    """Stores the rows at positions number, number + shares, number + 2 * shares, ... and finds matches among them.

    The index counts its rows 0, 1, 2, ...; positions and live ranges are translated on the way in and out. Rows are
    dealt by position, so no coordinator is needed: every element can tell its rows from their positions.

        shares=3, number=1     positions 1 4 7 10 are rows 0 1 2 3
        live [2, 8)            rows [1, 3), that is the positions 4 and 7

    The live ranges leave out expired rows exactly; `expire` only frees their memory.

    setting: which index holds the rows, made when the first rows come; None: the nested loop.
    """

    def __init__(self, side: int, setting: IndexSetting | None, number: int = 0, shares: int = 1) -> None:
        assert 0 <= number < shares
        self._side = side
        self._setting = setting
        self._number = number
        self._shares = shares
        self._index: WindowIndex | None = None
        self.stored = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the index."""
        return 0 if self._index is None else self._index.nbytes

    @property
    def counters(self) -> Mapping[str, int]:
        """What the index counts."""
        return {} if self._index is None else self._index.counters()

    def store(self, first: int, keys: Sequence[Keys], probes: Sequence[Interval] | None = None) -> None:
        """Keep this share of the rows at positions first, first + 1, ...; consecutive calls leave no gap.

        probes: the first intervals of the other side, which help to choose the index.
        """
        if self._index is None:
            self._index = self._made(keys, probes)
        begin = (self._number - first) % self._shares
        own = list(keys)
        if self._shares > 1:
            part = slice(begin, None, self._shares)
            own = [Keys(one.values[part], None if one.valid is None else one.valid[part]) for one in keys]
        assert not len(own[0]) or self._row(first + begin) == self.stored, "rows come without gaps"
        self.stored += len(own[0])
        self._index.insert(own)

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """The stored rows' positions that each probe row matches, None if they are more than `limit`."""
        if self._index is None:
            return Matches.empty(len(live))
        if self._shares == 1:
            return self._index.probe_within(limit, intervals, live, ordered=ordered)
        matches = self._index.probe_within(limit, intervals, self._own(live), ordered=ordered)
        if matches is None:
            return None
        return Matches(matches.offsets, matches.positions * self._shares + self._number)

    def count(self, intervals: Sequence[Interval], live: Live) -> Int64:
        """How many of the stored rows each probe row matches."""
        if self._index is None:
            return np.zeros(len(live), np.int64)
        return self._index.count(intervals, self._own(live))

    def live_pairs(self, live: Live) -> int:
        """How many pairs of a probe row and a live row of this share there are: the work of a nested loop."""
        own = self._own(live)
        return int(np.maximum(own.end - own.start, 0).sum())

    def expire(self, below: int) -> None:
        """Positions < `below` will never be asked for again."""
        if self._index is not None:
            self._index.expire(max(0, self._row(below)))

    def check_invariants(self) -> None:
        if self._index is not None:
            self._index.check_invariants()

    def _made(self, keys: Sequence[Keys], probes: Sequence[Interval] | None) -> WindowIndex:
        return NestedLoop(len(keys)) if self._setting is None else self._setting.make(self._side, keys, probes)

    def _own(self, live: Live) -> Live:
        """Live positions as rows of this share."""
        if self._shares == 1:
            return live
        start, end = (-((self._number - positions) // self._shares) for positions in (live.start, live.end))
        return Live(start, end)

    def _row(self, position: int) -> int:
        """The number of rows of this share before a position, which is the row at it if it belongs to this share."""
        return -((self._number - position) // self._shares)
