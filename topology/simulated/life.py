"""One life of a topology with a journal, in one process or in several, driven in one thread.

The tasks, the entry, the journal, the results queues and the ends of the edges are those that ship; only threads,
sockets and clocks are missing. So what happens is a function of the order of calls, and the same seed gives the same
run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

import pyarrow as pa

from topology.durable.group_commit import Ticket
from topology.durable.steps import Steps
from topology.durable.store import Store
from topology.entry.idle_watch import EntryClock
from topology.graph.components import Sink
from topology.graph.errors import InterlaceError, TaskError
from topology.graph.graph import TaskName, Topology
from topology.graph.messages import Batch
from topology.handle.results_queue import Progress, ResultsQueue
from topology.journal.opening import Opened, open_journal
from topology.process.hosted_task import GroupSettings
from topology.simulated.edge import SimulatedEdge
from topology.simulated.worker import SimulatedWorker

SEGMENT_BYTES = 4096
"""Small enough that segments begin and are trimmed within a few rows."""


def opened_by_hand(topology: Topology, store: Store, token: str, segment_bytes: int = SEGMENT_BYTES) -> Opened:
    """Open the journal of a topology, which then writes when somebody says so."""
    deciding = topology.deciding
    assert deciding is not None, "only what decides can be repeated"
    sinks = [name for name in topology.sinks if topology.node(name).component == Sink()]
    return open_journal(
        store, topology.identity, sinks, deciding.component.start_for, segment_bytes=segment_bytes, threaded=False,
        token=token,
    )  # fmt: skip


class SimulatedLife:
    """It ends with a crash, which is simply that nobody steps it any more.

    groups:      the tasks of each worker; the inputs and the task that decides are in one of them. None: one has all.
    incarnation: the number of this life.
    clock:       decides which sources are idle.
    """

    def __init__(
        self,
        topology: Topology,
        store: Store,
        token: str,
        groups: Sequence[Sequence[TaskName]] | None = None,
        incarnation: int = 0,
        edge_bytes: int = 1 << 20,
        segment_bytes: int = SEGMENT_BYTES,
        clock: EntryClock | None = None,
    ) -> None:
        opened = opened_by_hand(topology, store, token, segment_bytes)
        deciding = topology.deciding
        assert deciding is not None
        self.topology = topology
        self.journal = opened.journal
        self.progress = opened.progress
        self.error: TaskError | None = None
        self.starts_later = opened.replay is not None and opened.replay.state is not None
        """Whether it goes on from the middle of the streams."""
        self._lost: InterlaceError | None = None
        self._replay = opened.replay
        settings = GroupSettings(edge_bytes, threads=1, clock=clock)
        self.workers = [
            SimulatedWorker(
                topology, names, settings, incarnation, self._fail,
                opened if (deciding.name, 0) in names else None,
            )
            for names in groups or [topology.task_names]
        ]  # fmt: skip
        self.entry = next(worker for worker in self.workers if (deciding.name, 0) in worker.names)
        self.results: dict[str, ResultsQueue] = {}
        self._reports: dict[str, Progress] = {}
        for worker in self.workers:
            self.results |= worker.group.results
            if worker is not self.entry:
                for sink, queue in worker.group.results.items():
                    queue.on_progress = partial(self._reports.__setitem__, sink)
        self.edges: list[SimulatedEdge] = []
        for worker in self.workers:
            worker.start(self._connected(worker, incarnation, edge_bytes))
        self._resuming: Iterator[tuple[str, Batch]] | None = None
        self._waiting: tuple[str, Batch] | None = None
        self._committing: Steps[bool] | None = None

    def _connected(
        self, worker: SimulatedWorker, incarnation: int, capacity: int
    ) -> Iterator[tuple[TaskName, TaskName, SimulatedEdge]]:
        home = {name: each for each in self.workers for name in each.names}
        for producer in worker.names:
            for consumer in self.topology.targets(producer):
                if consumer not in worker.names:
                    index = self.topology.input_index(producer, consumer)
                    name = f"{producer[0]}[{producer[1]}] to {consumer[0]}[{consumer[1]}]"
                    edge = SimulatedEdge(name, home[consumer].inputs[consumer, index], incarnation, capacity)
                    self.edges.append(edge)
                    yield producer, consumer, edge

    # --- clients

    @property
    def is_open(self) -> bool:
        """Whether it takes rows: everything that was sent before has come in again."""
        return self._replay is None and self.entry.runs

    def next_offset(self, stream: str, source: str) -> int:
        """How many rows of a source are known here."""
        return self.entry.group.ingest.next_offset(stream, source)

    def has_room(self, stream: str, rows: pa.RecordBatch) -> bool:
        """Whether rows would be taken at once."""
        return self.is_open and self._fits(stream, Batch("", rows))

    def take(self, stream: str, source: str, rows: pa.RecordBatch, offset: int) -> tuple[int, Ticket | None]:
        """Take rows; return the next offset, and the promise that all before it is durable."""
        ingest = self.entry.group.ingest
        return ingest.take(stream, source, rows, offset), ingest.recorded

    def open(self, stream: str, source: str) -> None:
        """Announce a source."""
        self.entry.group.ingest.open(stream, source)

    def end(self, stream: str, source: str | None = None) -> Ticket | None:
        """End a source, or a stream; return the promise that this is durable."""
        ingest = self.entry.group.ingest
        ingest.end(stream, source)
        return ingest.recorded

    def report_idle(self) -> None:
        """Look for sources that have been silent too long."""
        if self.is_open:
            self.entry.group.ingest.report_idle()

    # --- steps

    @property
    def broken(self) -> InterlaceError | None:
        """Why this life cannot go on, as its controller would hear."""
        cut = next((edge.broken for edge in self.edges if edge.broken is not None), None)
        return self.error or self._lost or cut or self.journal.committer.error

    @property
    def is_starting_segment(self) -> bool:
        """Whether a segment has begun from which everything can start, and is not durable yet."""
        durable = self.journal.committer.durable
        return bool(self.journal.image.starts) and (
            durable is None or self.journal.image.starts[-1].segment > durable.segment
        )

    def step_any(self, chance: Random) -> bool:
        """Let some task handle one message, or one frame or answer arrive; return whether there was anything to do."""
        moving = [edge for edge in self.edges if edge.can_move]
        reports = list(self._reports) if self.entry.runs else []
        ready = [len(worker.ready) for worker in self.workers]
        total = sum(ready) + len(moving) + len(reports)
        if not total:
            return False
        number = chance.randrange(total)
        for worker, count in zip(self.workers, ready, strict=True):
            if number < count:
                self._step(worker, number)
                return True
            number -= count
        if number < len(moving):
            moving[number].move(answer=chance.random() < 0.5)
        else:
            sink = reports[number - len(moving)]
            self.entry.group.record_progress(self.journal, sink, self._reports.pop(sink))
        return True

    def settle(self, sink: str) -> bool:
        """Let everything arrive at a sink that is on its way there; return whether that was possible."""
        worker = self._home(sink)
        into = [edge for edge in self.edges if edge.name.endswith(f" to {sink}[0]")]
        if not worker.runs or any(edge.held or edge.broken for edge in into):
            return False
        while True:
            moving = [edge for edge in into if edge.can_move]
            for edge in moving:
                edge.move(answer=False)
            if f"{sink}[0]" in worker.ready:
                self._step(worker, worker.ready.index(f"{sink}[0]"))
            elif not moving:
                return True

    def readable(self, sink: str) -> ResultsQueue | None:
        """The results of a sink, if its process runs and knows where it was before."""
        queue = self.results[sink]
        return queue if self._home(sink).runs and not queue.awaits_resume else None

    def step_commit(self) -> bool:
        """Let the journal make one call of its store; return whether there was one to make."""
        if self._committing is None:
            if not self.journal.committer.has_work or not self.entry.runs:
                return False
            self._committing = self.journal.committer.round_steps()
        try:
            next(self._committing)
        except StopIteration:
            self._committing = None
        return True

    def step_resume(self) -> bool:
        """Bring in the next rows that were sent before; return whether there were any."""
        if self._replay is None or not self._replay.finished.is_set() or not self.entry.runs:
            return False
        if self._resuming is None:
            self._resuming = self.entry.group.ingest.resume_steps(self._replay)
        elif self._waiting is not None and not self._fits(*self._waiting):
            return False
        self._waiting = next(self._resuming, None)
        if self._waiting is None:
            self._replay = None
        return True

    # --- ends

    def kill(self, worker: SimulatedWorker) -> None:
        """End the process of one worker; the others notice when they send to it, or it no longer answers."""
        worker.alive = False
        for edge in self.edges:
            producer, _, consumer = edge.name.partition(" to ")
            if any(f"{name}[{number}]" in (producer, consumer) for name, number in worker.names):
                edge.lose()

    def _step(self, worker: SimulatedWorker, number: int) -> None:
        try:
            worker.step(number)
        except InterlaceError as error:  # what it sends does not arrive: its worker would end
            self._lost = self._lost or error

    def _home(self, component: str) -> SimulatedWorker:
        return next(worker for worker in self.workers if (component, 0) in worker.names)

    def _fits(self, stream: str, batch: Batch) -> bool:
        return self.entry.group.tasks[stream, 0].inbox.wait_for_room(0, batch, timeout=0)

    def _fail(self, error: TaskError) -> None:
        self.error = self.error or error
