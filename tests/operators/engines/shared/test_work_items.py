"""Threads that work through a queue of items together."""

from __future__ import annotations

import threading
import time

import pytest

from operators.engines.shared.work_items import WorkItems, work_through


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_the_order_of_items_whoever_is_done_first(threads: int) -> None:
    def work(number: int) -> int:
        time.sleep(0.001 * (7 - number % 7))
        return number * number

    assert work_through(range(30), work, threads) == [number * number for number in range(30)]
    assert work_through([], work, threads) == []


def test_threads_work_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=20)
    assert sorted(work_through(range(3), lambda number: together.wait(), 3)) == [0, 1, 2]


def test_one_thread_needs_no_other() -> None:
    names = work_through(range(4), lambda number: threading.current_thread(), 1)
    assert names == [threading.current_thread()] * 4
    assert work_through(range(1), lambda number: threading.current_thread(), 8) == [threading.current_thread()]


def test_no_more_items_are_begun_when_the_results_weigh_enough() -> None:
    done: list[int] = []
    queue: WorkItems[int, int] = WorkItems(range(5))

    def work(number: int) -> int:
        done.append(number)
        return 10

    queue.work(work, 1, lambda result: result, 20)
    assert done == [0, 1]
    assert list(queue.completed(lambda result: result)) == [(0, 10), (1, 10)]
    queue.work(work, 1, lambda result: result, 5)
    assert done == [0, 1, 2], "the head is worked on in any case"
    assert len(queue) == 3


def test_completed_items_wait_behind_new_ones_at_the_head() -> None:
    queue: WorkItems[str, str] = WorkItems("ab")
    queue.work(str.upper, 2)
    assert next(queue.completed()) == ("a", "A")
    queue.put_first("xy")
    assert list(queue.completed()) == []
    queue.work(str.upper, 1)
    assert list(queue.completed()) == [("x", "X"), ("y", "Y"), ("b", "B")]


def test_items_that_are_not_completed_are_replaced_by_their_parts() -> None:
    queue: WorkItems[str, str] = WorkItems(["ab", "cd", "ef"])
    queue.work(str.upper, 1, len, 1)
    queue.replace(list)
    queue.work(str.upper, 1, len, 100)
    assert list(queue.completed()) == [("ab", "AB"), ("c", "C"), ("d", "D"), ("e", "E"), ("f", "F")]


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_ends_all_threads_and_is_raised(threads: int) -> None:
    before = threading.active_count()

    def work(number: int) -> int:
        if number == 5:
            raise ZeroDivisionError("planted")
        time.sleep(0.001)
        return number

    done: list[int] = []
    with pytest.raises(ZeroDivisionError, match="planted"):
        work_through(range(1000), lambda number: done.append(work(number)), threads)
    assert threading.active_count() == before
    assert len(done) < 100
