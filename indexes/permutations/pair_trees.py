"""The trees over two dimensions of a block, and when they are worth building."""

from __future__ import annotations

import numpy as np

from indexes.permutations.merge_sort_tree import MergeSortTree
from indexes.permutations.permutation import Permutation
from indexes.permutations.wavelet_tree import WaveletTree, levels_of

COUNT_BUILD, LIST_BUILD = 1.6, 3.4
"""Nanoseconds per row and level to build the counting tree, and to build both trees."""

COUNT_STEP, LIST_STEP, END_COST = 6.0, 15.0, 40.0
"""Nanoseconds per probe row: per level to count at a corner, per level to list along an end, and per end."""


class PairTrees:
    """A wavelet tree and a merge-sort tree over one permutation, built when they pay for themselves.

    How often a block will be probed before it expires or is merged is unknown. This is the ski-rental problem: answer
    batches without a tree until the savings it would have brought so far equal its price. The cost is then at most
    twice the cost of knowing in advance.
    """

    def __init__(self, permutation: Permutation, values: int) -> None:
        """`permutation` maps the ranks of one dimension, the positions, to the `values` ranks of another.

        Cost: O(1); trees are built on first use.
        """
        self._permutation = permutation
        self._values = values
        self._levels = levels_of(len(permutation.partner)) + 1
        self._counting: WaveletTree | None = None
        self._listing: MergeSortTree | None = None
        self._missed_counting = 0.0
        self._missed_listing = 0.0

    @property
    def counts(self) -> bool:
        """Whether the counting tree exists."""
        return self._counting is not None

    @property
    def lists(self) -> bool:
        """Whether the listing tree exists."""
        return self._listing is not None

    @property
    def nbytes(self) -> int:
        trees = (self._counting, self._listing)
        return sum(tree.nbytes for tree in trees if tree is not None)

    def count_cost(self, corners: int) -> float:
        """Nanoseconds to count for one probe row whose rectangle has so many corners to look up. Cost: O(1)."""
        return corners * (COUNT_STEP * self._levels + END_COST)

    def list_cost(self, ends: int) -> float:
        """Nanoseconds to list for one probe row with so many closed ends of values, without the matches. Cost: O(1)."""
        return ends * (LIST_STEP * self._levels + END_COST)

    def worth_counting(self, saving: float) -> bool:
        """Whether to count by the tree, given what it saves on this batch. Cost: O(1)."""
        if self._counting is None:
            self._missed_counting += max(saving, 0.0)
            return self._missed_counting >= COUNT_BUILD * self._levels * len(self._permutation.partner)
        return saving > 0

    def worth_listing(self, saving: float) -> bool:
        """Whether to list by the tree, given what it saves on this batch. Cost: O(1)."""
        if self._listing is None:
            self._missed_listing += max(saving, 0.0)
            return self._missed_listing >= LIST_BUILD * self._levels * len(self._permutation.partner)
        return saving > 0

    def counting(self) -> WaveletTree:
        """The counting tree. Cost: O(n log n) the first time."""
        tree = self._counting
        if tree is None:
            tree = self._counting = WaveletTree.of(self._permutation.partner, self._values)
        return tree

    def listing(self) -> MergeSortTree:
        """The listing tree. Cost: O(n log n) the first time."""
        tree = self._listing
        if tree is None:
            rows, partner = self._permutation.order, self._permutation.partner
            points = self.counting()
            if points.size < len(rows):
                rows = rows[partner >= 0]
            tree = self._listing = MergeSortTree.of(points, rows)
        return tree

    def check_invariants(self) -> None:
        if self._counting is not None:
            self._counting.check_invariants()
            # The tree holds every row that has a rank in both dimensions.
            assert self._counting.size == np.count_nonzero(self._permutation.partner >= 0)
        if self._listing is not None:
            self._listing.check_invariants()
            # Both trees have the same nodes, although two threads may have built them.
            assert self._counting is not None
            assert (self._listing.tree.words == self._counting.words).all()
