"""A division of the keys of both sides among elements, and what it costs by a sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from operators.engines.index_join.dealing import sent_to
from operators.engines.index_join.key_sample import KeySample
from operators.engines.index_join.side_map import Coordinate, Placement, SideMap
from operators.protocol.sides import LEFT, RIGHT

ROW_OF_MATCHES = 50.0
"""To receive, store and search for a row costs an element about as much as to list so many matches."""


@dataclass(frozen=True)
class Forecast:
    """What a division costs by a sample.

    loads:       of each element, its share of the work of all.
    duplication: rows sent for each row received.
    """

    loads: tuple[float, ...]
    duplication: float
    work: float

    @property
    def busiest(self) -> float:
        """The work of the element that has the most."""
        return max(self.loads) * self.work


@dataclass(frozen=True)
class DivisionMap:
    """Where the rows of each side are stored; the rows of the other side ask there."""

    sides: tuple[Placement, Placement]

    @classmethod
    def start(cls, dimensions: Sequence[tuple[int, bool]], elements: int) -> DivisionMap:
        """The division before any row is known: by even hashes of an equality, or all rows in the first element.

        dimensions: those whose keys may decide, and whether they are equalities; without any, rows are dealt.
        """
        side = SideMap.in_turn(elements)
        if dimensions:
            dimension, is_point = dimensions[0]
            side = SideMap.even_hashes(dimension, elements) if is_point else SideMap.whole(dimension, elements)
        return cls((side, side))

    @property
    def elements(self) -> int:
        """The number of elements."""
        return self.sides[LEFT].elements

    @property
    def dimension(self) -> int:
        """The dimension whose keys decide."""
        return self.sides[LEFT].dimension

    @property
    def coordinate(self) -> Coordinate:
        """What of the keys of the left side decides."""
        return self.sides[LEFT].coordinate

    def forecast(self, sample: KeySample) -> Forecast:
        """The load of each element and the rows sent, if rows come as in a sample. Cost: O(sample)."""
        loads, sent, received = np.zeros(self.elements), 0.0, 0.0
        for side in (LEFT, RIGHT):
            if not sample.keys[side]:
                continue
            rows = len(sample.keys[side][0])
            stored = self.sides[side].stores(sample.keys[side], np.arange(rows))
            counts = sent_to(stored, [self.sides[1 - side].asks(sample.intervals[side])], self.elements)
            sent += counts.sum() * sample.rows[side]
            received += rows * sample.rows[side]
            matches = sample.matches(side, self.dimension) * (stored >= 0)
            found = np.bincount(np.maximum(stored, 0), weights=matches, minlength=self.elements)
            loads += (counts + found / ROW_OF_MATCHES) * sample.rows[side]
        work = float(loads.sum())
        shares = loads / work if work else np.full(self.elements, 1 / self.elements)
        return Forecast(tuple(shares.tolist()), float(sent) / received if received else 0.0, work)

    def check_invariants(self) -> None:
        for side in self.sides:
            side.check_invariants()


def evenness(loads: Sequence[float]) -> float:
    """The greatest load over the mean."""
    return max(loads) * len(loads) / sum(loads) if sum(loads) else 1.0
