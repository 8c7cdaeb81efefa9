"""A window index over one role, for probes by some of its links."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from indexes import Choice, Interval, Keys, Live, Matches, Observed, WindowIndex, make_index
from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.index_setting import ROWS_OF_A_TIME_WINDOW, IndexSetting, asked_of
from operators.engines.shared.setting_checks import AUTO
from operators.multiway.role_window import RoleWindow
from operators.protocol.sides import LEFT

BATCH = 1 << 14
"""About how many rows come at once."""


class RoleIndex:
    """Holds the rows of a role by the keys of `links`; without links every live row matches.

    It is made when a probe first needs it, with the rows that are live then, and takes in new rows from then on.
    Several threads may probe.
    """

    def __init__(
        self, role: RoleWindow, links: tuple[int, ...], rows: int | None, index: str | ConfiguredIndex = AUTO
    ) -> None:
        self._role = role
        self._asked_for = index
        self.links = links
        self._rows = max(rows or ROWS_OF_A_TIME_WINDOW, 1)
        self._index: WindowIndex | None = None
        self._stored = 0
        self._making = threading.Lock()
        self.choice = Choice("", "")

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return 0 if self._index is None else self._index.nbytes

    @property
    def is_behind(self) -> bool:
        """Whether there are rows to store."""
        return self._index is not None and self._stored < self._role.end

    def catch_up(self) -> None:
        """Store the rows that have come since the last call; nothing before the first probe."""
        if self.is_behind:
            self._insert(slice(self._stored, self._role.end))

    def probe_within(self, limit: int, intervals: Sequence[Interval], live: Live) -> Matches | None:
        """The rows that each probe meets, in order of position; None if there are more than `limit`."""
        if not self.links:
            nothing = np.zeros(len(live), np.int64)
            intervals = [Interval(nothing, nothing)]
        with self._making:
            if self._index is None:
                self._make(intervals)
        assert self._index is not None
        return self._index.probe_within(limit, intervals, live, ordered=True)

    def expire(self) -> None:
        """Let the index forget the rows that the role has forgotten."""
        if self._index is not None:
            self._index.expire(self._role.base)

    def check_invariants(self) -> None:
        if self._index is not None:
            assert self._stored == self._role.end
            self._index.check_invariants()

    def _make(self, intervals: Sequence[Interval]) -> None:
        """Choose the index with the rows that are here and the first probes."""
        part = slice(self._role.base, self._role.end)
        keys = self._keys(slice(part.start, min(part.stop, part.start + 1024)))
        asked = tuple(asked_of(self._role.links[link].dimension) for link in self.links) or ("nothing",)
        setting = IndexSetting(self._asked_for, asked, (self._rows, self._rows), BATCH)
        sample = [one.rows(slice(0, 256)) for one in intervals]
        observed = None
        if len(keys[0]) and len(sample[0]):
            observed = Observed.of(keys, sample, self._rows)
        self.choice = setting.choice(LEFT, observed)
        key = setting.key(keys, intervals)
        self._index = make_index(
            self.choice.index,
            window=self._rows,
            batch=BATCH,
            dimensions=len(keys),
            key=key,
            first_position=part.start,
            arguments=setting.arguments,
        )
        self._insert(part)

    def _insert(self, part: slice) -> None:
        assert self._index is not None
        if part.start < part.stop:
            self._index.insert(self._keys(part))
        self._stored = part.stop

    def _keys(self, part: slice) -> list[Keys]:
        """One column of keys per link; where there is no link, a constant for the rows that pass the filter."""
        if self.links:
            first, *others = self.links
            return [self._role.stored_keys(first, part), *(self._role.indexed_keys(link, part) for link in others)]
        passing = self._role.passing(np.arange(part.start, part.stop))
        return [Keys(np.zeros(len(passing), np.int64), passing)]
