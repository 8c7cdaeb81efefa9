"""One simulated run: a join with a journal, its clients and its reader, on a disk and a machine that fail.

The world holds one living process at a time, and the zombies of earlier ones. Clients send with offsets, and go on from
`next_offset` after a failure. The reader keeps what it has been given by number, acknowledges now and then, leaves, and
comes back. At the end what it has must be what the oracle says, in order; at every moment, a prefix of it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import pyarrow as pa

from operators import Engine
from operators.steady_results import conformed
from tests.comparison import rows_of
from tests.operators.query.spelling import join_of
from tests.operators.surface_check import ENGINES
from tests.oracle import Expected
from tests.simulation.seeded_cases import case_of
from tests.surface import SurfaceCase
from topology import DamagedLogError, FencedError, InterlaceError, StoppedError, StoreError
from topology.durable.disk_store import DiskStore
from topology.handle.results_queue import QueueReader
from topology.simulated.disk import CrashedError, SimulatedDisk
from topology.simulated.process import SimulatedProcess

FAULTS = (
    "process killed", "machine crashed", "crash in a call", "zombie", "reader left", "disk full", "disk failing",
    "reader stalled",
)  # fmt: skip


class WrongError(AssertionError):
    """The promise was broken."""


@dataclass
class Client:
    """Sends the rows of one source, in batches of any size.

    begins: the step from which on it sends.
    sent:   the next offset.
    most:   the greatest that it ever was; what a process wrote before it lost the log may count.
    """

    stream: str
    source: str
    table: pa.Table
    sent: int = 0
    most: int = 0
    begins: int = 0
    durable: int = 0
    ended: bool = False

    def next_rows(self, chance: Random) -> pa.RecordBatch:
        rows = self.table.slice(self.sent, chance.randint(1, 6)).combine_chunks()
        return rows.to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], self.table.schema)


@dataclass
class Report:
    """What a run did."""

    seed: int
    engine: str
    rows: int = 0
    results: int = 0
    lives: int = 0
    steps: int = 0
    later_starts: int = 0
    late: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class World:
    """Everything that one seed decides."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.case: SurfaceCase = case_of(seed, self.chance.choice([12, 20, 60]))
        self.expected: Expected = self.case.expected()
        name = self.chance.choice(list(ENGINES))
        engine: Engine = ENGINES[name](self.chance.choice([1, 2]))
        self.join = replace(join_of(self.case, engine), ordering="strict")
        self.topology = self.join.topology()
        self.report = Report(seed, name)
        self.disk = SimulatedDisk(seed)
        self.clients = [
            Client(stream, source, table)
            for stream, sources in self.case.sources.items()
            for source, table in sources.items()
        ]
        self.report.rows = sum(client.table.num_rows for client in self.clients)
        self.zombies: list[SimulatedProcess] = []
        self.process: SimulatedProcess | None = None
        self.reader: QueueReader | None = None
        self.got: list[tuple[object, ...]] = []
        self.acknowledged = -1
        self.finished = False
        self.stalled_until = 0
        self.refused = 0  # launches in a row
        # Which rows of a source come too late depends on timing. Then what is right is known at the end only.
        self.unannounced = bool(
            self.case.event_time is not None and not self.case.out_of_order and self.chance.random() < 0.5
        )
        if self.unannounced:
            for client in self.clients:
                client.begins = self.chance.choice([0, self.chance.randint(0, 600)])
        self.wanted = None if self.unannounced else rows_of(self.expected.table)
        self.late: dict[int, tuple[object, ...]] = {}
        self.eagerness = self.chance.choice([0.1, 1, 1])
        self.fault_rate = self.chance.choice([0.003, 0.008, 0.02])
        self.edge_bytes = self.chance.choice([512, 4096, 1 << 20])
        self.segment_bytes = self.chance.choice([400, 800, 1500, 4096])

    # --- running

    def run(self, faults: int = 20, most_steps: int = 100_000) -> Report:
        """Run to the end, with so many faults on the way while there is work to hit."""
        budget = faults
        while not self.finished:
            self.report.steps += 1
            if self.report.steps > most_steps:
                raise WrongError(f"no end after {most_steps} steps: {self.describe()}")
            if budget and self.chance.random() < self.fault_rate:
                budget -= 1
                self._fault()
            elif self.chance.random() < 0.005:
                self._repair()
            try:
                self._step()
            except CrashedError:
                self._note("crash in a call")
                self._crash(machine=True)
        wanted = self._judged() if self.wanted is None else self.wanted
        if self.got != wanted:
            raise WrongError(f"{len(self.got)} results, and {len(wanted)} are right; {len(self.late)} rows were late")
        self.report.results = len(self.got)
        self.report.late = len(self.late)
        return self.report

    def describe(self) -> str:
        """Where everything stands, for a failing run."""
        clients = ", ".join(f"{c.stream}/{c.source} {c.sent}/{c.table.num_rows}" for c in self.clients)
        return (
            f"{self.report.engine}, {self.case.kind}, windows {self.case.windows}; {clients}; "
            f"{len(self.got)} of {'?' if self.wanted is None else len(self.wanted)} results, "
            f"{self.acknowledged} acknowledged; "
            f"{dict(self.report.faults)}"
        )

    def _step(self) -> None:
        if self.process is None:
            self._start()
            return
        for zombie in self.zombies:
            if self.chance.random() < 0.2:
                self._wake(zombie)
        what = self.chance.random()
        if what < 0.15:
            self._send()
        elif what < 0.3:
            self._read()
        elif what < 0.5:
            self.process.step_commit()
            self._note_durable()
        elif what < 0.55:
            self.process.step_resume()
        else:
            self.process.step_any(self.chance)
        if self.process.error is not None:
            raise WrongError(f"a task failed: {self.process.error}")

    def _start(self) -> None:
        self.report.lives += 1
        try:
            self.process = SimulatedProcess(
                self.topology, DiskStore(self.disk), f"{self.chance.getrandbits(64):016x}", self.edge_bytes,
                self.segment_bytes,
            )  # fmt: skip
        except DamagedLogError as error:
            raise WrongError(f"the log is damaged: {error}") from error
        except StoreError as error:
            self._repair()
            self.refused += 1
            if self.refused > 20:
                raise WrongError(f"the state cannot be opened any more: {error}") from error
            return
        self.refused = 0
        self.reader = None
        self.report.later_starts += self.process.starts_later
        for client in self.clients:
            known = self.process.next_offset(client.stream, client.source)
            if known < client.durable:
                raise WrongError(f"{client.source} has lost rows: {client.durable} were durable, {known} are known")
            if known > client.most:
                raise WrongError(f"{client.source} has {known} rows, and sent {client.most}")
            client.sent = client.durable = known
            client.ended = False

    # --- clients and reader

    def _send(self) -> None:
        assert self.process is not None
        if not self.process.is_open:
            return
        client = self.chance.choice(self.clients)
        if self.report.steps < client.begins:
            return
        try:
            for each in () if self.unannounced else self.clients:  # before any rows, so that none is late
                self.process.open(each.stream, each.source)
            rows = client.next_rows(self.chance)
            if rows.num_rows and self.process.has_room(client.stream, rows):
                client.most = max(client.most, client.sent + rows.num_rows)
                client.sent = self.process.take(client.stream, client.source, rows, client.sent)
            elif not rows.num_rows and not client.ended:
                self.process.open(client.stream, client.source)
                self.process.end(client.stream, client.source)
                client.ended = True
                if all(each.ended for each in self.clients if each.stream == client.stream):
                    self.process.end(client.stream)
            self._note_durable()
        except (StoreError, StoppedError, FencedError):
            pass

    def _note_durable(self) -> None:
        """Everything that was sent is durable when the journal has nothing left to write."""
        assert self.process is not None
        if not self.process.journal.committer.has_work:
            for client in self.clients:
                client.durable = client.sent
            self.acknowledged = max(self.acknowledged, self.process.journal.image.sinks["results"].number)

    def _read(self) -> None:
        assert self.process is not None
        if self.report.steps < self.stalled_until:
            return
        queue = self.process.results["results"]
        if self.reader is None:
            after = self.chance.randint(self.acknowledged, len(self.got) - 1) if self.got else None
            try:
                self.reader = queue.read(after, take_over=True)
            except InterlaceError:
                return  # it has not heard of its earlier life yet
        found = self.reader.next(timeout=0)
        if found is not None:
            self._got(*found)
        elif self.reader.finished:
            self.finished = True
        if self.unannounced and self.chance.random() < 0.2:
            self._read_late()
        if self.got and self.chance.random() < self.eagerness:
            least = len(self.got) - 1 if self.eagerness == 1 else self.acknowledged
            queue.acknowledge(self.chance.randint(least, len(self.got) - 1))

    def _got(self, first: int, rows: pa.RecordBatch) -> None:
        if first > len(self.got):
            raise WrongError(f"results {len(self.got)} to {first - 1} are missing")
        given = rows_of(pa.Table.from_batches([conformed(rows, self.expected.table.schema)]))
        for number, row in enumerate(given, first):
            if number < len(self.got):
                if self.got[number] != row:
                    raise WrongError(f"result {number} was {self.got[number]}, and is {row} now")
            else:
                if self.wanted is not None and (number >= len(self.wanted) or self.wanted[number] != row):
                    right = self.wanted[number] if number < len(self.wanted) else "no result"
                    raise WrongError(f"result {number} is {row}, and {right} is right")
                self.got.append(row)

    def _read_late(self) -> None:
        """Take in what is reported as late; the same number must always be the same row."""
        assert self.process is not None
        reader = self.process.results["late"].read(take_over=True)
        while (found := reader.next(timeout=0)) is not None:
            for number, row in enumerate(rows_of(pa.Table.from_batches([found[1]])), found[0]):
                if self.late.setdefault(number, row) != row:
                    raise WrongError(f"late row {number} was {self.late[number]}, and is {row} now")
        reader.close()

    def _judged(self) -> list[tuple[object, ...]]:
        """What is right, given what was reported as late: the join of all other rows."""
        self._read_late()
        gone = {(str(stream), str(source), int(str(offset))) for stream, source, offset, _, reason in self.late.values()
                if reason == "source joined too late"}  # fmt: skip
        sources = {
            stream: {
                name: pa.concat_tables(
                    [
                        table.slice(0, 0),
                        *(table.slice(i, 1) for i in range(table.num_rows) if (stream, name, i) not in gone),
                    ]
                )
                for name, table in of_stream.items()
            }
            for stream, of_stream in self.case.sources.items()
        }
        return rows_of(replace(self.case, sources=sources).expected().table)

    # --- faults

    def _fault(self) -> None:
        what = self.chance.choice(FAULTS)
        match what:
            case "process killed":
                self._crash(machine=False)
            case "machine crashed":
                self._crash(machine=True)
            case "crash in a call":
                self.disk.crash_in = self.chance.randint(0, 6)
                return  # counted when it happens
            case "zombie":
                if self.process is None:
                    return
                self.zombies = [*self.zombies[-2:], self.process]
                self.process = self.reader = None
            case "reader left":
                if self.reader is None:
                    return
                self.reader.close()
                self.reader = None
            case "reader stalled":
                self.stalled_until = self.report.steps + self.chance.randint(100, 1000)
            case "disk full":
                self.disk.capacity = self.disk.used_bytes + self.chance.randint(0, 300)
            case "disk failing":
                self.disk.fail = 0.5
        self._note(what)

    def _repair(self) -> None:
        self.disk.capacity = None
        self.disk.fail = 0.0

    def _note(self, what: str) -> None:
        self.report.faults[what] += 1

    def _crash(self, machine: bool) -> None:
        self.process = self.reader = None
        if machine:
            self.zombies.clear()  # they were on this machine
            self.disk.crash()
        self._repair()

    def _wake(self, zombie: SimulatedProcess) -> None:
        """A process that everybody takes for dead goes on for a while; nothing it does may be seen."""
        client = self.chance.choice(self.clients)
        known = zombie.next_offset(client.stream, client.source)
        rows = client.table.slice(known, 3).combine_chunks().to_batches()
        try:
            if rows and not client.ended and zombie.has_room(client.stream, rows[0]) and self.chance.random() < 0.3:
                client.most = max(client.most, zombie.take(client.stream, client.source, rows[0], known))
            zombie.step_commit()
            zombie.step_any(self.chance)
        except (InterlaceError, OSError):
            self.zombies.remove(zombie)
            return
        committer = zombie.journal.committer
        if committer.error is None and not committer.has_work:  # it says that everything is durable
            for each in self.clients:
                each.durable = max(each.durable, zombie.next_offset(each.stream, each.source))
