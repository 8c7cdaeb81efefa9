"""Running one task, whatever carries its messages.

`Outputs` turns a task's actions into messages on channels; `TaskLoop` feeds the task from its inbox until all inputs
have ended. Both the local and the Ray runtime use them; they differ in what a channel is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from topology.components import Emit, Origin, SpoutTask, Task
from topology.errors import UnknownStreamError
from topology.graph import Topology
from topology.inbox import Inbox
from topology.messages import Barrier, Batch, End, Message, Punctuation, Watermark
from topology.metrics import TaskCounters

Channel = Callable[[Message], object]
"""Takes one message towards one task; returns when there is room for it."""


_NO_MORE = object()


class Outputs:
    """The channels of one task, chosen by stream and grouping."""

    def __init__(
        self,
        topology: Topology,
        producer: str,
        task: int,
        channels: Mapping[tuple[str, int], Channel],
        local: Callable[[str], Sequence[int]] = lambda component: (),
    ) -> None:
        self._channels = dict(channels)
        self._producer = producer
        self._declared = tuple(topology.node(producer).component.outputs)
        self._edges = [
            (
                edge.stream,
                edge.consumer,
                edge.grouping.partitioner(topology.node(edge.consumer).parallelism, task, local(edge.consumer)),
            )
            for edge in topology.edges
            if edge.producer == producer
        ]

    def send(self, emit: Emit) -> None:
        """Send a batch along the edges of its stream, anything else to everyone downstream."""
        message = emit.message
        if isinstance(message, Batch):
            if message.stream not in self._declared:
                known = ", ".join(f"'{name}'" for name in self._declared) or "none"
                raise UnknownStreamError(
                    f"component '{self._producer}' sends on stream '{message.stream}', which it does not declare: "
                    f"add it to its outputs; declared: {known}"
                )
            for stream, consumer, partitioner in self._edges:
                if stream == message.stream:
                    for task, part in partitioner.split(message, emit.to):
                        self._channels[consumer, task](part)
        else:
            self.send_all(message)

    def send_all(self, message: Message) -> None:
        """Send a message to every task downstream."""
        for channel in self._channels.values():
            channel(message)


class TaskLoop:
    """Takes messages from the inbox, hands them to the task, sends what it answers."""

    def __init__(
        self,
        task: Task,
        origins: Sequence[Origin],
        inbox: Inbox,
        send: Callable[[Emit], None],
        send_all: Callable[[Message], None],
        counters: TaskCounters,
    ) -> None:
        self._task = task
        self._origins = origins
        self._inbox = inbox
        self._send = send
        self._send_all = send_all
        self._counters = counters
        self._open = len(origins)
        self._ended: set[int] = set()
        self._at_barrier: set[int] = set()
        self._barrier = Barrier(0)

    def run(self) -> None:
        """Return when every input has ended, or when the inbox has been closed."""
        while self._open:
            found = self._inbox.poll(self._blocked)
            if found is None:
                self._dispatch(self._task.on_idle())
                found = self._inbox.take(self._blocked)
                if found is None:
                    return
            self._handle(*found)
        self._dispatch(self._task.on_end())
        self._send_all(End())

    def _blocked(self, index: int) -> bool:
        """An input that has reached a barrier waits until all the others have reached it too."""
        return index in self._at_barrier or self._task.blocked(self._origins[index])

    def _handle(self, index: int, message: Message) -> None:
        self._deliver(index, message)
        if self._at_barrier and len(self._at_barrier | self._ended) == len(self._origins):
            self._at_barrier.clear()
            self._dispatch(self._task.on_barrier(self._barrier))
            self._send_all(self._barrier)

    def _deliver(self, index: int, message: Message) -> None:
        task, origin = self._task, self._origins[index]
        match message:
            case Batch():
                self._counters.batches_in += 1
                self._counters.rows_in += message.rows.num_rows
                self._counters.bytes_in += message.nbytes
                self._dispatch(task.on_batch(message, origin))
            case Punctuation():
                self._dispatch(task.on_punctuation(message, origin))
            case Watermark():
                self._dispatch(task.on_watermark(message, origin))
            case End(source=source) if source:
                self._dispatch(task.on_source_end(message, origin))
            case End():
                self._open -= 1
                self._ended.add(index)
                self._dispatch(task.on_input_end(origin))
            case Barrier():
                self._at_barrier.add(index)
                self._barrier = message

    def _dispatch(self, actions: Iterable[Emit]) -> None:
        """Send each action as it comes, so that a task can make large answers piece by piece.

        Only the task's own time counts as busy, not the time spent waiting for room downstream.
        """
        counters = self._counters
        iterator = iter(actions or ())  # a method that only keeps what it got may return nothing
        while True:
            start = time.perf_counter()
            emit = next(iterator, _NO_MORE)
            counters.busy_seconds += time.perf_counter() - start
            if emit is _NO_MORE:
                return
            if not isinstance(emit, Emit):
                raise TypeError(f"a task sends Emit(message), not {type(emit).__name__}")
            count_out(counters, emit)
            self._send(emit)


def run_spout(
    task: SpoutTask, send: Callable[[Emit], None], send_all: Callable[[Message], None], counters: TaskCounters
) -> None:
    """Send all that a spout makes, then the end."""
    for emit in task.batches():
        count_out(counters, emit)
        send(emit)
    send_all(End())


def count_out(counters: TaskCounters, emit: Emit) -> None:
    """Count a batch that leaves a task."""
    if isinstance(emit.message, Batch):
        counters.batches_out += 1
        counters.rows_out += emit.message.rows.num_rows
        counters.bytes_out += emit.message.nbytes
