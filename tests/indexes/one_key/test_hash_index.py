"""The hash index: equal keys and collisions in any number, expiry, and memory."""

from __future__ import annotations

import numpy as np
import pytest

from indexes import Interval, Keys, LinearScan, Live
from indexes.one_key.hash_index import HashIndex
from tests.indexes.generated import assert_same
from tests.indexes.measured import bytes_allocated


@pytest.mark.parametrize("batch", [1, 40, 3000])
def test_equality_over_a_sliding_window(batch: int) -> None:
    rng = np.random.default_rng(batch)
    index, reference = HashIndex(), LinearScan()
    for _ in range(30):
        rows = [Keys(np.where(rng.random(batch) < 0.1, 7, rng.integers(0, 5000, batch)))]
        index.insert(rows)
        reference.insert(rows)
        below = max(0, index.next_position - 4000)
        index.expire(below)
        reference.expire(below)
        point = rng.integers(0, 60, 100)
        live = Live(np.full(100, below), Live.everything(100).end)
        assert_same(index.probe([Interval(point, point)], live), reference.probe([Interval(point, point)], live))
    index.check_invariants()


def test_equal_keys_in_any_number_take_no_longer_to_insert() -> None:
    # Were a chain of equal keys walked, this would take minutes.
    index = HashIndex()
    for rows in [100_000] * 5 + [1] * 2000:
        index.insert([Keys(np.zeros(rows, np.int64))])
    assert index.count([Interval(np.array([0]), np.array([0]))], Live.everything(1)) == [502_000]


@pytest.mark.parametrize("rows", [2**8, 2**12, 2**16, 2**17])
@pytest.mark.parametrize("step", [1, 3, 1000, 2**10, 2**32, 2**40, 2**52])
def test_regular_keys_spread_over_the_buckets(step: int, rows: int) -> None:
    keys = np.arange(-rows // 2, rows // 2) * step if step * rows < 2**63 else np.arange(rows) * 0.25
    index = HashIndex()
    index.insert([Keys(keys)])
    # Thrown at random, 1 - 1/e of the buckets are hit.
    assert np.count_nonzero(index._table.heads >= 0) > 0.58 * rows


def test_rows_go_in_blocks() -> None:
    index = HashIndex()
    for _ in range(5000):
        index.insert([Keys(np.array([3]))])
    index.expire(1500)
    assert 3500 <= len(index._entries()[0]) < 3500 + 1024
    index.check_invariants()


@pytest.mark.parametrize("batch", [1, 64])
def test_a_sliding_window_does_not_grow(batch: int) -> None:
    rng = np.random.default_rng(0)
    index = HashIndex()
    sizes = []
    for _ in range(4000):
        index.insert([Keys(rng.integers(0, 100, batch))])
        index.expire(index.next_position - 1000)
        sizes.append(index.nbytes)
    index.check_invariants()
    assert max(sizes[2000:]) <= max(sizes[:2000])
    assert len(index._blocks) <= 4


def test_memory_follows_the_rows_down() -> None:
    index = HashIndex()
    index.insert([Keys(np.arange(100_000))])
    full = index.nbytes
    index.expire(100_000)
    index.insert([Keys(np.arange(100))])
    assert index.nbytes < full / 100
    index.check_invariants()


def test_nbytes_is_what_is_allocated() -> None:
    def fill() -> HashIndex:
        rng = np.random.default_rng(2)
        index = HashIndex(2)
        for _ in range(20):
            index.insert([Keys(rng.integers(0, 10**9, 5_000)), Keys(rng.random(5_000))])
        index.expire(30_000)
        return index

    said, allocated = bytes_allocated(fill)
    assert said == pytest.approx(allocated, rel=0.1)
