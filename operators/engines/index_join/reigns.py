"""The divisions of keys that hold rows: the newest, and earlier ones until their rows have expired."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from operators.engines.index_join.division_map import DivisionMap
from operators.engines.index_join.side_map import Int32
from operators.protocol.element_rows import ElementRows

MOST_MAPS = 8
"""So many divisions may hold rows at once. A row may have to ask by each of them."""


@dataclass
class Reign:
    """The rows of either side that a division has stored: from positions `begin` to before `end`; None: to the last."""

    map: DivisionMap
    begin: tuple[int, int]
    end: tuple[int, int] | None = None

    def asks(self, side: int, rows: ElementRows) -> tuple[Int32, Int32]:
        """The first and the last element that rows of a side ask, if they may meet what this division has stored."""
        first, last = self.map.sides[1 - side].asks(rows.intervals)
        meeting = (rows.live.start < rows.live.end) & (rows.live.end > self.begin[1 - side])
        if self.end is not None:
            meeting &= rows.live.start < self.end[1 - side]
        if meeting.all():
            return first, last
        return np.where(meeting, first, 1).astype(np.int32), np.where(meeting, last, 0).astype(np.int32)


class Reigns:
    """Which division stores a row follows from its position alone, and which ones a row asks from its live range.

    No row moves. A new division stores the rows from its first position on, and rows that probe ask by all divisions
    that still hold rows that they may meet.

        positions  0 ............ 1000 ............ 1500          a window of 1000 rows
        stored by  the first      the second        the third
        a row that meets [400, 1400) asks by the first and the second, one that meets [1200, 2200) by the last two;
        when 1000 have expired, the first is forgotten
    """

    def __init__(self, start: DivisionMap) -> None:
        self._reigns = [Reign(start, (0, 0))]
        self.begun = 0

    def __len__(self) -> int:
        return len(self._reigns)

    @property
    def newest(self) -> DivisionMap:
        """The division that stores rows."""
        return self._reigns[-1].map

    @property
    def is_full(self) -> bool:
        """Whether no division can begin before another is forgotten."""
        return len(self._reigns) >= MOST_MAPS

    def begin(self, division: DivisionMap, at: tuple[int, int]) -> None:
        """A division stores the rows from these positions on."""
        assert not self.is_full, "too many divisions hold rows"
        *earlier, before = self._reigns
        before.end = at
        has_stored = before.begin != at
        self._reigns = [*earlier, *([before] if has_stored else []), Reign(division, at)]
        self.begun += 1

    def asks(self, side: int, rows: ElementRows) -> list[tuple[Int32, Int32]]:
        """For each division the first and the last element that rows of a side ask. Cost: O(rows) for each."""
        return [reign.asks(side, rows) for reign in self._reigns]

    def retire(self, live: tuple[int, int]) -> None:
        """Forget divisions whose rows have all expired; no row that follows meets positions below `live`."""
        self._reigns = [
            reign
            for reign in self._reigns
            if reign.end is None or any(end > below for end, below in zip(reign.end, live, strict=True))
        ]

    def check_invariants(self) -> None:
        for before, after in zip(self._reigns, self._reigns[1:], strict=False):
            # each division stores rows up to where the next one begins, if those between are forgotten at the latest
            assert before.end is not None
            assert all(end <= begin for end, begin in zip(before.end, after.begin, strict=True))
        # the newest one has no end
        assert self._reigns[-1].end is None
        for reign in self._reigns:
            reign.map.check_invariants()
