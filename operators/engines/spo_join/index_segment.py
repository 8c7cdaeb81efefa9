"""A segment of the immutable part that is a tree, with which SPO-Join's evaluation compares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import Interval, Keys, Live, Matches, SortedRun, make_index


class IndexSegment:
    """The rows of one merge interval in a tree over one dimension; the other dimensions filter its matches.

    Paper: SPO-Join, sections 2 and 5. Its CSS-tree is `ImmutableBPlusTree`. Its chained index has `BPlusTree`s as
    subindexes, and each element holds a chain of them in position order. Where we depart: the paper searches one tree
    per predicate and intersects the results; filtering the matches of one tree gives the same and takes less memory.
    """

    def __init__(self, index: str, first_position: int, runs: Sequence[SortedRun], negated: Sequence[bool]) -> None:
        """Build the index, by its name in the catalogue, from the sorted runs of the rows, one per dimension."""
        self.first_position = first_position
        self.rows = runs[0].rows
        key = next((d for d, is_negated in enumerate(negated) if not is_negated), 0)
        self._index = make_index(
            index,
            window=self.rows,
            batch=self.rows,
            dimensions=len(runs),
            key=key,
            first_position=first_position,
        )
        self._index.insert([_by_row(run) for run in runs])

    @property
    def end_position(self) -> int:
        """The position after the last row's."""
        return self.first_position + self.rows

    @property
    def nbytes(self) -> int:
        """Bytes of the index."""
        return self._index.nbytes

    def probe_within(self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool) -> Matches | None:
        """As `WindowIndex.probe_within`."""
        return self._index.probe_within(limit, intervals, live, ordered=ordered)

    def count(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """As `WindowIndex.count`."""
        return self._index.count(intervals, live)

    def check_invariants(self) -> None:
        self._index.check_invariants()


def probe_segments(
    limit: int, segments: Sequence[IndexSegment], intervals: Sequence[Interval], live: Live, *, ordered: bool
) -> Matches | None:
    """The matches of a probe batch with all segments, which come in position order; None if they exceed `limit`."""
    parts = [Matches.empty(len(live))]
    for segment in segments:
        matches = segment.probe_within(limit, intervals, live, ordered=ordered)
        if matches is None:
            return None
        limit -= len(matches.positions)
        parts.append(matches)
    return Matches.concat_by_row(parts)


def _by_row(run: SortedRun) -> Keys:
    """A run's keys in the order of its rows."""
    values = np.zeros(run.rows, run.keys.dtype)
    values[run.order] = run.keys
    if len(run) == run.rows:
        return Keys(values)
    valid = np.zeros(run.rows, np.bool_)
    valid[run.order] = True
    return Keys(values, valid)
