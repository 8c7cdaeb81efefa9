"""A whole topology in one thread, without clock or journal, a step at a time, in an order that a seed decides.

The tasks, the entry and the edges are those that ship. So a run is one of those that threads could have made, and the
same seed makes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pyarrow as pa

from topology.entry.idle_watch import EntryClock
from topology.graph.components import Emit, SpoutTask, Task
from topology.graph.errors import StoppedError, TaskError
from topology.graph.graph import TaskName, Topology
from topology.graph.messages import Batch, End
from topology.process.hosted_task import GroupSettings
from topology.process.task_group import TaskGroup
from topology.tasks.user_traceback import user_traceback

ROOM = 1 << 60
"""Bytes on each edge: nobody reads the results while the topology runs, and nobody should wait for that."""

Emitted = tuple[str, str, pa.RecordBatch]
"""Rows that a component has emitted: its name, the stream, the rows."""


class SteppedTopology:
    """A topology whose tasks take turns as `chance` decides.

    now:     the seconds that have passed, as somebody says by `advance`.
    emitted: all rows that components have emitted, in the order of the run. Those of a sink are what has reached it.
    """

    def __init__(self, topology: Topology, chance: Random) -> None:
        self.topology = topology
        self.now = 0.0
        self.emitted: list[Emitted] = []
        self._sent = 0
        self._chance = chance
        settings = GroupSettings(ROOM, threads=1, clock=EntryClock(lambda: self.now))
        self._group = TaskGroup(topology, topology.task_names, settings, self._fail)
        self._group.connect()
        self._spouts: dict[TaskName, Iterator[None]] = {}
        for name, hosted in self._group.tasks.items():
            if isinstance(hosted.task, SpoutTask):
                self._spouts[name] = self._spout_steps(name, hosted.task)
            else:
                self._group.driven[name].watch(lambda emit, component=name[0]: self._note(component, emit))  # type: ignore[misc]
        self._ticks = {name: (0.0, seconds) for name, seconds in self._group.tick_intervals.items()}
        self._tick()

    def open(self, stream: str, source: str) -> None:
        """Announce a source."""
        self.topology.require_input(stream)
        self._group.ingest.open(stream, source)

    def send(self, stream: str, source: str, rows: pa.RecordBatch) -> int:
        """Take the next rows of a source; return its next offset."""
        self.topology.require_input(stream)
        return self._group.ingest.take(stream, source, rows)

    def finish(self, stream: str, source: str | None = None) -> None:
        """End a source, or a stream."""
        self.topology.require_input(stream)
        self._group.ingest.end(stream, source)

    def step(self) -> bool:
        """Let some task that can do so handle one message, or some spout make one; return whether one could."""
        names = [*self._group.driven, *self._spouts]
        self._chance.shuffle(names)
        return any(self._step(name) for name in names)

    def settle(self) -> None:
        """Take steps until nobody has anything to do."""
        while self.step():
            pass

    def advance(self, seconds: float) -> None:
        """Let time pass: everybody finishes what there is to do, then come ticks and idle sources, in their order."""
        end = self.now + seconds
        self.settle()
        while self._ticks and (due := min(at for at, _ in self._ticks.values())) <= end:
            self._pass_to(due)
        self._pass_to(end)

    @property
    def restorable(self) -> list[str]:
        """The components that say that their tasks make snapshots, and whose tasks do, in the order of the graph."""
        found = {name: self._group.tasks[name, number].task for name, number in self._group.driven}
        says = {node.name for node in self.topology.nodes if node.component.snapshots}
        makes = [name for name, task in found.items() if type(task).snapshot is not Task.snapshot]  # type: ignore[union-attr]
        return [name for name in makes if name in says]

    def restart(self, component: str) -> None:
        """Replace the tasks of a component by new ones, which go on from snapshots of the old."""
        for name in [name for name in self._group.driven if name[0] == component]:
            hosted, driven = self._group.tasks[name], self._group.driven[name]
            while not driven.is_between_messages:
                self._step(name)
            with _Explained(name):
                task, old = hosted.build(), hosted.task
                assert isinstance(task, Task)
                assert isinstance(old, Task)
                task.restore(old.snapshot())
            hosted.task = task
            driven.exchange(task)
            if name in self._ticks:  # a clock ticks at once for a task that starts
                driven.tick(self.now)

    def check_invariants(self) -> None:
        """Let every task check its invariants."""
        for name in self._group.driven:
            task = self._group.tasks[name].task
            assert isinstance(task, Task)
            task.check_invariants()

    def close(self) -> None:
        """Forget everything."""
        self._group.close_queues()
        self._group.ingest.close()

    def _step(self, name: TaskName) -> bool:
        if name in self._spouts:
            with _Explained(name):
                if next(self._spouts[name], self) is self:
                    del self._spouts[name]
            return True
        with _Explained(name):
            before = self._sent  # a task that has to wait for room may have sent something first
            return self._group.driven[name].step() or self._sent > before

    def _spout_steps(self, name: TaskName, task: SpoutTask) -> Iterator[None]:
        near = lambda component: range(self.topology.node(component).parallelism)  # noqa: E731
        outputs = self._group.spout_outputs(self._group.tasks[name], near)
        for emit in task.batches():
            self._note(name[0], emit)
            outputs.send(emit)
            yield
        outputs.send_all(End())

    def _pass_to(self, time: float) -> None:
        self.now = max(self.now, time)
        self._group.ingest.report_idle()
        self._tick()
        self.settle()

    def _tick(self) -> None:
        for name, (at, seconds) in self._ticks.items():
            if at <= self.now:
                self._group.driven[name].tick(self.now)
                self._ticks[name] = (at + seconds, seconds)

    def _note(self, component: str, emit: Emit) -> None:
        self._sent += 1
        if isinstance(emit.message, Batch):
            self.emitted.append((component, emit.message.stream, emit.message.rows))

    def _fail(self, error: TaskError) -> None:
        raise error


class _Explained:
    """Names the task whose code has failed."""

    def __init__(self, name: TaskName) -> None:
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, TaskError | StoppedError):
            raise TaskError(*self._name, user_traceback(error)) from error
