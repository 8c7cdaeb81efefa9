import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.permutations.merge_sort_tree import MergeSortTree
from indexes.permutations.wavelet_tree import WaveletTree
from tests.indexes.generated import seeds, without_deadline
from tests.indexes.permutations.rectangles import EDGES, Ranges, met, some_partner, some_ranges


def listed(tree: MergeSortTree, values: Ranges, positions: Ranges) -> list[list[int]]:
    """The rows of each probe row's slices, ascending."""
    slices, counts = tree.slices(values, positions)
    rows = tree.rows.reshape(-1)
    found = []
    for i in range(len(counts)):
        mine = [
            rows[slices.begins[k] + j]
            for k in range(slices.ends[i], slices.ends[i + 1])
            for j in range(slices.lengths[k])
        ]
        for side in range(2):
            bits = int(slices.leaf_bits[side, i])
            mine += [rows[slices.leaf_begins[side, i] + j] for j in range(64) if bits >> j & 1]
        assert len(mine) == counts[i]
        found.append(sorted(int(row) for row in mine))
    return found


@settings(without_deadline, max_examples=120)
@given(seeds, st.sampled_from(EDGES), st.sampled_from([0, 1, 40]), st.sampled_from([0, 1, 40]), st.integers(0, 40))
def test_slices_hold_each_point_of_the_rectangle_once(
    seed: int, points: int, spare_positions: int, spare_values: int, probes: int
) -> None:
    rng = np.random.default_rng(seed)
    partner = some_partner(rng, points, spare_positions, spare_values)
    wavelet = WaveletTree.of(partner, points + spare_values)
    names = rng.permutation(len(partner)).astype(np.int32)
    tree = MergeSortTree.of(wavelet, names[partner >= 0])
    tree.check_invariants()
    values = some_ranges(rng, points + spare_values, probes)
    positions = some_ranges(rng, points + spare_positions, probes)
    expected = [sorted(names[found].tolist()) for found in met(partner, values, positions)]
    assert listed(tree, values, positions) == expected
    assert wavelet.count(values, positions).tolist() == [len(found) for found in expected]


def test_every_rectangle_of_a_small_tree_is_listed() -> None:
    partner = np.array([2, 5, 0, 7, 3, 1, 6, 4], np.int32)
    tree = MergeSortTree.of(WaveletTree.of(partner, 8), np.arange(8))
    corners = [(a, b) for a in range(9) for b in range(a, 9)]
    pairs = np.array([(*value, *position) for value in corners for position in corners], np.int32).T
    values, positions = (pairs[0], pairs[1]), (pairs[2], pairs[3])
    assert listed(tree, values, positions) == [found.tolist() for found in met(partner, values, positions)]


@pytest.mark.parametrize("points", [100, 1 << 12, (1 << 14) + 1])
def test_slices_are_few(points: int) -> None:
    """Two for each level and a part of a leaf at each end of the values, however many points match."""
    rng = np.random.default_rng(3)
    tree = MergeSortTree.of(WaveletTree.of(rng.permutation(points).astype(np.int32), points), np.arange(points))
    values, positions = some_ranges(rng, points, 300), some_ranges(rng, points, 300)
    slices, _ = tree.slices(values, positions)
    assert np.diff(slices.ends).max() <= max(2 * tree.tree.levels, 1)
    assert tree.nbytes == 4 * points * (tree.tree.levels + 1)
