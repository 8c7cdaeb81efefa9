"""One B+-tree with its own node pool, which grows and shrinks with it."""

from __future__ import annotations

import numpy as np

from indexes.kernels.columns import frozen
from indexes.one_key.candidates import Probe
from indexes.one_key.subwindows import Subindex
from indexes.trees.bplus_tree_insert import insert_sorted
from indexes.trees.bplus_tree_nodes import (
    FREE_INNER,
    FREE_LEAF,
    INNER,
    LEAVES,
    check_tree,
    grow_nodes,
    make_nodes,
    new_tree,
    nodes_bytes,
    nodes_needed,
    read_tree,
    visit_tree,
)
from indexes.trees.bplus_tree_remove import remove_sorted

FANOUT = 48
"""Entries per leaf and children per inner node. In the cache larger nodes are a little faster, out of it smaller
ones; between 32 and 96 it hardly matters."""

FEWEST = 8
"""There is always room for so many leaves."""


class LinkedTree(Subindex):
    """A classic B+-tree as a subindex that also supports removal.

    When the pool runs out of nodes it grows by a quarter. When a quarter of it would suffice for any distribution of
    the entries, the tree is rebuilt in a smaller pool. In between, freed nodes are reused.
    """

    def __init__(self, fanout: int = FANOUT, leaves: int = FEWEST) -> None:
        self.fanout = fanout
        self._clear(leaves)

    def _clear(self, leaves: int) -> None:
        leaves = max(leaves, FEWEST)
        self._nodes = make_nodes(self.fanout, leaves, _inner_for(self.fanout, leaves))
        self._root = new_tree(self._nodes)
        self._entries = 0

    def __len__(self) -> int:
        """Number of entries."""
        return self._entries

    @property
    def leaves(self) -> int:
        """Leaves ever claimed, in use or freed."""
        return int(self._nodes.claims[LEAVES])

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        return nodes_bytes(self._nodes)

    def add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Cost: O(log n) for each leaf that a batch meets, O(fanout) for each entry at most."""
        reached = 0
        while True:
            self._root, reached = insert_sorted(self._nodes, self._root, keys, positions, reached, len(keys))
            if reached == len(keys):
                break
            leaves, inner = len(self._nodes.leaf_count), len(self._nodes.inner_count)
            if self.leaves == leaves:
                leaves += leaves // 4
            self._nodes = grow_nodes(self._nodes, leaves, max(_inner_for(self.fanout, leaves), inner + inner // 4))
        self._entries += len(keys)

    def remove(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Remove entries, given in ascending order; all must be held. Cost: as `add`."""
        self._root = remove_sorted(self._nodes, self._root, keys, positions, 0, len(keys))
        self._entries -= len(keys)
        if 4 * nodes_needed(self.fanout, self._entries)[0] + FEWEST < len(self._nodes.leaf_count):
            kept_keys, kept_positions = self.entries()
            self._clear(len(kept_keys) * 3 // (2 * self.fanout))
            self.add(kept_keys, kept_positions)

    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """Cost: O(log n) for each band, O(1) for each entry in it."""
        visited: tuple[int, int, int] = visit_tree(band, used, positions, ends, probe, self._nodes, self._root)
        return visited

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and positions in ascending order. Cost: O(n)."""
        keys, positions = np.empty((2, self._entries), np.int64)
        read_tree(self._nodes, self._root, keys, positions)
        return frozen(keys), frozen(positions)

    def check_invariants(self) -> None:
        # The tree is in order.
        leaves, inner, entries = check_tree(self._nodes, self._root)
        # The entries are counted.
        assert entries == self._entries
        # Every node ever claimed is part of the tree or free.
        free_leaf, free_inner = int(self._nodes.claims[FREE_LEAF]), int(self._nodes.claims[FREE_INNER])
        while free_leaf >= 0:
            leaves, free_leaf = leaves + 1, int(self._nodes.leaf_next[free_leaf])
        while free_inner >= 0:
            inner, free_inner = inner + 1, int(self._nodes.children[free_inner, 0])
        assert leaves == self._nodes.claims[LEAVES] <= len(self._nodes.leaf_count)
        assert inner == self._nodes.claims[INNER] <= len(self._nodes.inner_count)


def _inner_for(fanout: int, leaves: int) -> int:
    """Room for inner nodes beside so many leaves: enough if they are well filled, else it grows."""
    return 4 + leaves * 2 // fanout
