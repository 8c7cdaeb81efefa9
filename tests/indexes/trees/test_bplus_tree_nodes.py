"""The nodes of B+-trees: inserting and removing, in any order of positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.columns import frozen
from indexes.trees.bplus_tree_insert import insert_sorted
from indexes.trees.bplus_tree_nodes import (
    Nodes,
    check_tree,
    find_first,
    grow_nodes,
    make_nodes,
    new_tree,
    nodes_needed,
    read_tree,
)
from indexes.trees.bplus_tree_remove import remove_sorted
from tests.indexes.generated import seeds, without_deadline

Pair = tuple[int, int]


def columns(pairs: list[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """Keys and positions of sorted pairs, as the kernels take them."""
    both = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return frozen(both[:, 0]), frozen(both[:, 1])


def pairs_of(nodes: Nodes, root: int) -> list[Pair]:
    keys, positions = np.empty((2, check_tree(nodes, root)[2]), np.int64)
    assert read_tree(nodes, root, keys, positions) == len(keys)
    return list(zip(keys.tolist(), positions.tolist(), strict=True))


def insert(nodes: Nodes, root: int, pairs: list[Pair]) -> int:
    """Insert with room for all."""
    root, reached = insert_sorted(nodes, root, *columns(pairs), 0, len(pairs))
    assert reached == len(pairs)
    return int(root)


def test_the_example_of_the_docstring() -> None:
    nodes = make_nodes(4, 8, 4)
    root = insert(nodes, new_tree(nodes), [(30, 2), (10, 0), (20, 1), (10, 3), (40, 4), (31, 5), (25, 6)])
    assert root == ~0
    assert nodes.leaf_keys[:2].tolist() == [[10, 10, 20, 2**63 - 1], [25, 30, 31, 40]]
    assert nodes.inner_keys[0, 0] == 25
    assert nodes.inner_positions[0, 0] == 6
    assert nodes.children[0, :2].tolist() == [0, 1]
    assert nodes.leaf_next[:2].tolist() == [1, -1]
    assert find_first(nodes, root, 11) == (0, 2)
    assert find_first(nodes, root, 31) == (1, 2)
    # One behind the last entry of a leaf means the first of the next.
    assert find_first(nodes, root, 25) == (0, 3)


@without_deadline
@given(
    seeds,
    st.sampled_from([3, 4, 5, 6, 7, 16]),
    st.sampled_from([1, 3, 1000, 2**62]),
    st.lists(st.tuples(st.booleans(), st.integers(1, 300)), max_size=30),
)
def test_pairs_go_in_and_out_in_any_order(seed: int, fanout: int, distinct: int, steps: list[tuple[bool, int]]) -> None:
    rng = np.random.default_rng(seed)
    nodes = make_nodes(fanout, 1, 1)
    root = new_tree(nodes)
    held: list[Pair] = []
    unused = rng.permutation(300 * len(steps)).tolist()
    for adds, count in steps:
        if adds:
            pairs = [(int(key), unused.pop()) for key in rng.integers(-distinct, distinct, count)]
            reached = 0
            while reached < count:
                root, reached = insert_sorted(nodes, root, *columns(pairs), reached, count)
                if reached < count:
                    nodes = grow_nodes(nodes, len(nodes.leaf_count) + 1, len(nodes.inner_count) + 1)
            held += pairs
        else:
            rng.shuffle(held)
            gone = held[:count]
            del held[:count]
            root = remove_sorted(nodes, root, *columns(gone), 0, len(gone))
        held.sort()
        assert pairs_of(nodes, root) == held


def test_the_greatest_key_is_a_key_like_others() -> None:
    greatest = 2**63 - 1
    nodes = make_nodes(3, *nodes_needed(3, 40))
    pairs = [(greatest, position) for position in range(40)]
    root = insert(nodes, new_tree(nodes), pairs)
    assert pairs_of(nodes, root) == pairs
    root = remove_sorted(nodes, root, *columns(pairs[5:35]), 0, 30)
    assert pairs_of(nodes, root) == pairs[:5] + pairs[35:]


@pytest.mark.parametrize("fanout", [3, 4, 9])
def test_the_bound_on_nodes_suffices_for_the_worst_trees(fanout: int) -> None:
    for keys in (np.arange(600), np.arange(600)[::-1], np.random.default_rng(0).permutation(600)):
        nodes = make_nodes(fanout, *nodes_needed(fanout, 1200, 2))
        roots = [new_tree(nodes), new_tree(nodes)]
        for position, key in enumerate(keys.tolist()):
            for tree in (0, 1):
                roots[tree] = insert(nodes, roots[tree], [(key, position)])
        assert all(check_tree(nodes, root)[2] == 600 for root in roots)


def test_trees_share_a_pool_without_touching_each_other() -> None:
    rng = np.random.default_rng(3)
    nodes = make_nodes(4, *nodes_needed(4, 2000, 5))
    roots = [new_tree(nodes) for _ in range(5)]
    held: list[list[Pair]] = [[] for _ in roots]
    for position in range(0, 2000, 10):
        tree = int(rng.integers(0, 5))
        pairs = [(int(key), position + i) for i, key in enumerate(rng.integers(0, 50, 10))]
        roots[tree] = insert(nodes, roots[tree], pairs)
        held[tree] += pairs
    for root, pairs in zip(roots, held, strict=True):
        assert pairs_of(nodes, root) == sorted(pairs)


def test_an_entry_that_is_not_there_cannot_be_removed() -> None:
    nodes = make_nodes(3, *nodes_needed(3, 20))
    root = insert(nodes, new_tree(nodes), [(key, key) for key in range(20)])
    with pytest.raises(AssertionError, match="not in the tree"):
        remove_sorted(nodes, root, *columns([(7, 8)]), 0, 1)


def test_checking_finds_what_is_out_of_order() -> None:
    nodes = make_nodes(3, *nodes_needed(3, 30))
    root = insert(nodes, new_tree(nodes), [(key, key) for key in range(30)])
    check_tree(nodes, root)
    nodes.leaf_keys[3, 0] += 5
    with pytest.raises(AssertionError):
        check_tree(nodes, root)
