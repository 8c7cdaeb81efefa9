"""A sample shows how many rows each dimension leaves, and so which two to index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import Interval, Keys
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT, RIGHT

SAMPLED_KEYS, SAMPLED_PROBES = 1024, 256
"""Enough pairs to see a share of one in 100,000."""

Pair = tuple[int, int]


def shares_of(keys: Sequence[Keys], intervals: Sequence[Interval]) -> list[float]:
    """For each dimension the share of the first rows that the first intervals leave; 1 where either is missing.

    Cost: O(SAMPLED_KEYS * SAMPLED_PROBES) for each dimension.
    """
    shares = []
    for column, interval in zip(keys, intervals, strict=True):
        values = column.values[:SAMPLED_KEYS]
        some = interval.rows(slice(0, SAMPLED_PROBES))
        inside = (values >= some.low[:, None]) & (values <= some.high[:, None])
        shares.append(float(np.mean(inside != interval.negated)) if inside.size else 1.0)
    return shares


class SelectivePairs:
    """The two dimensions of each side's rows that probes narrow most, decided by the first step with rows of both.

    Until then, and where the sample does not decide, they are the first two as written that are not negated. Once
    decided they stay, so that segments built on them fit together.

        three dimensions, where a probe's intervals leave 0.5, 0.4 and 0.001 of the rows: (2, 1)
    """

    def __init__(self, negated: Sequence[bool]) -> None:
        self._written = sorted(range(len(negated)), key=lambda d: negated[d])
        self._negated = negated
        self._pairs: list[Pair | None] = [None, None]

    def observe(self, rows: Sequence[ElementRows | None]) -> None:
        """Decide if this is the first step with rows of both sides. Cost: O(1) afterwards."""
        if None not in self._pairs or len(self._written) <= 2:
            return
        left, right = rows
        if left is not None and right is not None and len(left) and len(right):
            for side, stored, probes in ((LEFT, left, right), (RIGHT, right, left)):
                shares = shares_of(stored.keys, probes.intervals)
                order = sorted(self._written, key=lambda d: (self._negated[d], shares[d]))
                self._pairs[side] = order[0], order[1]

    def pair(self, side: int) -> Pair:
        """The two dimensions to index of a side's rows; one dimension alone is its own partner."""
        return self._pairs[side] or (self._written[0], self._written[min(1, len(self._written) - 1)])
