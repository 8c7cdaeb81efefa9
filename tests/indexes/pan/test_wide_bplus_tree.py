from __future__ import annotations

import numpy as np
import pytest

from indexes import Keys
from indexes.kernels.columns import frozen
from indexes.pan.wide_bplus_tree import WiBPlusTree, WideLeaves
from tests.indexes.window_checks import check_little_room, check_memory, check_no_growth, check_shape, shapes


@shapes
@pytest.mark.parametrize("batch", [20, 400])
def test_agrees_on_data_of_any_shape(shape: str, batch: int) -> None:
    check_shape(lambda: WiBPlusTree(300, 4, 4), shape, batch)


def leaves(index: WiBPlusTree, subwindow: int = 0) -> list[list[int]]:
    subindex = index.subindexes[subwindow]
    assert isinstance(subindex, WideLeaves)
    return [subindex.storage.contents(leaf)[0].tolist() for leaf, _, _ in subindex.inner.leaves()]


def test_leaves_are_sorted_only_when_they_are_split() -> None:
    index = WiBPlusTree(100, 4)
    for key in (5, 9, 2, 7):
        index.insert([Keys(np.array([key]))])
    assert leaves(index) == [[5, 9, 2, 7]]
    index.insert([Keys(np.array([4]))])
    assert leaves(index) == [[2, 4], [5, 7, 9]]
    index.insert([Keys(np.array([3]))])
    assert leaves(index) == [[2, 4, 3], [5, 7, 9]]


def test_a_frequent_key_gets_a_leaf_of_its_own_that_may_exceed_the_width() -> None:
    index = WiBPlusTree(100, 4)
    index.insert([Keys(np.array([5, 5, 5, 5, 5, 5, 7, 4]))])
    assert leaves(index) == [[4], [5] * 6, [7]]
    index.insert([Keys(np.array([6, 5]))])
    assert leaves(index) == [[4], [5] * 7, [7, 6]]


def test_new_neighbours_of_a_frequent_key_do_not_each_become_a_leaf() -> None:
    index = WiBPlusTree(2000, 8)
    index.insert([Keys(np.zeros(500, np.int64))])
    for key in range(500, 0, -1):
        index.insert([Keys(np.array([key]))])
        index.insert([Keys(np.array([-key]))])
    index.check_invariants()
    assert len(leaves(index)) < 1000 / 8 * 3


def test_the_table_grows_when_its_entries_do_not_suffice() -> None:
    subindex = WideLeaves(8, 4, 4)
    entries = subindex.storage.entries
    for first in range(0, 300, 3):
        keys = np.array([first % 7, 50, first], np.int64)
        order = np.argsort(keys, kind="stable")
        subindex.add(frozen(keys[order]), frozen(order + 8 * 2**20))
        subindex.check_invariants()
    assert subindex.storage.entries > 10 * entries
    assert len(subindex.entries()[0]) == 300


def test_a_large_first_batch_is_cut_into_leaves_at_once() -> None:
    index = WiBPlusTree(5000, 16)
    index.insert([Keys(np.random.default_rng(1).permutation(5000))])
    sizes = [len(leaf) for leaf in leaves(index)]
    assert min(sizes) >= 4
    assert max(sizes) <= 16
    index.check_invariants()


def test_a_visit_goes_on_where_room_ended() -> None:
    check_little_room(lambda dimensions: WiBPlusTree(100, 8, 4, dimensions))


def test_nbytes_is_what_is_allocated() -> None:
    check_memory(lambda: WiBPlusTree(20_000), 70_000)


def test_many_slides_hold_no_more_than_few() -> None:
    check_no_growth(lambda: WiBPlusTree(64, 4, 4))


@pytest.mark.parametrize("arguments", [(0,), (10, 1), (10, 2, 3), (2**31,)])
def test_wrong_arguments_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="WiBPlusTree"):
        WiBPlusTree(*arguments)
