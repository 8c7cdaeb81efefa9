"""The mutable part of a PIM-Tree: a small B+-tree for each range of keys, each with its own lock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.memory import LINE
from indexes.one_key.candidates import Probe
from indexes.trees.atomics import acquire, fetch_add, load, release, store
from indexes.trees.bplus_tree_insert import insert_sorted
from indexes.trees.bplus_tree_nodes import (
    FREE_INNER,
    FREE_LEAF,
    INNER,
    LEAVES,
    Nodes,
    check_tree,
    find_first,
    make_nodes,
    new_tree,
    nodes_bytes,
    nodes_needed,
    read_tree,
    scan_band,
)
from indexes.trees.breadth_first_tree import BreadthFirstTree, TreeArrays, find_node

LOCK, ROWS, ROOT = 0, 1, 2
"""The fields of a partition's cell; ROOT is meaningless while ROWS is 0.

A cell fills a cache line; otherwise the holder of one lock would slow down the holders of neighbouring locks.
"""


class PartitionArrays(NamedTuple):
    """The partitions in the form that kernels take."""

    tree: TreeArrays  # its nodes at `depth` define the ranges
    depth: int
    greatest: np.ndarray  # the greatest key of each partition
    cells: np.ndarray  # a line for each partition
    granted: np.ndarray  # leaves handed out and, one line further, inner nodes handed out
    nodes: Nodes  # the pool; its own claims are unused


class Partitions:
    """One B+-tree for each node of a `BreadthFirstTree` at some depth, over the same range of keys.

    The component T_I of PIM-Tree (section 3.3). The ranges divide the rows of the immutable tree evenly, and so also
    new rows of the same distribution. All trees take nodes from one pool, through an atomic counter. A thread holds
    one lock at a time: of the partition into which it inserts all rows of a batch that belong there, or in which it
    visits the bands that begin there. Finding the partition in the immutable tree needs no lock.

    Where we depart: leaves of neighbouring partitions are not linked. A band that reaches into the next partition must
    take that lock anyway, and then finds the first leaf from the root, which usually is that leaf. An empty partition
    needs neither leaf nor lock.

        tree at depth 1:   nodes up to 4, up to 9, and the rest        partitions 0 1 2
        insert 7 3 4 12 5 9:   3 4   |   5 7 9   |   12
        band [4, 8]:       lock 0: 4, release, lock 1: 5 7, 9 ends it, release
    """

    def __init__(self, tree: BreadthFirstTree, depth: int, fanout: int, room: int) -> None:
        """Empty partitions for up to `room` rows in all. If the tree is less deep, its leaves are the partitions."""
        self.room = room
        depth = min(depth, tree.height)
        greatest = tree.greatest(depth)
        self.arrays = PartitionArrays(
            tree.arrays,
            depth,
            frozen(greatest),
            np.zeros(LINE * len(greatest), np.int64),
            np.zeros(2 * LINE, np.int64),
            make_nodes(fanout, *nodes_needed(fanout, room, min(room, len(greatest)))),
        )

    def __len__(self) -> int:
        """Rows held. Cost: O(partitions)."""
        return int(self.arrays.cells[ROWS::LINE].sum())

    @property
    def rows(self) -> np.ndarray:
        """The rows in each partition. Cost: O(partitions)."""
        return self.arrays.cells[ROWS::LINE].copy()

    @property
    def nbytes(self) -> int:
        arrays = self.arrays
        return int(nodes_bytes(arrays.nodes) + arrays.cells.nbytes + arrays.granted.nbytes + arrays.greatest.nbytes)

    def add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Insert rows that ascend by key and position. Several threads may call it at once.

        Cost: O(log(partitions)) for each partition they meet, O(log(rows of a partition)) for each row.
        """
        reached = _insert(self.arrays, keys, positions)
        assert reached == len(keys), "the pool has room for all rows"

    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """See `candidates.Visit`. Several threads may call it at once, also while others add rows."""
        found: tuple[int, int, int] = _visit(band, used, positions, ends, probe, self.arrays)
        return found

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and positions by ascending keys; no thread may add rows meanwhile. Cost: O(rows + partitions)."""
        keys, positions = np.empty((2, len(self)), np.int64)
        _read(self.arrays, keys, positions)
        return frozen(keys), frozen(positions)

    def check_invariants(self) -> None:
        arrays = self.arrays
        # No lock is held between calls.
        assert not arrays.cells[LOCK::LINE].any()
        # There are no more rows than there is room for.
        assert len(self) <= self.room
        leaves = inner = 0
        least = -(2**63)
        for line, greatest in zip(arrays.cells.reshape(-1, LINE), arrays.greatest.tolist(), strict=True):
            rows = int(line[ROWS])
            if rows:
                # Each tree is in order.
                some_leaves, some_inner, entries = check_tree(arrays.nodes, int(line[ROOT]))
                leaves += some_leaves
                inner += some_inner
                # Its rows are counted.
                assert entries == rows
                keys, positions = np.empty((2, rows), np.int64)
                read_tree(arrays.nodes, int(line[ROOT]), keys, positions)
                # Its keys lie in its range.
                assert least <= keys[0] <= keys[-1] <= greatest
            # No key belongs to two partitions; none lies above the greatest integer.
            least = greatest + 1
        # Every node handed out is in exactly one tree.
        assert arrays.granted[0] == leaves
        assert arrays.granted[LINE] == inner


@kernel
def _grant(nodes: Nodes, granted: np.ndarray) -> bool:
    """Hand the missing node to a thread's own claims; False if the pool has none left."""
    if nodes.claims[FREE_LEAF] < 0:
        leaf = fetch_add(granted, 0, 1)
        if leaf >= nodes.leaf_count.size:
            return False
        nodes.leaf_next[leaf] = -1
        nodes.claims[FREE_LEAF] = leaf
    else:
        inner = fetch_add(granted, LINE, 1)
        if inner >= nodes.inner_count.size:
            return False
        nodes.children[inner, 0] = nodes.claims[FREE_INNER]
        nodes.claims[FREE_INNER] = inner
    return True


@kernel
def _insert(partitions: PartitionArrays, keys: np.ndarray, positions: np.ndarray) -> int:
    pool = partitions.nodes
    cells = partitions.cells
    # This thread's own claims, empty at first: a split that lacks a node comes back for it. So nodes are handed out
    # only when they are used, and none is left over.
    claims = np.empty(4, np.int64)
    claims[LEAVES], claims[FREE_LEAF] = pool.leaf_count.size, -1
    claims[INNER], claims[FREE_INNER] = pool.inner_count.size, -1
    nodes = Nodes(
        pool.leaf_keys,
        pool.leaf_positions,
        pool.leaf_count,
        pool.leaf_next,
        pool.inner_keys,
        pool.inner_positions,
        pool.inner_count,
        pool.children,
        claims,
    )
    begin = 0
    while begin < keys.size:
        partition = find_node(partitions.tree, keys[begin], partitions.depth)
        greatest = partitions.greatest[partition]
        end = begin + 1
        while end < keys.size and keys[end] <= greatest:
            end += 1
        line = partition * LINE
        acquire(cells, line + LOCK)
        enough = True
        rows = cells[line + ROWS]
        if rows == 0:
            enough = _grant(nodes, partitions.granted)
            if enough:
                cells[line + ROOT] = new_tree(nodes)
        reached = begin
        while enough and reached < end:
            root, reached = insert_sorted(nodes, cells[line + ROOT], keys, positions, reached, end)
            cells[line + ROOT] = root
            if reached < end:
                enough = _grant(nodes, partitions.granted)
        store(cells, line + ROWS, rows + reached - begin)
        release(cells, line + LOCK)
        if reached < end:
            return reached
        begin = end
    return begin


@kernel
def _visit(
    band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe, partitions: PartitionArrays
) -> tuple[int, int, int]:
    cells = partitions.cells
    nodes = partitions.nodes
    bands = probe.row.size
    held = -1
    first = 0
    for b in range(band, bands):
        low, high = probe.low[b], probe.high[b]
        # Bands ascend, so the search starts at the previous band's partition.
        if b == band or partitions.greatest[first] < low:
            first = find_node(partitions.tree, low, partitions.depth)
        needed = used
        partition = first
        while True:
            line = partition * LINE
            if load(cells, line + ROWS) > 0:
                if held != line:
                    if held >= 0:
                        release(cells, held + LOCK)
                    acquire(cells, line + LOCK)
                    held = line
                leaf, slot = find_first(nodes, cells[line + ROOT], low)
                needed = scan_band(nodes, leaf, slot, b, needed, positions, probe)
            if partitions.greatest[partition] >= high:
                break
            partition += 1
        if needed > positions.size:
            if held >= 0:
                release(cells, held + LOCK)
            return b, used, needed
        used = needed
        ends[b] = used
    if held >= 0:
        release(cells, held + LOCK)
    return bands, used, used


@kernel
def _read(partitions: PartitionArrays, keys: np.ndarray, positions: np.ndarray) -> None:
    written = 0
    for partition in range(partitions.greatest.size):
        line = partition * LINE
        if partitions.cells[line + ROWS] > 0:
            root = partitions.cells[line + ROOT]
            written += read_tree(partitions.nodes, root, keys[written:], positions[written:])
