"""A queue that keeps a bounded part in memory and the rest on disk, and gives back exactly what it was given."""

from collections import deque
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.graph.messages import rows_bytes
from topology.tasks.spill import MemoryBudget, SpillQueue
from topology.tasks.spill_files import LEAST_FILE_BYTES, SpillFiles

quick = settings(max_examples=30, deadline=None)  # the first example may compile a kernel


def rows(number: int, size: int = 10) -> pa.RecordBatch:
    return pa.record_batch({"n": np.full(size, number), "t": pa.array([f"row {number}"] * size)})


ONE = rows_bytes(rows(0))


def test_what_fits_stays_in_memory() -> None:
    queue = SpillQueue(memory=3 * ONE)
    for number in range(3):
        queue.append(rows(number))
    assert (len(queue), queue.memory_bytes, queue.disk_bytes) == (3, 3 * ONE, 0)


def test_what_does_not_fit_goes_to_disk_and_comes_back_in_order() -> None:
    queue = SpillQueue(memory=2 * ONE)
    for number in range(6):
        queue.append(rows(number))
    assert queue.memory_bytes == 2 * ONE
    assert queue.disk_bytes >= 4 * ONE
    assert [queue.popleft() for _ in range(6)] == [rows(number) for number in range(6)]
    assert (len(queue), queue.memory_bytes, queue.disk_bytes) == (0, 0, 0)


def test_batches_without_rows_are_kept_too() -> None:
    queue = SpillQueue(memory=0)
    for size in (5, 0, 0, 5, 0):
        queue.append(rows(1, size))
    assert [queue.popleft().num_rows for _ in range(5)] == [5, 0, 0, 5, 0]


def test_taking_from_an_empty_queue_is_an_error() -> None:
    with pytest.raises(IndexError):
        SpillQueue().popleft()


@quick
@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=40), st.integers(0, 5))
def test_it_behaves_as_a_plain_queue(steps: list[int | None], memory: int) -> None:
    queue, model = SpillQueue(memory=memory * ONE), deque[pa.RecordBatch]()
    for step in steps:
        if step is not None:
            queue.append(rows(step, size=step))
            model.append(rows(step, size=step))
        elif model:
            assert queue.popleft() == model.popleft()
        assert len(queue) == len(model)
        assert queue.memory_bytes <= max([memory * ONE, *(rows_bytes(part) for part in model)])
    assert [queue.popleft() for _ in range(len(model))] == list(model)
    queue.close()


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b", None, "a"]).dictionary_encode(),
        pa.array([[1], None, [2, 3], []]),
        pa.array([{"x": 1}, None, {"x": 2}, {"x": 3}]),
        pa.array([1, 2, None, 4], pa.timestamp("us", "UTC")),
        pa.nulls(4),
        pa.array(["", None, "text", "more"], pa.string_view()),
    ],
    ids=lambda column: str(column.type).split("<")[0],
)
def test_every_kind_of_column_survives_the_disk(column: pa.Array) -> None:
    queue = SpillQueue(memory=0)
    whole = pa.record_batch({"c": column, "n": [1, 2, 3, 4]})
    queue.append(whole)
    queue.append(whole)
    queue.append(whole.slice(1, 2))
    assert queue.disk_bytes > 0
    first, second, third = (queue.popleft() for _ in range(3))
    assert first == second == whole
    assert third == whole.slice(1, 2)
    queue.close()


def test_a_slice_takes_no_more_room_than_its_rows() -> None:
    whole = pa.record_batch({"n": np.arange(1_000_000)})
    queue = SpillQueue(memory=100_000)
    for start in range(0, 10_000, 1_000):
        queue.append(whole.slice(start, 1_000))
    assert queue.disk_bytes == 0


def test_the_file_shrinks_when_it_has_been_read_and_is_used_again() -> None:
    queue = SpillQueue(memory=0)
    for _ in range(3):
        for number in range(4):
            queue.append(rows(number))
        assert [queue.popleft() for _ in range(4)] == [rows(number) for number in range(4)]
        assert queue.file_bytes == 0


def test_the_disk_space_follows_what_waits_and_not_what_has_passed() -> None:
    queue = SpillQueue(memory=0)
    size = 8 * 1024 * 4  # a quarter of a megabyte in each batch
    most = 0
    for number in range(200):  # 50 MB pass, and about 1 MB waits
        queue.append(rows(number, size))
        if len(queue) > 4:
            assert queue.popleft().column("n")[0].as_py() == number - 4
        most = max(most, queue.file_bytes)
    assert most < 4 * LEAST_FILE_BYTES


def test_a_long_backlog_has_few_files() -> None:
    files = SpillFiles(least_bytes=ONE)
    spilled = [files.write(rows(number)) for number in range(1_000)]
    assert files.open_files < 80
    for each in spilled[:990]:
        files.drop(each)
    assert files.used_bytes < 200 * ONE + 1_000 * ONE // 4
    files.close()


def test_queues_that_share_a_budget_hold_no_more_than_that_in_memory() -> None:
    budget = MemoryBudget(10 * ONE)
    queues = [SpillQueue(memory=8 * ONE, budget=budget) for _ in range(5)]
    for number in range(20):
        for queue in queues:
            queue.append(rows(number))
    assert budget.used == sum(queue.memory_bytes for queue in queues) <= 10 * ONE + 5 * ONE
    for queue in queues:
        assert [queue.popleft() for _ in range(20)] == [rows(number) for number in range(20)]
    assert budget.used == 0


def test_closing_forgets_everything_and_the_queue_can_be_used_again(tmp_path: Path) -> None:
    queue = SpillQueue(memory=0, directory=str(tmp_path))
    for number in range(3):
        queue.append(rows(number))
    queue.close()
    assert (len(queue), queue.memory_bytes, queue.disk_bytes) == (0, 0, 0)
    assert list(tmp_path.iterdir()) == []
    queue.append(rows(7))
    queue.append(rows(8))
    assert [queue.popleft(), queue.popleft()] == [rows(7), rows(8)]
    queue.close()
