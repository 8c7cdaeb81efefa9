"""List the points of a rectangle in rank space at the cost of copying them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from indexes.kernels.bit_array import ALL, LAST, ONE, SIX, ZERO, count_bits
from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.permutations.sorted_run import GROUP
from indexes.permutations.wavelet_tree import FIVE, IN_HALF, LEAF_BITS, WaveletTree, leaf_below, lefts_before

ABOVE, BELOW = 0, 1
"""The two ends of a range of values: the path to its first value (the range lies to the right), and to its last."""


class Slices(NamedTuple):
    """Where a batch's matches lie among a tree's rows, in the form that kernels take.

    Probe row i has the slices ends[i]..ends[i + 1], each of `lengths` rows from `begins` on. At each end of its range
    it also has rows of one leaf: those from `leaf_begins` on whose bit is set in `leaf_bits`.
    """

    begins: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray
    leaf_begins: np.ndarray
    leaf_bits: np.ndarray


@dataclass(frozen=True)
class MergeSortTree:
    """The rows of every node of a `WaveletTree`, in the node's order: the matches of a node are one slice.

    A range of values consists of O(log n) nodes, those that hang off the two paths to its ends, and of parts of the two
    leaves there. In each node, the range of positions is again a range, which the wavelet tree's bits give without a
    search (fractional cascading). So a probe row costs a path of O(log n) nodes for each end of its values that is not
    open. Its matches are then copied, a slice at a time: 0.6 ns each, and as much again if the memory is fresh from the
    system. Rows that do not match are not read, except for the 64 values of a leaf.

        values by position   2 5 0 7 3 1 6 4
        nodes of 4 values    2 0 3 1 | 5 7 6 4      (each stands for its row)
        leaves of 2 values   0 1 | 2 3 | 5 4 | 7 6
        values from 3 on at the positions [1, 6), 5 0 7 3 1: the path to 3 goes left at the root, beside the right node,
        where the positions are [0, 2): slice 5 7; then right, beside nothing; of the leaf 2 3, positions [1, 2): 3

    Merge-sort trees are not in the papers of this project. This is Chazelle's structure (SIAM J. Comput. 17(3), 1988)
    with all levels kept. Memory: 4 bytes per row and level of the tree, log2(n / 64) + 1 levels: 60 bytes per row at a
    million. Keeping only every second level would need half of that and assemble each missing node from two: a quarter
    slower at 300 matches per probe row, a tenth at 5,600.
    """

    tree: WaveletTree
    rows: np.ndarray

    @classmethod
    def of(cls, tree: WaveletTree, rows: np.ndarray) -> MergeSortTree:
        """Make the tree; `rows[i]` is the row of the point at position i.

        Cost: O(n log n), about 25 ns per row at a million.
        """
        assert len(rows) == tree.size, "one row per point"
        levels = np.empty((tree.levels + 1, tree.size), np.int32)
        levels[0] = rows
        _partition(tree.words, levels)
        return cls(tree, frozen(levels))

    @property
    def nbytes(self) -> int:
        """Bytes held, without the wavelet tree's."""
        return int(self.rows.nbytes)

    def slices(
        self, values: tuple[np.ndarray, np.ndarray], positions: tuple[np.ndarray, np.ndarray]
    ) -> tuple[Slices, np.ndarray]:
        """Each probe row's matches as slices of the flattened `rows`, and their number.

        Cost: O(log n) per probe row and closed end of its values, about 120 ns at a million rows.
        """
        a, b, first, end = self.tree.points(values, positions)
        probes = len(a)
        most = probes * (2 * self.tree.levels + 1)
        found = Slices(
            np.empty(most, np.int64),
            np.empty(most, np.int32),
            np.zeros(probes + 1, np.int64),
            np.zeros((2, probes), np.int64),
            np.zeros((2, probes), np.uint64),
        )
        counts = np.zeros(probes, np.int64)
        if self.tree.size:
            _find_slices(self.tree.words, self.tree.leaves, self.tree.size, a, b, first, end, *found, counts)
        return found, counts

    def check_invariants(self) -> None:
        # Every level holds every row once.
        assert self.rows.shape == (self.tree.levels + 1, self.tree.size)
        assert (np.sort(self.rows, axis=1) == np.sort(self.rows[:1], axis=1)).all()
        position = np.empty(self.rows.max(initial=-1) + 1, np.int64)
        position[self.rows[0]] = np.arange(self.tree.size)
        for level in range(1, self.tree.levels + 1):
            # In every node, rows come by position.
            ascends = np.diff(position[self.rows[level]]) > 0
            node = 1 << (LEAF_BITS + self.tree.levels - level)
            ascends[node - 1 :: node] = True
            assert ascends.all()
            # A node has the rows of its two children.
            wide = np.arange(self.tree.size) // (2 * node)
            parents, children = (self.rows[k][np.lexsort((self.rows[k], wide))] for k in (level - 1, level))
            assert (parents == children).all()


@kernel
def _partition(words: np.ndarray, rows: np.ndarray) -> None:
    """Fill in the levels from the root down: rows that go left keep their order, and so do those that go right."""
    size = np.uint64(rows.shape[1])
    for level in range(words.shape[0]):
        half = ONE << np.uint64(LEAF_BITS + words.shape[0] - 1 - level)
        source, target = rows[level], rows[level + 1]
        bits = words[level]
        left = ZERO
        right = ZERO
        for i in range(size):
            if i & (half + half - ONE) == ZERO:
                left = np.uint64(i)
                right = left + half
            goes_left = (bits[i >> FIVE] >> (i & IN_HALF)) & ONE
            target[left if goes_left else right] = source[i]
            left += goes_left
            right += ONE - goes_left


@kernel
def _descend(
    words: np.ndarray,
    points: np.uint64,
    side: int,
    value: np.ndarray,
    other: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    slots: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
) -> None:
    """Follow a group of paths to their leaves, and record the slices of the nodes beside them, on the inner side.

    `low` and `high` are each path's positions in its current node. Nodes count only below the point where the path and
    the one to the `other` end of the values part; an open other end is ALL, from which every path parts at the root.
    """
    outwards = ALL if side == ABOVE else ZERO
    for level in range(words.shape[0]):
        shift = np.uint64(LEAF_BITS + words.shape[0] - 1 - level)
        half = ONE << shift
        children = np.uint64(level + 1) * points
        bits = words[level]
        for k in range(GROUP):
            node = value[k] >> shift >> ONE
            start = node << shift << ONE
            left_low = lefts_before(bits, low[k]) + (start >> ONE)
            left_high = lefts_before(bits, high[k]) + (start >> ONE)
            right_low = low[k] + start + half - left_low
            right_high = high[k] + start + half - left_high
            goes_right = ZERO - ((value[k] >> shift) & ONE)
            low[k] = (left_low & ~goes_right) | (right_low & goes_right)
            high[k] = (left_high & ~goes_right) | (right_high & goes_right)
            # The other child is always recorded: if it does not count, the next one overwrites it.
            begin = right_low if side == ABOVE else left_low
            length = right_high - right_low if side == ABOVE else left_high - left_low
            slot = slots[k]
            begins[slot] = children + begin
            lengths[slot] = length
            parted = node != other[k] >> shift >> ONE
            slots[k] = slot + np.uint64((goes_right != outwards) & parted & (length > ZERO))


@kernel
def _leaf_matches(
    leaves: np.ndarray, side: int, value: np.uint64, other: np.uint64, low: np.uint64, high: np.uint64
) -> np.uint64:
    """Which values of the leaf at the end of a path lie in the range, as bits; a leaf of both ends counts once."""
    leaf = value >> SIX
    if low >= high:
        return ZERO
    among = (ALL >> (LAST + ONE + low - high)) << (low & LAST)
    if side == ABOVE:
        if leaf == other >> SIX:
            among = leaf_below(leaves, leaf, other, among)
        return among & ~leaf_below(leaves, leaf, value, among)
    return ZERO if leaf == other >> SIX else leaf_below(leaves, leaf, value, among)


@kernel
def _find_slices(
    words: np.ndarray,
    leaves: np.ndarray,
    size: int,
    a: np.ndarray,
    b: np.ndarray,
    first: np.ndarray,
    end: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    ends: np.ndarray,
    leaf_begins: np.ndarray,
    leaf_bits: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Fill in the slices of every probe row, group by group. The tree has at least one point."""
    points = np.uint64(size)
    bottom = np.uint64(words.shape[0]) * points
    most = 2 * words.shape[0] + 2
    slice_begins = np.empty(GROUP * most, np.int64)
    slice_lengths = np.empty(GROUP * most, np.int32)
    slots = np.empty(GROUP, np.uint64)
    value, other = np.empty(GROUP, np.uint64), np.empty(GROUP, np.uint64)
    low, high = np.empty(GROUP, np.uint64), np.empty(GROUP, np.uint64)
    total = ZERO
    for i in range(0, a.size, GROUP):
        group = min(GROUP, a.size - i)
        for k in range(GROUP):
            slots[k] = k * most
        for side in (ABOVE, BELOW):
            idle = True
            for k in range(GROUP):
                row = np.uint64(i + min(k, group - 1))
                open_below, open_above = a[row] <= 0, b[row] >= size
                closed = not (open_below if side == ABOVE else open_above)
                value[k], other[k], low[k], high[k] = ZERO, ALL, ZERO, ZERO
                if a[row] < b[row] and first[row] < end[row]:
                    if closed:
                        value[k] = a[row] if side == ABOVE else b[row]
                        low[k], high[k] = first[row], end[row]
                        if not (open_above if side == ABOVE else open_below):
                            other[k] = b[row] if side == ABOVE else a[row]
                        idle = False
                    elif open_below and open_above and side == ABOVE:
                        slice_begins[slots[k]] = first[row]
                        slice_lengths[slots[k]] = end[row] - first[row]
                        slots[k] += ONE
            if idle:
                continue
            _descend(words, points, side, value, other, low, high, slots, slice_begins, slice_lengths)
            for k in range(group):
                leaf = (value[k] >> SIX) << SIX
                bits = _leaf_matches(leaves, side, value[k], other[k], low[k] - leaf, high[k] - leaf)
                leaf_begins[side, i + k] = bottom + leaf
                leaf_bits[side, i + k] = bits
        for k in range(group):
            count = count_bits(leaf_bits[ABOVE, i + k]) + count_bits(leaf_bits[BELOW, i + k])
            for slot in range(np.uint64(k * most), slots[k]):
                begins[total] = slice_begins[slot]
                lengths[total] = slice_lengths[slot]
                count += np.uint64(slice_lengths[slot])
                total += ONE
            counts[i + k] = count
            ends[i + k + 1] = total
