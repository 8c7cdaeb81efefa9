"""A sample of the newest rows of both sides, from which the keys are divided among elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import Interval, Keys
from operators.engines.shared.selectivity import shares_of
from operators.protocol.element_rows import ElementRows

MOST_ROWS = 4096
"""Of each side. So the border between two elements is off by a four-thousandth of the rows."""

OF_A_STEP = 2048


class SideSample:
    """Evenly spaced rows of the last steps of one side."""

    def __init__(self) -> None:
        self._parts: tuple[tuple[Sequence[Keys], Sequence[Interval]], ...] = ()  # replaced, as other threads look

    def __len__(self) -> int:
        return sum(len(keys[0]) for keys, _ in self._parts)

    def take(self, rows: ElementRows) -> None:
        """Take rows that have come. Cost: O(OF_A_STEP) for each dimension."""
        part = slice(None, None, max(1, len(rows) // OF_A_STEP))
        keys = [
            Keys(one.values[part].copy(), None if one.valid is None else one.valid[part].copy()) for one in rows.keys
        ]
        intervals = [Interval(one.low[part].copy(), one.high[part].copy(), one.negated) for one in rows.intervals]
        parts = [*self._parts, (keys, intervals)]
        held = sum(len(keys[0]) for keys, _ in parts)
        while held - len(parts[0][0][0]) >= MOST_ROWS:
            held -= len(parts.pop(0)[0][0])
        self._parts = tuple(parts)

    def columns(self) -> tuple[list[Keys], list[Interval]]:
        """The keys and intervals of the rows, by dimension; at least one row has come. Cost: O(rows)."""
        parts = self._parts
        keys = [Keys.joined(column) for column in zip(*(each for each, _ in parts), strict=True)]
        intervals = [
            Interval(
                np.concatenate([one.low for one in column]),
                np.concatenate([one.high for one in column]),
                column[0].negated,
            )
            for column in zip(*(each for _, each in parts), strict=True)
        ]
        return keys, intervals


class KeySample:
    """What is known of the rows of both sides when keys are divided.

    keys, intervals: by side and dimension.
    rows:            how many rows of each side a row of the sample stands for.
    live:            how many rows of each side are live.
    """

    def __init__(self, sides: Sequence[SideSample], received: Sequence[int], live: Sequence[int]) -> None:
        columns = [side.columns() if len(side) else ([], []) for side in sides]
        self.keys = [keys for keys, _ in columns]
        self.intervals = [intervals for _, intervals in columns]
        self.received = list(received)
        self.rows = [count / len(keys[0]) if keys else 0.0 for count, keys in zip(received, self.keys, strict=True)]
        self._live = live
        self._matches: dict[tuple[int, int], np.ndarray] = {}

    @property
    def has_both(self) -> bool:
        """Whether both sides have rows."""
        return all(self.keys)

    def matches(self, side: int, dimension: int) -> np.ndarray:
        """About how many rows each row of a side meets while it is stored. Cost: O(sample * log sample), once.

        The comparisons of the other dimensions are taken to leave their share of the rows whatever the key.
        """
        if (side, dimension) not in self._matches:
            self._matches[side, dimension] = self._found(side, dimension)
        return self._matches[side, dimension]

    def _found(self, side: int, dimension: int) -> np.ndarray:
        keys = self.keys[side][dimension]
        if not self.has_both:
            return np.zeros(len(keys))
        asked = self.intervals[1 - side][dimension]
        asking = asked.low <= asked.high
        low, high = np.sort(asked.low[asking]), np.sort(asked.high[asking])
        meeting = np.searchsorted(low, keys.values, side="right") - np.searchsorted(high, keys.values, side="left")
        shares = shares_of(self.keys[side], self.intervals[1 - side])
        rest = float(np.prod([share for d, share in enumerate(shares) if d != dimension]))
        probes = self._live[side] * self.received[1 - side] / max(1, self.received[side])
        return np.where(keys.mask(), meeting / len(asked) * rest * probes, 0.0)
