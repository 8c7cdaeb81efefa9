"""Topologies of a user's own bolts after crashes: every result that was seen once is the same when it comes again.

The bolts are sensitive to the order of everything (`order_sensitive.py`). Machines crash in the middle of calls of the
disk, and lose what was not synced.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from tests.topology.steps.one_process import SimulatedProcess
from tests.topology.steps.order_sensitive import diamond
from topology import InterlaceError, StoreError, Topology
from topology.durable.disk_store import DiskStore
from topology.handle.results_queue import QueueReader
from topology.process.state import with_state
from topology.simulated.disk import CrashedError, SimulatedDisk

ROWS = 150
SOURCES = (("a", "a0"), ("a", "a1"), ("b", "b0"))
Row = tuple[object, ...]


class Machine:
    """A topology, its clients and its reader, on a machine that crashes."""

    def __init__(self, seed: int, topology: Topology, timed: bool) -> None:
        self.chance = Random(seed)
        self.topology = with_state(topology)
        self.timed = timed
        self.disks = [SimulatedDisk(seed), SimulatedDisk(seed + 1)]
        self.process: SimulatedProcess | None = None
        self.reader: QueueReader | None = None
        self.got: dict[int, Row] = {}
        self.finished = False
        self.lives = self.later_starts = 0
        self.now = 1e9
        self.segment_bytes = self.chance.choice([200, 400, 1500])

    def run(self, crashes: int, rate: float = 0.003) -> None:
        for _ in range(100_000):
            if self.finished:
                return
            if crashes and self.chance.random() < rate:
                crashes -= 1
                if self.chance.random() < 0.5:
                    self.chance.choice(self.disks).crash_in = self.chance.randint(0, 5)
                else:
                    self.crash()
            try:
                self.step()
            except CrashedError:
                self.crash()
        raise AssertionError(f"no end: {len(self.got)} results")

    def crash(self) -> None:
        self.process = self.reader = None
        for disk in self.disks:
            disk.crash()

    def step(self) -> None:
        if self.process is None:
            self.start()
            return
        process = self.process
        self.now += self.chance.choice([0.0, 0.05, 0.3]) - 0.01  # clocks jump
        if self.chance.random() < 0.05:
            process.tick(self.now)
        what = self.chance.random()
        if what < 0.15:
            self.send(process)
        elif what < 0.3:
            self.read(process)
        elif what < 0.5:
            for _ in range(self.chance.randint(1, 6)):
                process.step_commit()
        elif what < 0.55:
            process.step_resume()
        elif what < 0.65:
            while process.step_snapshots() and self.chance.random() < 0.8:
                pass
        else:
            for _ in range(self.chance.randint(1, 20)):
                process.step_any(self.chance)
        assert process.error is None, process.error

    def start(self) -> None:
        self.lives += 1
        token = f"{self.chance.getrandbits(64):016x}"
        try:
            self.process = SimulatedProcess(
                self.topology, DiskStore(self.disks[0]), token, 1 << 20, self.segment_bytes, DiskStore(self.disks[1])
            )
        except StoreError:
            return
        self.later_starts += self.process.starts_later

    def send(self, process: SimulatedProcess) -> None:
        if not process.is_open:
            return
        stream, source = self.chance.choice(SOURCES)
        known = process.next_offset(stream, source)
        rows = self.rows(known, min(ROWS - known, self.chance.randint(1, 5)))
        try:
            if known < ROWS and process.has_room(stream, rows):
                process.take(stream, source, rows, known)
            elif known >= ROWS:
                process.end(stream, source)
                if all(process.next_offset(*each) >= ROWS for each in SOURCES if each[0] == stream):
                    process.end(stream)
        except InterlaceError:
            pass

    def rows(self, first: int, count: int) -> pa.RecordBatch:
        numbers = range(first, first + count)
        columns = {"key": [number * 7 % 5 for number in numbers]}
        return pa.record_batch(columns | ({"time": [number // 3 for number in numbers]} if self.timed else {}))

    def read(self, process: SimulatedProcess) -> None:
        queue = process.results["results"]
        if self.reader is None:
            try:
                self.reader = queue.read(take_over=True)
            except InterlaceError:
                return
        found = self.reader.next(timeout=0)
        if found is None:
            self.finished = self.reader.finished
            return
        first, rows = found
        for number, row in enumerate(zip(*rows.to_pydict().values(), strict=True), first):
            assert self.got.setdefault(number, row) == row, f"result {number} was {self.got[number]}, and is {row} now"
        if self.chance.random() < 0.7:
            queue.acknowledge(self.chance.randint(first - 1, first + rows.num_rows - 1))


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_results_are_the_same_after_any_crash(seed: int, timed: bool) -> None:
    machine = Machine(seed, diamond(event_time="time" if timed else None), timed)
    machine.run(crashes=25)
    judge(machine.got)


@pytest.mark.parametrize("seed", range(20, 23))
def test_ticks_of_the_clock_come_again_at_the_same_places(seed: int) -> None:
    machine = Machine(seed, diamond(ticks=True), timed=False)
    machine.run(crashes=20)
    judge(machine.got)
    assert machine.later_starts


def judge(got: dict[int, Row]) -> None:
    """Nothing is missing, and each row has been counted once on each of its ways through the diamond."""
    assert sorted(got) == list(range(len(got)))
    totals = [number for key, number, _ in (got[n] for n in sorted(got)) if key == -1]
    sent = ROWS * len(SOURCES)
    from_a = 2 * ROWS
    # Through left, through right (each row of a to one task by key, and to both tasks by all_grouping), and b itself;
    # each of the five tasks before it adds a row at its end.
    assert totals[-1] == sent + (sent + 2 * from_a) + ROWS + 3 + 2


def test_snapshots_shorten_what_is_repeated() -> None:
    later = 0
    for seed in range(100, 104):
        machine = Machine(seed, diamond(), timed=False)
        machine.segment_bytes = 400
        machine.run(crashes=25)
        later += machine.later_starts
    assert later > 10


def test_without_snapshots_the_log_is_kept_whole_and_repeated() -> None:
    machine = Machine(7, diamond(with_snapshots=False), timed=False)
    machine.segment_bytes = 400
    machine.run(crashes=15)
    judge(machine.got)
    assert machine.later_starts == 0
    assert not DiskStore(machine.disks[1]).segments()
