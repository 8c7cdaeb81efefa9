"""Choose the index for a join, by rules from the papers and from measurements, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes.kernels.columns import Interval, Keys
from indexes.kernels.ordered_integers import ordered_integers

FEW_ROWS = 256
"""In windows of up to so many rows, comparing with every row is as cheap as any structure."""

HASHED_ROWS = 1 << 18
"""In windows of up to so many rows, hashing is the fastest for a point. In larger ones its random accesses miss the
cache, where sorted batches walk a tree from one leaf to the next. Measured at match rate 2: 4.4 against 3.2 million
tuples/s at 2^17 rows and
batches of 1,000, 1.5 against 2.1 at 2^20; at batches of 10,000 7.5 against 6.1, and 2.3 against 4.0."""

DENSE = 64.0
"""From so many matches per row on, two inequalities use an index whose cost follows the size of the answer."""

COUNTED = 512.0
"""Up to so many matches per row, a grid visits and counts them faster than trees over the window's blocks do."""

SIFTED, SIFTED_FEW = 64.0, 16.0
"""An equality, and a range, may leave up to so many rows for the other conditions to filter one by one. Each costs a
cache line that was not prefetched."""

SHARED = 2
"""Up to so many threads, each side's rows are stored by one thread, as well in one index as in another. Only more
threads need an index into which several insert at once."""

DRIFT = 0.2
"""Distributions of earlier and later keys that differ by at most this count as the same."""


@dataclass(frozen=True)
class Query:
    """How a join probes one side's window: the number of dimensions of each kind, and the sizes of window and batches.

    equalities: dimensions with a point.
    ranges:     dimensions with an interval or a half-line.
    bands:      those of `ranges` with an interval of two ends.
    negations:  dimensions with everything except an interval; no index helps with these.
    window:     rows that are live at once, about.
    batch:      rows that arrive at once, about.
    counting:   whether only the number of matches is needed.
    threads:    threads that insert into and probe one index at the same time.
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
    """Properties of a sample; the defaults are the assumptions without one.

    matches:  rows that a probe row meets in the window, on average.
    drifting: whether later keys are distributed differently from earlier ones.
    alone:    rows that the most selective dimension would leave by itself, on average.
    """

    matches: float | None = None
    drifting: bool = False
    alone: float | None = None

    @classmethod
    def of(cls, keys: Sequence[Keys], intervals: Sequence[Interval], window: int) -> Observed:
        """Measure keys in the order of arrival and the intervals of some probe rows; one of each per dimension.

        Drift is the greatest distance between the cumulative distributions of the first and the second half.
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
    """An index by its name in the catalogue, and the reason for it."""

    index: str
    reason: str

    def __str__(self) -> str:
        return f"{self.index}: {self.reason}"


def choose(query: Query, observed: Observed | None = None) -> Choice:
    """Choose the index for a join; special rules come before general ones. Cost: O(1)."""
    observed = observed or Observed()
    matches = observed.matches if observed.matches is not None else 0.0
    if not query.equalities and not query.ranges:
        return Choice("NestedLoop", "no condition is a range, so nearly every row matches and must be visited")
    if query.window <= FEW_ROWS:
        return Choice("NestedLoop", f"comparing with all {query.window} rows of the window is faster than searching")
    alone = observed.alone if observed.alone is not None else matches
    if query.equalities and alone <= SIFTED and not query.counting:
        rest = "; the other conditions filter them" if query.ranges or query.negations else ""
        if query.window <= HASHED_ROWS:
            return Choice("HashIndex", f"an equality finds its rows in one lookup{rest}")
        return Choice("LeveledTrees", f"an equality is a range of one value; this window is too large to hash{rest}")
    if query.equalities + query.ranges >= 2:
        if observed.alone is not None and alone <= SIFTED_FEW and not query.counting:
            return Choice("LeveledTrees", f"one column alone leaves about {alone:,.0f} rows; the others filter them")
        bounded = query.equalities + query.bands >= 2 and not (query.counting and matches > COUNTED)
        if query.counting and query.equalities + query.ranges == 2 and not query.negations and not bounded:
            return Choice("RangeTreeWindow", "two ranges are counted without visiting the matches")
        if bounded:
            return Choice("GridIndex", "two bands are a rectangle that touches a few cells of a grid")
        if matches >= DENSE:
            return Choice(
                "RangeTreeWindow", f"about {matches:,.0f} matches per row: its cost follows the size of the answer"
            )
        return Choice("TieredRuns", "two ranges narrow each other through the permutation of a sorted block")
    if query.threads > SHARED:
        return Choice("PIMTree", f"{query.threads} threads insert and probe at once, each in its own partition")
    if query.counting:
        return Choice("BISort", "the matches of a range are two numbers, so counting is a subtraction")
    drift = ", however keys drift" if observed.drifting else ""
    return Choice("LeveledTrees", f"a range of one key: sorted levels, merged in sequence and searched together{drift}")
