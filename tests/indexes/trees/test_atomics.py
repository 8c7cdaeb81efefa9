"""Operations are atomic, and a lock admits one thread at a time."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from indexes.kernels.compiled import kernel
from indexes.trees.atomics import acquire, exchange, fetch_add, load, release, store

TIMES = 200_000


@kernel
def count(counter: np.ndarray, tickets: np.ndarray) -> None:
    for i in range(tickets.size):
        tickets[i] = fetch_add(counter, 0, 1)


@kernel
def count_under_lock(lock: np.ndarray, pair: np.ndarray, times: int) -> int:
    """Two counters that only a lock keeps equal; returns how often they were seen to differ."""
    torn = 0
    for _ in range(times):
        acquire(lock, 1)
        before = load(pair, 0)
        torn += before != load(pair, 8)
        store(pair, 0, before + 1)
        store(pair, 8, before + 1)
        release(lock, 1)
    return torn


@kernel
def swap(cell: np.ndarray, value: int) -> int:
    return exchange(cell, 0, value)


@kernel
def add_to_floats(cell: np.ndarray) -> None:
    fetch_add(cell, 0, 1)


def test_every_addition_counts_and_no_two_threads_draw_the_same_number() -> None:
    counter = np.zeros(1, np.int64)
    tickets = np.empty((3, TIMES), np.int64)
    threads = [threading.Thread(target=count, args=(counter, drawn)) for drawn in tickets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter[0] == 3 * TIMES
    np.testing.assert_array_equal(np.sort(tickets, axis=None), np.arange(3 * TIMES))


def test_a_lock_lets_one_thread_in_at_a_time() -> None:
    lock, pair, torn = np.zeros(2, np.int64), np.zeros(16, np.int64), np.zeros(3, np.int64)

    def work(i: int) -> None:
        torn[i] = count_under_lock(lock, pair, TIMES)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not torn.any()
    assert pair[0] == pair[8] == 3 * TIMES
    assert not lock.any()


def test_an_exchange_returns_what_was_there() -> None:
    cell = np.array([5], np.int64)
    assert swap(cell, 7) == 5
    assert cell[0] == 7


def test_only_int64_arrays_of_one_axis_are_taken() -> None:
    with pytest.raises(TypeError, match="int64 arrays of one axis"):
        add_to_floats(np.zeros(1))
