"""A sliding window that counts without visiting the matches, and lists dense answers at the cost of copying them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from indexes.kernels.columns import Interval, Keys, Live, Matches
from indexes.kernels.whole_numbers import check_whole_number
from indexes.kernels.window_index import WindowIndex
from indexes.permutations.block_probe import count_blocks, probe_blocks
from indexes.permutations.permutation_offset import PermutationOffsetJoin
from indexes.permutations.sorted_run import SortedRun
from indexes.permutations.tiered_runs import TieredRuns


class RangeTreeWindow(WindowIndex):
    """Blocks of consecutive positions with trees over two dimensions, large in the middle and small at both ends.

    A block that is live as a whole counts and lists by its trees (`PairTrees`). Where a live range cuts a block, its
    rows must be read, so the blocks where that happens are kept small. Rows enter small blocks (`TieredRuns`), where
    the live ranges of a step's probe rows may end at different rows. When the next rows come, the complete ones leave
    as one block, and blocks of similar size merge. At the other end, the block in which the window begins is halved,
    and its older half again, down to `cut_rows`; halves before the window are dropped. So there are O(log n) blocks,
    and each row takes part in O(log n) merges and O(log n) halvings of sequential memory.

        cut_rows=2; rows 0..15 in one block of 16, then expire(3):
        16 -> 8 8 -> 4 4 8 -> 2 2 4 8 -> 2 4 8      rows 0 and 1 are dropped; live ranges from 3 on cut the block of 2

    The papers have no such index: SPO-Join's segments (section 3.3) all have the same size, and the results of those
    that the window cuts are filtered. With one or two dimensions, none of them negated, counting costs O(log^2 n +
    cut_rows) per probe row; otherwise it costs as much as probing.
    """

    def __init__(
        self,
        dimensions: int,
        *,
        first_position: int = 0,
        tail_rows: int = 256,
        cut_rows: int = 4096,
        largest_block: int = 1 << 20,
    ) -> None:
        """`cut_rows`: the size of blocks that live ranges cut. `largest_block` bounds the time of one merge."""
        for name, value, least in (
            ("dimensions", dimensions, 1),
            ("first_position", first_position, 0),
            ("tail_rows", tail_rows, 0),
            ("cut_rows", cut_rows, 1),
            ("largest_block", largest_block, cut_rows),
        ):
            check_whole_number("RangeTreeWindow", name, value, least=least)
        if largest_block >= 2**30:
            raise ValueError(f"RangeTreeWindow: largest_block must be below 2**30, not {largest_block}")
        self.dimensions = dimensions
        self.cut_rows = cut_rows
        self.largest_block = largest_block
        self._recent_since = first_position
        self._halved: list[PermutationOffsetJoin] = []
        self._merged: list[PermutationOffsetJoin] = []
        self._recent = TieredRuns(
            dimensions, first_position=first_position, tail_rows=tail_rows, largest_block=cut_rows
        )

    @property
    def next_position(self) -> int:
        """The position that the next inserted row will get."""
        return self._recent.next_position

    @property
    def blocks(self) -> tuple[PermutationOffsetJoin, ...]:
        """All rows held as blocks in position order. Cost: O(blocks + tail log tail)."""
        return (*self._halved, *self._merged, *self._recent.blocks)

    @property
    def nbytes(self) -> int:
        """Cost: O(blocks)."""
        return self._recent.nbytes + sum(block.nbytes for block in (*self._halved, *self._merged))

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(log n) per row amortised."""
        assert len(keys) == self.dimensions, "one key column per dimension"
        rows = len(keys[0])
        assert all(len(column) == rows for column in keys), "columns of one length"
        if not rows:
            return
        self._settle_recent()
        for start in range(0, rows, self.cut_rows):
            part = slice(start, start + self.cut_rows)
            self._recent.insert([Keys(k.values[part], None if k.valid is None else k.valid[part]) for k in keys])

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: the sum over the blocks; for two dense ranges O(log n) per probe row and block, and the matches."""
        return probe_blocks(limit, self.blocks, intervals, live, ordered=ordered)

    def count(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """Cost: the sum over the blocks: O(log n) per probe row, and O(cut_rows) where a live range cuts the block."""
        return count_blocks(self.blocks, intervals, live)

    def expire(self, below: int) -> None:
        """Drop the blocks that lie wholly below `below`, and halve one that does in part.

        Cost: O(blocks), and O(log n) amortised per expired row.
        """
        for blocks in (self._halved, self._merged):
            dead = sum(block.end_position <= below for block in blocks)
            del blocks[:dead]
        self._recent.expire(below)
        if not self._halved and self._merged and self._merged[0].first_position < below:
            self._halved.append(self._merged.pop(0))
        while self._halved and self._halved[0].first_position < below and self._halved[0].rows > self.cut_rows:
            block = self._halved[0]
            middle = block.rows // 2
            halves = [(0, middle), (middle, block.rows)]
            if block.first_position + middle <= below:
                del halves[0]
            self._halved[:1] = [
                PermutationOffsetJoin(block.first_position + first, [run.slice(first, end) for run in block.runs])
                for first, end in halves
            ]

    def _settle_recent(self) -> None:
        """Make one block of the recent rows if there are many, and merge from the end as `TieredRuns` does."""
        end = self.next_position
        if end - self._recent_since < self.cut_rows:
            return
        self._recent_since = end
        recent = self._recent.blocks
        if not recent:
            return
        first = recent[0].first_position
        rows = end - first
        self._merged.append(PermutationOffsetJoin(first, self._recent.freeze(first, end)))
        self._recent.expire(end)
        begin = len(self._merged) - 1
        while begin > 0:
            before = self._merged[begin - 1].rows
            if before >= 2 * rows or before + rows > self.largest_block:
                break
            begin -= 1
            rows += before
        parts = self._merged[begin:]
        if len(parts) > 1:
            runs = [SortedRun.merge([block.runs[d] for block in parts]) for d in range(self.dimensions)]
            self._merged[begin:] = [PermutationOffsetJoin(parts[0].first_position, runs)]

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: O(tail + blocks); the blocks' arrays are shared, not copied."""
        numbers = [self.dimensions, self.cut_rows, self.largest_block, self._recent_since]
        arrays = {"window": np.array([*numbers, len(self._halved), len(self._merged)], np.int64)}
        for i, block in enumerate((*self._halved, *self._merged)):
            arrays |= {f"block.{i}.{name}": array for name, array in block.snapshot().items()}
        return arrays | {f"recent.{name}": array for name, array in self._recent.snapshot().items()}

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: O(blocks); trees are rebuilt when they pay."""
        dimensions, cut_rows, largest_block, since, halved, merged = (int(number) for number in snapshot["window"])
        index = cls(dimensions, cut_rows=cut_rows, largest_block=largest_block)
        blocks = [PermutationOffsetJoin.restore(_under(snapshot, f"block.{i}.")) for i in range(halved + merged)]
        index._halved, index._merged = blocks[:halved], blocks[halved:]
        index._recent_since = since
        index._recent = TieredRuns.restore(_under(snapshot, "recent."))
        return index

    def check_invariants(self) -> None:
        self._recent.check_invariants()
        blocks = [*self._halved, *self._merged]
        for block in blocks:
            block.check_invariants()
            # All blocks have every dimension and at least one row.
            assert len(block.runs) == self.dimensions
            assert block.rows > 0
        for earlier, later in zip(self.blocks, self.blocks[1:], strict=False):
            # Blocks follow each other without gaps.
            assert earlier.end_position == later.first_position
        # They reach up to the next position, unless all rows have expired.
        assert not self.blocks or self.blocks[-1].end_position == self.next_position
        # The recent rows are those since the last block was made.
        assert not blocks or blocks[-1].end_position <= self._recent_since
        assert all(block.first_position >= self._recent_since for block in self._recent.blocks)
        for earlier, later in zip(self._halved, self._halved[1:], strict=False):
            # Halves grow away from the front: each is at least as large as all before it.
            assert later.rows >= earlier.rows
        for earlier, later in zip(self._merged, self._merged[1:], strict=False):
            # Sizes at least double towards the front, unless a merge would be too large.
            assert earlier.rows >= 2 * later.rows or earlier.rows + later.rows > self.largest_block
        # Blocks are small where live ranges end.
        assert all(block.rows <= self.cut_rows + self._recent.tail_rows for block in self._recent.blocks)


def _under(snapshot: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in snapshot.items() if name.startswith(prefix)}
