"""A sink that is optional to read: it takes everything, gives it back in order, and memory stays bounded."""

from __future__ import annotations

import threading
from contextlib import suppress
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
    """Read what is there, acknowledge it and leave."""
    reader = queue.read()
    found: list[int] = []
    while (given := reader.next(timeout=0)) is not None:
        number, batch = given
        found += batch.column(0).to_pylist()
        reader.acknowledge(number + batch.num_rows - 1)
    reader.close()
    return found


def test_unread_rows_go_to_disk_and_come_back_in_order(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 800)
    queue = SpillingResults(memory=2_000, directory=str(tmp_path))
    for number in range(5_000):
        assert queue.has_room
        queue.put(rows(number))
    assert queue._backlog.memory_bytes <= 2_000
    assert queue._backlog.disk_bytes > 20_000
    assert len(queue._backlog) < 100  # few pieces, so their bookkeeping takes little memory
    assert queue.nbytes == 0
    queue.end()
    assert read(queue) == list(range(5_000))
    assert queue._kept.nbytes == 0
    assert queue._backlog.memory_bytes + queue._backlog.disk_bytes + queue._newest_bytes == 0


def test_rows_come_out_once_and_in_order_while_some_are_gathered_and_some_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 40)  # five rows
    queue = SpillingResults(memory=100)
    reader = queue.read()
    found: list[int] = []
    for number in range(300):
        queue.put(rows(number))
        if number % 7 == 3:  # older pieces wait in the queue, newer rows have not been gathered
            given = reader.next(0)
            assert given is not None
            assert given[0] == len(found)
            found += given[1].column(0).to_pylist()
            reader.acknowledge(len(found) - 1)
    queue.put(rows(300, 5))  # a piece by itself
    reader.close()
    assert found + read(queue) == list(range(305))


def test_reading_and_writing_may_take_turns_and_schemas_may_differ() -> None:
    queue = SpillingResults()
    queue.put(rows(0))
    queue.put(pa.record_batch({"text": ["a"]}))
    queue.put(rows(1))
    reader = queue.read()
    given = [reader.next(0) for _ in range(3)]
    assert [each and each[1].schema.names for each in given] == [["n"], ["text"], ["n"]]
    assert reader.next(timeout=0) is None
    assert not reader.finished
    reader.acknowledge(2)
    queue.put(rows(2))
    assert reader.next(0) == (3, rows(2))
    reader.close()
    assert read(queue) == [2], "it was not acknowledged"


def test_what_a_reader_has_not_acknowledged_is_bounded_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 80)
    queue = SpillingResults(memory=400)
    for number in range(1_000):
        queue.put(rows(number))
    queue.end()
    reader = queue.read()
    given = 0
    while (found := reader.next(0)) is not None:
        given += found[1].num_rows
    assert not reader.finished
    assert 50 <= given <= 80, "about 400 bytes, and one piece in hand"
    reader.close()
    again = queue.read(after=9)
    first = again.next(0)
    assert first is not None
    assert first[0] == 10
    again.close()
    assert read(queue) == list(range(1_000))
    assert queue.read().next() is None


def test_stopping_before_all_was_read_is_an_error() -> None:
    queue = SpillingResults()
    queue.put(rows(0))
    queue.end()
    queue.close()
    with pytest.raises(StoppedError):
        queue.read().next()
    queue = SpillingResults()
    queue.put(rows(0))
    queue.end()
    assert read(queue) == [0]
    queue.close()
    assert queue.read().next() is None


def test_the_end_of_one_source_and_punctuation_are_no_end_and_no_latency() -> None:
    queue, counters = SpillingResults(), TaskCounters()
    for message in (Punctuation(3, born=1.0), End("default", "a"), Batch("", rows(0), born=1.0)):
        queue.push(counters, Emit(message))
    assert read(queue) == [0]
    reader = queue.read()
    assert reader.next(0) is None
    states = [reader.finished]
    queue.push(counters, Emit(End()))
    assert reader.next() is None
    assert [*states, reader.finished] == [False, True]
    assert not counters.latencies


def test_a_reader_that_waits_wakes_up() -> None:
    for wake in (lambda queue: queue.put(rows(7)), lambda queue: queue.end(), lambda queue: queue.close()):
        queue = SpillingResults()
        reader = threading.Thread(target=lambda queue=queue: wait_once(queue))
        reader.start()
        wake(queue)
        reader.join(LONG)
        assert not reader.is_alive()
    with pytest.raises(StoppedError):
        queue.put(rows(0))


def wait_once(queue: SpillingResults) -> None:
    with suppress(StoppedError):
        queue.read().next()


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


def test_rows_beyond_the_bound_are_dropped_and_counted_and_keep_their_numbers() -> None:
    queue = SpillingResults(memory=1_000, most=200_000)
    size = 10_000
    for number in range(60):  # 80 kB each: they are pieces of their own only together
        queue.put(pa.record_batch({"x": [number] * size}))
    assert queue.metrics()["dropped_rows"] == queue.dropped > 0
    got: dict[int, int] = {}
    reader = queue.read()
    while (found := reader.next(timeout=0)) is not None:
        first, rows = found
        got.update(enumerate(rows["x"].to_pylist(), first))
        queue.acknowledge(first + rows.num_rows - 1)
    assert len(got) == 60 * size - queue.dropped
    dropped = queue.dropped
    queue.put(pa.record_batch({"x": [60] * size}))  # somebody has read: there is room again
    assert queue.dropped == dropped
    found = reader.next(timeout=0)
    assert found is not None
    got.update(enumerate(found[1]["x"].to_pylist(), found[0]))
    assert all(value == number // size for number, value in got.items()), "a row has lost its number"
    assert max(got) == 61 * size - 1
