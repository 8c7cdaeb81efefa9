import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.permutations.wavelet_tree import WaveletTree
from tests.indexes.generated import seeds, without_deadline
from tests.indexes.permutations.rectangles import EDGES, met, some_partner, some_ranges


@settings(without_deadline, max_examples=150)
@given(seeds, st.sampled_from(EDGES), st.sampled_from([0, 1, 40]), st.sampled_from([0, 1, 40]), st.integers(0, 40))
def test_rectangles_are_counted_as_by_looking_at_every_point(
    seed: int, points: int, spare_positions: int, spare_values: int, probes: int
) -> None:
    rng = np.random.default_rng(seed)
    partner = some_partner(rng, points, spare_positions, spare_values)
    tree = WaveletTree.of(partner, points + spare_values)
    tree.check_invariants()
    values = some_ranges(rng, points + spare_values, probes)
    positions = some_ranges(rng, points + spare_positions, probes)
    counts = tree.count(values, positions)
    assert counts.dtype == np.int64
    assert counts.tolist() == [len(found) for found in met(partner, values, positions)]


def test_every_rectangle_of_a_small_tree_is_counted() -> None:
    partner = np.array([2, 5, 0, 7, 3, 1, 6, 4], np.int32)
    tree = WaveletTree.of(partner, 8)
    corners = [(a, b) for a in range(9) for b in range(a, 9)]
    pairs = np.array([(*value, *position) for value in corners for position in corners], np.int32).T
    values, positions = (pairs[0], pairs[1]), (pairs[2], pairs[3])
    assert tree.count(values, positions).tolist() == [len(found) for found in met(partner, values, positions)]


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_sorted_dimensions_are_counted(order: str) -> None:
    rng = np.random.default_rng(1)
    partner = np.arange(3000, dtype=np.int32)[:: 1 if order == "ascending" else -1]
    values, positions = some_ranges(rng, 3000, 200), some_ranges(rng, 3000, 200)
    counts = WaveletTree.of(partner, 3000).count(values, positions)
    assert counts.tolist() == [len(found) for found in met(partner, values, positions)]


def test_a_tree_takes_a_few_bits_per_point() -> None:
    points = 1 << 17
    tree = WaveletTree.of(np.random.default_rng(2).permutation(points).astype(np.int32), points)
    assert tree.nbytes * 8 <= (2 * 11 + 6) * points + 64 * 11
