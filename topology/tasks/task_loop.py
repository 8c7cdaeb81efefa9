"""Runs one task, independent of how its messages travel.

`TaskCore` calls the task for each message and yields its actions. `Outputs` turns actions into messages on channels.
The threads of `topology/process` drive them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from topology.graph.components import Emit, Origin, SpoutTask, Task
from topology.graph.errors import UnknownStreamError
from topology.graph.graph import Topology
from topology.graph.groupings import Partitioner
from topology.graph.messages import Barrier, Batch, End, Idle, Message, Punctuation, Resume, Watermark
from topology.tasks.metrics import TaskCounters

Channel = Callable[[Message], object]
"""Sends one message to one task; returns when there was room for it."""


_TURNS = (Barrier, End)
_NO_MORE = object()
_NOTHING: Iterator[Emit] = iter(())
"""The actions of a task that answers with none, which is what most messages get."""


class Outputs:
    """The channels of one task; stream and grouping choose among them."""

    def __init__(
        self,
        topology: Topology,
        producer: str,
        task: int,
        channels: Mapping[tuple[str, int], Channel],
        local: Callable[[str], Sequence[int]] = lambda component: (),
    ) -> None:
        self._channels = dict(channels)
        self._everyone = tuple(channels.values())
        self._producer = producer
        self._routes = {stream: _Route() for stream in topology.node(producer).component.outputs}
        for edge in topology.edges:
            if edge.producer == producer and edge.stream in self._routes:
                tasks = topology.node(edge.consumer).parallelism
                partitioner = edge.grouping.partitioner(tasks, task, local(edge.consumer))
                own = {number: self._channels[edge.consumer, number] for number in range(tasks)}
                self._routes[edge.stream].add(partitioner, own)

    def send(self, emit: Emit) -> None:
        """Send a batch along the edges of its stream, any other message to every task downstream."""
        message = emit.message
        if not isinstance(message, Batch):
            self.send_all(message)
            return
        route = self._routes.get(message.stream)
        if route is None:
            known = ", ".join(f"'{name}'" for name in self._routes) or "none"
            raise UnknownStreamError(
                f"component '{self._producer}' emits on stream '{message.stream}', which it does not declare: "
                f"add it to its outputs; declared: {known}"
            )
        for channel in route.always:
            channel(message)
        for partitioner, channels in route.sometimes:
            for task, part in partitioner.split(message, emit.to):
                channels[task](part)

    def send_all(self, message: Message) -> None:
        """Send a message to every task downstream."""
        for channel in self._everyone:
            channel(message)


class _Route:
    """Where the batches of one stream go: on some channels always, on others as a partitioner chooses."""

    def __init__(self) -> None:
        self.always: list[Channel] = []
        self.sometimes: list[tuple[Partitioner, Mapping[int, Channel]]] = []

    def add(self, partitioner: Partitioner, channels: Mapping[int, Channel]) -> None:
        if partitioner.always is None:
            self.sometimes.append((partitioner, channels))
        else:
            self.always += [channels[task] for task in partitioner.always]


class TaskCore:
    """Calls one task for each message; the same under every driver.

    Actions are yielded one by one, so a task can make a large answer piece by piece. Only the task's own time counts as
    busy, not the time that the driver spends sending or waiting for room.
    """

    def __init__(self, task: Task, origins: Sequence[Origin], counters: TaskCounters) -> None:
        self._task = task
        self._origins = origins
        self._counters = counters
        self._ended: set[int] = set()
        self._at_barrier: set[int] = set()
        self._barrier = Barrier(0)
        self._resumed: set[str] = set()

    @property
    def finished(self) -> bool:
        """Whether every input has ended, and so the task."""
        return len(self._ended) == len(self._origins)

    def blocked(self, index: int) -> bool:
        """Whether an input has to wait: the task says so, or it has reached a barrier that others have not."""
        return index in self._at_barrier or self._task.blocked(self._origins[index])

    def idle(self) -> Iterator[Emit]:
        """The actions of the task when no message waits."""
        actions = self._task.on_idle()
        return self._counted(actions) if actions else _NOTHING

    def handle(self, index: int, message: Message) -> Iterator[Emit]:
        """Give the task one message; returns its actions, which are made one by one as they are asked for."""
        start = time.perf_counter()
        actions = self._deliver(index, message)
        self._counters.busy_seconds += time.perf_counter() - start
        if isinstance(message, _TURNS):
            return self._with_turns(actions)
        return self._counted(actions) if actions else _NOTHING

    def _with_turns(self, actions: Iterable[Emit]) -> Iterator[Emit]:
        """The actions for a message after which all inputs may be at a barrier, or at their end."""
        yield from self._counted(actions)
        if self._at_barrier and len(self._at_barrier | self._ended) == len(self._origins):
            self._at_barrier.clear()
            yield from self._counted(self._task.on_barrier(self._barrier))
            yield Emit(self._barrier)
        if self.finished:
            yield from self._counted(self._task.on_end())
            yield Emit(End())

    def _deliver(self, index: int, message: Message) -> Iterable[Emit]:
        task, origin = self._task, self._origins[index]
        match message:
            case Batch():
                self._counters.batches_in += 1
                self._counters.rows_in += message.num_rows
                self._counters.bytes_in += message.nbytes
                return task.on_batch(message, origin)
            case Punctuation():
                return task.on_punctuation(message, origin)
            case Watermark():
                return task.on_watermark(message, origin)
            case Idle():
                return task.on_source_idle(message, origin)
            case End(source=source) if source:
                return task.on_source_end(message, origin)
            case End():
                self._ended.add(index)
                return task.on_input_end(origin)
            case Barrier():
                self._at_barrier.add(index)
                self._barrier = message
            case Resume(sink=sink) if sink not in self._resumed:
                self._resumed.add(sink)  # it comes once on every edge, before all rows, and goes on once
                return (Emit(message),)
        return ()

    def _counted(self, actions: Iterable[Emit]) -> Iterator[Emit]:
        counters = self._counters
        iterator = iter(actions or ())  # a method without actions may return None
        while True:
            start = time.perf_counter()
            emit = next(iterator, _NO_MORE)
            counters.busy_seconds += time.perf_counter() - start
            if emit is _NO_MORE:
                return
            if not isinstance(emit, Emit):
                raise TypeError(f"a task yields Emit(message), not {type(emit).__name__}")
            count_out(counters, emit)
            yield emit


def run_spout(
    task: SpoutTask, send: Callable[[Emit], None], send_all: Callable[[Message], None], counters: TaskCounters
) -> None:
    """Send everything that a spout yields, then `End`."""
    for emit in task.batches():
        count_out(counters, emit)
        send(emit)
    send_all(End())


def count_out(counters: TaskCounters, emit: Emit) -> None:
    """Count a batch that leaves a task."""
    if isinstance(emit.message, Batch):
        counters.batches_out += 1
        counters.rows_out += emit.message.num_rows
        counters.bytes_out += emit.message.nbytes
