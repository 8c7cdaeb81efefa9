"""A sample of the newest rows of both sides: how selective each comparison is now, and which index would be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indexes import Interval, Keys, Observed
from operators.engines.shared.selectivity import shares_of
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT, RIGHT, SIDES

LIVE_KEYS, LIVE_PROBES = 512, 64
"""Enough pairs to see a share of one in 10,000, and few enough to compare at every look."""


class LiveSample:
    """Keeps a copy of a few keys and intervals of each side; they are compared only when somebody asks.

    One thread notes rows, any other may ask.
    """

    def __init__(self) -> None:
        self._keys: list[list[Keys] | None] = [None, None]
        self._intervals: list[list[Interval] | None] = [None, None]

    def note(self, side: int, stored: ElementRows | None, probing: ElementRows | None) -> None:
        """Rows of a side have come, to be stored and to probe. Cost: O(LIVE_KEYS + LIVE_PROBES) for each dimension."""
        if stored is not None and len(stored):
            self._keys[side] = [_copied(column) for column in stored.keys]
        if probing is not None and len(probing):
            self._intervals[side] = [
                Interval(np.array(one.low[:LIVE_PROBES]), np.array(one.high[:LIVE_PROBES]), one.negated)
                for one in probing.intervals
            ]

    def shares(self, side: int) -> list[float] | None:
        """For each dimension, the share of a side's rows that probes leave; None without rows of both sides."""
        keys, intervals = self._keys[side], self._intervals[1 - side]
        return None if keys is None or intervals is None else shares_of(keys, intervals)

    def observed(self, side: int, window: int) -> Observed | None:
        """What the chooser of an index asks about a side's rows, `window` of which are stored."""
        keys, intervals = self._keys[side], self._intervals[1 - side]
        return None if keys is None or intervals is None else Observed.of(keys, intervals, window)

    def details(self) -> dict[str, Any]:
        """The shares, by side."""
        return {SIDES[side]: shares for side in (LEFT, RIGHT) if (shares := self.shares(side)) is not None}


def _copied(column: Keys) -> Keys:
    valid = None if column.valid is None else np.array(column.valid[:LIVE_KEYS])
    return Keys(np.array(column.values[:LIVE_KEYS]), valid)


def pair_now(shares: Sequence[float], negated: Sequence[bool]) -> tuple[int, int]:
    """The two dimensions that these shares make the best to index; one dimension alone is its own partner."""
    order = sorted(range(len(shares)), key=lambda d: (negated[d], shares[d]))
    return order[0], order[min(1, len(order) - 1)]
