"""The trees over two dimensions of a block, and when they are worth their making."""

from __future__ import annotations

import numpy as np

from indexes.permutations.merge_sort_tree import MergeSortTree
from indexes.permutations.permutation import Permutation
from indexes.permutations.wavelet_tree import WaveletTree, levels_of

COUNT_BUILD, LIST_BUILD = 1.6, 3.4
"""Nanoseconds per row and level to make the tree that counts, and both trees."""

COUNT_STEP, LIST_STEP, END_COST = 6.0, 15.0, 40.0
"""Nanoseconds per level and per probe row, to count at a corner and to list along an end of its values."""


class PairTrees:
    """A wavelet tree and a merge-sort tree over one permutation, made when they pay for themselves.

    Nobody knows how often a block will be probed before it expires or is merged. So, as one who rents skis until the
    rent would have bought them, a batch is answered without a tree until what the tree would have saved so far comes
    to its price: the cost is then at most twice that of knowing beforehand.
    """

    def __init__(self, permutation: Permutation, values: int) -> None:
        """`permutation` leads from the dimension of positions to that of values, of which there are `values`.

        Cost: O(1); trees are made when they are asked for.
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
        """Whether the tree that counts has been made."""
        return self._counting is not None

    @property
    def lists(self) -> bool:
        """Whether the tree that lists has been made."""
        return self._listing is not None

    @property
    def nbytes(self) -> int:
        trees = (self._counting, self._listing)
        return sum(tree.nbytes for tree in trees if tree is not None)

    def count_cost(self, corners: int) -> float:
        """Nanoseconds to count for one probe row whose rectangle has so many corners to be looked up. Cost: O(1)."""
        return corners * (COUNT_STEP * self._levels + END_COST)

    def list_cost(self, ends: int) -> float:
        """Nanoseconds for one probe row with so many ends of its values, apart from the matches. Cost: O(1)."""
        return ends * (LIST_STEP * self._levels + END_COST)

    def worth_counting(self, saving: float) -> bool:
        """Whether to count by the tree when that saves so much on this batch. Cost: O(1)."""
        if self._counting is None:
            self._missed_counting += max(saving, 0.0)
            return self._missed_counting >= COUNT_BUILD * self._levels * len(self._permutation.partner)
        return saving > 0

    def worth_listing(self, saving: float) -> bool:
        """Whether to list by the tree when that saves so much on this batch. Cost: O(1)."""
        if self._listing is None:
            self._missed_listing += max(saving, 0.0)
            return self._missed_listing >= LIST_BUILD * self._levels * len(self._permutation.partner)
        return saving > 0

    def counting(self) -> WaveletTree:
        """The tree that counts. Cost: O(n log n) the first time."""
        tree = self._counting
        if tree is None:
            tree = self._counting = WaveletTree.of(self._permutation.partner, self._values)
        return tree

    def listing(self) -> MergeSortTree:
        """The tree that lists. Cost: O(n log n) the first time."""
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
            # The tree has every row that has a rank in both dimensions.
            assert self._counting.size == np.count_nonzero(self._permutation.partner >= 0)
        if self._listing is not None:
            self._listing.check_invariants()
            # Both trees are of the same nodes, although two threads may have made them.
            assert self._counting is not None
            assert (self._listing.tree.words == self._counting.words).all()
