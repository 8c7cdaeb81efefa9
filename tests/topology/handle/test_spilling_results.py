"""A sink that is optional to read: it takes everything, gives it back in order, and memory stays bounded."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from tests.topology.waiting import LONG
from topology import Batch, Emit, End, LocalRuntime, MapBatches, Punctuation, StoppedError, TopologyBuilder
from topology.handle import spilling_results as module
from topology.handle.spilling_results import SpillingResults
from topology.tasks.metrics import TaskCounters


def rows(first: int, count: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})


def read(queue: SpillingResults) -> list[int]:
    found: list[int] = []
    while (batch := queue.next(timeout=0)) is not None:
        found += batch.column(0).to_pylist()
    return found


def test_unread_rows_go_to_disk_and_come_back_in_order(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 800)
    queue = SpillingResults(memory=2_000, directory=str(tmp_path))
    for number in range(5_000):
        assert queue.has_room
        queue.put(rows(number))
    assert queue._queue.memory_bytes <= 2_000
    assert queue._queue.disk_bytes > 20_000
    assert len(queue._queue) < 100  # few pieces, so their bookkeeping takes little memory
    assert queue.nbytes == 0
    queue.end()
    assert read(queue) == list(range(5_000))
    assert queue.finished
    assert queue._queue.memory_bytes + queue._queue.disk_bytes + queue._newest_bytes == 0


def test_rows_come_out_once_and_in_order_while_some_are_gathered_and_some_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 40)  # five rows
    queue = SpillingResults(memory=100)
    found: list[int] = []
    for number in range(300):
        queue.put(rows(number))
        if number % 7 == 3:  # older pieces wait in the queue, newer rows have not been gathered
            batch = queue.next(0)
            assert batch is not None
            found += batch.column(0).to_pylist()
    queue.put(rows(300, 5))  # a piece by itself
    assert found + read(queue) == list(range(305))


def test_reading_and_writing_may_take_turns_and_schemas_may_differ() -> None:
    queue = SpillingResults()
    queue.put(rows(0))
    queue.put(pa.record_batch({"text": ["a"]}))
    queue.put(rows(1))
    assert [queue.next(0).schema.names for _ in range(3)] == [["n"], ["text"], ["n"]]  # type: ignore[union-attr]
    assert queue.next(timeout=0) is None
    assert not queue.finished
    queue.put(rows(2))
    taken = queue.next(0)
    assert taken is not None
    queue.give_back(taken)
    assert read(queue) == [2]


def test_the_end_of_one_source_and_punctuation_are_no_end_and_no_latency() -> None:
    queue, counters = SpillingResults(), TaskCounters()
    for message in (Punctuation(3, born=1.0), End("default", "a"), Batch("", rows(0), born=1.0)):
        queue.push(counters, Emit(message))
    assert read(queue) == [0]
    states = [queue.finished]
    queue.push(counters, Emit(End()))
    assert queue.next() is None
    assert [*states, queue.finished] == [False, True]
    assert not counters.latencies


def test_a_reader_that_waits_wakes_up() -> None:
    for wake in (lambda queue: queue.put(rows(7)), lambda queue: queue.end(), lambda queue: queue.close()):
        queue = SpillingResults()
        found: list[Any] = []
        reader = threading.Thread(target=lambda queue=queue, found=found: found.append(queue.next(30)))
        reader.start()
        wake(queue)
        reader.join(LONG)
        assert len(found) == 1
    assert queue.closed
    with pytest.raises(StoppedError):
        queue.put(rows(0))


def identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def test_a_sink_aside_holds_up_nobody_and_is_read_by_name() -> None:
    builder = TopologyBuilder()
    builder.input("numbers")
    builder.bolt("same", MapBatches(identity)).global_grouping("numbers")
    builder.sink("results").global_grouping("same")
    builder.sink("copies", aside=True).global_grouping("same")
    topology = builder.build()
    assert topology.main_sink == "results"
    with LocalRuntime(edge_bytes=1_000).launch(topology) as running:

        def send() -> None:
            for number in range(0, 20_000, 100):
                running.send("numbers", rows(number, 100))
            running.finish()

        sender = threading.Thread(target=send)
        sender.start()
        read_first = [value for batch in running.results() for value in batch.column(0).to_pylist()]
        sender.join(LONG)
        copies = [value for batch in running.results("copies") for value in batch.column(0).to_pylist()]
    assert read_first == copies == list(range(20_000))
