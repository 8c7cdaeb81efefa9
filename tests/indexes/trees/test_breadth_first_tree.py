"""The immutable tree: where searches end, how keys are divided among nodes, how trees are merged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.columns import frozen
from indexes.kernels.ordered_integers import GREATEST, LEAST
from indexes.trees.breadth_first_tree import GROUP, BreadthFirstTree, find_group, find_node
from tests.indexes.generated import INTEGERS, seeds, without_deadline


def tree_of(keys: np.ndarray, fanout: int) -> BreadthFirstTree:
    tree = BreadthFirstTree.of(np.sort(keys), np.arange(len(keys)), fanout)
    tree.check_invariants()
    return tree


def some_keys(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.choice(np.array(INTEGERS), rows) if rng.random() < 0.5 else rng.integers(0, 2 * rows + 1, rows)


@without_deadline
@given(seeds, st.integers(0, 200), st.integers(2, 17), st.integers(1, GROUP))
def test_a_search_ends_at_the_first_key_that_is_not_less(seed: int, rows: int, fanout: int, group: int) -> None:
    rng = np.random.default_rng(seed)
    keys = some_keys(rng, rows)
    tree = tree_of(keys, fanout)
    low = np.sort(np.concatenate([some_keys(rng, 40), [LEAST, GREATEST]]))
    start = int(rng.integers(0, len(low) - group + 1))
    places = np.empty(GROUP, np.int64)
    find_group(tree.arrays, frozen(low), start, group, places)
    np.testing.assert_array_equal(places[:group], np.searchsorted(np.sort(keys), low[start : start + group]))


@without_deadline
@given(seeds, st.integers(1, 200), st.integers(2, 5))
def test_the_nodes_of_a_depth_divide_all_keys(seed: int, rows: int, fanout: int) -> None:
    rng = np.random.default_rng(seed)
    tree = tree_of(some_keys(rng, rows), fanout)
    for depth in range(tree.height + 1):
        greatest = tree.greatest(depth)
        assert greatest[-1] == GREATEST
        for key in [*some_keys(rng, 5).tolist(), LEAST, GREATEST]:
            assert find_node(tree.arrays, key, depth) == np.searchsorted(greatest, key)


def test_the_levels_are_those_of_the_example() -> None:
    tree = tree_of(np.array([2, 4, 4, 5, 7, 8, 9, 9, 11, 12]), 3)
    assert tree.height == 2
    np.testing.assert_array_equal(tree.greatest(1), [11, GREATEST])
    np.testing.assert_array_equal(tree.greatest(2), [4, 8, 11, GREATEST])
    np.testing.assert_array_equal(tree.arrays.inner, [11, GREATEST, GREATEST, 4, 8, 11, GREATEST, GREATEST, GREATEST])


@without_deadline
@given(seeds, st.integers(0, 60), st.integers(0, 60), st.integers(0, 130))
def test_a_merge_holds_what_has_not_expired(seed: int, old: int, new: int, below: int) -> None:
    rng = np.random.default_rng(seed)
    keys = some_keys(rng, old + new)
    positions = np.arange(old + new)
    order, later = np.argsort(keys[:old], kind="stable"), old + np.argsort(keys[old:], kind="stable")
    tree = BreadthFirstTree.of(keys[order], order, 3)
    spare = BreadthFirstTree.of(np.zeros(150, np.int64), np.zeros(150, np.int64), 3)
    for used in (None, spare):
        merged = tree.merged(keys[later], later, below, used)
        merged.check_invariants()
        expected = np.lexsort((positions, keys))
        expected = expected[expected >= below]
        np.testing.assert_array_equal(merged.entries()[0], keys[expected])
        np.testing.assert_array_equal(merged.entries()[1], expected)


def test_a_spare_tree_gives_its_arrays_unless_they_are_far_too_large() -> None:
    tree = tree_of(np.arange(100), 4)
    more = frozen(np.arange(100, 110)), frozen(np.arange(100, 110))
    enough = tree.merged(*more, 0)
    assert np.shares_memory(tree.merged(*more, 0, enough).arrays.keys, enough.arrays.keys)
    small, large = tree_of(np.arange(50), 4), tree_of(np.arange(1000), 4)
    for spare in (small, large):
        assert not np.shares_memory(tree.merged(*more, 0, spare).arrays.keys, spare.arrays.keys)


def test_it_takes_no_rows() -> None:
    with pytest.raises(AssertionError, match="takes no rows"):
        tree_of(np.arange(5), 4).add(np.arange(1), np.arange(1))
