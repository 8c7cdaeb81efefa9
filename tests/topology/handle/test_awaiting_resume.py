"""A sink in another process than the journal learns where it was only when `Resume` arrives: until then, all wait."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tests.topology.waiting import SHORT
from topology import InputError, StoppedError
from topology.graph.components import Emit
from topology.graph.messages import Batch, Message, Punctuation, Resume
from topology.handle.results_queue import Progress, ResultsQueue
from topology.tasks.metrics import TaskCounters


def waiting_queue() -> ResultsQueue:
    queue = ResultsQueue(1 << 20, "out")
    queue.awaits_resume = True
    return queue


def push(queue: ResultsQueue, *messages: Message) -> None:
    for message in messages:
        queue.push(TaskCounters(), Emit(message))


def batch(*values: int) -> Batch:
    return Batch("", pa.record_batch({"n": pa.array(values, pa.int64())}))


def test_a_reader_waits_until_the_queue_knows_where_it_was() -> None:
    queue = waiting_queue()
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(queue.read)
        assert not threading.Event().wait(SHORT)
        assert not reading.done()
        push(queue, Resume("other", 9, 9, 9))
        assert not reading.done()
        push(queue, Resume("out", 3, 5, 5), batch(0), Punctuation(3), batch(5, 6), Punctuation(7))
        reader = reading.result()
    found = reader.next()
    assert found is not None
    assert (found[0], found[1].column("n").to_pylist()) == (6, [6])


def test_a_reader_that_had_more_before_goes_on_behind_it() -> None:
    queue = waiting_queue()
    push(queue, Resume("out", 3, 5, 4))
    reader = queue.read(after=6)
    push(queue, batch(0), Punctuation(3), batch(5, 6), batch(7), Punctuation(7))
    found = reader.next()
    assert found is not None
    assert found[0] == 7


def test_an_acknowledgement_waits_and_is_reported() -> None:
    queue = waiting_queue()
    told: list[Progress] = []
    queue.on_progress = told.append
    with ThreadPoolExecutor(1) as threads:
        acknowledging = threads.submit(queue.acknowledge, 6)
        assert not threading.Event().wait(SHORT)
        assert not told
        push(queue, Resume("out", 3, 5, 4))
        acknowledging.result()
    assert told == [Progress(6, 3, 5)]


def test_whoever_waits_learns_that_the_topology_has_ended() -> None:
    queue = waiting_queue()
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(queue.read)
        queue.close()
        with pytest.raises(StoppedError):
            reading.result()


def test_the_first_life_is_as_strict_as_without_a_journal() -> None:
    queue = waiting_queue()
    push(queue, Resume("out", first=True))
    with pytest.raises(InputError, match="has not been given to a reader"):
        queue.acknowledge(0)
    with pytest.raises(InputError, match="nobody can have read result 4"):
        queue.read(after=4)
