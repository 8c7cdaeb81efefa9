"""The queue between a sink and its reader."""

import threading

import pyarrow as pa
import pytest

from tests.topology.waiting import LONG, wait_for
from topology import Batch, Emit, End, Punctuation, StoppedError, Watermark
from topology.handle import results_queue as module
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
    reader = queue.read()
    assert reader.next() == (0, ROWS)
    assert reader.next(0) == (3, ROWS.slice(1))
    assert reader.next() is None
    assert reader.finished
    assert reader.next() is None
    assert len(counters.latencies) == 2


def test_nothing_within_the_timeout_is_not_the_end() -> None:
    reader = ResultsQueue(1000).read()
    assert reader.next(0.01) is None
    assert not reader.finished
    assert not reader.closed


def test_a_reader_before_rows_that_are_acknowledged_meanwhile_reaches_the_end() -> None:
    queue = ResultsQueue(1000)
    queue.put(ROWS)
    queue.end()
    assert queue.read().next() == (0, ROWS)
    behind = queue.read(after=0, take_over=True)
    queue.acknowledge(2)
    assert behind.next(0) is None
    assert behind.finished


def test_a_step_back_gives_the_same_rows_again() -> None:
    queue = ResultsQueue(1000)
    queue.put(ROWS)
    queue.put(ROWS.slice(2))
    queue.end()
    reader = queue.read()
    assert reader.next() == (0, ROWS)
    reader.step_back()
    assert [reader.next(), reader.next(), reader.next()] == [(0, ROWS), (3, ROWS.slice(2)), None]


def test_closing_wakes_the_reader_and_the_sink_and_keeps_the_reason() -> None:
    queue = ResultsQueue(10)
    queue.put(ROWS)
    reason = ValueError("the first reason")
    threading.Timer(0.1, queue.close, args=(reason,)).start()
    with pytest.raises(StoppedError):
        queue.put(ROWS)
    queue.close(ValueError("a later one"))
    with pytest.raises(ValueError, match="the first reason"):
        queue.read().next()
    assert queue.nbytes == 0


def test_stopping_before_the_end_is_an_error_and_after_it_is_not() -> None:
    queue = ResultsQueue(1000)
    queue.put(ROWS)
    queue.end()
    reader = queue.read()
    assert reader.next() == (0, ROWS)
    queue.close()
    assert reader.next() is None
    assert reader.finished, "it had been given everything"
    reader.close()
    with pytest.raises(StoppedError, match="before all results had been read"):
        queue.read().next()


def test_the_batch_in_hand_leaves_room_for_the_next() -> None:
    queue = ResultsQueue(20)
    told: list[bool] = []
    queue.call_when_room(lambda: told.append(queue.has_room))
    queue.put(ROWS)
    room = [queue.has_room]
    reader = queue.read()
    assert reader.next() == (0, ROWS)
    room.append(queue.has_room)
    assert room == [False, True], "the topology would stand still while the reader deals with a large batch"
    assert told == [True]
    queue.put(ROWS)
    assert reader.next() == (3, ROWS)
    room.append(queue.has_room)
    assert room[2] is False, "two batches are kept"
    reader.acknowledge(2)
    assert told == [True, True]
    assert queue.nbytes == 24
    reader.close()
    assert not queue.has_room, "the batch in hand waits for the next reader"


def test_room_that_appears_while_a_reader_waits_is_told() -> None:
    queue = ResultsQueue(20)
    told = threading.Event()
    queue.call_when_room(told.set)
    reader = queue.read()
    reading = threading.Thread(target=reader.next)
    reading.start()
    counters = TaskCounters()
    with queue._lock:  # two arrive before the reader wakes up
        queue.push(counters, Emit(Batch("default", ROWS)))
        assert not queue.has_room
    reading.join(LONG)
    assert told.is_set()


def test_a_reader_that_waits_for_its_own_acknowledgement_is_warned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FULL_WARNING_SECONDS", 0.05)
    queue = ResultsQueue(20)
    reader = queue.read()
    for _ in range(2):
        queue.put(ROWS)
        assert reader.next(0) is not None
    waiting = threading.Thread(target=reader.next)
    waiting.start()
    wait_for(lambda: "until somebody acknowledges them" in caplog.text)
    queue.acknowledge(5)
    queue.put(ROWS)
    waiting.join(LONG)
    assert not waiting.is_alive()
