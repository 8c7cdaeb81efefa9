"""The nodes of classic B+-trees in one pool of arrays: layout, allocation, search and reading."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from indexes.kernels.compiled import kernel
from indexes.kernels.memory import prefetch
from indexes.kernels.ordered_integers import GREATEST, LEAST
from indexes.one_key.candidates import Probe, passes

TALLEST = 40
"""Most levels of a path: with three children per node, that is more nodes than an int32 can number."""

GROUP = 32
"""Entries or bands whose leaves are prefetched together."""

LINE = 8
"""Keys per cache line."""

FEW = 4
"""Up to so many entries, changing a leaf one entry at a time is faster than one pass over it."""

LEAVES, FREE_LEAF, INNER, FREE_INNER = 0, 1, 2, 3
"""The places in `Nodes.claims`."""


class Nodes(NamedTuple):
    """A pool of nodes that may hold many trees.

    A tree is identified by one integer, its root. Such a reference is the number of a leaf if it is not negative, and
    otherwise stands for the inner node `~reference`. Inserting and removing return the new root.

    Entries are pairs (key, position) in ascending order of both, so finding one entry among any number of equal keys
    takes logarithmic time, too. A separator is also a pair: all entries under the child before it are less than it,
    and none under the child after it is. Slots behind the last entry or separator hold `GREATEST` twice, and an inner
    node has one more slot than separators. So a search counts the slots of a node that are less than a bound, without
    a branch or loop end that depends on the data.

        fanout 4, entries 10 10 20 25 30 31 40 with positions 0 3 1 6 2 5 4:

        inner 0     separators (25,6) __ __ __                 children: leaf 0, leaf 1
        leaf 0      10 10 20 __  next 1       leaf 1    25 30 31 40  next -1
    """

    leaf_keys: np.ndarray  # int64 [leaf, slot]
    leaf_positions: np.ndarray  # int64 [leaf, slot]
    leaf_count: np.ndarray  # int32 [leaf]: its entries
    leaf_next: np.ndarray  # int32 [leaf]: the leaf to the right, or -1; of a free leaf: the next free one
    inner_keys: np.ndarray  # int64 [inner, slot]: the separators
    inner_positions: np.ndarray  # int64 [inner, slot]
    inner_count: np.ndarray  # int32 [inner]: its children
    children: np.ndarray  # int64 [inner, slot]: references; slot 0 of a free node is the next free one
    claims: np.ndarray  # int64: leaves ever claimed, first free leaf or -1, and the same for inner nodes


def make_nodes(fanout: int, leaves: int, inner: int) -> Nodes:
    """An empty pool with room for `leaves` and `inner` nodes. Cost: O(1); claiming a node touches its memory."""
    return Nodes(
        np.empty((leaves, fanout), np.int64),
        np.empty((leaves, fanout), np.int64),
        np.empty(leaves, np.int32),
        np.empty(leaves, np.int32),
        np.empty((inner, fanout), np.int64),
        np.empty((inner, fanout), np.int64),
        np.empty(inner, np.int32),
        np.empty((inner, fanout), np.int64),
        np.array([0, -1, 0, -1], np.int64),
    )


def grow_nodes(nodes: Nodes, leaves: int, inner: int) -> Nodes:
    """The same nodes in a pool with room for `leaves` and `inner` nodes. Cost: O(nodes)."""
    wider = make_nodes(nodes.leaf_keys.shape[1], leaves, inner)
    for old, new in zip(nodes, wider, strict=True):
        new[: len(old)] = old
    return wider


def nodes_bytes(nodes: Nodes) -> int:
    """Bytes of the pool's arrays. Cost: O(1)."""
    return sum(array.nbytes for array in nodes)


def nodes_needed(fanout: int, entries: int, trees: int = 1) -> tuple[int, int]:
    """Leaves and inner nodes that suffice for `entries` entries in `trees` trees, whatever their history.

    Every node except a root is at least half full, and an inner root has two children. Cost: O(1).
    """
    half = (fanout + 1) // 2
    leaves = trees + entries // half
    return leaves, trees + leaves // (half - 1)


@kernel
def claim_leaf(nodes: Nodes) -> int:
    """Claim a leaf, a freed one if there is any, and return its number. Its content is arbitrary."""
    leaf = nodes.claims[FREE_LEAF]
    if leaf >= 0:
        nodes.claims[FREE_LEAF] = nodes.leaf_next[leaf]
        return leaf
    leaf = nodes.claims[LEAVES]
    nodes.claims[LEAVES] = leaf + 1
    return leaf


@kernel
def claim_inner(nodes: Nodes) -> int:
    """Claim an inner node, as `claim_leaf`."""
    inner = nodes.claims[FREE_INNER]
    if inner >= 0:
        nodes.claims[FREE_INNER] = nodes.children[inner, 0]
        return inner
    inner = nodes.claims[INNER]
    nodes.claims[INNER] = inner + 1
    return inner


@kernel
def free_leaf(nodes: Nodes, leaf: int) -> None:
    """Give a leaf back to the pool."""
    nodes.leaf_next[leaf] = nodes.claims[FREE_LEAF]
    nodes.claims[FREE_LEAF] = leaf


@kernel
def free_inner(nodes: Nodes, inner: int) -> None:
    """Give an inner node back to the pool."""
    nodes.children[inner, 0] = nodes.claims[FREE_INNER]
    nodes.claims[FREE_INNER] = inner


@kernel
def new_tree(nodes: Nodes) -> int:
    """The root of a new empty tree: one leaf. The pool must have room for it."""
    leaf = claim_leaf(nodes)
    for slot in range(nodes.leaf_keys.shape[1]):
        nodes.leaf_keys[leaf, slot] = GREATEST
        nodes.leaf_positions[leaf, slot] = GREATEST
    nodes.leaf_count[leaf] = 0
    nodes.leaf_next[leaf] = -1
    return leaf


@kernel
def count_less(keys: np.ndarray, node: int, bound: int) -> int:
    """How many slots of a node hold a key < bound. Keys ascend, so this is the first slot that does not."""
    less = 0
    for slot in range(keys.shape[1]):
        less += keys[node, slot] < bound
    return less


@kernel
def descend(nodes: Nodes, root: int, key: int, position: int, path: np.ndarray, slots: np.ndarray) -> int:
    """Find the path to the leaf where the pair (key, position) belongs. Returns its length.

    Writes the inner nodes from the root on to `path`, and the slot of the child taken in each to `slots`.
    """
    depth = 0
    reference = root
    while reference < 0:
        inner = ~reference
        slot = count_less(nodes.inner_keys, inner, key)
        while nodes.inner_keys[inner, slot] == key and nodes.inner_positions[inner, slot] <= position:
            slot += 1
        path[depth] = inner
        slots[depth] = slot
        depth += 1
        reference = nodes.children[inner, slot]
    return depth


@kernel
def _belongs_before(nodes: Nodes, key: int, position: int, above_key: int, above: int) -> bool:
    """Whether a pair is less than a separator, given by its key and its place in the pool (-1 for none).

    The separator's position lies elsewhere in memory and is read only if the keys are equal.
    """
    if key != above_key or above < 0:
        return key <= above_key
    return position < nodes.inner_positions[above // nodes.inner_keys.shape[1], above % nodes.inner_keys.shape[1]]


@kernel
def fetch_leaves(
    nodes: Nodes, root: int, keys: np.ndarray, positions: np.ndarray, begin: int, end: int, leaves: np.ndarray
) -> int:
    """Find the leaves where the first group of pairs of [begin, end) belongs, and prefetch them.

    Writes the leaves' numbers to `leaves` and returns the end of the group. The pairs ascend, so a pair that belongs
    to the leaf found last needs no descent, and one under the same parent needs none from the root.
    """
    end = min(end, begin + GROUP)
    fanout = nodes.leaf_keys.shape[1]
    width = nodes.inner_keys.shape[1]
    leaf_keys = nodes.leaf_keys.reshape(nodes.leaf_keys.size)
    leaf_positions = nodes.leaf_positions.reshape(nodes.leaf_positions.size)
    children = nodes.children.reshape(nodes.children.size)
    leaf = parent = root
    above_key, above = LEAST, -1
    parent_key, parent_above = GREATEST, -1
    for pair in range(begin, end):
        key, position = keys[pair], positions[pair]
        if pair == begin or not _belongs_before(nodes, key, position, above_key, above):
            if not _belongs_before(nodes, key, position, parent_key, parent_above):
                parent, parent_key, parent_above = root, GREATEST, -1
            leaf, above_key, above = parent, parent_key, parent_above
            while leaf < 0:
                inner = ~leaf
                if leaf != parent:
                    for line in range(inner * width, (inner + 1) * width, LINE):
                        prefetch(children, line)
                parent, parent_key, parent_above = leaf, above_key, above
                slot = count_less(nodes.inner_keys, inner, key)
                while nodes.inner_keys[inner, slot] == key and nodes.inner_positions[inner, slot] <= position:
                    slot += 1
                # Behind its last separator this node sets no bound; the bound of a node above still holds.
                if slot + 1 < nodes.inner_count[inner]:
                    above_key, above = nodes.inner_keys[inner, slot], inner * width + slot
                leaf = nodes.children[inner, slot]
            for line in range(leaf * fanout, (leaf + 1) * fanout, LINE):
                prefetch(leaf_keys, line)
                prefetch(leaf_positions, line)
        leaves[pair - begin] = leaf
    return end


@kernel
def find_first(nodes: Nodes, root: int, low: int) -> tuple[int, int]:
    """Leaf and slot of the first entry with a key >= low; the slot may be just behind the leaf's last entry."""
    reference = root
    while reference < 0:
        inner = ~reference
        reference = nodes.children[inner, count_less(nodes.inner_keys, inner, low)]
    # Slots behind the last entry hold the greatest key, so none of them counts.
    return reference, count_less(nodes.leaf_keys, reference, low)


@kernel
def scan_band(
    nodes: Nodes, leaf: int, slot: int, band: int, used: int, positions: np.ndarray, probe: Probe
) -> int:
    """Write the matches of a band from a leaf's slot on, along the linked leaves. Returns the new `used`.

    It may exceed the room in `positions`; matches without room are only counted.
    """
    high = probe.high[band]
    row = probe.row[band]
    while leaf >= 0:
        count = nodes.leaf_count[leaf]
        while slot < count:
            if nodes.leaf_keys[leaf, slot] > high:
                return used
            position = nodes.leaf_positions[leaf, slot]
            if passes(probe, row, position):
                if used < positions.size:
                    positions[used] = position
                used += 1
            slot += 1
        leaf = nodes.leaf_next[leaf]
        slot = 0
    return used


@kernel
def visit_tree(
    band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe, nodes: Nodes, root: int
) -> tuple[int, int, int]:
    """Visit the bands in one tree whose last leaf has no next one; see `candidates.Visit`.

    In groups: the leaves of all bands are prefetched before the first is read.
    """
    bands = probe.row.size
    leaves = np.empty(GROUP, np.int64)
    slots = np.empty(GROUP, np.int64)
    leaf_keys = nodes.leaf_keys.reshape(nodes.leaf_keys.size)
    leaf_positions = nodes.leaf_positions.reshape(nodes.leaf_positions.size)
    fanout = nodes.leaf_keys.shape[1]
    parent, parent_key = root, GREATEST
    for start in range(band, bands, GROUP):
        group = min(GROUP, bands - start)
        for g in range(group):
            low = probe.low[start + g]
            # Bands ascend: one under the parent found last needs no descent from the root.
            if low > parent_key:
                parent, parent_key = root, GREATEST
            reference, above_key = parent, parent_key
            while reference < 0:
                parent, parent_key = reference, above_key
                inner = ~reference
                slot = count_less(nodes.inner_keys, inner, low)
                if slot + 1 < nodes.inner_count[inner]:
                    above_key = nodes.inner_keys[inner, slot]
                reference = nodes.children[inner, slot]
            leaves[g] = reference
            for line in range(reference * fanout, (reference + 1) * fanout, LINE):
                prefetch(leaf_keys, line)
        for g in range(group):
            slots[g] = count_less(nodes.leaf_keys, leaves[g], probe.low[start + g])
            prefetch(leaf_positions, leaves[g] * fanout + slots[g])
        for g in range(group):
            needed = scan_band(nodes, leaves[g], slots[g], start + g, used, positions, probe)
            if needed > positions.size:
                return start + g, used, needed
            used = needed
            ends[start + g] = used
    return bands, used, used


@kernel
def read_tree(nodes: Nodes, root: int, keys: np.ndarray, positions: np.ndarray) -> int:
    """Write all entries of a tree in order, from index 0 on. Returns their number."""
    leaf = last = root
    while leaf < 0:
        leaf = nodes.children[~leaf, 0]
    while last < 0:
        last = nodes.children[~last, nodes.inner_count[~last] - 1]
    written = 0
    while True:
        for slot in range(nodes.leaf_count[leaf]):
            keys[written] = nodes.leaf_keys[leaf, slot]
            positions[written] = nodes.leaf_positions[leaf, slot]
            written += 1
        if leaf == last:
            return written
        leaf = nodes.leaf_next[leaf]


def check_tree(nodes: Nodes, root: int) -> tuple[int, int, int]:
    """Assert that a tree is in order. Returns the numbers of its leaves, inner nodes and entries. Cost: O(entries)."""
    half = (nodes.leaf_keys.shape[1] + 1) // 2
    level, inner = [root], 0
    least, above = [(-(2**63), 0)], [(GREATEST, GREATEST)]
    while level[0] < 0:
        below: list[int] = []
        bounds: list[tuple[int, int]] = []
        inner += len(level)
        for reference, low, high in zip(level, least, above, strict=True):
            # All leaves are on one level.
            assert reference < 0
            count = int(nodes.inner_count[~reference])
            # Inner nodes are at least half full; the root has at least two children.
            assert (2 if reference == root else half) <= count <= nodes.inner_keys.shape[1]
            keys, positions = nodes.inner_keys[~reference], nodes.inner_positions[~reference]
            separators = list(zip(keys.tolist(), positions.tolist(), strict=True))
            # Separators ascend and lie within those of the node above; the slots behind hold the greatest pair.
            assert separators[count - 1 :] == [(GREATEST, GREATEST)] * (len(keys) - count + 1)
            ascending = [low, *separators[: count - 1], high]
            assert ascending[0] <= ascending[1]
            assert all(a < b for a, b in pairwise(ascending[1:]))
            below += nodes.children[~reference, :count].tolist()
            bounds += ascending[:-1]
        level, least, above = below, bounds, [*bounds[1:], (GREATEST, GREATEST)]
    for i, (leaf, low, high) in enumerate(zip(level, least, above, strict=True)):
        # All leaves are on one level.
        assert leaf >= 0
        count = int(nodes.leaf_count[leaf])
        # Leaves are at least half full, except a root.
        assert (0 if leaf == root else half) <= count <= nodes.leaf_keys.shape[1]
        entries = list(zip(nodes.leaf_keys[leaf].tolist(), nodes.leaf_positions[leaf].tolist(), strict=True))
        # Entries ascend and lie within the separators; the slots behind hold the greatest pair.
        assert entries[count:] == [(GREATEST, GREATEST)] * (len(entries) - count)
        assert all(a < b for a, b in pairwise(entries[:count]))
        assert not count or (low <= entries[0] and entries[count - 1] < high)
        # Each leaf is linked to the one on its right.
        assert i + 1 == len(level) or nodes.leaf_next[leaf] == level[i + 1]
    return len(level), inner, int(nodes.leaf_count[level].sum())
