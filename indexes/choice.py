"""Which index for which join: rules from the papers and from measurement, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes.kernels.columns import Interval, Keys
from indexes.kernels.ordered_integers import ordered_integers

FEW_ROWS = 256
"""Window up to which comparing with every row is as cheap as any structure."""

HASHED_ROWS = 1 << 18
"""Window up to which hashing is faster for a point: beyond, its random accesses miss the cache, where sorted batches
walk a tree from one leaf to the next. Measured at match rate 2: 4.4 against 3.2 million tuples/s at 2^17 rows and
batches of 1,000, 1.5 against 2.1 at 2^20; at batches of 10,000 7.5 against 6.1, and 2.3 against 4.0."""

DENSE = 64.0
"""Matches per row from which two inequalities are better answered in proportion to the answer."""

COUNTED = 512.0
"""Matches per row up to which a grid visits and counts them in less time than trees over the window's blocks take."""

SIFTED, SIFTED_FEW = 64.0, 16.0
"""Rows that an equality, and that a range, may leave for the other conditions to filter one by one: each is a cache
line that was not asked for early."""

DRIFT = 0.2
"""Greatest distance between the distributions of earlier and later keys that still counts as none."""


@dataclass(frozen=True)
class Query:
    """What a join asks of one side's window, in dimensions of each kind, and how much comes at once.

    equalities: dimensions that ask for a point.
    ranges:     dimensions that ask for an interval or a half-line.
    bands:      those of `ranges` that ask for an interval with two ends.
    negations:  dimensions that ask for everything but an interval; no index helps with these.
    counting:   only the number of matches is wanted.
    threads:    several threads insert into and probe one index at the same time.
    """

    equalities: int = 0
    ranges: int = 0
    negations: int = 0
    bands: int = 0
    window: int = 1 << 20
    batch: int = 1024
    counting: bool = False
    threads: int = 1


@dataclass(frozen=True)
class Observed:
    """What a sample showed; the defaults are what is assumed without one.

    matches:     rows that a probe row meets in the window, on average.
    alone:       rows that the one dimension which leaves the fewest would leave by itself, on average.
    drifting:    whether later keys are distributed differently from earlier ones.
    """

    matches: float | None = None
    drifting: bool = False
    alone: float | None = None

    @classmethod
    def of(cls, keys: Sequence[Keys], intervals: Sequence[Interval], window: int) -> Observed:
        """From keys in the order of arrival and the intervals of some probe rows, a dimension each.

        Drift is the greatest distance between the cumulated distributions of the first and of the second half.
        Cost: O(keys * (probe rows + log keys)).
        """
        valid = np.logical_and.reduce([column.mask() for column in keys])
        columns = [ordered_integers(column.values)[valid] for column in keys]
        rows = len(columns[0])
        if not rows or not len(intervals[0]):
            return cls()
        met = np.ones((len(intervals[0]), rows), np.bool_)
        shares = []
        for column, interval in zip(columns, intervals, strict=True):
            low, high = ordered_integers(interval.low), ordered_integers(interval.high)
            inside = ((column >= low[:, None]) & (column <= high[:, None])) != interval.negated
            shares.append(float(inside.mean()))
            met &= inside
        earlier, later = np.sort(columns[0][: rows // 2]), np.sort(columns[0][rows // 2 :])
        ranks = [np.searchsorted(half, columns[0], "right") / max(1, len(half)) for half in (earlier, later)]
        drifting = rows >= 32 and float(np.abs(ranks[0] - ranks[1]).max()) > DRIFT + 1 / np.sqrt(rows)
        return cls(float(met.mean()) * window, bool(drifting), min(shares) * window)


@dataclass(frozen=True)
class Choice:
    """An index by its name in the catalogue, the dimension kind it is built on, and why."""

    index: str
    reason: str

    def __str__(self) -> str:
        return f"{self.index}: {self.reason}"


def choose(query: Query, observed: Observed | None = None) -> Choice:
    """The index for a join, by rules that go from the special to the general. Cost: O(1)."""
    observed = observed or Observed()
    matches = observed.matches if observed.matches is not None else 0.0
    if not query.equalities and not query.ranges:
        return Choice("NestedLoop", "no range is asked for, so nearly every row matches and must be visited")
    if query.window <= FEW_ROWS:
        return Choice("NestedLoop", f"a window of {query.window} rows is compared faster than searched")
    alone = observed.alone if observed.alone is not None else matches
    if query.equalities and alone <= SIFTED and not query.counting:
        rest = "; the other conditions filter what it finds" if query.ranges or query.negations else ""
        if query.window <= HASHED_ROWS:
            return Choice("HashIndex", f"an equality picks its rows in one step{rest}")
        return Choice("LeveledTrees", f"an equality is a range of one value, and this window too large to hash{rest}")
    if query.equalities + query.ranges >= 2:
        if observed.alone is not None and alone <= SIFTED_FEW and not query.counting:
            return Choice("LeveledTrees", f"one column alone leaves about {alone:,.0f} rows; the others filter these")
        bounded = query.equalities + query.bands >= 2 and not (query.counting and matches > COUNTED)
        if query.counting and query.equalities + query.ranges == 2 and not query.negations and not bounded:
            return Choice("RangeTreeWindow", "two ranges are counted without visiting the matches")
        if bounded:
            return Choice("GridIndex", "two bands are a rectangle, which touches a few cells of a grid")
        if matches >= DENSE:
            return Choice(
                "RangeTreeWindow", f"about {matches:,.0f} matches per row: its cost follows the size of the answer"
            )
        return Choice("TieredRuns", "two ranges narrow each other through the permutation of a sorted block")
    if query.threads > 1:
        return Choice("PIMTree", f"{query.threads} threads insert and probe at once, each in a partition of its own")
    if query.counting:
        return Choice("BISort", "the matches of a range are a record of two numbers, so counting subtracts them")
    drift = ", whatever way keys drift" if observed.drifting else ""
    return Choice("LeveledTrees", f"a range of one key: sorted levels, merged in sequence and searched together{drift}")
