"""The queue between a sink and its reader."""

import threading

import pyarrow as pa
import pytest

from topology import Batch, Emit, End, Punctuation, StoppedError, Watermark
from topology.handle.results_queue import ResultsQueue
from topology.tasks.metrics import TaskCounters

ROWS = pa.record_batch({"n": [1, 2, 3]})


def test_rows_come_in_order_until_the_end() -> None:
    queue = ResultsQueue(1000)
    counters = TaskCounters()
    for message in (Batch("default", ROWS, born=1.0), Punctuation(3, born=1.0), Watermark(3), End("default", "s")):
        queue.push(counters, Emit(message))
    queue.put(ROWS.slice(1))
    queue.push(counters, Emit(End()))
    assert queue.next() == ROWS
    assert queue.next(0) == ROWS.slice(1)
    assert queue.next() is None
    assert queue.finished
    assert queue.next() is None
    assert len(counters.latencies) == 2


def test_nothing_within_the_timeout_is_not_the_end() -> None:
    queue = ResultsQueue(1000)
    assert queue.next(0.01) is None
    assert not queue.finished
    assert not queue.closed


def test_rows_given_back_come_first_again() -> None:
    queue = ResultsQueue(1000)
    queue.put(ROWS)
    queue.put(ROWS.slice(2))
    queue.end()
    first = queue.next()
    assert first is not None
    queue.give_back(first)
    assert [queue.next(), queue.next(), queue.next()] == [ROWS, ROWS.slice(2), None]


def test_closing_wakes_the_reader_and_the_sink_and_keeps_the_reason() -> None:
    queue = ResultsQueue(10)
    queue.put(ROWS)
    reason = ValueError("the first reason")
    threading.Timer(0.1, queue.close, args=(reason,)).start()
    with pytest.raises(StoppedError):
        queue.put(ROWS)
    queue.close(ValueError("a later one"))
    assert queue.next() is None
    assert queue.closed
    assert queue.error is reason
    assert queue.nbytes == 0
