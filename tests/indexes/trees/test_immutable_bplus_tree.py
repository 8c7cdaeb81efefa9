"""A window as one immutable tree that each insert rebuilds."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from indexes import Keys
from indexes.trees.immutable_bplus_tree import ImmutableBPlusTree


def test_it_is_built_as_the_example_says() -> None:
    index = ImmutableBPlusTree(3)
    for keys in ([5, 2, 9, 7], [4, 8]):
        index.insert([Keys(np.array(keys))])
    np.testing.assert_array_equal(index.tree.entries()[0], [2, 4, 5, 7, 8, 9])
    assert index.tree.greatest(1)[0] == 5
    index.expire(2)
    index.insert([Keys(np.array([1]))])
    np.testing.assert_array_equal(index.tree.entries()[0], [1, 4, 7, 8, 9])
    assert index.tree.greatest(1)[0] == 7


def test_a_window_that_slides_does_not_grow() -> None:
    rng = np.random.default_rng(1)
    index = ImmutableBPlusTree(4)
    sizes = []
    for i in range(1000):
        index.insert([Keys(rng.integers(0, 2**40, 37))])
        index.expire((i + 1) * 37 - 1000)
        sizes.append(index.nbytes)
    assert max(sizes[100:]) <= max(sizes[:100])
    assert len(index.tree) <= 1000 + 37


def test_nbytes_is_what_was_allocated() -> None:
    rng = np.random.default_rng(2)
    batches = [[Keys(rng.integers(0, 2**40, 5000)), Keys(rng.integers(0, 9, 5000))] for _ in range(30)]

    def fill() -> ImmutableBPlusTree:
        index = ImmutableBPlusTree(dimensions=2)
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


def test_a_fanout_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="fanout must be a whole number of 2 or more, not 1"):
        ImmutableBPlusTree(1)
