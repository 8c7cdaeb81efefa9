"""One simulated run: a join with a journal, its clients and its reader, on machines, a disk and a network that fail.

The world holds one life of the topology at a time, in one process or in several workers, and the zombies of earlier
ones. A controller starts the next life, by the rules of the one that ships. The reader keeps what it has been given by
number, acknowledges now and then, leaves, and comes back. At the end what it has must be what the oracle says, in
order; at every moment, a prefix of it.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import pyarrow as pa

from operators import Engine
from tests.operators.query.spelling import join_of
from tests.operators.surface_check import ENGINES
from tests.simulation.clients import PATIENCE, Client, Network
from tests.simulation.judge import Judge, WrongError
from tests.simulation.matrix import Cell, at_work
from tests.simulation.seeded_cases import case_of
from tests.surface import SurfaceCase
from topology import (
    AcknowledgedError,
    DamagedLogError,
    FencedError,
    InterlaceError,
    StaleStreamError,
    StoppedError,
    StoreError,
)
from topology.durable.disk_store import DiskStore
from topology.durable.group_commit import Ticket
from topology.entry.idle_watch import EntryClock
from topology.graph.graph import TaskName, Topology
from topology.handle.results_queue import QueueReader
from topology.on_ray.recovery import Cause, Recovery
from topology.placement.grouping_of_tasks import counted_groups, default_groups, merged, single_groups
from topology.simulated.disk import CrashedError, SimulatedDisk
from topology.simulated.life import SimulatedLife

STEP_SECONDS = 0.02
"""How long a step takes, on average: a call of a disk, a message, a call over the network."""

REFUSALS = 20
"""So many launches in a row may fail because of the disk."""


@dataclass
class Report:
    """What a run did. `faults`: those that came while something was at work."""

    seed: int
    engine: str = ""
    workers: int = 1
    rows: int = 0
    results: int = 0
    lives: int = 0
    steps: int = 0
    seconds: float = 0.0
    later_starts: int = 0
    late: int = 0
    joined: int = 0
    rejected: int = 0
    unmatched: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    cells: Counter[Cell] = field(default_factory=Counter)


@dataclass(eq=False)
class Zombie:
    """A life that everybody takes for dead, and what it has promised since: ends of sources, with their tickets."""

    life: SimulatedLife
    promises: list[tuple[Client, int, Ticket]] = field(default_factory=list)


class World:
    """Everything that one seed decides."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.case: SurfaceCase = case_of(seed, self.chance.choice([6, 12, 12, 30, 50]))
        # Which rows of a source come too late depends on timing. Then what is right is known at the end only.
        timed = self.case.event_time is not None and not self.case.out_of_order
        self.unannounced = timed and self.chance.random() < 0.4
        idle = timed and self.chance.random() < 0.3
        idle_after = self.chance.choice([1, 5, 60]) if idle else None
        self.join = replace(join_of(self.case), ordering="strict", idle_after=idle_after)
        self.judge = Judge(self.case, self.unannounced or idle)
        self.report = Report(seed)
        self.lay_out()
        self.disk = SimulatedDisk(seed)
        self.clients = [
            Client(stream, source, _one_batch(table))
            for stream, sources in self.case.sources.items()
            for source, table in sources.items()
        ]
        if self.unannounced:
            for client in self.clients:
                client.begins = self.chance.choice([0, self.chance.randint(0, 400)])
        self.report.rows = sum(client.rows.num_rows for client in self.clients)
        self.network = Network()
        self.life: SimulatedLife | None = None
        self.zombies: list[Zombie] = []
        self.reader: QueueReader | None = None
        self.late_reader: QueueReader | None = None
        self.forgetful = False  # the program that reads knows nothing of what it was given before
        self.acknowledged = -1
        self.losing_acknowledgement = False
        self.trace = 0  # a checksum of all that happened
        self.finished = False
        self.stalled_until = 0
        self.slow_until = 0
        self.held_until = 0
        self.down_until = 0.0
        self.now = 0.0
        self.incarnation = 0
        self.recovery = Recovery(lambda: self.now)
        self.hurt = False  # a fault has hit the present life
        self._refused = 0
        self._announced = False
        self.eagerness = self.chance.choice([0.1, 1, 1])
        self.edge_bytes = self.chance.choice([512, 4096, 1 << 20])
        self.segment_bytes = self.chance.choice([100, 100, 400, 1500])

    def lay_out(self) -> None:
        """Choose an engine, a number of elements, and which tasks share a process."""
        self.report.engine = self.chance.choice(list(ENGINES))
        engine: Engine = ENGINES[self.report.engine](self.chance.choice([1, 2]))
        self.topology = replace(self.join, using=engine).topology()
        self.groups = _groups(self.topology, self.chance)
        self.report.workers = len(self.groups)

    # --- running

    def step(self) -> None:
        """Let one thing happen that is no fault."""
        self.report.steps += 1
        self.now += self.chance.expovariate(1 / STEP_SECONDS)
        facts = (self.now, self.disk.calls, self.report.lives, len(self.judge.got), self.acknowledged)
        self.trace = zlib.crc32(repr(facts).encode(), self.trace)
        try:
            self._step()
        except CrashedError:
            self.note("crash in a call")
            self.crash(machine=True)

    @property
    def is_over(self) -> bool:
        """Whether the last result has been read, and the last late row has arrived."""
        return self.finished and self.life is not None and self.life.settle("late")

    def conclude(self) -> Report:
        """Judge the whole, when it is over."""
        assert self.life is not None
        self.read_late()
        known = sum(self.life.next_offset(client.stream, client.source) for client in self.clients)
        self.judge.conclude(known)
        report, judge = self.report, self.judge
        if known != report.rows:
            raise WrongError(f"{report.rows} rows were sent, and {known} are known")
        report.results, report.joined, report.unmatched = len(judge.got), judge.joined, judge.unmatched
        report.rejected, report.late = judge.rejected, len(judge.late) - judge.rejected
        report.seconds = self.now
        return report

    def describe(self) -> str:
        """Where everything stands, for a failing run."""
        clients = ", ".join(f"{c.stream}/{c.source} {c.durable}/{c.rows.num_rows}" for c in self.clients)
        wanted = "?" if self.judge.wanted is None else len(self.judge.wanted)
        return (
            f"{self.report.engine}, {self.case.kind}, windows {self.case.windows}, {len(self.groups)} workers; "
            f"{clients}; "
            f"{len(self.judge.got)} of {wanted} results, {self.acknowledged} acknowledged; step {self.report.steps}; "
            f"{dict(self.report.faults)}"
        )

    @property
    def most(self) -> dict[tuple[str, str], int]:
        """What was ever sent of each source, and given out by each sink."""
        sent = {(client.stream, client.source): client.most for client in self.clients}
        return sent | {("", "results"): len(self.judge.got) - 1}

    @property
    def work_done(self) -> float:
        """The part of all rows that is durable."""
        return sum(client.durable for client in self.clients) / max(1, self.report.rows)

    def at_work(self) -> list[tuple[str, str]]:
        """What a fault would come upon now: kinds of tasks, and phases."""
        if self.life is None:
            return []
        unread = bool(self.life.results["results"].nbytes)
        return list(at_work(self.life, bool(self.network.replies), unread))

    def note(self, fault: str, hit: list[tuple[str, str]] | None = None) -> None:
        """Count a fault, if anything was at work; `hit`: what it came upon, None: what is at work now."""
        hit = self.at_work() if hit is None else hit
        if hit:
            self.report.faults[fault] += 1
            self.report.cells.update((kind, phase, fault) for kind, phase in hit)

    def _step(self) -> None:
        if self.report.steps % 200 == 0:
            self.repair()
        life = self.life
        if life is None:
            self._start()
            return
        for woken in list(self.zombies):
            if self.chance.random() < 0.2:
                self._wake(woken)
        if life.broken is not None or not all(worker.runs for worker in life.workers):
            self._notice(life)
            return
        if self.report.steps > self.held_until:
            for edge in life.edges:
                edge.held = False
        what = self.chance.random()
        if what < 0.12:
            self._send(life)
        elif what < 0.2:
            self._arrive(life)
        elif what < 0.35:
            self._read(life)
        elif what < 0.55 or not life.step_any(self.chance):
            if not life.step_commit() and not life.step_resume():
                life.report_idle()
            self.network.answer()
            self._note_acknowledged(life)
        if life.error is not None:
            raise WrongError(f"a task failed: {life.error}")

    # --- lives

    def crash(self, machine: bool) -> None:
        """End all processes; with the machine, also what was not synced."""
        hit = self.at_work()
        self._leave_life()
        if machine:
            self.zombies.clear()  # they were on this machine
            torn = self.disk.torn
            self.disk.crash()
            if self.disk.torn > torn:
                self.note("torn write", hit)
        self.repair()

    def abandon(self) -> None:
        """Take the life for dead, although it goes on."""
        if self.life is not None:
            self.zombies = [*self.zombies[-2:], Zombie(self.life)]
        self._leave_life()

    def repair(self) -> None:
        """Give the disk room, and let it work."""
        self.disk.capacity = None
        self.disk.fail = 0.0

    def _leave_life(self) -> None:
        self.life = self.reader = self.late_reader = None
        self.finished = False
        self.network.forget_life()

    def _start(self) -> None:
        if self.now < self.down_until:
            self.now = self.down_until
        self.report.lives += 1
        self.incarnation += 1
        try:
            life = SimulatedLife(
                self.topology, DiskStore(self.disk), f"{self.chance.getrandbits(64):016x}", self.groups,
                self.incarnation, self.edge_bytes, self.segment_bytes, EntryClock(lambda: self.now),
            )  # fmt: skip
        except DamagedLogError as error:
            raise WrongError(f"the log is damaged: {error}") from error
        except StoreError as error:
            self.repair()
            self._refused += 1
            if self._refused > REFUSALS:
                raise WrongError(f"the state cannot be opened any more: {error}") from error
            return
        self.life = life
        self.hurt = False
        self._refused = 0
        self._announced = False
        self.recovery.note(life.progress)
        self.report.later_starts += life.starts_later
        for client in self.clients:
            known = life.next_offset(client.stream, client.source)
            if known < client.durable:
                raise WrongError(f"{client.source} has lost rows: {client.durable} were durable, {known} are known")
            if known > client.most:
                raise WrongError(f"{client.source} has {known} rows, and sent {client.most}")
            client.restart(known if self.chance.random() < 0.7 else client.durable)

    def _notice(self, life: SimulatedLife) -> None:
        """The controller learns that a worker has gone or an edge has broken; the other workers go on meanwhile."""
        if self.chance.random() < 0.8:
            life.step_any(self.chance)
            if self.chance.random() < 0.5:
                life.step_commit()
                self.network.answer()
            return
        why = life.broken
        if isinstance(why, FencedError) or not self.hurt:
            raise WrongError(f"nothing happened to this life, and yet it ended: {why}")
        frozen = [worker for worker in life.workers if worker.frozen and worker.alive]
        pause = self.recovery.pause_after(Cause(str(why or "a worker has gone"), None))
        if pause is None:  # it gives up; somebody launches the topology again
            self.recovery = Recovery(lambda: self.now)
            pause = 60.0
        self.down_until = self.now + pause
        if frozen:
            for worker in life.workers:
                worker.alive = worker.frozen
                worker.frozen = False
            self.abandon()
        else:
            if self.chance.random() < 0.5 and life.entry.runs:  # it closes its journal, unless it is killed
                while life.step_commit() and self.disk.capacity is None and not self.disk.fail:
                    pass
                self.network.answer()
            self._leave_life()

    def _wake(self, woken: Zombie) -> None:
        """A life that everybody takes for dead goes on for a while; nothing it does may be seen."""
        zombie = woken.life
        self._knock(zombie)
        client = self.chance.choice(self.clients)
        try:
            if zombie.entry.runs and not client.ended:
                known = zombie.next_offset(client.stream, client.source)
                rows = client.rows.slice(known, 3)
                if rows.num_rows and self.chance.random() < 0.3 and zombie.has_room(client.stream, rows):
                    _, ticket = zombie.take(client.stream, client.source, rows, known)
                    client.most = max(client.most, known + rows.num_rows)
                    assert ticket is not None
                    woken.promises.append((client, known + rows.num_rows, ticket))
            zombie.step_commit()
            zombie.step_any(self.chance)
            if zombie.broken is not None:
                raise zombie.broken
        except (InterlaceError, OSError):
            self.zombies.remove(woken)
            return
        for each, end, promise in woken.promises:
            if promise.durable:  # it says so, and so it must be
                each.durable = max(each.durable, end)

    def _knock(self, zombie: SimulatedLife) -> None:
        """An edge of an earlier life may not deliver to this one."""
        if self.life is not None and self.life.edges and zombie.edges and self.chance.random() < 0.1:
            old = self.chance.choice(zombie.edges)
            for new in self.life.edges:
                if new.name == old.name:
                    try:
                        old.knock(new)
                    except StaleStreamError:
                        return
                    raise WrongError(f"edge {old.name} of an earlier life was let in")

    # --- clients and reader

    def _send(self, life: SimulatedLife) -> None:
        client = self.chance.choice(self.clients)
        if client.waits and self.report.steps - client.since > PATIENCE and life.is_open:
            known = life.next_offset(client.stream, client.source)
            client.restart(known if self.chance.random() < 0.5 else client.durable)
        call = client.next_call(self.chance, self.report.steps)
        if call is not None:
            self.network.calls.append(call)

    def _arrive(self, life: SimulatedLife) -> None:
        if not life.is_open:
            return
        try:
            if not self._announced:  # before any rows, so that none is late
                for each in () if self.unannounced else self.clients:
                    life.open(each.stream, each.source)
                self._announced = True
            self.network.arrive(life, self.report.steps)
            self.network.answer()
            for stream in {client.stream for client in self.clients}:
                if all(client.ended for client in self.clients if client.stream == stream):
                    life.end(stream)
        except (StoreError, StoppedError, FencedError):
            pass

    def _note_acknowledged(self, life: SimulatedLife) -> None:
        if not life.journal.committer.has_work:
            self.acknowledged = max(self.acknowledged, life.journal.image.sinks["results"].number)

    def _read(self, life: SimulatedLife) -> None:
        if self.report.steps < self.stalled_until or (self.report.steps < self.slow_until and self.report.steps % 10):
            return
        queue = life.readable("results")
        if queue is None:
            return
        got = self.judge.got
        if self.reader is None:
            after = None if self.forgetful or not got else self.chance.randint(self.acknowledged, len(got) - 1)
            try:
                self.reader = queue.read(after, take_over=True)
            except AcknowledgedError:
                return  # it is behind itself, and asks again
            if self.reader.first <= self.acknowledged:
                raise WrongError(f"result {self.reader.first} comes again; {self.acknowledged} were acknowledged")
            self.forgetful = False
        found = self.reader.next(timeout=0)
        if found is not None:
            self.judge.hear(*found)
        elif self.reader.finished:
            self.finished = True
        if got and self.chance.random() < self.eagerness and life.settle("late"):
            self.read_late()
            least = len(got) - 1 if self.eagerness == 1 else self.acknowledged
            number = self.chance.randint(least, len(got) - 1)
            if self.losing_acknowledgement:
                self.losing_acknowledgement = False
                self.note("acknowledgement lost")
            elif number >= 0:
                queue.acknowledge(number)

    def read_late(self) -> None:
        """Take in what has been reported as late. Whoever wants all of it reads it before results are acknowledged."""
        queue = None if self.life is None else self.life.readable("late")
        if queue is None:
            return
        if self.late_reader is None:
            self.late_reader = queue.read()
        while (found := self.late_reader.next(timeout=0)) is not None:
            self.judge.hear_late(*found)


def _groups(topology: Topology, chance: Random) -> list[list[TaskName]]:
    """Which tasks share a process: in half of the runs all of them, else as workers of a cluster."""
    deciding = topology.deciding
    assert deciding is not None
    together = frozenset([*topology.inputs, deciding.name])
    how = chance.choice(["one", "one", "one", "default", "single", "counted"])
    if how == "one":
        return [list(topology.task_names)]
    made = {"default": default_groups, "single": single_groups}
    groups = made[how](topology) if how in made else counted_groups(topology, chance.randint(2, 4))
    return merged(topology, groups, together)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
