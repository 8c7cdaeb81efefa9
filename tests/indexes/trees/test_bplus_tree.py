"""The B+-tree: removal of expired rows, and memory."""

from __future__ import annotations

import numpy as np
import pytest

from indexes import Interval, Keys, Live
from indexes.trees.bplus_tree import BPlusTree
from tests.indexes.measured import bytes_allocated


def test_expired_rows_leave_at_once() -> None:
    index = BPlusTree(4)
    index.insert([Keys(np.array([30, 10, 20, 10, 40, 31, 25]))])
    index.expire(2)
    index.check_invariants()
    np.testing.assert_array_equal(index.snapshot()["keys"], [10, 20, 25, 31, 40])
    everything = index.probe([Interval(np.array([0]), np.array([99]))], Live.everything(1))
    np.testing.assert_array_equal(everything.positions, [2, 3, 4, 5, 6])


def test_a_sliding_window_reuses_its_nodes() -> None:
    rng = np.random.default_rng(0)
    index = BPlusTree(8)
    end, sizes = 0, []
    for slide in range(600):
        rows = int(rng.integers(1, 200))
        # The distribution drifts, so that nodes empty at one end and fill at the other.
        index.insert([Keys(rng.integers(0, 1000, rows) + 5 * slide)])
        end += rows
        index.expire(end - 1000)
        sizes.append(index.nbytes)
        if slide % 100 == 0:
            index.check_invariants()
    assert max(sizes[300:]) <= max(sizes[:300])


def test_memory_follows_the_rows_down() -> None:
    index = BPlusTree()
    index.insert([Keys(np.random.default_rng(1).integers(0, 10**9, 200_000))])
    full = index.nbytes
    index.expire(199_000)
    index.check_invariants()
    index.insert([Keys(np.arange(10))])
    assert index.nbytes < full / 20


def test_equal_keys_are_removed_as_quickly_as_distinct_ones() -> None:
    # Were one of many equal keys looked for along the leaves, this would take minutes.
    index = BPlusTree(16)
    for _ in range(40):
        index.insert([Keys(np.zeros(10_000, np.int64))])
        index.expire(index.next_position - 100_000)
    index.check_invariants()
    assert index.count([Interval(np.array([0]), np.array([0]))], Live.everything(1)) == [100_000]


def test_nbytes_is_what_is_allocated() -> None:
    def fill() -> BPlusTree:
        rng = np.random.default_rng(2)
        index = BPlusTree(dimensions=2)
        for _ in range(20):
            index.insert([Keys(rng.integers(0, 10**9, 5_000)), Keys(rng.random(5_000))])
        index.expire(30_000)
        return index

    said, allocated = bytes_allocated(fill)
    assert said == pytest.approx(allocated, rel=0.1)


def test_a_node_needs_three_children() -> None:
    with pytest.raises(ValueError, match="fanout must be a whole number of 3 or more, not 2"):
        BPlusTree(2)
