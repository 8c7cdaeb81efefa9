"""The nested loop join: every probe row is compared with every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from indexes.kernels.columns import Interval, Keys, Live, Matches
from indexes.kernels.ordered_integers import ordered_integers
from indexes.kernels.whole_numbers import check_whole_number
from indexes.kernels.window_index import WindowIndex
from indexes.permutations.permutation_search import larger
from indexes.scans.code_frame import INVALID, TOP, encode_rows, frame_of, numbers_of
from indexes.scans.nested_loop_scan import GROUP, NO_ROOM, TOO_MANY, by_probe_row, scan_blocks

BLOCK_ROWS = 4096
"""The codes of so many rows in two dimensions fit in a core's first-level cache."""

COMPARED_ROWS, COMPARED_PROBES = 256, 32
"""The sample from which the two dimensions that leave the fewest candidates are chosen."""


class NestedLoop(WindowIndex):
    """Rows in order of arrival, in a ring of blocks, compared with all probe rows as fast as the core allows.

    Besides the 64-bit keys, a block has a 16-bit code of each key in the block's own frame (see `code_frame`). Eight
    probe rows at a time pass over the codes of two dimensions of a block, and these stay in the cache until all probe
    rows have passed (see `nested_loop_scan`). Rows that the codes do not rule out are settled by their keys. A block
    whose last row has expired is reused for new rows, so expiry costs nothing.

    Paper: the windows of ScaleJoin's processing threads (section V-A) and of SplitJoin's cores, which compare tuple
    with tuple. We also compare all pairs, but in blocks and with codes, which changes the order of the comparisons and
    their instructions, not their number.

    Cost: insert O(rows), probe O(probes * rows held): about 0.04 ns per pair for both dimensions if candidates are
    rare. Rows held are those from the first block that has not fully expired. Memory: 10 bytes per dimension and row,
    plus one.

        block_rows=4: keys 30 10 20 40 | 70 50      frames from 10 to 40 and from 50 to 70
        codes         43688 1 21844 65532 | 65532 1
        probe [18, 32] has the codes 17475 to 48057 in the first frame, where 30 and 20 are candidates, and
        0 to 0 in the second: none. The keys confirm both candidates: positions 0 and 2.
    """

    def __init__(self, dimensions: int = 1, *, block_rows: int = BLOCK_ROWS, first_position: int = 0) -> None:
        for name, value in (("dimensions", dimensions), ("block_rows", block_rows)):
            check_whole_number("NestedLoop", name, value)
        self._dimensions = dimensions
        self._block_rows = block_rows
        self._origin = first_position
        self._floats = np.zeros(dimensions, np.bool_)
        self._first_block = 0
        self._rows = 0  # since the origin
        self._framed = 0  # rows that the last block had when its frame was made
        self._allocate(1)

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(rows), amortised: a block gets a new frame when its rows have doubled and when it is full."""
        if len(keys) != self._dimensions:
            raise ValueError(f"NestedLoop: made for {self._dimensions} dimensions, but got {len(keys)} key columns")
        if not len(keys[0]):
            return
        self._floats[:] = [column.values.dtype == np.float64 for column in keys]
        valid = np.ones(len(keys[0]), np.bool_)
        for column in keys:
            if column.valid is not None:
                valid &= column.valid
        self._append([ordered_integers(column.values) for column in keys], valid)

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: O(probes * rows held), about 0.04 ns each; matches are always ordered."""
        probes = len(live)
        start = np.clip(live.start, self._origin + self._first_row, self._origin + self._rows) - self._origin
        end = np.clip(live.end, self._origin + self._first_row, self._origin + self._rows) - self._origin
        if not probes or not (start < end).any():
            return Matches.empty(probes)
        least, greatest = int(start.min()), int(end.max())
        state = np.array([least // self._block_rows, 0, -(-greatest // self._block_rows), 0], np.int64)
        low, high = (
            np.stack([ordered_integers(side) for side in sides])
            for sides in ([one.low for one in intervals], [one.high for one in intervals])
        )
        low_numbers = np.stack([one.low.astype(np.float64) for one in intervals])
        high_numbers = np.stack([one.high.astype(np.float64) for one in intervals])
        negated = np.array([one.negated for one in intervals])
        coded = self._coded(low, high, negated, least)
        ranges = np.zeros((4, -(-probes // GROUP) * GROUP), np.uint16)
        room = 2 * GROUP * self._block_rows
        found_probes, found_rows = np.empty(room, np.int32), np.empty(room, np.int64)
        while True:
            outcome = scan_blocks(
                self._codes, self._keys, self._valid, self._frames, coded, self._rows, low_numbers, high_numbers,
                low, high, negated, start, end, limit, ranges, state, found_probes, found_rows,
            )  # fmt: skip
            if outcome == TOO_MANY:
                return None
            if outcome != NO_ROOM:
                break
            room *= 2
            found_probes, found_rows = (larger(found, int(state[3]), room) for found in (found_probes, found_rows))
        total = int(state[3])
        offsets, positions = np.empty(probes + 1, np.int64), np.empty(total, np.int64)
        by_probe_row(found_probes[:total], found_rows[:total], self._origin, offsets, positions)
        return Matches(offsets, positions)

    def expire(self, below: int) -> None:
        """Cost: O(1)."""
        gone = min(max(below - self._origin, 0), self._rows) // self._block_rows
        self._first_block = max(self._first_block, gone)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: O(rows held)."""
        blocks = np.arange(self._first_block, self._end_block) & (self._slots - 1)
        rows = self._rows - self._first_row
        return {
            "about": np.array([self._dimensions, self._block_rows, self._origin + self._first_row], np.int64),
            "floats": self._floats.copy(),
            "keys": self._keys[:, blocks].reshape(self._dimensions, -1)[:, :rows],
            "valid": self._valid[blocks].reshape(-1)[:rows],
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: O(rows)."""
        dimensions, block_rows, first_position = (int(number) for number in snapshot["about"])
        index = cls(dimensions, block_rows=block_rows, first_position=first_position)
        index._floats = snapshot["floats"].copy()
        index._append(list(snapshot["keys"]), snapshot["valid"])
        return index

    @property
    def nbytes(self) -> int:
        return int(self._codes.nbytes + self._keys.nbytes + self._valid.nbytes + self._frames.nbytes)

    def check_invariants(self) -> None:
        # Each block from the first held to the last has its own slot.
        assert 0 <= self._end_block - self._first_block <= self._slots
        assert self._slots & (self._slots - 1) == 0
        for block in range(self._first_block, self._end_block):
            slot = block & (self._slots - 1)
            rows = min(self._block_rows, self._rows - block * self._block_rows)
            valid = self._valid[slot, :rows]
            for d in range(self._dimensions):
                low, scale = self._frames[slot, d]
                # No key becomes NaN in a frame.
                assert np.isfinite(low)
                assert 0 < scale < np.inf
                codes = self._codes[d, slot, :rows]
                # Invalid rows, and only these, have the code INVALID.
                assert np.array_equal(codes == INVALID, ~valid)
                order = np.argsort(self._keys[d, slot, :rows][valid], kind="stable")
                ascending = codes[valid][order].astype(np.int64)
                # Codes never fall as keys rise, and all are in range.
                assert np.all(np.diff(ascending) >= 0)
                assert np.all(ascending <= TOP)

    @property
    def _slots(self) -> int:
        return int(self._keys.shape[1])

    @property
    def _first_row(self) -> int:
        return self._first_block * self._block_rows

    @property
    def _end_block(self) -> int:
        return -(-self._rows // self._block_rows)

    def _allocate(self, slots: int) -> None:
        self._codes = np.empty((self._dimensions, slots, self._block_rows), np.uint16)
        self._keys = np.empty((self._dimensions, slots, self._block_rows), np.int64)
        self._valid = np.empty((slots, self._block_rows), np.bool_)
        self._frames = np.empty((slots, self._dimensions, 2), np.float64)

    def _make_room(self, rows: int) -> None:
        """Double the slots until the blocks held and `rows` more rows fit; shrink if they would fit eight times."""
        needed = -(-(self._rows + rows) // self._block_rows) - self._first_block
        if needed <= self._slots and (8 * needed > self._slots or self._slots == 1):
            return
        codes, keys, valid, frames = self._codes, self._keys, self._valid, self._frames
        blocks = np.arange(self._first_block, self._end_block)
        old = blocks & (self._slots - 1)
        self._allocate(1 << (2 * needed - 1).bit_length() - 1)
        new = blocks & (self._slots - 1)
        self._codes[:, new] = codes[:, old]
        self._keys[:, new] = keys[:, old]
        self._valid[new] = valid[old]
        self._frames[new] = frames[old]

    def _append(self, columns: Sequence[np.ndarray], valid: np.ndarray) -> None:
        """Append rows of ordered integers, block after block."""
        self._make_room(len(valid))
        at = 0
        while at < len(valid):
            block, begin = divmod(self._rows, self._block_rows)
            slot = block & (self._slots - 1)
            count = min(self._block_rows - begin, len(valid) - at)
            self._valid[slot, begin : begin + count] = valid[at : at + count]
            for d, column in enumerate(columns):
                self._keys[d, slot, begin : begin + count] = column[at : at + count]
            self._rows += count
            self._encode(slot, begin, begin + count)
            at += count

    def _encode(self, slot: int, begin: int, end: int) -> None:
        """Encode the rows [begin, end) of a block or, with a new frame, all rows up to `end`."""
        anew = begin == 0 or end == self._block_rows or end >= 2 * self._framed
        start = 0 if anew else begin
        self._framed = end if anew else self._framed
        valid = self._valid[slot, start:end]
        for d in range(self._dimensions):
            numbers = numbers_of(self._keys[d, slot, start:end], bool(self._floats[d]))
            if anew:
                self._frames[slot, d] = frame_of(numbers[valid])
            low, scale = self._frames[slot, d]
            encode_rows(numbers, valid, low, scale, self._codes[d, slot, start:end])

    def _coded(self, low: np.ndarray, high: np.ndarray, negated: np.ndarray, row: int) -> np.ndarray:
        """The two dimensions whose codes are compared: those that let the fewest rows of a sample pass."""
        if self._dimensions <= 2:
            return np.array([0, self._dimensions - 1], np.int64)
        block, begin = divmod(row, self._block_rows)
        end = min(self._block_rows, self._rows - block * self._block_rows)
        keys = self._keys[:, block & (self._slots - 1), begin:end]
        keys = keys[:, :: max(1, keys.shape[1] // COMPARED_ROWS), None]
        some = slice(None, None, max(1, low.shape[1] // COMPARED_PROBES))
        inside = (keys >= low[:, None, some]) & (keys <= high[:, None, some])
        passing = (inside != negated[:, None, None]).mean(axis=(1, 2))
        return np.argsort(passing, kind="stable")[:2].astype(np.int64)
