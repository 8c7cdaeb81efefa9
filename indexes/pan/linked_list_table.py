"""PanJoin's storage for partitions of unknown size: arrays of equal width, linked where one is not enough."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.kernels.compiled import kernel
from indexes.kernels.memory import prefetch
from indexes.kernels.ordered_integers import GREATEST, LEAST
from indexes.one_key.candidates import Probe, passes

BLOCK = 64
"""Rows that are compared together; they are inspected one by one only if at least one matches."""

LINE = 8
"""Keys per cache line."""

AHEAD = 4
"""Cache lines of a chain that are prefetched."""

NONE = -1


class Table(NamedTuple):
    """The form that kernels take. Entry e has keys[e * width + i] and rows[e * width + i] for i < fill[e]."""

    keys: np.ndarray
    rows: np.ndarray  # position - base
    following: np.ndarray  # the next entry of the chain, or NONE
    fill: np.ndarray
    last: np.ndarray  # by first entry of a chain: its last entry,
    counts: np.ndarray  # its rows,
    lowest: np.ndarray  # its least and
    highest: np.ndarray  # greatest key
    pointer: np.ndarray  # [first entry never used, first entry given back or NONE, number of those]
    width: int


class LinkedListAdaptiveTable:
    """Linked List Adaptive Table (LLAT): PanJoin, section III-B2.

    Each entry is an array of `width` rows. A partition has its own entry; when that is full, it is linked to the first
    unused one, which the global pointer names. A chain is identified by its first entry. Rows are in the order of
    arrival, and none is ever removed from a chain.

    With P partitions of a subwindow of N rows and width = ceil(N / P * sigma), sigma >= 1, P entries beyond the
    partitions' own always suffice. An entry is linked only when a row comes to a full chain, and each is linked from
    one full entry, so with R of them in use there are R full entries. Hence R * width <= N rows, and
    R <= N / width <= P / sigma <= P: never more than 2P in all. If N is no multiple of P, the width only gets larger,
    and a batch is just a sequence of rows.

    Where we depart: the table remembers the last entry of each chain, so that appending does not walk the chain. There
    is no tail pointer, because subwindows expire as a whole. The histograms of RaP-Table (number of rows, least and
    greatest key) are kept with the chains. An entry may be given back, when a leaf of `WiBPlusTree` is split, and the
    table may `grow` for users that 2P does not bound.

        width=2, P=2, N=4     append 7 1 5 to chain 0, 9 to chain 1
        entry       0     1     2     3
        keys       7 1   9 _   5 _   _ _
        following   2     -     -     -      global pointer 3
    """

    def __init__(self, entries: int, width: int, chains: int) -> None:
        self.width = width
        self.pointer = np.array([chains, NONE, 0], np.int64)
        self._allocate(entries)
        self._clear(0)

    @property
    def entries(self) -> int:
        return len(self.fill)

    @property
    def used(self) -> int:
        """Entries in use or given back. Cost: O(1)."""
        return int(self.pointer[0])

    @property
    def table(self) -> Table:
        return Table(
            self.keys,
            self.rows,
            self.following,
            self.fill,
            self.last,
            self.counts,
            self.lowest,
            self.highest,
            self.pointer,
            self.width,
        )

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        return sum(array.nbytes for array in self.table[:-1])

    def clear(self, chains: int) -> None:
        """Drop all rows and make the first `chains` entries empty chains. Cost: O(entries)."""
        self.pointer[:] = chains, NONE, 0
        self._clear(0)

    def grow(self, entries: int) -> None:
        """Make room for `entries`. Cost: O(rows)."""
        before = self.entries
        kept = self.table
        self._allocate(entries)
        self.keys[: before * self.width] = kept.keys
        self.rows[: before * self.width] = kept.rows
        for name in ("following", "fill", "last", "counts", "lowest", "highest"):
            getattr(self, name)[:before] = getattr(kept, name)
        self._clear(before)

    def chain(self, first: int) -> list[int]:
        """The entries of a chain. Cost: O(their number)."""
        entries = [first]
        while self.following[entries[-1]] != NONE:
            entries.append(int(self.following[entries[-1]]))
        return entries

    def contents(self, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys and rows of a chain. Cost: O(rows)."""
        parts = [slice(entry * self.width, entry * self.width + int(self.fill[entry])) for entry in self.chain(first)]
        return np.concatenate([self.keys[part] for part in parts]), np.concatenate([self.rows[part] for part in parts])

    def all_contents(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and rows of all chains. Cost: O(entries * width)."""
        size = self.used * self.width
        held = (np.arange(self.width) < self.fill[: self.used, None]).ravel()
        return self.keys[:size][held], self.rows[:size][held]

    def check_chains(self, chains: list[int]) -> None:
        """Assert what must hold of the chains; `chains` must be all of them."""
        seen: list[int] = []
        for first in chains:
            entries = self.chain(first)
            seen += entries
            # All entries of a chain except the last are full, and a linked last one is not empty.
            assert (self.fill[entries[:-1]] == self.width).all()
            assert len(entries) == 1 or 0 < self.fill[entries[-1]] <= self.width
            assert self.last[first] == entries[-1]
            # Count, least and greatest key are those of the rows.
            keys, _ = self.contents(first)
            assert len(keys) == self.counts[first]
            assert not len(keys) or (self.lowest[first], self.highest[first]) == (keys.min(), keys.max())
        free = int(self.pointer[1])
        while free != NONE:
            seen.append(free)
            free = int(self.following[free])
        # Each entry before the global pointer is in one chain or was given back; none is beyond the allocation.
        assert sorted(seen) == list(range(self.used))
        assert self.used <= self.entries

    def _allocate(self, entries: int) -> None:
        self.keys = np.empty(entries * self.width, np.int64)
        self.rows = np.empty(entries * self.width, np.int32)
        self.following = np.empty(entries, np.int32)
        self.fill = np.empty(entries, np.int32)
        self.last = np.empty(entries, np.int32)
        self.counts = np.empty(entries, np.int64)
        self.lowest = np.empty(entries, np.int64)
        self.highest = np.empty(entries, np.int64)

    def _clear(self, first: int) -> None:
        self.following[first:] = NONE
        self.fill[first:] = 0
        self.last[first:] = np.arange(first, self.entries)
        self.counts[first:] = 0
        self.lowest[first:] = GREATEST
        self.highest[first:] = LEAST


@kernel
def take_entry(table: Table) -> int:
    """Take an empty entry that belongs to no chain."""
    entry = table.pointer[1]
    if entry != NONE:
        table.pointer[1] = table.following[entry]
        table.pointer[2] -= 1
    else:
        entry = table.pointer[0]
        table.pointer[0] += 1
    empty_entry(table, entry)
    return entry


@kernel
def entries_left(table: Table) -> int:
    """How many more times `take_entry` may be called."""
    return table.fill.size - table.pointer[0] + table.pointer[2]


@kernel
def empty_entry(table: Table, entry: int) -> None:
    """Make the entry a chain without rows."""
    table.following[entry] = NONE
    table.fill[entry] = 0
    table.last[entry] = entry
    table.counts[entry] = 0
    table.lowest[entry] = GREATEST
    table.highest[entry] = LEAST


@kernel
def give_back(table: Table, entry: int) -> None:
    """Return the entry, so that `take_entry` may reuse it."""
    table.fill[entry] = 0
    table.following[entry] = table.pointer[1]
    table.pointer[1] = entry
    table.pointer[2] += 1


@kernel
def append(table: Table, first: int, keys: np.ndarray, positions: np.ndarray, base: int, begin: int, end: int) -> None:
    """Append the rows [begin, end), at least one, in ascending order of keys, to the chain."""
    width = table.width
    table.lowest[first] = min(table.lowest[first], keys[begin])
    table.highest[first] = max(table.highest[first], keys[end - 1])
    table.counts[first] += end - begin
    entry = int(table.last[first])
    while True:
        fill = int(table.fill[entry])
        place = entry * width + fill
        room = min(width - fill, end - begin)
        for i in range(room):
            table.keys[place + i] = keys[begin + i]
            table.rows[place + i] = positions[begin + i] - base
        table.fill[entry] = fill + room
        begin += room
        if begin == end:
            return
        another = take_entry(table)
        table.following[entry] = another
        table.last[first] = another
        entry = another


@kernel
def prefetch_chain(keys: np.ndarray, width: int, first: int) -> None:
    """Prefetch the first cache lines of a chain; the hardware notices the sequential read and fetches the rest."""
    for line in range(AHEAD):
        prefetch(keys, first * width + line * LINE)


@kernel
def met_in_chain(
    keys: np.ndarray,
    rows: np.ndarray,
    following: np.ndarray,
    width: int,
    first: int,
    count: int,
    low: int,
    high: int,
    base: int,
    positions: np.ndarray,
    used: int,
) -> int:
    """Write the positions of the chain's `count` rows with low <= key <= high. Returns the new `used`.

    There must be room for all rows. The counting loop is vectorised; the writing loop has no branch.
    """
    entry = int(first)
    while True:
        place = entry * width
        end = place + min(count, width)
        for block in range(place, end, BLOCK):
            block_end = min(block + BLOCK, end)
            met = 0
            for i in range(block, block_end):
                key = keys[np.uint64(i)]
                met += (key >= low) & (key <= high)
            if met:
                for i in range(block, block_end):
                    key = keys[np.uint64(i)]
                    positions[np.uint64(used)] = base + rows[np.uint64(i)]
                    used += (key >= low) & (key <= high)
        count -= width
        if count <= 0:
            return used
        entry = int(following[entry])


@kernel
def copied_chain(
    rows: np.ndarray,
    following: np.ndarray,
    width: int,
    first: int,
    count: int,
    base: int,
    positions: np.ndarray,
    used: int,
) -> int:
    """As `met_in_chain`, for all rows of the chain."""
    entry = int(first)
    while True:
        place = entry * width
        held = min(count, width)
        for i in range(held):
            positions[np.uint64(used + i)] = base + rows[np.uint64(place + i)]
        used += held
        count -= width
        if count <= 0:
            return used
        entry = int(following[entry])


@kernel
def passing_in_chain(
    table: Table,
    first: int,
    low: int,
    high: int,
    base: int,
    positions: np.ndarray,
    used: int,
    probe: Probe,
    row: int,
) -> int:
    """As `met_in_chain`, for rows that pass the filters; it writes as far as there is room and counts the rest."""
    entry = int(first)
    while entry != NONE:
        place = entry * table.width
        for i in range(place, place + table.fill[entry]):
            if table.keys[i] >= low and table.keys[i] <= high and passes(probe, row, base + table.rows[i]):
                if used < positions.size:
                    positions[used] = base + table.rows[i]
                used += 1
        entry = int(table.following[entry])
    return used
