"""Runs one task, independent of how its messages travel.

`TaskCore` calls the task for each message and yields its actions. `Outputs` turns actions into messages on channels.
The threads of `topology/process` drive them.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from topology.graph.components import Emit, Origin, SpoutTask, Task
from topology.graph.errors import UnknownStreamError
from topology.graph.graph import Topology
from topology.graph.groupings import Partitioner
from topology.graph.messages import Barrier, Batch, End, Idle, Message, Punctuation, Resume, Watermark
from topology.tasks.merged_watermark import MergedWatermark
from topology.tasks.metrics import AGE_BOUNDS, TaskCounters

Channel = Callable[[Message], object]
"""Sends one message to one task; returns when there was room for it."""


_TURNS = (Barrier, End)
_TIMELY = (Watermark, Idle, End)
_TIMELY_WITH_BATCHES = (Batch, *_TIMELY)
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
        counts = [name for name in channels if not topology.sequencer or topology.node(name[0]).follows]
        self._followers = tuple(channels[name] for name in counts)  # by this task's own punctuations
        self._producer = producer
        self._partitioners: list[Partitioner] = []
        self._lag = topology.node(producer).component.watermark_lag
        self._routes = {stream: _Route() for stream in topology.node(producer).component.outputs}
        for edge in topology.edges:
            if edge.producer == producer and edge.stream in self._routes:
                tasks = topology.node(edge.consumer).parallelism
                partitioner = edge.grouping.partitioner(tasks, task, local(edge.consumer))
                self._partitioners.append(partitioner)
                own = {number: self._channels[edge.consumer, number] for number in range(tasks)}
                self._routes[edge.stream].add(partitioner, own, self._lag is not None)

    def state(self) -> list[list[int]]:
        """What the groupings' later choices depend on beside the rows."""
        return [partitioner.state() for partitioner in self._partitioners]

    def resume(self, state: list[list[int]]) -> None:
        """Go on from a state."""
        for partitioner, own in zip(self._partitioners, state, strict=True):
            partitioner.resume(own)

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
            reached = []
            for task, part in partitioner.split(message, emit.to):
                channels[task](part)
                reached.append(task)
            if self._lag is not None and message.times is not None:
                # The rows of an input promise something to tasks that get none of them, too.
                promise = Watermark(message.times[1] - self._lag, message.stream, message.source)
                for task in channels.keys() - reached:
                    channels[task](promise)

    def send_all(self, message: Message) -> None:
        """Send a message to every task downstream; punctuations of a join stay in it where a sequencer counts."""
        for channel in self._followers if type(message) is Punctuation else self._everyone:
            channel(message)


class _Route:
    """Where the batches of one stream go: on some channels always, on others as a partitioner chooses."""

    def __init__(self) -> None:
        self.always: list[Channel] = []
        self.sometimes: list[tuple[Partitioner, Mapping[int, Channel]]] = []

    def add(self, partitioner: Partitioner, channels: Mapping[int, Channel], promises: bool) -> None:
        """Add an edge; where batches promise something, those tasks count too that get none."""
        if partitioner.always is None or (promises and len(partitioner.always) < len(channels)):
            self.sometimes.append((partitioner, channels))
        else:
            self.always += [channels[task] for task in partitioner.always]


class TaskCore:
    """Calls one task for each message; the same under every driver.

    Actions are yielded one by one, so a task can make a large answer piece by piece. Only the task's own time counts as
    busy, not the time that the driver spends sending or waiting for room.

    After the actions for a message come those for the event time that it brings, and then the watermark itself.

    steps: the messages that end the steps of which errors name the rows.
    """

    steps: ClassVar[type[Punctuation]] = Punctuation

    def __init__(self, task: Task, origins: Sequence[Origin], counters: TaskCounters) -> None:
        self._task = task
        self._origins = origins
        self._counters = counters
        counters.edge_rows, counters.edge_bytes = [0] * len(origins), [0] * len(origins)
        self._ended: set[int] = set()
        self._at_barrier: set[int] = set()
        self._barrier = Barrier(0)
        self._resumed: set[str] = set()
        self._last: tuple[int, Message] | None = None
        self._passed: dict[int, int] = {}
        self._merged = MergedWatermark(origins) if task.merges_watermarks else None

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

    def exchange(self, task: Task) -> None:
        """Call another task from now on, which has the state of this one."""
        self._task = task

    def tick(self, seconds: float) -> Iterator[Emit]:
        """The actions of the task at a tick of the clock."""
        return self._counted(self._task.on_tick(seconds))

    @property
    def last(self) -> tuple[int, Message] | None:
        """The message that the task was given last, with the index of its input."""
        return self._last

    @property
    def passed(self) -> int:
        """The end of the last step that the task is through with, on the input of its last message; -1: of none."""
        return -1 if self._last is None else self._passed.get(self._last[0], -1)

    def handle(self, index: int, message: Message) -> Iterator[Emit]:
        """Give the task one message; returns its actions, which are made one by one as they are asked for."""
        self._note(index, message)
        counters = self._counters
        counters.busy_since = start = time.perf_counter()
        actions = self._deliver(index, message)
        counters.busy_seconds += time.perf_counter() - start
        counters.busy_since = 0.0
        merged = self._merged
        if merged is not None and isinstance(message, _TIMELY_WITH_BATCHES if merged.follows_batches else _TIMELY):
            actions = self._with_time(merged, actions, index, message)
        elif actions:
            actions = self._counted(actions)
        if isinstance(message, _TURNS):
            return self._with_turns(actions)
        return iter(actions) if actions else _NOTHING

    def _note(self, index: int, message: Message) -> None:
        last = self._last
        if last is not None and isinstance(last[1], self.steps):
            self._passed[last[0]] = last[1].seq
        self._last = index, message

    def _with_time(
        self, merged: MergedWatermark, actions: Iterable[Emit], index: int, message: Message
    ) -> Iterator[Emit]:
        """The actions for a message that may move event time, and then those for the time."""
        yield from self._counted(actions)
        was_idle = merged.is_idle
        if merged.take(index, message) and merged.time is not None:
            yield from self._counted(self._task.on_event_time(merged.time))
            yield Emit(Watermark(merged.time))
        elif was_idle and not merged.is_idle:
            yield Emit(Watermark(None))
        if merged.is_idle and not was_idle:
            yield Emit(Idle())

    def _with_turns(self, actions: Iterable[Emit]) -> Iterator[Emit]:
        """The actions for a message after which all inputs may be at a barrier, or at their end."""
        yield from actions or ()
        if self._at_barrier and len(self._at_barrier | self._ended) == len(self._origins):
            self._at_barrier.clear()
            yield from self._counted(self._task.on_barrier(self._barrier))
            yield Emit(self._barrier)
        if self.finished:
            yield from self._counted(self._task.on_end())
            yield Emit(End())

    def _deliver(self, index: int, message: Message) -> Iterable[Emit]:
        match message:
            case Batch() | Punctuation():  # most messages
                pass
            case End(source=""):
                self._ended.add(index)
                return self._task.on_input_end(self._origins[index])
            case Barrier():
                self._at_barrier.add(index)
                self._barrier = message
            case Resume(sink=sink) if sink not in self._resumed:
                self._resumed.add(sink)  # it comes once on every edge, before all rows, and goes on once
                return (Emit(message),)
        return self._call(message, self._origins[index], index)

    def _call(self, message: Message, origin: Origin, index: int) -> Iterable[Emit]:
        """Call the method of the task for a message of `origin`, which came on the edge with this index."""
        task = self._task
        match message:
            case Batch():
                self._count_in(index, message)
                return task.on_batch(message, origin)
            case Punctuation():
                if message.born:
                    self._count_age(message.born)
                return task.on_punctuation(message, origin)
            case Watermark():
                return task.on_watermark(message, origin)
            case Idle():
                return task.on_source_idle(message, origin)
            case End(source=source) if source:
                return task.on_source_end(message, origin)
        return ()

    def _count_in(self, index: int, batch: Batch) -> None:
        counters, rows, size = self._counters, batch.num_rows, batch.nbytes
        counters.batches_in += 1
        counters.rows_in += rows
        counters.bytes_in += size
        counters.edge_rows[index] += rows
        counters.edge_bytes[index] += size
        if batch.born:
            self._count_age(batch.born)

    def _count_age(self, born: float) -> None:
        age = max(0.0, time.time() - born)
        self._counters.ages[bisect_left(AGE_BOUNDS, age)] += 1
        self._counters.age_seconds += age

    def _counted(self, actions: Iterable[Emit]) -> Iterator[Emit]:
        counters = self._counters
        iterator = iter(actions or ())  # a method without actions may return None
        while True:
            counters.busy_since = start = time.perf_counter()
            emit = next(iterator, _NO_MORE)
            counters.busy_seconds += time.perf_counter() - start
            counters.busy_since = 0.0
            if emit is _NO_MORE:
                return
            if not isinstance(emit, Emit):
                raise TypeError(f"a task yields Emit(message), not {type(emit).__name__}")
            count_out(counters, emit)
            yield emit


def run_spout(
    task: SpoutTask,
    send: Callable[[Emit], None],
    send_all: Callable[[Message], None],
    counters: TaskCounters,
    wait: Callable[[], None] = lambda: None,
) -> None:
    """Send everything that a spout yields, then `End`.

    A spout has a thread of its own. Processor time counts as busy, because a spout may wait for a file or a socket.

    wait: called before each batch is sent: waits while the topology takes none.
    """
    used = time.thread_time()
    for emit in task.batches():
        wait()
        count_out(counters, emit)
        counters.blocked_since = began = time.perf_counter()
        send(emit)
        counters.blocked_seconds += time.perf_counter() - began
        counters.blocked_since = 0.0
        counters.busy_seconds += time.thread_time() - used
        used = time.thread_time()
    send_all(End())


def count_out(counters: TaskCounters, emit: Emit) -> None:
    """Count a batch that leaves a task."""
    if isinstance(emit.message, Batch):
        counters.batches_out += 1
        counters.rows_out += emit.message.num_rows
        counters.bytes_out += emit.message.nbytes
