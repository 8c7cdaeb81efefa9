"""The sorted list: removal of expired rows, and memory."""

from __future__ import annotations

import numpy as np
import pytest

from indexes import Interval, Keys, LinearScan, Live
from indexes.one_key.sorted_list_index import AT_ONCE, SortedListIndex
from tests.indexes.generated import assert_same
from tests.indexes.measured import bytes_allocated


def test_expired_rows_leave_at_once() -> None:
    index = SortedListIndex()
    index.insert([Keys(np.array([30, 10, 20, 10]))])
    for below, keys in ((1, [10, 10, 20]), (2, [10, 20]), (4, [])):
        index.expire(below)
        index.check_invariants()
        np.testing.assert_array_equal(index.snapshot()["keys"], keys)


def test_more_candidates_than_are_held_at_once() -> None:
    rng = np.random.default_rng(0)
    rows = [Keys(rng.integers(0, 10, 3000))]
    index, reference = SortedListIndex(), LinearScan()
    index.insert(rows)
    reference.insert(rows)
    probes = 3 * AT_ONCE // 3000
    bands = [Interval(np.zeros(probes, np.int64), rng.integers(0, 10, probes))]
    live = Live(rng.integers(0, 3000, probes), rng.integers(0, 3000, probes))
    assert_same(index.probe(bands, live), reference.probe(bands, live))


def test_a_sliding_window_does_not_grow() -> None:
    rng = np.random.default_rng(0)
    index = SortedListIndex()
    sizes = []
    for _ in range(300):
        index.insert([Keys(rng.integers(0, 10**6, 50))])
        index.expire(index.next_position - 3000)
        sizes.append(index.nbytes)
    index.check_invariants()
    assert max(sizes[150:]) <= 1.1 * max(sizes[:150])


@pytest.mark.parametrize("greatest", [10**3, 10**9, 2**62])
def test_nbytes_is_what_is_allocated(greatest: int) -> None:
    def fill() -> SortedListIndex:
        rng = np.random.default_rng(2)
        index = SortedListIndex()
        for _ in range(20):
            index.insert([Keys(rng.integers(1, greatest, 2_000))])
        index.expire(10_000)
        return index

    said, allocated = bytes_allocated(fill)
    assert said == pytest.approx(allocated, rel=0.1)
