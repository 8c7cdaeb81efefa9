"""PanJoin's WiB+-Tree: a B+-tree with wide, unsorted leaves."""

from __future__ import annotations

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import GREATEST, LEAST
from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.band_filter import all_pass, keep_passing
from indexes.one_key.candidates import Probe
from indexes.one_key.key_index import Parameter
from indexes.one_key.subwindows import Subindex, SubwindowIndex
from indexes.pan.leaf_directory import DEEPEST, HEIGHT, ROOT, Directory, LeafDirectory, add_leaf, leaf_of
from indexes.pan.linked_list_table import (
    NONE,
    LinkedListAdaptiveTable,
    Table,
    append,
    copied_chain,
    empty_entry,
    entries_left,
    give_back,
    met_in_chain,
    passing_in_chain,
    prefetch_chain,
    take_entry,
)
from indexes.pan.rebounding_search import GROUP


class WiBPlusTree(SubwindowIndex):
    """Wide B+-Tree: PanJoin, sections III-C, III-E and III-F.

    A leaf holds up to `leaf_width` rows in the order of arrival and is sorted only when it splits. All rows of one key
    are in one leaf, which may then exceed its width, so no separator of the inner nodes occurs twice. Leaves are
    chains of a `LinkedListAdaptiveTable`, of one entry unless they exceed their width. The inner nodes, a
    `LeafDirectory`, are small and stay in the cache. A batch is processed in ascending order, and each search begins
    with the path of the one before.

    Cost: O(log d) to find a leaf d after the one before, O(1) to insert and O(log W) amortised to sort
    W = `leaf_width` rows at splits; a probe scans the W rows of the leaves at the ends of a band, and takes O(1) for
    each row met between them. Nothing depends on the distribution of keys or on its staying the same.

    Where we depart: a batch that brings many rows to a leaf splits it into as many leaves as needed, after one sort. If
    one key has more than half the rows of a leaf, the leaf is split before and after that key, so that the key gets a
    leaf of its own; otherwise each new neighbour of a frequent key would sort its leaf again. Leaves are linked from
    left to right and know their greatest possible key, so that a band follows them. The table grows if keys come in an
    order that leaves more than two entries for each `leaf_width` rows.

        leaf_width=4      insert 5 9 2 7       one leaf:  5 9 2 7
                          insert 4             sorted and split at 5:  2 4 | 5 7 9
                          insert 8 5 5 5       5 has more than half:   2 4 | 5 5 5 5 | 7 8 9     separators 5 6
    """

    def __init__(
        self,
        subwindow: int,
        leaf_width: int = 128,
        fanout: int = 32,
        dimensions: int = 1,
        *,
        key: int = 0,
        first_position: int = 0,
    ) -> None:
        super().__init__(subwindow, dimensions, key=key, first_position=first_position)
        if subwindow >= 2**31:
            raise ValueError(f"WiBPlusTree: subwindow must be less than 2^31 rows, not {subwindow}; use a smaller one")
        check_whole_number("WiBPlusTree", "leaf_width", leaf_width, least=2)
        check_whole_number("WiBPlusTree", "fanout", fanout, least=4)
        self.leaf_width = leaf_width
        self.fanout = fanout

    def parameters(self) -> dict[str, Parameter]:
        return {"subwindow": self.subwindow, "leaf_width": self.leaf_width, "fanout": self.fanout}

    def _open(self, previous: Subindex | None) -> Subindex:
        return WideLeaves(self.subwindow, self.leaf_width, self.fanout)


class WideLeaves(Subindex):
    """The tree of one subwindow. A leaf is identified by the first entry of its chain."""

    def __init__(self, subwindow: int, leaf_width: int, fanout: int) -> None:
        self.subwindow = subwindow
        entries = 2 * -(-subwindow // leaf_width) + 2
        self.storage = LinkedListAdaptiveTable(entries, leaf_width, 1)
        self.inner = LeafDirectory(fanout, entries)
        # By leaf: the greatest key that belongs to it, and the leaf to its right.
        self.upper = np.full(entries, GREATEST, np.int64)
        self.right = np.full(entries, NONE, np.int32)
        self.base = 0
        self.newest = -1

    @property
    def nbytes(self) -> int:
        return self.storage.nbytes + self.inner.nbytes + self.upper.nbytes + self.right.nbytes

    def add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Cost: O(log W) amortised for each row, and O(log n) at most to find its leaf."""
        self.base = int(positions[0]) // self.subwindow * self.subwindow
        self.newest = int(positions.max())
        begin, missing = 0, 0
        while begin < len(keys):
            if missing:
                self._grow(max(self.storage.entries * 3 // 2, self.storage.entries + missing))
            arguments = self.storage.table, self.inner.directory, self.upper, self.right
            begin, missing = _add(keys, positions, self.base, begin, *arguments)

    def _grow(self, entries: int) -> None:
        upper, right = self.upper, self.right
        self.upper, self.right = np.full(entries, GREATEST, np.int64), np.full(entries, NONE, np.int32)
        self.upper[: len(upper)] = upper
        self.right[: len(right)] = right
        self.storage.grow(entries)
        self.inner.grow(entries)

    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """Cost: O(W + log n) for each band, and O(1) for each row in it."""
        arguments = self.storage.table, self.inner.directory, frozen(self.upper), frozen(self.right)
        return _visit(band, used, positions, ends, probe, *arguments, self.base, self.newest)

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        keys, rows = self.storage.all_contents()
        return keys, rows + np.int64(self.base)

    def check_invariants(self) -> None:
        self.inner.check_invariants()
        leaves = list(self.inner.leaves())
        for leaf, low, high in leaves:
            keys, _ = self.storage.contents(leaf)
            # Keys lie in the range of their leaf, so all rows of a key are in one leaf.
            assert ((keys >= low) & (keys <= high)).all()
            # Only a leaf of one key exceeds its width.
            assert len(keys) <= self.storage.width or len(np.unique(keys)) == 1
            # Leaves know their greatest possible key.
            assert self.upper[leaf] == high
        # Leaves are linked from left to right.
        firsts = [leaf for leaf, _, _ in leaves]
        assert self.right[firsts].tolist() == [*firsts[1:], NONE]
        # Each entry is in the chain of one leaf or free.
        self.storage.check_chains(firsts)


@kernel
def _add(
    keys: np.ndarray,
    positions: np.ndarray,
    base: int,
    begin: int,
    table: Table,
    directory: Directory,
    upper: np.ndarray,
    right: np.ndarray,
) -> tuple[int, int]:
    """Add the rows from `begin` on. Returns (the row reached, entries missing to go on)."""
    separators, children, size, state = directory.separators, directory.children, directory.size, directory.state
    count, lowest, highest = table.counts, table.lowest, table.highest
    path, bounds = np.empty(DEEPEST, np.int64), np.empty(DEEPEST, np.int64)
    anew = True
    while begin < keys.size:
        if anew:
            path[0] = state[ROOT]
            bounds[:] = LEAST
            bounds[0] = GREATEST
            anew = False
        leaf = leaf_of(separators, children, size, directory.fanout, state[HEIGHT], keys[begin], path, bounds)
        end = begin + 1
        bound = upper[leaf]
        while end < keys.size and keys[end] <= bound:
            end += 1
        rows = count[leaf] + end - begin
        if rows > table.width:
            if min(lowest[leaf], keys[begin]) < max(highest[leaf], keys[end - 1]):
                missing = _split(table, directory, upper, right, leaf, keys, positions, base, begin, end)
                if missing > 0:
                    return begin, missing
                anew = True
                begin = end
                continue
            missing = _entries(rows, table.width) - _entries(count[leaf], table.width) - entries_left(table)
            if missing > 0:
                return begin, missing
        append(table, leaf, keys, positions, base, begin, end)
        begin = end
    return begin, 0


@kernel
def _entries(rows: int, width: int) -> int:
    """Entries in the chain of a leaf."""
    return max((rows + width - 1) // width, 1)


@kernel
def _cuts(keys: np.ndarray, width: int, begins: np.ndarray, separators: np.ndarray) -> int:
    """Cut ascending keys into leaves: where each begins, and its separator. Returns the number of leaves.

    It halves parts until each fits or has one key. A part is cut between different keys, as near to its middle as
    possible, so that both sides have at least a quarter of it; or around a key that has more than half.
    """
    stack = np.empty((4 * DEEPEST, 3), np.int64)
    stack[0] = 0, keys.size, LEAST
    depth = 1
    leaves = 0
    while depth > 0:
        depth -= 1
        begin, end, separator = stack[depth]
        if end - begin <= width or keys[begin] == keys[end - 1]:
            begins[leaves], separators[leaves] = begin, separator
            leaves += 1
            continue
        middle = (begin + end) // 2
        key = keys[middle]
        first, last = middle, middle + 1
        while first > begin and keys[first - 1] == key:
            first -= 1
        while last < end and keys[last] == key:
            last += 1
        frequent = 2 * (last - first) > end - begin
        # The rightmost part goes onto the stack first, so leaves come from left to right.
        if frequent:
            if last < end:
                stack[depth] = last, end, key + 1
                depth += 1
            if first > begin:
                stack[depth] = first, last, key
                stack[depth + 1] = begin, first, separator
                depth += 2
            else:
                stack[depth] = first, last, separator
                depth += 1
        else:
            cut = first if first > begin and (last == end or middle - first <= last - middle) else last
            stack[depth] = cut, end, keys[cut]
            stack[depth + 1] = begin, cut, separator
            depth += 2
    return leaves


@kernel
def _split(
    table: Table,
    directory: Directory,
    upper: np.ndarray,
    right: np.ndarray,
    leaf: int,
    keys: np.ndarray,
    positions: np.ndarray,
    base: int,
    begin: int,
    end: int,
) -> int:
    """Add rows [begin, end) to a leaf that they do not fit into. Returns the number of entries missing, 0 if done."""
    width = table.width
    held = table.counts[leaf]
    rows = held + end - begin
    all_keys, all_rows = np.empty(rows, np.int64), np.empty(rows, np.int64)
    place = 0
    entry = int(leaf)
    while entry != NONE:
        for i in range(entry * width, entry * width + table.fill[entry]):
            all_keys[place] = table.keys[i]
            all_rows[place] = table.rows[i]
            place += 1
        entry = int(table.following[entry])
    for i in range(begin, end):
        all_keys[place] = keys[i]
        all_rows[place] = positions[i] - base
        place += 1
    order = np.argsort(all_keys)
    all_keys, all_rows = all_keys[order], all_rows[order]

    begins, separators = np.empty(rows + 1, np.int64), np.empty(rows, np.int64)
    leaves = _cuts(all_keys, width, begins, separators)
    begins[leaves] = rows
    missing = -_entries(held, width) - entries_left(table)
    for i in range(leaves):
        missing += _entries(begins[i + 1] - begins[i], width)
    if missing > 0:
        return missing

    entry = int(table.following[leaf])
    while entry != NONE:
        following = int(table.following[entry])
        give_back(table, entry)
        entry = following
    empty_entry(table, leaf)
    current = int(leaf)
    for i in range(leaves):
        if i:
            another = take_entry(table)
            right[another] = right[current]
            right[current] = another
            upper[another] = upper[current]
            upper[current] = separators[i] - 1
            add_leaf(directory, separators[i], another)
            current = another
        append(table, current, all_keys, all_rows, 0, begins[i], begins[i + 1])
    return 0


@kernel
def _candidates(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    table: Table,
    directory: Directory,
    upper: np.ndarray,
    right: np.ndarray,
    base: int,
) -> tuple[int, int]:
    """Write the rows in the bands from `band` on, up to one whose leaves may not fit. Returns (that band, used)."""
    # Fields of a tuple are counted references: reading them once keeps the counting out of the loop.
    separators, children, size, fanout = directory.separators, directory.children, directory.size, directory.fanout
    keys, rows, following, count, width = table.keys, table.rows, table.following, table.counts, table.width
    height = directory.state[HEIGHT]
    path, bounds = np.empty(DEEPEST, np.int64), np.empty(DEEPEST, np.int64)
    path[0] = directory.state[ROOT]
    bounds[:] = LEAST
    bounds[0] = GREATEST
    room = positions.size
    firsts, first_bounds = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    for b in range(band, lows.size):
        low, high = lows[b], highs[b]
        place = (b - band) % GROUP
        if place == 0:
            for k in range(min(GROUP, lows.size - b)):
                firsts[k] = leaf_of(separators, children, size, fanout, height, lows[b + k], path, bounds)
                first_bounds[k] = bounds[height]
                prefetch_chain(keys, width, firsts[k])
        first, bound = firsts[place], first_bounds[place]
        leaf = first
        before = used
        while True:
            held = count[leaf]
            if used + held > room:
                return b, before
            if leaf == first or bound >= high:
                used = met_in_chain(keys, rows, following, width, leaf, held, low, high, base, positions, used)
            else:
                used = copied_chain(rows, following, width, leaf, held, base, positions, used)
            if bound >= high:
                break
            leaf = int(right[leaf])
            bound = upper[leaf]
        ends[b] = used
    return lows.size, used


@kernel
def _visit(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    probe: Probe,
    table: Table,
    directory: Directory,
    upper: np.ndarray,
    right: np.ndarray,
    base: int,
    newest: int,
) -> tuple[int, int, int]:
    whole = all_pass(probe, base, newest)
    lows, highs = probe.low, probe.high
    while True:
        begin, first = used, band
        band, used = _candidates(first, used, positions, ends, lows, highs, table, directory, upper, right, base)
        if not whole:
            used = keep_passing(probe, first, band, begin, positions, ends)
        if band == lows.size:
            return band, used, used
        before = used
        low, high = lows[band], highs[band]
        path, bounds = np.empty(DEEPEST, np.int64), np.full(DEEPEST, LEAST, np.int64)
        path[0], bounds[0] = directory.state[ROOT], GREATEST
        height = directory.state[HEIGHT]
        leaf = leaf_of(
            directory.separators, directory.children, directory.size, directory.fanout, height, low, path, bounds
        )
        while True:
            used = passing_in_chain(table, leaf, low, high, base, positions, used, probe, probe.row[band])
            if upper[leaf] >= high:
                break
            leaf = int(right[leaf])
        if used > positions.size:
            return band, before, used
        ends[band] = used
        band += 1
