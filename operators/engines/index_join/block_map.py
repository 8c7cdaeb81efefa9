"""Keys in blocks of equal width, which the elements have in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes import Interval, Keys
from operators.engines.index_join.side_map import Coordinate, Int32, asked_of_some, stored_if_valid
from operators.protocol.columns import Int64

_FARTHEST = float(1 << 61)
"""Blocks beyond this number are one block, so that none overflows."""


@dataclass(frozen=True)
class BlockMap:
    """Element number b % elements stores the keys of block b, for all keys there are.

    Every element has blocks everywhere. So loads stay even when keys drift, without another division, and where keys
    are dense in some parts, as long as many blocks share them. An interval that is narrow beside a block meets one, and
    seldom two; consecutive blocks belong to consecutive elements, the first after the last.

        width 10, three elements: keys 0-9, 30-39, 60-69 are stored in 0, 10-19 and 40-49 in 1, 20-29 and 50-59 in 2
        the interval [28, 31] asks the elements 2 and 0, which is written as 2 to 3

    The block of a key is computed by steps that keep the order of keys, whatever they round; so a key in an interval is
    in a block between those of its ends.

    scale, origin: the coordinate of a key is (key - origin) / scale. A negative scale reverses the order.
    width:         of a block, in coordinates.
    """

    dimension: int
    elements: int
    width: float
    scale: float = 1.0
    origin: float = 0.0

    @property
    def coordinate(self) -> Coordinate:
        """What decides where a row belongs."""
        return Coordinate.BLOCK

    def stores(self, keys: Sequence[Keys], positions: Int64) -> Int32:
        """The element that stores each row; NOWHERE for rows that nothing matches. Cost: O(rows)."""
        blocks = self._blocks(keys[self.dimension].values)
        return stored_if_valid(blocks % self.elements, keys)

    def asks(self, intervals: Sequence[Interval]) -> tuple[Int32, Int32]:
        """The first and the last element that may hold what each row matches; none if first > last. Cost: O(rows).

        Elements go on behind the last with the first: number `elements` is 0 again.
        """
        asked = intervals[self.dimension]
        first, last = self._blocks(asked.low), self._blocks(asked.high)
        if self.scale < 0:
            first, last = last, first
        more = np.minimum(last - first, self.elements - 1)
        first = first % self.elements
        return asked_of_some(first, first + more, intervals)

    def check_invariants(self) -> None:
        # blocks have a width, and both orders of keys a coordinate
        assert self.width > 0
        assert self.scale != 0

    def _blocks(self, values: np.ndarray) -> Int64:
        with np.errstate(over="ignore", invalid="ignore"):  # of keys that are infinite or not valid
            blocks = np.floor((values.astype(np.float64) - self.origin) / (self.scale * self.width))
            return np.nan_to_num(np.clip(blocks, -_FARTHEST, _FARTHEST)).astype(np.int64)
