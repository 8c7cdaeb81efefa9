"""A worker of PanJoin and the mirror by hand: what commands do to the subwindows, and what the replies say."""

from __future__ import annotations

import numpy as np
import pytest

from indexes import Interval, Keys, Live
from operators.engines.pan_join.commands import Create, Expire, Insert, Probe
from operators.engines.pan_join.mirror import PanMirror, PanMirrorTask
from operators.engines.pan_join.records import RecordColumn
from operators.engines.pan_join.streams import PROBE, PROBED
from operators.engines.pan_join.structures import STRUCTURES, BISortSubwindows
from operators.engines.pan_join.worker import PanWorker, PanWorkerTask, SubwindowSetting
from operators.protocol.answers import matches_of
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import RIGHT
from operators.protocol.stream_ids import StreamId
from topology import Batch, Emit, Origin, Punctuation, Task

MANAGER, WORKER = Origin("manager", 0, 0), Origin("worker", 0, 1)


def insert(number: int, first: int, keys: list[int]) -> Batch:
    return Insert(0, number, first, (Keys(np.array(keys)),)).to_batch()


def probe(low: list[int], high: list[int], live: tuple[int, int], stream: StreamId = PROBE) -> Batch:
    """Rows of the right side, from position 0 on."""
    rows = len(low)
    interval = Interval(np.array(low), np.array(high))
    alive = Live(np.full(rows, live[0]), np.full(rows, live[1]))
    return Probe(RIGHT, ElementRows(0, np.arange(rows), (), (interval,), alive)).to_batch(stream)


def take(task: Task, *messages: Batch | Punctuation, origin: Origin = MANAGER) -> list[Emit]:
    sent: list[Emit] = []
    for message in messages:
        if isinstance(message, Batch):
            sent += task.on_batch(message, origin)
        else:
            sent += task.on_punctuation(message, origin)
        task.check_invariants()
    return sent


def worker(structure: str, records: bool = False) -> PanWorkerTask:
    return PanWorkerTask(PanWorker(SubwindowSetting(STRUCTURES[structure], (False,), 0), ordered=True, records=records))


@pytest.mark.parametrize("structure", list(STRUCTURES))
def test_a_worker_finds_the_live_rows_and_reports_its_status(structure: str) -> None:
    task = worker(structure)
    take(task, Create(0, 0, 0, 4).to_batch(), insert(0, 0, [50, 20, 40, 10]))
    take(task, Create(0, 2, 8, 4).to_batch(), insert(2, 8, [30, 45]))
    reply, last = take(task, probe([20, 90], [45, 99], (1, 9)), Punctuation(1))
    assert isinstance(reply.message, Batch)
    matches = matches_of(reply.message)
    # position 9 is not live for these rows, and nothing is between 90 and 99
    assert matches.positions.tolist() == [1, 2, 8]
    assert matches.offsets.tolist() == [0, 3, 3]
    assert reply.message.labels == (2, 6, 0, 0)
    assert last.message == Punctuation(1)
    take(task, insert(2, 10, [1, 2]))
    reply, _ = take(task, probe([0], [60], (4, 12)), Punctuation(2))
    assert isinstance(reply.message, Batch)
    assert matches_of(reply.message).positions.tolist() == [8, 9, 10, 11]
    # the newest is full, and of the oldest nothing is live
    assert reply.message.labels == (2, 8, 1, 1)


def test_a_subwindow_expires_as_a_whole() -> None:
    task = worker("BISort")
    take(task, Create(0, 0, 0, 2).to_batch(), insert(0, 0, [5, 6]), Create(0, 1, 2, 2).to_batch(), insert(1, 2, [7]))
    held = task.metrics()["index_bytes"]
    take(task, Expire(0, 0).to_batch())
    assert task.metrics()["left_rows"] == task.metrics()["left_subwindows"] == 1
    assert task.metrics()["index_bytes"] < held


def test_a_worker_that_is_not_asked_only_punctuates() -> None:
    assert [emit.message for emit in take(worker("RaPTable"), Punctuation(7))] == [Punctuation(7)]


def test_the_mirror_turns_records_into_the_rows_that_the_worker_meant() -> None:
    setting = SubwindowSetting(BISortSubwindows(buffer=3), (False,), 0)
    task = PanWorkerTask(PanWorker(setting, ordered=True, records=True))
    mirror = PanMirrorTask(PanMirror(setting, ordered=True), origins=2)
    commands = [Create(0, 0, 0, 8).to_batch(), insert(0, 0, [50, 20, 40, 10]), insert(0, 4, [30, 45])]
    take(task, *commands)
    *records, last = take(task, probe([20], [45], (0, 5)), Punctuation(1))
    columns = [RecordColumn.from_batch(emit.message) for emit in records if isinstance(emit.message, Batch)]
    # the main array is 10 20 40 50, the insertion buffer 30 45
    assert [(each.part, each.start.tolist(), each.end.tolist()) for each in columns] == [(0, [1], [3]), (1, [0], [2])]
    assert take(mirror, *commands, probe([20], [45], (0, 5), PROBED), Punctuation(1)) == []
    assert mirror.blocked(MANAGER)
    assert not mirror.blocked(WORKER)
    messages = [emit.message for emit in [*records, last] if isinstance(emit.message, Batch | Punctuation)]
    reply, _ = take(mirror, *messages, origin=WORKER)
    assert isinstance(reply.message, Batch)
    # 45, at position 5, is not live
    assert matches_of(reply.message).positions.tolist() == [1, 2, 4]
    assert not mirror.blocked(MANAGER)
