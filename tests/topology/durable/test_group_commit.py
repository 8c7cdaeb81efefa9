"""Many threads share syncs, and each learns when its record survives, or that it never will."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.topology.durable.stores import numbered, numbers, started
from topology.durable import group_commit
from topology.durable.disk import Piece
from topology.durable.disk_store import DiskStore
from topology.durable.group_commit import GroupCommit, Ticket
from topology.durable.local_disk import LocalDisk
from topology.durable.record import Position
from topology.durable.take_over import take_over
from topology.graph.errors import FencedError, StoppedError
from topology.simulated.disk import SimulatedDisk

PATIENCE = 60


class SlowStore(DiskStore):
    """Its syncs wait until they are allowed to go on, and are counted."""

    def __init__(self, disk: SimulatedDisk) -> None:
        super().__init__(disk)
        self.allowed = threading.Event()
        self.allowed.set()
        self.syncing = threading.Event()
        self.syncs = 0

    def sync(self, segment: str) -> None:
        self.syncing.set()
        assert self.allowed.wait(PATIENCE)
        self.syncs += 1
        super().sync(segment)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "RETRY_SECONDS", 0.01)


@pytest.fixture
def store() -> Iterator[SlowStore]:
    store = SlowStore(SimulatedDisk())
    yield store
    store.allowed.set()


def test_what_is_appended_during_a_sync_shares_the_next_one(store: SlowStore) -> None:
    committer = GroupCommit(started(store))
    store.allowed.clear()
    store.syncing.clear()
    before = store.syncs
    first = committer.append(numbered(1))
    assert store.syncing.wait(PATIENCE)
    others = [committer.append(numbered(number)) for number in range(2, 100)]
    assert [ticket.durable for ticket in (first, *others)] == [False] * 99
    assert not first.wait(0)
    assert committer.waiting_bytes > 98 * 10
    store.allowed.set()
    assert others[-1].wait(PATIENCE)
    assert [ticket.durable for ticket in (first, *others)] == [True] * 99
    assert store.syncs == before + 2
    assert committer.waiting_bytes == 0
    committer.close()
    assert numbers(take_over(store)) == list(range(1, 100))


def test_a_callback_comes_when_the_record_survives_and_in_order(store: SlowStore) -> None:
    log = started(store)
    committer = GroupCommit(log)
    called: list[Position] = []

    def then(ticket: Ticket) -> None:
        assert log.durable is not None
        assert ticket.position <= log.durable
        assert ticket.durable
        called.append(ticket.position)

    tickets = [committer.append(numbered(number), then) for number in range(20)]
    tickets.append(committer.rotate(numbered(-1), then))
    committer.close()
    assert called == [ticket.position for ticket in tickets]
    assert called[-1] == Position(2, 0)


def test_threads_append_together(tmp_path: Path) -> None:
    log = started(DiskStore(LocalDisk(tmp_path)))
    committer = GroupCommit(log)

    def work(first: int) -> None:
        for number in range(first, first + 50):
            assert committer.append(numbered(number, rows=3)).wait(PATIENCE)

    threads = [threading.Thread(target=work, args=(1_000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    committer.close()
    found = numbers(take_over(DiskStore(LocalDisk(tmp_path))))
    assert sorted(found) == [1_000 * thread + number for thread in range(4) for number in range(50)]


def test_a_successor_fails_all_tickets(store: SlowStore) -> None:
    committer = GroupCommit(started(store))
    assert committer.append(numbered(1)).wait(PATIENCE)
    successor = started(store)
    failed: list[Ticket] = []
    ticket = committer.append(numbered(2), failed.append)
    with pytest.raises(FencedError, match="taken the log over"):
        ticket.wait(PATIENCE)
    assert failed == [ticket]
    assert isinstance(ticket.error, FencedError)
    with pytest.raises(FencedError):
        committer.append(numbered(3))
    committer.close()
    assert numbers(successor) == [1]


def test_a_full_disk_is_trouble_until_there_is_room() -> None:
    disk = SimulatedDisk()
    committer = GroupCommit(started(DiskStore(disk)))
    disk.capacity = disk.used_bytes + 10
    tried = threading.Event()
    disk.write = _noticed(disk, tried)  # type: ignore[method-assign]
    ticket = committer.append(numbered(1, rows=100))
    assert tried.wait(PATIENCE)
    while committer.trouble is None:
        assert not ticket.wait(0.01)
    assert committer.trouble == "the disk is full"
    assert not committer.has_room
    disk.capacity = None
    assert ticket.wait(PATIENCE)
    committer.close()
    assert committer.trouble is None


def _noticed(disk: SimulatedDisk, tried: threading.Event):  # type: ignore[no-untyped-def]
    write = disk.write

    def noticed(name: str, at: int, pieces: Sequence[Piece]) -> None:
        tried.set()
        write(name, at, pieces)

    return noticed


def test_a_failing_store_is_tried_again() -> None:
    disk = SimulatedDisk(seed=3)
    committer = GroupCommit(started(DiskStore(disk)))
    disk.fail = 0.5
    tickets = [committer.append(numbered(number)) for number in range(30)]
    assert all(ticket.wait(PATIENCE) for ticket in tickets)
    committer.close()


def test_closing_a_full_disk_fails_what_waits() -> None:
    disk = SimulatedDisk()
    committer = GroupCommit(started(DiskStore(disk)))
    disk.capacity = disk.used_bytes
    ticket = committer.append(numbered(1))
    committer.close()
    with pytest.raises(StoppedError, match="closed before all was durable: the disk is full"):
        ticket.wait(PATIENCE)
    with pytest.raises(StoppedError):
        committer.append(numbered(2))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_fails_ends_the_commits_and_leaves_nobody_waiting(store: SlowStore) -> None:
    committer = GroupCommit(started(store))
    store.allowed.clear()

    def fail(ticket: Ticket) -> None:
        raise RuntimeError("a bug of the caller")

    tickets = [committer.append(numbered(0), fail), committer.append(numbered(1)), committer.append(numbered(2))]
    store.allowed.set()
    with pytest.raises(StoppedError, match="a bug of the caller"):
        while committer.append(numbered(9)):
            pass
    committer.close()
    assert all(ticket.durable or isinstance(ticket.error, StoppedError) for ticket in tickets)


def test_trimming_happens_beside_the_commits(store: SlowStore) -> None:
    log = started(store)
    committer = GroupCommit(log)
    for number in range(3):
        committer.append(numbered(number))
        committer.rotate(numbered(-1))
    with pytest.raises(ValueError, match="segment 9 has no durable start record"):
        committer.trim(9)
    assert committer.append(numbered(3)).wait(PATIENCE)
    committer.trim(4)
    committer.close()
    assert log.segments == take_over(store).segments == [4]
