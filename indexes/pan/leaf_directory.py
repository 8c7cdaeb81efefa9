"""The inner nodes of a B+-tree whose leaves are stored elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import GREATEST, LEAST

DEEPEST = 64
"""Most levels of a path; every node has at least two children, so there are fewer."""

ROOT, HEIGHT, NODES = 0, 1, 2
"""The fields of `state`: the root, the number of levels above the leaves, and the number of nodes."""


class Directory(NamedTuple):
    """The form that kernels take. Node n has size[n] separators at n * fanout and one more child at n * (fanout + 1).

    Child i holds the keys in [separator i - 1, separator i). The children of level 1 are leaves.
    """

    separators: np.ndarray
    children: np.ndarray
    size: np.ndarray
    state: np.ndarray
    fanout: int


class LeafDirectory:
    """From a key to the leaf that holds it: inner nodes with up to `fanout` children, in flat arrays.

    Nodes have room for one child too many, which exists only until they are split in two. All nodes except the root
    have at least half of `fanout` children, which bounds the number of nodes by the number of leaves.

        fanout=4      separators 40                leaf 0 holds keys below 10, leaf 3 those in [20, 40),
                     10 20      60                 leaf 2 those from 60 on
        leaves      0  1  3    4  2
    """

    def __init__(self, fanout: int, leaves: int) -> None:
        self.fanout = fanout
        self.state = np.zeros(3, np.int64)
        self._allocate(leaves)

    @property
    def directory(self) -> Directory:
        return Directory(self.separators, self.children, self.size, self.state, self.fanout)

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        return sum(array.nbytes for array in self.directory[:-1])

    def grow(self, leaves: int) -> None:
        """Make room for `leaves`. Cost: O(nodes)."""
        kept = self.directory
        self._allocate(leaves)
        self.separators[: len(kept.separators)] = kept.separators
        self.children[: len(kept.children)] = kept.children
        self.size[: len(kept.size)] = kept.size

    def _allocate(self, leaves: int) -> None:
        # Except the root, each level has at most as many nodes as the one below it divided by half the fanout.
        nodes = leaves // (self.fanout // 2 - 1) + 2
        self.separators = np.empty(nodes * self.fanout, np.int64)
        self.children = np.empty(nodes * (self.fanout + 1), np.int32)
        self.size = np.empty(nodes, np.int32)

    def leaves(self) -> Iterator[tuple[int, int, int]]:
        """The leaves from left to right, each with its least and greatest possible key. Cost: O(leaves)."""
        yield from self._leaves(int(self.state[ROOT]), int(self.state[HEIGHT]), LEAST, GREATEST)

    def _leaves(self, node: int, level: int, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        if level == 0:
            yield node, low, high
            return
        size = int(self.size[node])
        separators = self.separators[node * self.fanout :][:size].tolist()
        children = self.children[node * (self.fanout + 1) :][: size + 1].tolist()
        bounds = [low, *separators, high + 1]
        for child, least, beyond in zip(children, bounds[:-1], bounds[1:], strict=True):
            yield from self._leaves(child, level - 1, least, beyond - 1)

    def check_invariants(self) -> None:
        nodes = [(int(self.state[ROOT]), int(self.state[HEIGHT]))]
        seen = []
        while nodes:
            node, level = nodes.pop()
            if level == 0:
                continue
            seen.append(node)
            size = int(self.size[node])
            # No node is too full, and only the root may be less than half full.
            assert (1 if node == self.state[ROOT] else self.fanout // 2 - 1) <= size <= self.fanout - 1
            # Separators ascend, without duplicates.
            separators = self.separators[node * self.fanout :][:size]
            assert (separators[1:] > separators[:-1]).all()
            nodes += [(int(child), level - 1) for child in self.children[node * (self.fanout + 1) :][: size + 1]]
        # Each node is in the tree once.
        assert sorted(seen) == list(range(int(self.state[NODES])))
        # There are no duplicates across nodes either: every leaf has its own range of keys.
        assert all(low <= high for _, low, high in self.leaves())


@kernel
def leaf_of(
    separators: np.ndarray,
    children: np.ndarray,
    size: np.ndarray,
    fanout: int,
    height: int,
    key: int,
    path: np.ndarray,
    bounds: np.ndarray,
) -> int:
    """The leaf of a key that is not less than the last call's; the caller keeps `path` and `bounds` between calls.

    path[l] is the node on level l, from 0 for the root to `height` for the leaf, and bounds[l] is the greatest key
    that belongs to it. The search goes up only while the key lies beyond a node's bound. Before the first call,
    path[0] is the root, bounds[0] is GREATEST and the other bounds are LEAST.
    """
    level = height
    while level > 0 and (key > bounds[level] or bounds[level] == LEAST):
        level -= 1
    node = path[level]
    while level < height:
        slot = 0
        begin = node * fanout
        for i in range(size[node]):
            slot += separators[np.uint64(begin + i)] <= key
        bounds[level + 1] = separators[begin + slot] - 1 if slot < size[node] else bounds[level]
        node = int(children[node * (fanout + 1) + slot])
        path[level + 1] = node
        level += 1
    return node


@kernel
def add_leaf(directory: Directory, separator: int, leaf: int) -> None:
    """Let `leaf` take over the keys from `separator` on from the leaf that had them. Cost: O(fanout) per level."""
    separators, children, size, state = directory.separators, directory.children, directory.size, directory.state
    fanout = directory.fanout
    path = np.empty(DEEPEST, np.int64)
    slots = np.empty(DEEPEST, np.int64)
    node = state[ROOT]
    height = state[HEIGHT]
    for level in range(height):
        slot = 0
        for i in range(size[node]):
            slot += separators[node * fanout + i] <= separator
        path[level] = node
        slots[level] = slot
        node = int(children[node * (fanout + 1) + slot])
    child = int(leaf)
    for level in range(height - 1, -1, -1):
        node, slot = path[level], slots[level]
        _put(separators, children, size, fanout, node, slot, separator, child)
        if size[node] < fanout:
            return
        # Of the fanout + 1 children the left node keeps half; the separator between the halves goes up.
        another = state[NODES]
        state[NODES] += 1
        left = (fanout + 1) // 2
        separator = separators[node * fanout + left - 1]
        for i in range(left, fanout):
            separators[another * fanout + i - left] = separators[node * fanout + i]
        for i in range(left, fanout + 1):
            children[another * (fanout + 1) + i - left] = children[node * (fanout + 1) + i]
        size[node] = left - 1
        size[another] = fanout - left
        child = another
    root = state[NODES]
    state[NODES] += 1
    separators[root * fanout] = separator
    children[root * (fanout + 1)] = state[ROOT]
    children[root * (fanout + 1) + 1] = child
    size[root] = 1
    state[ROOT] = root
    state[HEIGHT] += 1


@kernel
def _put(
    separators: np.ndarray,
    children: np.ndarray,
    size: np.ndarray,
    fanout: int,
    node: int,
    slot: int,
    separator: int,
    child: int,
) -> None:
    """Insert a separator at `slot` and the child to the right of it."""
    for i in range(size[node], slot, -1):
        separators[node * fanout + i] = separators[node * fanout + i - 1]
        children[node * (fanout + 1) + i + 1] = children[node * (fanout + 1) + i]
    separators[node * fanout + slot] = separator
    children[node * (fanout + 1) + slot + 1] = child
    size[node] += 1
