"""A full disk below the spill directory: rows stay in memory, and those who are ahead wait."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin
from operators.intake import waiting_source
from tests.topology.waiting import wait_for
from topology import LocalRuntime, State
from topology.entry.staging import Staging
from topology.tasks import spill_room as room_of
from topology.tasks.spill import SpillQueue
from topology.tasks.spill_files import Spilled, SpillFiles
from topology.tasks.spill_room import spill_room


class Disk:
    """One that is full, or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        write = SpillFiles.write

        def write_some(files: SpillFiles, rows: pa.RecordBatch) -> Spilled:
            if self.is_full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(files, rows)

        monkeypatch.setattr(SpillFiles, "write", write_some)
        monkeypatch.setattr(room_of, "free_bytes", lambda directory: 0 if self.is_full else 1 << 40)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def batch(number: int) -> pa.RecordBatch:
    return pa.record_batch({"x": [number] * 100})


def test_batches_that_find_no_room_stay_in_memory_and_in_order(tmp_path: Path, disk: Disk) -> None:
    room = spill_room(str(tmp_path))
    room.add_entry()
    queue = SpillQueue(0, str(tmp_path))
    for number in range(6):
        disk.is_full = number % 2 == 1
        queue.append(batch(number))
    disk.is_full = True
    assert room.held > 0
    assert str(tmp_path) in room.trouble
    disk.is_full = False
    assert room.trouble == ""
    disk.is_full = True
    assert [queue.popleft()["x"][0].as_py() for _ in range(6)] == list(range(6))
    assert room.held == 0
    assert room.trouble == ""
    queue.append(batch(0))
    queue.append(batch(1))
    queue.close()
    assert room.held == 0
    room.add_entry(-1)


def test_where_nobody_can_be_held_back_the_error_of_the_disk_is_raised(tmp_path: Path, disk: Disk) -> None:
    queue = SpillQueue(0, str(tmp_path))
    queue.append(batch(0))
    with pytest.raises(OSError, match="No space left"):
        queue.append(batch(1))
    assert queue.popleft()["x"][0].as_py() == 0
    assert not queue


def test_what_was_staged_stays_in_memory(tmp_path: Path, disk: Disk) -> None:
    staging = Staging(str(tmp_path), memory=0)
    staging.keep("s", "1", batch(7), None)
    assert staging.memory_bytes > 0
    assert [rows["x"][0].as_py() for rows in staging.take("s", "1")] == [7]
    assert staging.memory_bytes == 0


@pytest.mark.parametrize("frees", [False, True])
def test_a_source_that_is_ahead_waits_and_the_one_behind_gets_in(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, frees: bool
) -> None:
    monkeypatch.setattr(waiting_source, "MEMORY", 0)
    join = StreamJoin("R", "S", "R.x = S.x", CountWindow(1_000), select=["R.x"], step_rows=50)
    rows = pa.table({"x": list(range(2_000))})
    sources = {"R": ["r"], "S": ["s"]}
    with join.launch(LocalRuntime(edge_bytes=2_000, spill_directory=str(tmp_path)), sources=sources) as running:

        def send(stream: str) -> None:
            for first in range(0, 2_000, 100):
                running.send(stream, rows.slice(first, 100), stream.lower())
            running.finish(stream)

        fast = threading.Thread(target=send, args=("R",), daemon=True)
        fast.start()
        wait_for(lambda: "except for sources that others wait for" in running.status().trouble)
        assert running.status().state is State.RUNNING
        sent = running.next_offset("R", "r")
        assert sent < 2_000
        if frees:
            disk.is_full = False
            fast.join()
        slow = threading.Thread(target=send, args=("S",), daemon=True)
        slow.start()
        found = sum(batch.num_rows for batch in running.results())
        fast.join()
        slow.join()
        assert found == 2_000
        assert running.status().trouble == ""
