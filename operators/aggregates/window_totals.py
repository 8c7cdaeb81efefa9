"""A window of sorted blocks that answers probe rows with aggregates over their matches, without listing these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from indexes import Interval, Keys, Live, Matches
from operators.aggregates.range_aggregates import RangeAggregate
from operators.aggregates.sorted_block import SortedBlock, sorted_block, sorted_rows
from operators.protocol.columns import Int64

LEAST_BLOCK = 1024
"""Blocks of fewer rows always merge with neighbours of similar size."""

PARTS_OF_WINDOW = 4
"""A block has at most this part of the rows held: where live ranges cut one, its ranks are looked at one by one."""


class WindowTotals:
    """Rows by position in blocks that are sorted by their keys; adjacent ones of similar size merge.

    A range of a block is two ranks, and its aggregates follow from what the block holds for these. Only the blocks in
    which a probe row's live range begins or ends are looked at row by row.

        blocks of 4 rows    [0, 4)  [4, 8)  [8, 12)
        live [2, 12)        row by row in the first, two ranks in the others
    """

    def __init__(self, aggregates: Sequence[RangeAggregate | None]) -> None:
        """`aggregates`: one for each column of values; None: the column counts all matches."""
        self._aggregates = aggregates
        self._blocks: list[SortedBlock] = []
        self._next = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return sum(block.nbytes for block in self._blocks)

    def insert(self, keys: Sequence[Keys], values: Sequence[pa.Array | None]) -> None:
        """Add rows at the next positions. Cost: O(log n) per row, and O(1) for each time that blocks merge."""
        self._merge()
        if not len(keys[0]):
            return
        order = sorted_rows(keys)
        parts = tuple(
            None if aggregate is None or column is None else aggregate.part(column, order)
            for aggregate, column in zip(self._aggregates, values, strict=True)
        )
        self._blocks.append(sorted_block(self._next, keys, order, parts))
        self._next += len(keys[0])

    def over(self, intervals: Sequence[Interval], live: Live) -> tuple[pa.Array, ...] | None:
        """A column for each aggregate over the matches of each probe row; None if they have to be listed.

        Cost: O(blocks * log n) for each probe row, and the ranks in the blocks that its live range cuts.
        """
        if len(intervals) > 1 and bool((intervals[0].low < intervals[0].high).any()):
            return None  # no range of ranks: the first dimension does not ask for one value
        met = [(block, block.ranks(intervals)) for block in self._within(live)]
        columns = []
        for number, aggregate in enumerate(self._aggregates):
            if aggregate is None:
                counts = np.zeros(len(live), np.int64)
                for block, ranks in met:
                    block.count(ranks, live, counts)
                columns.append(pa.array(counts))
                continue
            column = aggregate.over(met, number, live)
            if column is None:
                return None
            columns.append(column)
        return tuple(columns)

    def probe_within(self, limit: int, intervals: Sequence[Interval], live: Live) -> Matches | None:
        """The matches of each probe row, in any order; None if there are more than `limit`.

        Cost: O(blocks * log n + ranks in the first dimension) for each probe row.
        """
        offsets = np.zeros(len(live) + 1, np.int64)
        blocks = self._within(live)
        for block in blocks:
            block.find(intervals, live, offsets[1:])
        np.cumsum(offsets, out=offsets)
        if offsets[-1] > limit:
            return None
        positions: Int64 = np.empty(offsets[-1], np.int64)
        if len(positions):
            ends = offsets[:-1].copy()
            for block in blocks:
                block.find(intervals, live, ends, positions)
        return Matches(offsets, positions)

    def expire(self, below: int) -> None:
        """Drop the blocks that lie wholly below. Cost: O(blocks)."""
        dead = 0
        while dead < len(self._blocks) and self._blocks[dead].end <= below:
            dead += 1
        if dead:
            first = self._blocks[dead - 1].end
            del self._blocks[:dead]
            for aggregate in self._aggregates:
                if aggregate is not None:
                    aggregate.drop_before(first)

    def check_invariants(self) -> None:
        # blocks follow each other without a gap, up to the next position
        ends = [block.end for block in self._blocks]
        assert [block.first for block in self._blocks][1:] == ends[:-1]
        assert not ends or ends[-1] == self._next
        for block in self._blocks:
            block.check_invariants()

    def _within(self, live: Live) -> list[SortedBlock]:
        """The blocks that some probe row may meet."""
        if not len(live):
            return []
        start, _, _, end = live.extent
        return [block for block in self._blocks if block.end > start and block.first < end]

    def _merge(self) -> None:
        """Merge the last blocks while neither is twice the other. The next rows are a block of their own until then."""
        blocks = self._blocks
        most = max(LEAST_BLOCK, sum(block.rows for block in blocks) // PARTS_OF_WINDOW)
        while len(blocks) > 1:
            earlier, later = blocks[-2:]
            if earlier.rows >= 2 * later.rows or earlier.rows + later.rows > most:
                break
            blocks[-2:] = [earlier.merged(later)]
