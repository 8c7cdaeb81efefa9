"""A topology with a state, its clients and its reader, on a machine that crashes as a seed decides.

Machines crash in the middle of calls of the disk, and lose what was not synced. Every result that was seen once must be
the same when it comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pyarrow as pa

from tests.topology.steps.one_process import SimulatedProcess
from topology import InterlaceError, StoreError, Topology
from topology.durable.disk_store import DiskStore
from topology.handle.results_queue import QueueReader
from topology.process.state import with_state
from topology.simulated.disk import CrashedError, SimulatedDisk

ROWS = 150
SOURCES = (("a", "a0"), ("a", "a1"), ("b", "b0"))
Row = tuple[object, ...]


class Machine:
    """Runs until all results have been read.

    rows:    makes rows of a source: the source, the first row's number, how many.
    sources: by stream and name; each has `ROWS` rows.
    got:     the results of each sink, by number.
    """

    def __init__(
        self,
        seed: int,
        topology: Topology,
        rows: Callable[[str, int, int], pa.RecordBatch],
        sources: Sequence[tuple[str, str]] = SOURCES,
    ) -> None:
        self.chance = Random(seed)
        self.topology = with_state(topology)
        self.rows = rows
        self.sources = sources
        self.disks = [SimulatedDisk(seed), SimulatedDisk(seed + 1)]
        self.process: SimulatedProcess | None = None
        self.opened: SimulatedProcess | None = None
        self.readers: dict[str, QueueReader] = {}
        self.got: dict[str, dict[int, Row]] = {sink: {} for sink in self.topology.sinks}
        self.ended: set[str] = set()
        self.lives = self.later_starts = 0
        self.now = 1e9
        self.segment_bytes = self.chance.choice([200, 400, 1500])

    def run(self, crashes: int, rate: float = 0.01) -> None:
        for _ in range(200_000):
            if len(self.ended) == len(self.got):
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
        raise AssertionError(f"no end: { ({sink: len(got) for sink, got in self.got.items()}) } results")

    def crash(self) -> None:
        self.process = None
        self.readers = {}
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
            self.read(process, self.chance.choice(sorted(self.got)))
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
        for each in self.sources if self.opened is not process else ():
            process.open(*each)
        self.opened = process
        stream, source = self.chance.choice(self.sources)
        known = process.next_offset(stream, source)
        rows = self.rows(source, known, min(ROWS - known, self.chance.randint(1, 5)))
        try:
            if known < ROWS and process.has_room(stream, rows):
                process.take(stream, source, rows, known)
            elif known >= ROWS:
                process.end(stream, source)
                if all(process.next_offset(*each) >= ROWS for each in self.sources if each[0] == stream):
                    process.end(stream)
        except InterlaceError:
            pass

    def read(self, process: SimulatedProcess, sink: str) -> None:
        queue = process.results[sink]
        if sink not in self.readers:
            try:
                self.readers[sink] = queue.read(take_over=True)
            except InterlaceError:
                return
        reader = self.readers[sink]
        found = reader.next(timeout=0)
        if found is None:
            if reader.finished:
                self.ended.add(sink)
            return
        first, rows = found
        got = self.got[sink]
        for number, row in enumerate(zip(*rows.to_pydict().values(), strict=True), first):
            assert got.setdefault(number, row) == row, f"{sink}: result {number} was {got[number]}, and is {row} now"
        if self.chance.random() < 0.7:
            queue.acknowledge(self.chance.randint(first - 1, first + rows.num_rows - 1))
