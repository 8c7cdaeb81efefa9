"""Partitions: which one gets a row, bands across several, and rows from several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from indexes.kernels.columns import frozen
from indexes.one_key.candidates import Probe, collect
from indexes.one_key.key_index import NO_BOUNDS
from indexes.trees.breadth_first_tree import BreadthFirstTree
from indexes.trees.partitions import Partitions


def partitions_of(settled: list[int], depth: int, room: int = 1000) -> Partitions:
    tree = BreadthFirstTree.of(np.array(settled, np.int64), np.arange(len(settled)), 3)
    return Partitions(tree, depth, 3, room)


def add(partitions: Partitions, keys: np.ndarray, first: int = 0) -> None:
    order = np.argsort(keys, kind="stable")
    partitions.add(frozen(keys[order]), frozen(first + order))


def probe_of(low: list[int], high: list[int]) -> Probe:
    bands = len(low)
    return Probe(
        frozen(np.arange(bands)),
        frozen(np.array(low, np.int64)),
        frozen(np.array(high, np.int64)),
        frozen(np.zeros(bands, np.int64)),
        frozen(np.full(bands, 1 << 40)),
        0,
        frozen(np.empty((0, 1), np.int64)),
        NO_BOUNDS,
        NO_BOUNDS,
        frozen(np.empty(0, np.bool_)),
    )


def test_rows_go_where_the_example_says() -> None:
    partitions = partitions_of([2, 4, 4, 5, 8, 9, 11, 12], 1)
    np.testing.assert_array_equal(partitions.arrays.greatest[:-1], [4, 9])
    add(partitions, np.array([7, 3, 4, 12, 5, 9]))
    np.testing.assert_array_equal(partitions.rows, [2, 3, 1])
    matches = collect([partitions.visit], probe_of([4], [8]), 1, 100, True)
    assert matches is not None
    np.testing.assert_array_equal(matches.positions, [0, 2, 4])
    partitions.check_invariants()


@pytest.mark.parametrize("depth", [0, 1, 2, 9])
def test_bands_are_visited_over_empty_and_full_partitions(depth: int) -> None:
    rng = np.random.default_rng(depth)
    partitions = partitions_of(list(range(0, 100, 2)), depth)
    # Nothing between 30 and 70, so partitions there are empty.
    keys = np.concatenate([rng.integers(-10, 30, 100), rng.integers(70, 120, 100)])
    for first in range(0, 200, 20):
        add(partitions, keys[first : first + 20], first)
        partitions.check_invariants()
    low = np.sort(rng.integers(-20, 130, 50))
    high = low + rng.choice([0, 5, 60, 200], 50)
    matches = collect([partitions.visit], probe_of(low.tolist(), high.tolist()), 50, 10**6, True)
    assert matches is not None
    expected = [np.flatnonzero((keys >= a) & (keys <= b)) for a, b in zip(low, high, strict=True)]
    np.testing.assert_array_equal(matches.positions, np.concatenate(expected))


def test_entries_ascend_over_all_partitions() -> None:
    partitions = partitions_of([10, 20, 20, 20, 30, 40], 1)
    keys = np.random.default_rng(1).integers(0, 50, 300)
    add(partitions, keys)
    found, positions = partitions.entries()
    np.testing.assert_array_equal(found, np.sort(keys))
    np.testing.assert_array_equal(keys[positions], found)


def test_more_rows_than_there_is_room_for_are_noticed() -> None:
    partitions = partitions_of([1, 2, 3, 4], 1, room=10)
    with pytest.raises(AssertionError, match="room for all rows"):
        add(partitions, np.arange(100))


def test_threads_that_fill_the_same_partitions_lose_nothing() -> None:
    partitions = partitions_of(list(range(0, 1000, 100)), 1, room=80_000)
    columns = np.random.default_rng(2).integers(0, 1000, (4, 20, 1000))

    def work(which: int) -> None:
        for i, keys in enumerate(columns[which]):
            add(partitions, keys, (which * 20 + i) * 1000)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    partitions.check_invariants()
    keys, positions = partitions.entries()
    np.testing.assert_array_equal(np.sort(positions), np.arange(80_000))
    np.testing.assert_array_equal(columns.reshape(-1)[positions], keys)
