"""One budget of memory and one of disk for all rows that wait in a process, however many sources there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin
from tests.topology.waiting import wait_for
from topology import Budget, Handle, LocalRuntime, QuotaError, SpillQueue, TopologyError, waiting_memory
from topology.checks.quotas import Quotas
from topology.entry.staging import Staging
from topology.tasks.spill_room import SpillRoom, spill_room

ROWS = 1_000
JOIN = StreamJoin("R", "S", "R.x = S.x", CountWindow(10), select=["R.x"], event_time="x")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SpillRoom]:
    """That of a directory of its own; nobody may hold memory or disk at the end."""
    before = waiting_memory.used
    room = spill_room(str(tmp_path))
    yield room
    assert room.disk.used == 0
    assert waiting_memory.used == before


def batch(first: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"x": np.arange(first, first + ROWS)})


SIZE = 8 * ROWS


def test_many_queues_share_the_memory(tmp_path: Path, room: SpillRoom) -> None:
    budget = Budget(memory=waiting_memory.used + 20 * SIZE)
    room.admit(budget)
    queues = [SpillQueue(directory=str(tmp_path)) for _ in range(10)]
    for number in range(10):
        for queue in queues:
            queue.append(batch(number))
    # the first of each stays in any case
    assert waiting_memory.used <= budget.memory + 10 * SIZE
    assert room.disk.used >= 70 * SIZE
    for queue in queues:
        assert [queue.popleft()["x"][0].as_py() for _ in range(10)] == list(range(10))
    assert len(queues[0]) == 0
    for queue in queues:
        queue.close()
    room.release(budget)


def test_sixty_staged_sources_stay_within_the_budget(tmp_path: Path, room: SpillRoom) -> None:
    """They once held 2 GB. Beyond memory and disk they are refused, with what to do; what was taken stays whole."""
    budget = Budget(memory=waiting_memory.used + 50 * SIZE, disk=400 * SIZE)
    room.admit(budget)
    staging = Staging(str(tmp_path))
    taken: dict[str, int] = {}
    with pytest.raises(QuotaError, match=r"raise Budget\(disk=...\)"):
        for number in range(60 * 10):
            source = f"s{number % 60}"
            staging.require_room("R", source, "1", batch(), Quotas())
            staging.keep(source, "1", batch(taken.get(source, 0)), (0, 0))
            taken[source] = taken.get(source, 0) + 1
    assert len(taken) == 60
    assert waiting_memory.used <= budget.memory
    assert room.disk.used <= 400 * SIZE
    assert sum(taken.values()) >= 350
    for source, count in taken.items():
        assert [rows["x"][0].as_py() for rows in staging.take(source, "1")] == list(range(count))
    staging.close()
    room.release(budget)


def test_many_sources_at_a_gate_share_memory_and_disk_and_those_ahead_wait(tmp_path: Path, room: SpillRoom) -> None:
    """The one that all wait for gets in; when it has come, all results are there."""
    budget = Budget(memory=waiting_memory.used + 20 * SIZE, disk=40 * SIZE)
    sources = [f"s{number}" for number in range(20)]
    with JOIN.launch(
        LocalRuntime(spill_directory=str(tmp_path), budget=budget), sources={"R": sources, "S": ["behind"]}
    ) as running:
        threads = [in_thread(running, source) for source in sources]
        wait_for(lambda: "Budget(disk=...)" in running.status().trouble)
        # each of those that wait has a batch or two under way
        assert waiting_memory.used <= budget.memory + 4 * len(sources) * SIZE
        assert room.disk.used <= 40 * SIZE
        for first in range(0, 20 * ROWS, ROWS):
            running.send("S", batch(first), source="behind")
        running.finish("S")
        for thread in threads:
            thread.join()
        running.finish()
        found = sum(rows.num_rows for rows in running.results("results"))
        assert running.status().trouble == ""
    assert found == 20 * ROWS * len(sources)


def in_thread(running: Handle, source: str) -> threading.Thread:
    def send() -> None:
        for first in range(0, 20 * ROWS, ROWS):
            running.send("R", batch(first), source=source)

    thread = threading.Thread(target=send, name=source, daemon=True)
    thread.start()
    return thread


def test_the_least_of_several_budgets_counts_until_its_topology_has_ended(tmp_path: Path) -> None:
    room = spill_room(str(tmp_path))
    before = room.disk.most
    for disk in (1 << 30, 1 << 20):
        with JOIN.launch(LocalRuntime(spill_directory=str(tmp_path), budget=Budget(disk=disk))):
            assert room.disk.most == disk
    assert room.disk.most == before


@pytest.mark.parametrize("wrong", [{"memory": 0}, {"memory": None}, {"disk": -1}, {"disk": 1.5}, {"memory": True}])
def test_a_budget_is_a_number_of_bytes(wrong: dict[str, object]) -> None:
    with pytest.raises(TopologyError, match="must be a whole number of bytes above 0"):
        Budget(**wrong)  # type: ignore[arg-type]
