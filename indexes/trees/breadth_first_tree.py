"""The immutable B+-tree: sorted leaves, and inner nodes in an array without references."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.memory import LINE, prefetch
from indexes.kernels.ordered_integers import GREATEST
from indexes.one_key.candidates import Probe, passes
from indexes.one_key.subwindows import Subindex

FANOUT = 16
"""Two cache lines per node. Of 8, 16, 32 and 64 the fastest, or within a tenth of it, from 2^17 to 2^23 rows."""

GROUP = 32
"""Searches that descend together, so that they wait for memory at the same time."""


class TreeArrays(NamedTuple):
    """A tree in the form that kernels take."""

    keys: np.ndarray  # the leaf level, ascending, padded with GREATEST to whole nodes
    positions: np.ndarray
    rows: int
    inner: np.ndarray  # the inner levels, the root first, each padded with GREATEST to whole nodes
    starts: np.ndarray  # where in `inner` each level begins
    fanout: int


class BreadthFirstTree(Subindex):
    """Rows sorted by key, immutable, under levels of nodes that need no references.

    This is the CSS-tree, which PIM-Tree calls the immutable B+-tree (section 3.1). The leaf level is two arrays, keys
    and positions, cut into nodes of `fanout` rows. Each entry of an inner node is the greatest key under one of its
    children, and child e of node j of a level is node j * fanout + e of the next. So all levels lie in one array, root
    first, and a node of 16 keys is two cache lines. The last entry of a level is the greatest integer instead, so a
    search always ends in a leaf.

    Where we depart: a node of f keys has f children, not f + 1, which keeps nodes aligned to cache lines. A node is
    short, so a search counts its smaller keys without a branch. 32 searches descend together, at first along the path
    that all share (their bounds ascend). In 2^20 rows a search takes 26 ns this way, where halving one sorted array
    takes 39 ns and galloping from the previous bound 65 ns (batches of 10,000); in 2^23 rows 62, 118 and 497 ns.

        fanout 3, keys   2 4 4 | 5 7 8 | 9 9 11 | 12 _ _      leaves 0 1 2 3
        level above      4 8 11 | * _ _                       nodes 0 1; * is the greatest integer
        root             11 * _
        search for 8:    root -> node 0 -> leaf 1 -> place 5

    Cost: O(log n) to find a band, O(1) for each row in it; 16 bytes a row and a fifteenth for the levels.
    """

    def __init__(self, leaves: np.ndarray, rows: int, fanout: int = FANOUT) -> None:
        """Build on leaf arrays [keys or positions, place] with room for whole nodes. Cost: O(rows / fanout)."""
        room = _whole(rows, fanout)
        assert leaves.shape[1] >= room, "the last leaf is a whole node"
        keys = leaves[0]
        keys[rows:room] = GREATEST
        levels: list[np.ndarray] = []
        below, count = keys, rows
        while count > fanout:
            parents = -(-count // fanout)
            level = np.full(_whole(parents, fanout), GREATEST)
            level[: parents - 1] = below[fanout - 1 :: fanout][: parents - 1]
            levels.insert(0, level)
            below, count = level, parents
        starts = np.cumsum([0, *map(len, levels)])[:-1]
        inner = np.concatenate(levels) if levels else np.empty(0, np.int64)
        self._leaves = leaves
        self.arrays = TreeArrays(frozen(keys), frozen(leaves[1]), rows, frozen(inner), frozen(starts), fanout)

    @classmethod
    def of(cls, keys: np.ndarray, positions: np.ndarray, fanout: int = FANOUT) -> BreadthFirstTree:
        """The tree of rows that come in the order of their keys. Cost: O(n)."""
        rows = len(keys)
        leaves = np.empty((2, _whole(rows, fanout)), np.int64)
        leaves[0, :rows] = keys
        leaves[1, :rows] = positions
        return cls(leaves, rows, fanout)

    def merged(
        self, keys: np.ndarray, positions: np.ndarray, below: int, spare: BreadthFirstTree | None = None
    ) -> BreadthFirstTree:
        """A new tree of this tree's rows and the given ones, ordered by key, without positions < `below`.

        `spare` is a tree that is no longer probed. Its leaf arrays are reused if they have room for the result and are
        not four times too large. Cost: O(n + rows given).
        """
        held = self.arrays
        room = _whole(held.rows + len(keys), held.fanout)
        if spare is not None and room <= spare._leaves.shape[1] <= 4 * room:
            leaves = spare._leaves
        else:
            # A little more than needed: the next merge rarely has exactly this size.
            leaves = np.empty((2, _whole(room + room // 16, held.fanout)), np.int64)
        rows = int(merge_live(*self.entries(), frozen(keys), frozen(positions), below, leaves))
        return BreadthFirstTree(leaves, rows, held.fanout)

    def __len__(self) -> int:
        """Rows held."""
        return self.arrays.rows

    @property
    def height(self) -> int:
        """The number of inner levels, which is the depth of the leaves."""
        return len(self.arrays.starts)

    def greatest(self, depth: int) -> np.ndarray:
        """The greatest key under each node at `depth`; these divide all keys among the nodes. Cost: O(nodes).

        Node i covers the keys above the greatest of node i - 1 up to its own; the last node has no upper end.
        """
        assert 0 <= depth <= self.height, "the leaves are the deepest"
        if depth == 0:
            return np.full(1, GREATEST)
        arrays = self.arrays
        nodes = -(-arrays.rows // arrays.fanout ** (self.height - depth + 1))
        start = arrays.starts[depth - 1]
        return np.array(arrays.inner[start : start + nodes])

    def add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        raise AssertionError("an immutable tree takes no rows; `merged` makes a new one")

    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """Cost: O(log n) for each band and O(1) for each row in it."""
        found: tuple[int, int, int] = visit_tree(band, used, positions, ends, probe, self.arrays)
        return found

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """By ascending keys. Cost: O(1)."""
        rows = self.arrays.rows
        return self.arrays.keys[:rows], self.arrays.positions[:rows]

    @property
    def nbytes(self) -> int:
        return int(self._leaves.nbytes + self.arrays.inner.nbytes + self.arrays.starts.nbytes)

    def check_invariants(self) -> None:
        keys, _ = self.entries()
        arrays = self.arrays
        # Keys ascend.
        assert (keys[1:] >= keys[:-1]).all()
        # The padding of the last leaf is not smaller than any bound.
        assert (arrays.keys[arrays.rows : _whole(arrays.rows, arrays.fanout)] == GREATEST).all()
        # There are no more levels than needed, and the root is one node.
        assert arrays.rows <= arrays.fanout ** (self.height + 1)
        assert not self.height or arrays.rows > arrays.fanout**self.height
        assert not self.height or len(arrays.inner) > int(arrays.starts[-1])
        for depth in range(1, self.height + 1):
            span = arrays.fanout ** (self.height - depth + 1)
            greatest = self.greatest(depth)
            # An entry is the greatest key under its child; the last one is open.
            assert (greatest[:-1] == keys[span - 1 :: span][: len(greatest) - 1]).all()
            assert greatest[-1] == GREATEST
            # The padding of a level leads nowhere.
            end = arrays.starts[depth] if depth < self.height else len(arrays.inner)
            assert (arrays.inner[arrays.starts[depth - 1] + len(greatest) : end] == GREATEST).all()


def _whole(rows: int, fanout: int) -> int:
    """Room for `rows` rows in whole nodes, at least one."""
    return max(1, -(-rows // fanout)) * fanout


@kernel
def count_smaller(keys: np.ndarray, begin: np.uint64, fanout: np.uint64, bound: int) -> np.uint64:
    """How many of a node's keys are < bound, the node beginning at `begin`."""
    smaller = np.uint64(0)
    for entry in range(fanout):
        smaller += np.uint64(keys[begin + np.uint64(entry)] < bound)
    return smaller


@kernel
def find_group(tree: TreeArrays, low: np.ndarray, start: int, group: int, places: np.ndarray) -> None:
    """places[k] = number of keys < low[start + k] in the tree, for k < group <= GROUP; the bounds ascend.

    While the first and the last bound go to the same child, all bounds between do.
    """
    fanout = np.uint64(tree.fanout)
    least, most = low[start], low[start + group - 1]
    depth = 0
    node = np.uint64(0)
    while depth < tree.starts.size:
        begin = np.uint64(tree.starts[depth]) + node * fanout
        child = count_smaller(tree.inner, begin, fanout, least)
        if child != count_smaller(tree.inner, begin, fanout, most):
            break
        node = node * fanout + child
        depth += 1
    for k in range(group):
        places[k] = node
    while depth < tree.starts.size:
        level = np.uint64(tree.starts[depth])
        depth += 1
        for k in range(group):
            begin = np.uint64(places[k]) * fanout
            places[k] = begin + count_smaller(tree.inner, level + begin, fanout, low[start + k])
            # The nodes of the whole group are prefetched before the first is read.
            below = places[k] * tree.fanout
            for line in range(0, tree.fanout, LINE):
                if depth == tree.starts.size:
                    prefetch(tree.keys, below + line)
                else:
                    prefetch(tree.inner, tree.starts[depth] + below + line)
    for k in range(group):
        begin = np.uint64(places[k]) * fanout
        places[k] = begin + count_smaller(tree.keys, begin, fanout, low[start + k])
        prefetch(tree.positions, places[k])


@kernel
def find_node(tree: TreeArrays, key: int, depth: int) -> np.int64:
    """The number of the node at `depth` under which a key belongs."""
    fanout = np.uint64(tree.fanout)
    node = np.uint64(0)
    for level in range(depth):
        begin = node * fanout
        node = begin + count_smaller(tree.inner, np.uint64(tree.starts[level]) + begin, fanout, key)
    return np.int64(node)


@kernel
def visit_tree(
    band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe, tree: TreeArrays
) -> tuple[int, int, int]:
    """`candidates.Visit` of a tree."""
    # Fields of a tuple are counted references: reading them once keeps the counting out of the loops.
    keys, held, band_row, highs, live_start, live_end = (
        tree.keys, tree.positions, probe.row, probe.high, probe.start, probe.end,
    )  # fmt: skip
    alone = probe.others.shape[0] == 0
    bands = band_row.size
    rows = np.uint64(tree.rows)
    one = np.uint64(1)
    places = np.empty(GROUP, np.int64)
    for begin in range(band, bands, GROUP):
        group = min(GROUP, bands - begin)
        find_group(tree, probe.low, begin, group, places)
        for k in range(group):
            row = band_row[begin + k]
            high = highs[begin + k]
            start, end = live_start[row], live_end[row]
            before = used
            place = np.uint64(places[k])
            while place < rows and keys[place] <= high:
                position = held[place]
                if (position >= start and position < end) if alone else passes(probe, row, position):
                    if used < positions.size:
                        positions[used] = position
                    used += 1
                place += one
            if used > positions.size:
                return begin + k, before, used
            ends[begin + k] = used
    return bands, used, used


@kernel
def merge_live(
    keys: np.ndarray,
    positions: np.ndarray,
    new_keys: np.ndarray,
    new_positions: np.ndarray,
    below: int,
    target: np.ndarray,
) -> np.int64:
    """Merge rows with a position >= below into target[keys or positions], old before new. Returns the number of rows.

    An inner loop copies the old rows before each new one. Its end is mispredicted once per new row, and new rows are
    few; a merge without branches waits at every row for its own last comparison and takes twice as long.
    """
    target_keys, target_positions = target[0], target[1]
    olds = np.uint64(keys.size)
    one = np.uint64(1)
    i = np.uint64(0)
    k = np.uint64(0)
    for j in range(new_keys.size):
        key = new_keys[j]
        while i < olds and keys[i] <= key:
            target_keys[k] = keys[i]
            target_positions[k] = positions[i]
            # The next row overwrites an expired one.
            k += np.uint64(positions[i] >= below)
            i += one
        target_keys[k] = key
        target_positions[k] = new_positions[j]
        k += np.uint64(new_positions[j] >= below)
    while i < olds:
        target_keys[k] = keys[i]
        target_positions[k] = positions[i]
        k += np.uint64(positions[i] >= below)
        i += one
    return np.int64(k)
