"""A topology run as if every element had a processor of its own.

The real tasks handle real messages one after the other on this processor, and the processor time of each message is
measured. From these times the clock of a machine with a processor per element and a fixed time per hop is computed: an
element begins with a message when the message has arrived and the element is free.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from topology import (
    DEFAULT_STREAM,
    Batch,
    Emit,
    Message,
    Outputs,
    Task,
    TaskContext,
    TaskCore,
    TaskCounters,
    Topology,
    Watermark,
)


@dataclass
class _Element:
    """A task of a component, named after it: with its number if the component has several."""

    name: str
    component: str
    core: TaskCore
    queues: list[deque[tuple[float, Message]]]
    outputs: Outputs | None = None
    free: float = 0.0
    busy: float = 0.0
    sent: list[tuple[_Element, int, Message]] = field(default_factory=list)

    def next_input(self, now: float) -> int | None:
        """The input whose first message came earliest among those that may be taken."""
        ready = [
            (queue[0][0], index)
            for index, queue in enumerate(self.queues)
            if queue and queue[0][0] <= now and not self.core.blocked(index)
        ]
        return min(ready)[1] if ready else None


class VirtualProcessors:
    """One element per processor, `hop_seconds` between any two; `late` adds to the hops to some elements."""

    def __init__(self, topology: Topology, hop_seconds: float, late: Mapping[str, float] | None = None) -> None:
        self._hop = hop_seconds
        self._late = dict(late or {})
        tasks = [(node.name, task) for node in topology.nodes for task in range(node.parallelism)]
        self._elements = {each: _element(topology, *each) for each in tasks}
        self._sinks = topology.sinks
        self._main_sink = topology.main_sink
        self._events: list[tuple[float, int, _Element]] = []
        self._number = itertools.count()
        self._sent: dict[str, int] = {}
        for (name, task), element in self._elements.items():
            channels = {}
            for consumer in topology.consumers(name):
                origins = topology.origins(consumer)
                index = next(each.index for each in origins if (each.component, each.task) == (name, task))
                for number in range(topology.node(consumer).parallelism):
                    channels[consumer, number] = partial(self._note, element, self._elements[consumer, number], index)
            element.outputs = Outputs(topology, name, task, channels)

    @property
    def processor_seconds(self) -> dict[str, float]:
        """The processor time that each element has used."""
        return {element.name: element.busy for element in self._elements.values()}

    def open(self, streams: Iterable[str]) -> None:
        """Announce one source for each stream, named after it."""
        for stream in streams:
            self._arrive(self._elements[stream, 0], 0, 0.0, Watermark(None, DEFAULT_STREAM, stream))

    def send(self, now: float, batches: Sequence[tuple[str, pa.RecordBatch]]) -> list[tuple[float, pa.RecordBatch]]:
        """Send rows of streams at one moment; return what reaches the sink, each batch with the time."""
        for stream, rows in batches:
            first = self._sent.get(stream, 0)
            self._sent[stream] = first + rows.num_rows
            batch = Batch(DEFAULT_STREAM, rows, first=first, source=stream, born=1.0)
            self._arrive(self._elements[stream, 0], 0, now, batch)
        gc.disable()
        try:
            return self._run()
        finally:
            gc.enable()

    def _run(self) -> list[tuple[float, pa.RecordBatch]]:
        results = []
        while self._events:
            now, _, element = heapq.heappop(self._events)
            now = max(now, element.free)
            index = element.next_input(now)
            if index is None:
                if any(element.queues):
                    continue  # blocked, or not arrived: another event is under way
                actions = element.core.idle()
            else:
                actions = element.core.handle(index, element.queues[index].popleft()[1])
            element.free = now
            while True:
                start = time.thread_time()
                emit = next(actions, None)
                took = time.thread_time() - start
                element.free += took
                element.busy += took
                if emit is None:
                    break
                if element.component in self._sinks:
                    if isinstance(emit.message, Batch) and element.component == self._main_sink:
                        results.append((element.free, emit.message.rows))
                    continue
                self._send(element, emit)
            if index is not None or any(element.queues):
                self._wake(element, element.free)
        return results

    def _send(self, element: _Element, emit: Emit) -> None:
        assert element.outputs is not None
        element.outputs.send(emit)
        for target, index, message in element.sent:
            self._arrive(target, index, element.free + self._hop + self._late.get(target.name, 0.0), message)
        element.sent.clear()

    def _note(self, element: _Element, target: _Element, index: int, message: Message) -> None:
        element.sent.append((target, index, message))

    def _arrive(self, element: _Element, index: int, now: float, message: Message) -> None:
        element.queues[index].append((now, message))
        self._wake(element, now)

    def _wake(self, element: _Element, now: float) -> None:
        heapq.heappush(self._events, (now, next(self._number), element))


def _element(topology: Topology, component: str, number: int) -> _Element:
    node, origins = topology.node(component), topology.origins(component)
    name = component if node.parallelism == 1 else f"{component}[{number}]"
    task = node.component.build(TaskContext(component, number, node.parallelism, origins))
    assert isinstance(task, Task)
    return _Element(name, component, TaskCore(task, origins, TaskCounters()), [deque() for _ in origins])
