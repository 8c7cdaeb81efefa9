"""The in-memory merge tree: when it merges, which rows a merge drops, and memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from indexes import Interval, Keys, LinearScan, Live
from indexes.trees.im_tree import IMTree
from tests.indexes.generated import assert_same


def column(*numbers: int) -> list[Keys]:
    return [Keys(np.array(numbers, np.int64))]


def test_it_merges_as_the_example_says() -> None:
    index = IMTree(8, 1 / 2, 3, 3)
    index.insert(column(5, 2, 9))
    assert (index.recent, index.settled) == (3, 0)
    index.insert(column(7, 4, 8))
    assert (index.recent, index.settled) == (0, 6)
    index.insert(column(3, 6, 1))
    assert (index.recent, index.settled) == (3, 6)
    index.expire(2)
    index.insert(column(5, 5, 0))
    assert (index.recent, index.settled) == (0, 10)
    np.testing.assert_array_equal(index.snapshot()["keys"], [0, 1, 3, 4, 5, 5, 6, 7, 8, 9])


def test_expired_rows_are_gone_after_a_merge() -> None:
    index = IMTree(100, 0.5)
    index.insert([Keys(np.arange(40))])
    index.expire(30)
    index.merge()
    assert (index.recent, index.settled) == (0, 10)
    index.expire(40)
    index.insert([Keys(np.arange(50))])
    assert (index.recent, index.settled) == (0, 50)


@pytest.mark.parametrize("rows", [8, 9, 64, 1000])
def test_a_batch_may_be_larger_than_the_small_tree_and_than_the_window(rows: int) -> None:
    rng = np.random.default_rng(rows)
    index, reference = IMTree(64, 1 / 8, 4, 4), LinearScan()
    for _ in range(3):
        batch = [Keys(rng.integers(0, 50, rows))]
        index.insert(batch)
        reference.insert(batch)
        index.check_invariants()
        low = rng.integers(0, 50, 20)
        assert_same(*(one.probe([Interval(low, low + 3)], Live.everything(20)) for one in (index, reference)))


def test_a_window_that_slides_does_not_grow() -> None:
    rng = np.random.default_rng(1)
    index = IMTree(1000, 1 / 8, 8, 4)
    sizes = []
    for i in range(2000):
        index.insert([Keys(rng.integers(0, 2**40, 37))])
        index.expire((i + 1) * 37 - 1000)
        sizes.append(index.nbytes)
    assert max(sizes[100:]) <= max(sizes[:100])
    assert index.settled <= 1000 + index.recent_limit
    index.check_invariants()


def test_nbytes_is_what_was_allocated() -> None:
    rng = np.random.default_rng(2)
    batches = [[Keys(rng.integers(0, 2**40, 5000)), Keys(rng.integers(0, 9, 5000))] for _ in range(30)]

    def fill() -> IMTree:
        index = IMTree(50_000, dimensions=2)
        for i, batch in enumerate(batches):
            index.insert(batch)
            index.expire((i + 1) * 5000 - 50_000)
        return index

    fill()
    tracemalloc.start()
    index = fill()
    measured, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert measured == pytest.approx(index.nbytes, rel=0.1)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="IMTree: window"):
        IMTree(0)
    for ratio in (0, 1.5):
        with pytest.raises(ValueError, match="IMTree: merge_ratio"):
            IMTree(8, ratio)
    with pytest.raises(ValueError, match="IMTree: fanout must be a whole number of 3 or more, not 2"):
        IMTree(8, fanout=2)
