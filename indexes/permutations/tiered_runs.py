"""The mutable part of a window: sorted blocks that merge as they age."""

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
from indexes.permutations.tail_scan import scan_tail

SMALL_SCAN = 1 << 16
"""Up to this product of probe rows and tail rows, comparing all is cheaper than sorting the tail."""


class TieredRuns(WindowIndex):
    """Blocks of consecutive positions, each sorted, small ones last; a short unsorted tail.

    It replaces the B+-tree in SPO-Join's mutable part (section 3.2). A tree is updated tuple by tuple, but our unit is
    the batch: each batch is sorted once, and adjacent blocks of similar size merge, so each row takes part in O(log n)
    merges of sequential memory. A block answers probes as the immutable segments do, and `freeze` gives its sorted runs
    to the next segment, which merges them.

    Which blocks merge depends on row counts only, never on keys, time or expiry. So if different processes keep the
    dimensions of a join and all get the same batches, all have the same blocks, and rank ranges of one can be matched
    with those of another.

        tail_rows=2, inserts of 1 1 1 1 1 1 1 1 rows:
        blocks   -  -  3  3  3  6  6  6
        tail     1  2  0  1  2  0  1  2     a third row does not fit: tail and row become a block;
                                            blocks 3 3 merge, because neither is twice the other
    """

    def __init__(
        self,
        dimensions: int,
        *,
        first_position: int = 0,
        tail_rows: int = 256,
        largest_block: int = 1 << 17,
    ) -> None:
        """`largest_block` bounds the size of a merge, and so how long an expired row is kept."""
        check_whole_number("TieredRuns", "dimensions", dimensions)
        check_whole_number("TieredRuns", "tail_rows", tail_rows, least=0)
        check_whole_number("TieredRuns", "largest_block", largest_block)
        self.dimensions = dimensions
        self.tail_rows = tail_rows
        self.largest_block = largest_block
        self._next = first_position
        self._blocks: list[PermutationOffsetJoin] = []
        self._tail_values: list[np.ndarray] = []
        self._tail_valid: list[np.ndarray] = []
        self._tail_length = 0
        self._tail_block: PermutationOffsetJoin | None = None

    @property
    def next_position(self) -> int:
        """The position that the next inserted row will get."""
        return self._next

    @property
    def blocks(self) -> tuple[PermutationOffsetJoin, ...]:
        """All rows held as blocks in position order, the tail included. Cost: O(tail log tail)."""
        return (*self._blocks, *([self._sorted_tail()] if self._tail_length else []))

    @property
    def is_empty(self) -> bool:
        """Whether it holds no row. Cost: O(1)."""
        return not self._blocks and not self._tail_length

    @property
    def nbytes(self) -> int:
        """Cost: O(blocks)."""
        tail = sum(column.nbytes for column in (*self._tail_values, *self._tail_valid))
        return tail + sum(block.nbytes for block in self._blocks)

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(log n) per row amortised; O(rows) while the tail has room."""
        assert len(keys) == self.dimensions, "one key column per dimension"
        rows = len(keys[0])
        assert all(len(column) == rows for column in keys), "columns of one length"
        if not rows:
            return
        if self._tail_length + rows <= self.tail_rows:
            self._append_to_tail(keys)
            self._next += rows
            return
        columns = list(keys)
        if self._tail_length:
            columns = [
                Keys(np.concatenate([old.values, new.values]), _joined_valid(old, new))
                for old, new in zip(self._tail(), keys, strict=True)
            ]
        first = self._next - self._tail_length
        self._tail_length = 0
        self._tail_block = None
        self._next += rows
        self._blocks.append(PermutationOffsetJoin(first, [SortedRun.of(k) for k in columns]))
        self._merge_last()

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: the sum over the blocks; there are O(log n) and one per `largest_block` rows."""
        if not self._tail_length:
            return probe_blocks(limit, self._blocks, intervals, live, ordered=ordered)
        if self._tail_block is not None or len(live) * self._tail_length > SMALL_SCAN:
            return probe_blocks(limit, self.blocks, intervals, live, ordered=ordered)
        earlier = probe_blocks(limit, self._blocks, intervals, live, ordered=ordered)
        if earlier is None:
            return None
        last = scan_tail(self._tail(), self._next - self._tail_length, intervals, live)
        if len(earlier.positions) + len(last.positions) > limit:
            return None
        return Matches.concat_by_row([earlier, last])

    def count(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """Cost: the sum over the blocks; O(log n) per probe row in blocks that live ranges do not cut."""
        return count_blocks(self.blocks, intervals, live)

    def expire(self, below: int) -> None:
        """Drop the leading blocks that lie wholly below. Cost: O(blocks)."""
        dead = 0
        while dead < len(self._blocks) and self._blocks[dead].end_position <= below:
            dead += 1
        del self._blocks[:dead]
        if self._next <= below:
            self._tail_length = 0
            self._tail_block = None

    def freeze(self, first: int, end: int) -> list[SortedRun]:
        """The sorted runs, one per dimension, of exactly the positions [first, end), all held here.

        Cost: O(n) for the O(log n) blocks of geometric sizes: merges, no sort.
        """
        parts = [b for b in self.blocks if b.first_position < end and b.end_position > first]
        assert first < end, "an empty segment has no runs"
        assert parts, "positions not held"
        assert parts[0].first_position <= first, "positions not held"
        assert parts[-1].end_position >= end, "positions not held"
        return [
            SortedRun.merge([b.runs[d].slice(first - b.first_position, end - b.first_position) for b in parts])
            for d in range(self.dimensions)
        ]

    def _append_to_tail(self, keys: Sequence[Keys]) -> None:
        if not self._tail_values:
            self._tail_values = [np.empty(self.tail_rows, k.values.dtype) for k in keys]
            self._tail_valid = [np.empty(self.tail_rows, np.bool_) for _ in keys]
        begin, end = self._tail_length, self._tail_length + len(keys[0])
        for d, column in enumerate(keys):
            assert self._tail_values[d].dtype == column.values.dtype, "a dimension keeps its type"
            self._tail_values[d][begin:end] = column.values
            self._tail_valid[d][begin:end] = True if column.valid is None else column.valid
        self._tail_length = end
        self._tail_block = None

    def _tail(self) -> list[Keys]:
        """The tail's rows, as views that the next insert invalidates."""
        columns = []
        for values, valid in zip(self._tail_values, self._tail_valid, strict=True):
            flags = valid[: self._tail_length]
            all_valid = np.count_nonzero(flags) == len(flags)
            columns.append(Keys(values[: self._tail_length], None if all_valid else flags))
        return columns

    def _sorted_tail(self) -> PermutationOffsetJoin:
        """The tail as a block, kept until the next insert."""
        if self._tail_block is None:
            first = self._next - self._tail_length
            runs = [SortedRun.of(keys) for keys in self._tail()]
            self._tail_block = PermutationOffsetJoin(first, runs)
        return self._tail_block

    def _merge_last(self) -> None:
        """Merge from the end while a block is less than twice as large as the merged blocks after it.

        So sizes at least double from block to block towards the front, up to the largest.
        """
        begin = len(self._blocks) - 1
        rows = self._blocks[begin].rows
        while begin > 0:
            before = self._blocks[begin - 1].rows
            if before >= 2 * rows or before + rows > self.largest_block:
                break
            begin -= 1
            rows += before
        parts = self._blocks[begin:]
        if len(parts) > 1:
            runs = [SortedRun.merge([b.runs[d] for b in parts]) for d in range(self.dimensions)]
            self._blocks[begin:] = [PermutationOffsetJoin(parts[0].first_position, runs)]

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: O(tail); the blocks' arrays are shared, not copied."""
        numbers = [self.dimensions, self.tail_rows, self.largest_block, self._next]
        arrays = {"index": np.array([*numbers, len(self._blocks), self._tail_length], np.int64)}
        for i, block in enumerate(self._blocks):
            arrays |= {f"{i}.{name}": array for name, array in block.snapshot().items()}
        if self._tail_length:
            for d, keys in enumerate(self._tail()):
                arrays[f"tail.values.{d}"] = keys.values.copy()
                arrays[f"tail.valid.{d}"] = keys.mask().copy()
        return arrays

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: O(blocks)."""
        dimensions, tail_rows, largest, following, blocks, tail = map(int, snapshot["index"])
        index = cls(
            dimensions,
            first_position=following - tail,
            tail_rows=tail_rows,
            largest_block=largest,
        )
        index._blocks = [PermutationOffsetJoin.restore(_under(snapshot, f"{i}.")) for i in range(blocks)]
        if tail:
            columns = range(dimensions)
            index.insert([Keys(snapshot[f"tail.values.{d}"], snapshot[f"tail.valid.{d}"]) for d in columns])
        return index

    def check_invariants(self) -> None:
        # The tail is short and ends at the next position.
        assert 0 <= self._tail_length <= self.tail_rows
        end = self._next - self._tail_length
        for block in reversed(self._blocks):
            block.check_invariants()
            # Blocks follow each other without gaps, up to the tail.
            assert block.end_position == end
            # All blocks have every dimension and at least one row.
            assert len(block.runs) == self.dimensions
            assert block.rows > 0
            end = block.first_position
        for front, back in zip(self._blocks, self._blocks[1:], strict=False):
            # Sizes at least double towards the front, unless a merge would be too large.
            assert front.rows >= 2 * back.rows or front.rows + back.rows > self.largest_block


def _joined_valid(old: Keys, new: Keys) -> np.ndarray | None:
    if old.valid is None and new.valid is None:
        return None
    return np.concatenate([old.mask(), new.mask()])


def _under(snapshot: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in snapshot.items() if name.startswith(prefix)}
