"""A process with all tasks of a topology, driven in one thread, a step at a time, as somebody outside decides.

The tasks, the entry, the journal and the results queues are those that ship; only threads and clocks are missing. So
what happens is a function of the order of calls, and the same seed gives the same run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import pyarrow as pa

from topology.durable.steps import Steps
from topology.durable.store import Store
from topology.graph.components import Sink
from topology.graph.errors import TaskError
from topology.graph.graph import TaskName, Topology
from topology.graph.messages import Batch
from topology.handle.results_queue import ResultsQueue
from topology.journal.opening import open_journal
from topology.journal.snapshots import Snapshots
from topology.process.hosted_task import GroupSettings
from topology.process.task_group import TaskGroup

SEGMENT_BYTES = 4096
"""Small enough that segments begin and are trimmed within a few rows."""


class SimulatedProcess:
    """One life of a topology with a journal: it ends with a crash, which is simply that nobody calls it any more.

    snapshots: another store, for those of the tasks, where the topology has a sequencer.
    """

    def __init__(
        self,
        topology: Topology,
        store: Store,
        token: str,
        edge_bytes: int = 1 << 20,
        segment_bytes: int = SEGMENT_BYTES,
        snapshots: Store | None = None,
    ) -> None:
        deciding = topology.deciding
        assert deciding is not None, "only what decides can be repeated"
        sinks = [name for name in topology.sinks if topology.node(name).component == Sink()]
        opened = open_journal(
            store, topology.identity, sinks, deciding.component.start_for, segment_bytes=segment_bytes, threaded=False,
            token=token, with_snapshots=bool(topology.sequencer),
        )  # fmt: skip
        self.snapshots = None if snapshots is None else Snapshots(snapshots, threaded=False)
        self.journal = opened.journal
        self.error: TaskError | None = None
        self._replay = opened.replay
        self.starts_later = opened.replay is not None and opened.replay.state is not None
        """Whether it goes on from the middle of the streams."""
        settings = GroupSettings(edge_bytes, threads=1)
        self._group = TaskGroup(topology, topology.task_names, settings, self._fail, opened, snapshots=self.snapshots)
        self._group.connect()
        self._resuming: Iterator[tuple[str, Batch]] | None = None
        self._waiting: tuple[str, Batch] | None = None
        self._committing: Steps[bool] | None = None

    @property
    def results(self) -> Mapping[str, ResultsQueue]:
        """The queues of the sinks."""
        return self._group.results

    @property
    def is_open(self) -> bool:
        """Whether it takes rows: everything that was sent before has come in again."""
        return self._replay is None

    def next_offset(self, stream: str, source: str) -> int:
        """How many rows of a source are known here."""
        return self._group.ingest.next_offset(stream, source)

    def has_room(self, stream: str, rows: pa.RecordBatch) -> bool:
        """Whether rows would be taken at once."""
        return self.is_open and self._fits(stream, Batch("", rows))

    def take(self, stream: str, source: str, rows: pa.RecordBatch, offset: int) -> int:
        """Take rows; they are durable when `durable` says so."""
        return self._group.ingest.take(stream, source, rows, offset)

    def open(self, stream: str, source: str) -> None:
        """Announce a source."""
        self._group.ingest.open(stream, source)

    def end(self, stream: str, source: str | None = None) -> None:
        """End a source, or a stream."""
        self._group.ingest.end(stream, source)

    def tasks(self) -> list[TaskName]:
        """The tasks that can be stepped."""
        return list(self._group.driven)

    def step(self, task: TaskName) -> bool:
        """Let one task handle one message; return whether it did anything."""
        return self._group.driven[task].step()

    def tick(self, seconds: float) -> None:
        """Let the clock tick for every task that it ticks for."""
        for name in self._group.tick_intervals:
            self._group.driven[name].tick(seconds)

    def step_commit(self) -> bool:
        """Let the journal make one call of its store; return whether there was one to make."""
        if self._committing is None:
            if not self.journal.committer.has_work:
                return False
            self._committing = self.journal.committer.round_steps()
        try:
            next(self._committing)
        except StopIteration:
            self._committing = None
        return True

    def step_snapshots(self) -> bool:
        """Let one snapshot be saved, or old ones be removed; return whether there was anything to do."""
        return self.snapshots is not None and self.snapshots.work()

    def step_resume(self) -> bool:
        """Bring in the next rows that were sent before; return whether there were any."""
        if self._replay is None or not self._replay.finished.is_set():
            return False
        if self._resuming is None:
            self._resuming = self._group.ingest.resume_steps(self._replay)
        elif self._waiting is not None and not self._fits(*self._waiting):
            return False
        self._waiting = next(self._resuming, None)
        if self._waiting is None:
            self._replay = None
        return True

    def step_any(self, chance: Random) -> bool:
        """Let some task that can do so handle one message; return whether one could."""
        tasks = self.tasks()
        first = chance.randrange(len(tasks))
        return any(self.step(task) for task in tasks[first:] + tasks[:first])

    def _fits(self, stream: str, batch: Batch) -> bool:
        return self._group.tasks[stream, 0].inbox.wait_for_room(0, batch, timeout=0)

    def _fail(self, error: TaskError) -> None:
        self.error = error
