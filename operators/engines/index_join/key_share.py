"""An equality divides the work among elements: each has a share of the keys, and a row concerns only one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from indexes import Interval, Keys
from operators.protocol.element_rows import ElementRows
from operators.query.predicate import Predicate

_ODD = np.uint64(0x9E3779B97F4A7C15)


def dividing_dimension(predicate: Predicate) -> int | None:
    """The dimension whose equality tells where a row belongs; None if there is no equality."""
    points = [d for d, each in enumerate(predicate.dimensions) if each.is_point and not each.made and not each.negated]
    return points[0] if points else None


@dataclass(frozen=True)
class KeyShare:
    """Share `number` of `of`, by the keys of a dimension that asks for one value.

    Rows keep their positions. Those of other shares get no valid key and an empty interval here, so an index neither
    stores them nor probes with them. A row is stored by its own key and probes for a key of the other side. Both are
    hashed as keys of the side that stores them, so rows that can match meet in one share, whatever the two types.
    """

    number: int
    of: int
    dimension: int

    def own(self, rows: ElementRows) -> ElementRows:
        """The rows of this share, among the others. Cost: O(rows)."""
        d = self.dimension
        keys, intervals = list(rows.keys), list(rows.intervals)
        stored = self._is_own(keys[d].values)
        keys[d] = Keys(keys[d].values, stored if keys[d].valid is None else stored & keys[d].valid)
        low, high = intervals[d].low, intervals[d].high
        asked = self._is_own(low)
        intervals[d] = Interval(np.where(asked, low, 1).astype(low.dtype), np.where(asked, high, 0).astype(low.dtype))
        return replace(rows, keys=tuple(keys), intervals=tuple(intervals))

    def sample(self, rows: ElementRows) -> tuple[list[Keys], list[Interval]]:
        """The keys of the rows that `own` keeps, and the intervals of those that it lets probe, without the others.

        Among the others, of which nothing is stored here, rows would seem to meet fewer than they do.
        """
        stored, interval = rows.keys[self.dimension].mask(), rows.intervals[self.dimension]
        asked = np.flatnonzero(interval.low <= interval.high)
        keys = [Keys(one.values[stored], one.mask()[stored]) for one in rows.keys]
        return keys, [Interval(one.low[asked], one.high[asked], one.negated) for one in rows.intervals]

    def _is_own(self, values: np.ndarray) -> np.ndarray:
        bits = (values + 0.0 if values.dtype == np.float64 else values).view(np.uint64)  # -0.0 is 0.0
        return ((bits * _ODD) >> np.uint64(40)) % np.uint64(self.of) == self.number
