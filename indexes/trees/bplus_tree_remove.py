"""Remove sorted entries from a B+-tree of a node pool."""

from __future__ import annotations

import numpy as np

from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import GREATEST
from indexes.trees.bplus_tree_nodes import (
    FEW,
    GROUP,
    TALLEST,
    Nodes,
    count_less,
    descend,
    fetch_leaves,
    free_inner,
    free_leaf,
)


@kernel
def remove_sorted(nodes: Nodes, root: int, keys: np.ndarray, positions: np.ndarray, begin: int, end: int) -> int:
    """Remove the pairs [begin, end) of a batch that ascends by (key, position); all are held. Returns the new root.

    One descent serves all pairs of a group that are in the same leaf. A leaf that falls below half takes entries from a
    neighbour under the same parent, or is merged with it; so are the inner nodes above.
    """
    path = np.empty(TALLEST, np.int64)
    slots = np.empty(TALLEST, np.int64)
    leaf_keys, leaf_positions = nodes.leaf_keys, nodes.leaf_positions
    half = (leaf_keys.shape[1] + 1) // 2
    leaves = np.empty(GROUP, np.int64)
    reached = begin
    while reached < end:
        group = reached
        group_end = fetch_leaves(nodes, root, keys, positions, group, end, leaves)
        while reached < group_end:
            leaf = leaves[reached - group]
            run = reached + 1
            while run < group_end and leaves[run - group] == leaf:
                run += 1
            count = int(nodes.leaf_count[leaf])
            if run <= reached + FEW:
                left = count
                for pair in range(reached, run):
                    left = _take_one(leaf_keys, leaf_positions, leaf, left, keys[pair], positions[pair])
            else:
                left = _take_out(leaf_keys, leaf_positions, leaf, count, keys, positions, reached, run)
            nodes.leaf_count[leaf] = left
            assert left + run - reached == count, "an entry to remove is not in the tree"
            if left < half and root < 0:
                depth = descend(nodes, root, keys[reached], positions[reached], path, slots)
                root = _refill(nodes, root, depth, path, slots)
                # The others of the group may belong to other leaves now.
                reached = run
                break
            reached = run
    return root


@kernel
def _take_one(
    leaf_keys: np.ndarray, leaf_positions: np.ndarray, leaf: int, count: int, key: int, position: int
) -> int:
    """Remove one entry from a leaf and close the gap. Returns the entries left: as before if it was not there."""
    place = min(count_less(leaf_keys, leaf, key), count - 1)
    while place < count - 1 and leaf_keys[leaf, place] == key and leaf_positions[leaf, place] < position:
        place += 1
    found = leaf_keys[leaf, place] == key and leaf_positions[leaf, place] == position
    last = count - 1 if found else place
    for slot in range(place, last):
        leaf_keys[leaf, slot] = leaf_keys[leaf, slot + 1]
    for slot in range(place, last):
        leaf_positions[leaf, slot] = leaf_positions[leaf, slot + 1]
    leaf_keys[leaf, last] = GREATEST if found else leaf_keys[leaf, last]
    leaf_positions[leaf, last] = GREATEST if found else leaf_positions[leaf, last]
    return count - found


@kernel
def _take_out(
    leaf_keys: np.ndarray,
    leaf_positions: np.ndarray,
    leaf: int,
    count: int,
    keys: np.ndarray,
    positions: np.ndarray,
    begin: int,
    run: int,
) -> int:
    """Remove the pairs [begin, run) from a leaf and close the gaps. Returns the entries left."""
    kept = count_less(leaf_keys, leaf, keys[begin])
    pair = begin
    for slot in range(kept, count):
        key, position = leaf_keys[leaf, slot], leaf_positions[leaf, slot]
        if pair < run and key == keys[pair] and position == positions[pair]:
            pair += 1
        else:
            leaf_keys[leaf, kept] = key
            leaf_positions[leaf, kept] = position
            kept += 1
    for slot in range(kept, count):
        leaf_keys[leaf, slot] = GREATEST
        leaf_positions[leaf, slot] = GREATEST
    return kept


@kernel
def _refill(nodes: Nodes, root: int, depth: int, path: np.ndarray, slots: np.ndarray) -> int:
    """Refill the leaf at the end of the path, and the nodes above it, to at least half. Returns the new root."""
    spare = np.empty(2 * max(nodes.leaf_keys.shape[1], nodes.inner_keys.shape[1]), np.int64)
    merged = _join_leaves(nodes, path[depth - 1], slots[depth - 1], spare)
    level = depth - 1
    half = (nodes.inner_keys.shape[1] + 1) // 2
    while merged and level > 0 and nodes.inner_count[path[level]] < half:
        merged = _join_inner(nodes, path[level - 1], slots[level - 1], spare)
        level -= 1
    if nodes.inner_count[~root] == 1:
        top = ~root
        root = nodes.children[top, 0]
        free_inner(nodes, top)
    return root


@kernel
def _join_leaves(nodes: Nodes, parent: int, slot: int, spare: np.ndarray) -> bool:
    """Merge a leaf with its neighbour if they fit into one, else balance the two. Returns whether they were merged."""
    # The last child joins its left neighbour, every other child its right one.
    slot = min(slot, nodes.inner_count[parent] - 2)
    left, right = nodes.children[parent, slot], nodes.children[parent, slot + 1]
    lefts, rights = int(nodes.leaf_count[left]), int(nodes.leaf_count[right])
    merged = lefts + rights <= nodes.leaf_keys.shape[1]
    stay = lefts + rights if merged else (lefts + rights) // 2
    _share(nodes.leaf_keys, left, lefts, right, rights, stay, spare)
    _share(nodes.leaf_positions, left, lefts, right, rights, stay, spare)
    nodes.leaf_count[left] = stay
    nodes.leaf_count[right] = lefts + rights - stay
    if merged:
        nodes.leaf_next[left] = nodes.leaf_next[right]
        free_leaf(nodes, right)
        _cut_child(nodes, parent, slot)
    else:
        nodes.inner_keys[parent, slot] = nodes.leaf_keys[right, 0]
        nodes.inner_positions[parent, slot] = nodes.leaf_positions[right, 0]
    return merged


@kernel
def _join_inner(nodes: Nodes, parent: int, slot: int, spare: np.ndarray) -> bool:
    """As `_join_leaves`, for two inner nodes. The separator between the two rotates through the parent."""
    slot = min(slot, nodes.inner_count[parent] - 2)
    left, right = ~nodes.children[parent, slot], ~nodes.children[parent, slot + 1]
    lefts, rights = int(nodes.inner_count[left]), int(nodes.inner_count[right])
    merged = lefts + rights <= nodes.inner_keys.shape[1]
    stay = lefts + rights if merged else (lefts + rights) // 2
    # The parent's separator belongs between the last child on the left and the first on the right.
    nodes.inner_keys[left, lefts - 1] = nodes.inner_keys[parent, slot]
    nodes.inner_positions[left, lefts - 1] = nodes.inner_positions[parent, slot]
    separators = stay - 1 if merged else stay
    _share(nodes.inner_keys, left, lefts, right, rights - 1, separators, spare)
    _share(nodes.inner_positions, left, lefts, right, rights - 1, separators, spare)
    _share(nodes.children, left, lefts, right, rights, stay, spare)
    nodes.inner_count[left] = stay
    nodes.inner_count[right] = lefts + rights - stay
    if merged:
        free_inner(nodes, right)
        _cut_child(nodes, parent, slot)
    else:
        nodes.inner_keys[parent, slot] = nodes.inner_keys[left, stay - 1]
        nodes.inner_positions[parent, slot] = nodes.inner_positions[left, stay - 1]
        nodes.inner_keys[left, stay - 1] = GREATEST
        nodes.inner_positions[left, stay - 1] = GREATEST
    return merged


@kernel
def _share(rows: np.ndarray, left: int, lefts: int, right: int, rights: int, stay: int, spare: np.ndarray) -> None:
    """Redistribute the used slots of two nodes: `stay` of them to the left one, the others to the right one."""
    for slot in range(lefts):
        spare[slot] = rows[left, slot]
    for slot in range(rights):
        spare[lefts + slot] = rows[right, slot]
    for slot in range(rows.shape[1]):
        rows[left, slot] = spare[slot] if slot < stay else GREATEST
    for slot in range(rows.shape[1]):
        rows[right, slot] = spare[stay + slot] if stay + slot < lefts + rights else GREATEST


@kernel
def _cut_child(nodes: Nodes, inner: int, slot: int) -> None:
    """Remove the separator at `slot` and the child to its right."""
    count = int(nodes.inner_count[inner]) - 1
    for s in range(slot, count):
        # The slot behind the last separator exists and holds the greatest pair.
        nodes.inner_keys[inner, s] = nodes.inner_keys[inner, s + 1]
        nodes.inner_positions[inner, s] = nodes.inner_positions[inner, s + 1]
    for s in range(slot + 1, count):
        nodes.children[inner, s] = nodes.children[inner, s + 1]
    nodes.inner_count[inner] = count
