"""Results that a sink keeps on disk, and readers that look at them by number."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

from topology import AcknowledgedError
from topology.handle import kept_results
from topology.handle.results_queue import Extent, ResultsQueue
from topology.handle.spilling_results import SpillingResults


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "FILE_BYTES", 100)


def numbers(first: int, count: int, name: str = "n") -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(range(first, first + count), pa.int64())})


def seen_from(queue: ResultsQueue, first: int) -> list[int]:
    reader = queue.look(first)
    found: list[int] = []
    while (item := reader.next(0)) is not None:
        assert item[0] == first + len(found)
        found += item[1].column(0).to_pylist()
    reader.close()
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [ResultsQueue, SpillingResults])
def test_what_is_kept_on_disk_is_read_as_if_it_were_in_memory(
    seed: int, kind: type[ResultsQueue], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    queue = kind(20, directory=str(tmp_path))  # room for two numbers: without a shelf it would block
    queue.retain()
    end = acknowledged = 0
    for _ in range(60):
        action = chance.random()
        if action < 0.6:
            count = chance.randrange(5)
            queue.put(numbers(end, count, chance.choice("nm")))
            end += count
        elif action < 0.8 and acknowledged < end:
            first = chance.randrange(acknowledged, end)
            assert seen_from(queue, first) == list(range(first, end))
        elif acknowledged < end:
            seen_from(queue, acknowledged)  # only what was given can be acknowledged
            queue.acknowledge(acknowledged := chance.randrange(acknowledged, end))
            acknowledged += 1
        assert queue.extent() == Extent(acknowledged, end, False)
    assert queue.nbytes < 200, "the rest is on disk"
    assert not os.listdir(tmp_path), "the files have no names"
    queue.end()
    assert queue.extent() == Extent(acknowledged, end, True)


def test_many_may_look_beside_the_reader_and_none_of_them_acknowledges() -> None:
    queue = ResultsQueue(1000)
    queue.put(numbers(0, 5))
    queue.end()
    reader = queue.read()
    assert reader.next() == (0, numbers(0, 5))
    looks = [queue.look(0), queue.look(3)]
    assert [look.next() for look in looks] == [(0, numbers(0, 5)), (3, numbers(3, 2))]
    looks[0].acknowledge(4)
    assert queue.extent().first == 0
    reader.acknowledge(1)
    assert queue.look(2).next() == (2, numbers(2, 3))
    with pytest.raises(AcknowledgedError, match="results up to number 1 have been acknowledged"):
        queue.look(1)


def test_retaining_gives_room_to_who_waits_for_it() -> None:
    queue = ResultsQueue(20)
    told: list[bool] = []
    queue.call_when_room(lambda: told.append(True))
    queue.put(numbers(0, 5))
    assert not queue.has_room
    queue.retain()
    assert told == [True]
    assert queue.has_room


def test_the_columns_are_known_with_the_first_batch_even_an_empty_one() -> None:
    queue = ResultsQueue(20)
    assert queue.schema is None
    queue.put(numbers(0, 0))
    assert queue.schema == numbers(0, 0).schema
