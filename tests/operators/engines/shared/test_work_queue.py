"""The work queue: how steps are cut into tasks, and how threads work through them."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, Live
from operators.engines.shared.work_queue import TaskQueue, WorkQueue, WorkQueueTask, work_through
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from topology import Batch, Emit, Origin, Punctuation

ROUTER = Origin("router", 0, 0)


def rows_at(seq: list[int], first: int) -> ElementRows:
    numbers = np.array(seq, np.int64)
    return ElementRows(
        first, numbers, (Keys(numbers * 10),), (Interval(numbers, numbers + 1),), Live(numbers - 5, numbers)
    )


def cut(task: WorkQueueTask, sides: tuple[list[int], list[int]], last: int) -> list[Emit]:
    emitted = list(task.on_batch(Limits((1, 2), (3, 4)).to_batch(), ROUTER))
    for side, seq in enumerate(sides):
        if seq:
            emitted += task.on_batch(rows_at(seq, 100).to_batch(side), ROUTER)
    return emitted + list(task.on_punctuation(Punctuation(last, 1.5), ROUTER))


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 12), st.booleans())
@settings(max_examples=60)
def test_tasks_hold_rows_of_both_sides_in_the_order_of_arrival(sides: list[bool], task_rows: int, wire: bool) -> None:
    begin = 50
    left = [begin + i for i, is_left in enumerate(sides) if is_left]
    right = [begin + i for i, is_left in enumerate(sides) if not is_left]
    last = begin + len(sides) - 1
    emitted = cut(WorkQueueTask(WorkQueue((False,), task_rows)), (left, right), last)
    first, *tasks, end = (emit.message for emit in emitted)
    assert isinstance(first, Batch)
    assert Limits.from_batch(first) == Limits((1, 2), (3, 4))
    assert end == Punctuation(last, 1.5)
    found: dict[str, list[int]] = {"probes.left": [], "probes.right": []}
    sizes: dict[int, int] = {}
    for message in tasks:
        assert isinstance(message, Batch)
        sent = Batch(message.stream, message.rows, first=message.first) if wire else message
        rows = ElementRows.from_batch(sent, (False,))
        assert rows.first == 100 + len(found[message.stream])
        assert rows.keys[0].values.tolist() == (rows.seq * 10).tolist()
        assert rows.live.start.tolist() == (rows.seq - 5).tolist()
        found[message.stream] += rows.seq.tolist()
        (ends,) = message.labels
        assert rows.seq[-1] <= ends < rows.seq[0] + task_rows
        sizes[ends] = sizes.get(ends, 0) + len(rows)
    assert found == {"probes.left": left, "probes.right": right}
    assert list(sizes) == sorted(sizes)
    assert all(size == task_rows for size in list(sizes.values())[:-1])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_the_order_of_tasks_whoever_is_done_first(threads: int) -> None:
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


def test_no_more_tasks_are_begun_when_the_results_weigh_enough() -> None:
    done: list[int] = []
    queue: TaskQueue[int, int] = TaskQueue(range(5))

    def work(number: int) -> int:
        done.append(number)
        return 10

    queue.work(work, 1, lambda result: result, 20)
    assert done == [0, 1]
    assert list(queue.completed(lambda result: result)) == [(0, 10), (1, 10)]
    queue.work(work, 1, lambda result: result, 5)
    assert done == [0, 1, 2], "the head is worked on in any case"
    assert len(queue) == 3


def test_completed_tasks_wait_behind_new_ones_at_the_head() -> None:
    queue: TaskQueue[str, str] = TaskQueue("ab")
    queue.work(str.upper, 2)
    assert next(queue.completed()) == ("a", "A")
    queue.put_first("xy")
    assert list(queue.completed()) == []
    queue.work(str.upper, 1)
    assert list(queue.completed()) == [("x", "X"), ("y", "Y"), ("b", "B")]


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
