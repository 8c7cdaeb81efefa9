"""Insert sorted entries into a B+-tree of a node pool."""

from __future__ import annotations

import numpy as np

from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import GREATEST
from indexes.trees.bplus_tree_nodes import (
    FEW,
    FREE_INNER,
    FREE_LEAF,
    GROUP,
    INNER,
    LEAVES,
    TALLEST,
    Nodes,
    claim_inner,
    claim_leaf,
    count_less,
    descend,
    fetch_leaves,
)


@kernel
def insert_sorted(
    nodes: Nodes, root: int, keys: np.ndarray, positions: np.ndarray, begin: int, end: int
) -> tuple[int, int]:
    """Insert the pairs [begin, end) of a batch that ascends by (key, position). Returns (new root, reached).

    One descent serves all pairs of a group that belong to the same leaf. `reached` is `end`, or less if the pool lacks
    the nodes that the next pair needs; every pair is then either inserted or untouched. A leaf takes at most as many
    pairs at a time as two leaves hold when three quarters full, so it splits into two at most.
    """
    path = np.empty(TALLEST, np.int64)
    slots = np.empty(TALLEST, np.int64)
    leaves = np.empty(GROUP, np.int64)
    leaf_keys, leaf_positions = nodes.leaf_keys, nodes.leaf_positions
    fanout = leaf_keys.shape[1]
    reached = begin
    while reached < end:
        group = reached
        group_end = fetch_leaves(nodes, root, keys, positions, group, end, leaves)
        while reached < group_end:
            leaf = leaves[reached - group]
            count = int(nodes.leaf_count[leaf])
            most = min(group_end, reached + fanout + fanout // 2 - count)
            run = reached + 1
            while run < most and leaves[run - group] == leaf:
                run += 1
            total = count + run - reached
            if total > fanout:
                depth = descend(nodes, root, keys[reached], positions[reached], path, slots)
                if not _has_room(nodes, depth, path):
                    return root, reached
                root = _split_leaf(nodes, root, leaf, keys, positions, reached, run, depth, path, slots)
                reached = run
                if run == most:
                    # The next pair may belong to the new leaf.
                    break
                continue
            if run <= reached + FEW:
                for pair in range(reached, run):
                    _put(leaf_keys, leaf_positions, leaf, count + pair - reached, keys[pair], positions[pair])
            else:
                _merge(leaf_keys, leaf_positions, leaf, count, leaf, total, keys, positions, reached, run)
            nodes.leaf_count[leaf] = total
            reached = run
    return root, reached


@kernel
def _put(leaf_keys: np.ndarray, leaf_positions: np.ndarray, leaf: int, count: int, key: int, position: int) -> None:
    """Put one entry into a leaf that has room; the entries behind it move up by one slot."""
    place = count_less(leaf_keys, leaf, key)
    while leaf_keys[leaf, place] == key and leaf_positions[leaf, place] < position:
        place += 1
    while place <= count:
        next_key, next_position = leaf_keys[leaf, place], leaf_positions[leaf, place]
        leaf_keys[leaf, place], leaf_positions[leaf, place] = key, position
        key, position = next_key, next_position
        place += 1


@kernel
def _merge(
    leaf_keys: np.ndarray,
    leaf_positions: np.ndarray,
    leaf: int,
    count: int,
    target: int,
    size: int,
    keys: np.ndarray,
    positions: np.ndarray,
    begin: int,
    run: int,
) -> tuple[int, int]:
    """Move the greatest `size` of a leaf's first `count` entries and the pairs [begin, run) into the slots of `target`.

    It works from the back, so the target may be the leaf itself. Returns how many entries are left and the end of the
    rest of the run; if the target is the leaf, entries that stay in place do not count as moved.
    """
    entry = count - 1
    pair = run - 1
    slot = size - 1
    while slot >= 0 and (pair >= begin or leaf != target):
        from_leaf = entry >= 0 and (
            pair < begin
            or leaf_keys[leaf, entry] > keys[pair]
            or (leaf_keys[leaf, entry] == keys[pair] and leaf_positions[leaf, entry] > positions[pair])
        )
        if from_leaf:
            leaf_keys[target, slot] = leaf_keys[leaf, entry]
            leaf_positions[target, slot] = leaf_positions[leaf, entry]
            entry -= 1
        else:
            leaf_keys[target, slot] = keys[pair]
            leaf_positions[target, slot] = positions[pair]
            pair -= 1
        slot -= 1
    return entry + 1, pair + 1


@kernel
def _has_room(nodes: Nodes, depth: int, path: np.ndarray) -> bool:
    """Whether the pool has enough nodes to split the leaf below this path."""
    if nodes.claims[FREE_LEAF] < 0 and nodes.claims[LEAVES] >= nodes.leaf_count.size:
        return False
    fanout = nodes.inner_keys.shape[1]
    level = depth - 1
    while level >= 0 and nodes.inner_count[path[level]] == fanout:
        level -= 1
    need = depth - 1 - level + (1 if level < 0 else 0)
    have = nodes.inner_count.size - nodes.claims[INNER]
    free = nodes.claims[FREE_INNER]
    while have < need and free >= 0:
        have += 1
        free = nodes.children[free, 0]
    return have >= need


@kernel
def _split_leaf(
    nodes: Nodes,
    root: int,
    leaf: int,
    keys: np.ndarray,
    positions: np.ndarray,
    begin: int,
    run: int,
    depth: int,
    path: np.ndarray,
    slots: np.ndarray,
) -> int:
    """Merge the pairs [begin, run) into a leaf and split it in two. Returns the new root."""
    leaf_keys, leaf_positions = nodes.leaf_keys, nodes.leaf_positions
    fanout = leaf_keys.shape[1]
    count = int(nodes.leaf_count[leaf])
    total = count + run - begin
    stay = total // 2
    right = claim_leaf(nodes)
    entries, pairs = _merge(leaf_keys, leaf_positions, leaf, count, right, total - stay, keys, positions, begin, run)
    _merge(leaf_keys, leaf_positions, leaf, entries, leaf, stay, keys, positions, begin, pairs)
    for slot in range(stay, fanout):
        nodes.leaf_keys[leaf, slot] = GREATEST
        nodes.leaf_positions[leaf, slot] = GREATEST
    for slot in range(total - stay, fanout):
        nodes.leaf_keys[right, slot] = GREATEST
        nodes.leaf_positions[right, slot] = GREATEST
    nodes.leaf_count[leaf] = stay
    nodes.leaf_count[right] = total - stay
    nodes.leaf_next[right] = nodes.leaf_next[leaf]
    nodes.leaf_next[leaf] = right
    return _add_child(nodes, root, nodes.leaf_keys[right, 0], nodes.leaf_positions[right, 0], right, depth, path, slots)


@kernel
def _add_child(
    nodes: Nodes, root: int, key: int, position: int, child: int, depth: int, path: np.ndarray, slots: np.ndarray
) -> int:
    """Put a separator and the child to its right behind the child on the path. Returns the new root."""
    fanout = nodes.inner_keys.shape[1]
    for level in range(depth - 1, -1, -1):
        inner = path[level]
        slot = slots[level]
        count = int(nodes.inner_count[inner])
        if count < fanout:
            _put_child(nodes, inner, slot, count, key, position, child)
            return root
        right = claim_inner(nodes)
        half = (fanout + 1) // 2
        up_key, up_position = _split_inner(nodes, inner, slot, right, half, key, position, child)
        if slot < half - 1:
            _put_child(nodes, inner, slot, half - 1, key, position, child)
        key, position, child = up_key, up_position, ~right
    top = claim_inner(nodes)
    for s in range(fanout):
        nodes.inner_keys[top, s] = GREATEST
        nodes.inner_positions[top, s] = GREATEST
    nodes.inner_keys[top, 0] = key
    nodes.inner_positions[top, 0] = position
    nodes.children[top, 0] = root
    nodes.children[top, 1] = child
    nodes.inner_count[top] = 2
    return ~top


@kernel
def _split_inner(
    nodes: Nodes, inner: int, slot: int, right: int, half: int, key: int, position: int, child: int
) -> tuple[int, int]:
    """Split a full node that gets a child after `slot`: it keeps the first half, `right` gets the second.

    Returns the separator between the two. If the new child belongs to the first half, the caller inserts it; there
    is room for it now.
    """
    fanout = nodes.inner_keys.shape[1]
    up_key, up_position = key, position
    for s in range(half - 1, fanout):
        # Of the separators with the new one in its place, number `half - 1` goes up and the rest to the right.
        if s == slot:
            moved_key, moved_position, moved_child = key, position, child
        else:
            old = s - 1 if s > slot else s
            moved_key, moved_position = nodes.inner_keys[inner, old], nodes.inner_positions[inner, old]
            moved_child = nodes.children[inner, old + 1]
        nodes.children[right, s + 1 - half] = moved_child
        if s == half - 1:
            up_key, up_position = moved_key, moved_position
        else:
            nodes.inner_keys[right, s - half] = moved_key
            nodes.inner_positions[right, s - half] = moved_position
    for s in range(fanout - half, fanout):
        nodes.inner_keys[right, s] = GREATEST
        nodes.inner_positions[right, s] = GREATEST
    nodes.inner_count[right] = fanout + 1 - half
    for s in range(half - 2 if slot < half - 1 else half - 1, fanout):
        nodes.inner_keys[inner, s] = GREATEST
        nodes.inner_positions[inner, s] = GREATEST
    nodes.inner_count[inner] = half
    return up_key, up_position


@kernel
def _put_child(nodes: Nodes, inner: int, slot: int, count: int, key: int, position: int, child: int) -> None:
    """Put a separator at `slot` and its child behind it; the node has room."""
    for s in range(count - 1, slot, -1):
        nodes.inner_keys[inner, s] = nodes.inner_keys[inner, s - 1]
        nodes.inner_positions[inner, s] = nodes.inner_positions[inner, s - 1]
        nodes.children[inner, s + 1] = nodes.children[inner, s]
    nodes.inner_keys[inner, slot] = key
    nodes.inner_positions[inner, slot] = position
    nodes.children[inner, slot + 1] = child
    nodes.inner_count[inner] = count + 1
