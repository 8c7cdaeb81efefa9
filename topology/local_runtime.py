"""The embedded runtime: a thread per task in this process; no daemon, no port, started in milliseconds.

The kernels release the GIL, so threads use all cores; between kernels a thread only hands batches on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from topology.components import SpoutTask, Task, TaskContext
from topology.errors import StoppedError, TaskError
from topology.flight_door import FlightDoor
from topology.graph import Node, Topology
from topology.inbox import DEFAULT_CAPACITY, Inbox
from topology.ingest import Ingest
from topology.messages import Message
from topology.metrics import Metrics, TaskCounters, TaskMetrics
from topology.results_queue import ResultsQueue
from topology.running import Endpoint, RunningTopology, Runtime, log
from topology.task_loop import Channel, Outputs, TaskLoop, run_spout
from topology.user_traceback import user_traceback

UNREAD_WARNING_SECONDS = 10.0
JOIN_SECONDS = 10.0


@dataclass(frozen=True)
class LocalRuntime(Runtime):
    """Runs a topology in this process.

    edge_bytes:      how many bytes may wait on each edge before its sender waits.
    spill_directory: where rows that wait for slower sources go when memory is short; None: the system's choice.
    """

    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None

    def launch(self, topology: Topology) -> RunningTopology:
        """Start one thread per task."""
        return LocalTopology(topology, self)


class _RunningTask:
    """One task with its thread, its inbox and its counters."""

    def __init__(self, node: Node, number: int, running: LocalTopology) -> None:
        topology = running.topology
        self.node = node
        self.number = number
        self.origins = topology.origins(node.name)
        self.inbox = Inbox(max(1, len(self.origins)), running.runtime.edge_bytes)
        self.counters = TaskCounters()
        context = TaskContext(
            node.name, number, node.parallelism, self.origins, spill_directory=running.runtime.spill_directory
        )
        try:
            self.task = node.component.build(context)
        except Exception as error:
            raise TaskError(node.name, number, user_traceback(error)) from error
        self._running = running
        self.thread = threading.Thread(target=self._run, name=f"{node.name}[{number}]", daemon=True)

    def _run(self) -> None:
        try:
            send, send_all = self._running.outlets(self)
            if isinstance(self.task, SpoutTask):
                run_spout(self.task, send, send_all, self.counters)
            else:
                TaskLoop(self.task, self.origins, self.inbox, send, send_all, self.counters).run()
        except StoppedError:
            return
        except BaseException as error:
            self._running.fail(TaskError(self.node.name, self.number, user_traceback(error)))

    def metrics(self) -> TaskMetrics:
        return TaskMetrics.of(self.node.name, self.number, self.counters, self.inbox.nbytes, self.task.metrics())


class LocalTopology(RunningTopology):
    """The handle of a topology in this process."""

    def __init__(self, topology: Topology, runtime: LocalRuntime) -> None:
        super().__init__(topology)
        self.runtime = runtime
        self._error: TaskError | None = None
        self._error_reported = False
        self._stopped = False
        self._state = threading.Lock()
        self._door: FlightDoor | None = None
        self._results_of = {sink: ResultsQueue(runtime.edge_bytes) for sink in topology.sinks}
        self._tasks = {
            (node.name, number): _RunningTask(node, number, self)
            for node in topology.nodes
            for number in range(node.parallelism)
        }
        self._ingest = Ingest(runtime.spill_directory)
        for name, description in topology.inputs.items():
            self._ingest.add(name, description, partial(self._put_input, name))
        for task in self._tasks.values():
            task.thread.start()

    def outlets(self, task: _RunningTask) -> tuple[partial[None], partial[None]]:
        """How a task sends: to the inboxes downstream or, for a sink, to the reader's queue."""
        if task.node.name in self._results_of:
            queue = self._results_of[task.node.name]
            return partial(queue.take_from, task.counters), partial(queue.end)
        channels: dict[tuple[str, int], Channel] = {}
        for consumer in self.topology.consumers(task.node.name):
            for number in range(self.topology.node(consumer).parallelism):
                target = self._tasks[consumer, number]
                index = next(
                    origin.index
                    for origin in target.origins
                    if (origin.component, origin.task) == (task.node.name, task.number)
                )
                channels[consumer, number] = partial(target.inbox.put, index)
        outputs = Outputs(
            self.topology,
            task.node.name,
            task.number,
            channels,
            local=lambda component: range(self.topology.node(component).parallelism),
        )
        return partial(outputs.send), partial(outputs.send_all)

    def fail(self, error: TaskError) -> None:
        """Keep the first error and close all queues, so that everyone waiting wakes up."""
        with self._state:
            if self._stopped:
                return
            self._error = self._error or error
        self._close_queues()

    def metrics(self) -> Metrics:
        return Metrics(tuple(task.metrics() for task in self._tasks.values()))

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        with self._state:
            if self._stopped:
                raise StoppedError("the topology has been stopped")
            if self._door is None:
                self._door = FlightDoor(self.topology, self._ingest, self._results_of, failure=lambda: self._error)
        return self._door.endpoint(stream, control)

    def pin(self, stream: str, schema: pa.Schema) -> None:
        self.topology.require_input(stream)
        self._ingest.pin(stream, schema)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self.topology.require_input(stream)
        with self._translated_stop():
            self._ingest.commit(stream, source, attempt, rows)

    def stop(self) -> None:
        with self._state:
            first = not self._stopped
            self._stopped = True
            door = self._door
        if first:
            self._close_queues()
            if door is not None:
                door.close()
            for task in self._tasks.values():
                task.thread.join(JOIN_SECONDS)
                if task.thread.is_alive():
                    log.warning("%s is still busy; it ends with the process", task.thread.name)
            self._ingest.close()
        if self._error is not None and not self._error_reported:
            self._error_reported = True
            raise self._error

    def _open(self, stream: str, source: str) -> None:
        with self._translated_stop():
            self._ingest.open(stream, source)

    def _send(self, stream: str, source: str, rows: pa.RecordBatch) -> None:
        with self._translated_stop():
            self._ingest.send(stream, source, rows)

    def _finish(self, stream: str, source: str | None) -> None:
        with self._translated_stop():
            self._ingest.finish(stream, source)

    def _results(self, sink: str, timeout: float | None) -> Iterator[pa.RecordBatch]:
        queue = self._results_of[sink]
        while not queue.finished:
            rows = queue.next(timeout)
            if rows is not None:
                yield rows
            elif not queue.finished:
                self._raise_error()
                return

    def _put_input(self, name: str, message: Message) -> None:
        """Queue a message for an input; say so when nobody seems to read the results."""
        inbox = self._tasks[name, 0].inbox
        while not inbox.put(0, message, timeout=UNREAD_WARNING_SECONDS):
            unread = sum(queue.nbytes for queue in self._results_of.values())
            if unread:
                log.warning("send() waits: %d bytes of results are unread; read results() in another thread", unread)

    def _close_queues(self) -> None:
        for task in self._tasks.values():
            task.inbox.close()
        for queue in self._results_of.values():
            queue.close(self._error)

    def _translated_stop(self) -> _TranslatedStop:
        return _TranslatedStop(self)

    def _raise_error(self) -> None:
        if self._error is not None:
            self._error_reported = True
            raise self._error


class _TranslatedStop:
    """Turns 'the queue is closed' into the error that closed it."""

    def __init__(self, running: LocalTopology) -> None:
        self._running = running

    def __enter__(self) -> None:
        self._running._raise_error()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StoppedError):
            self._running._raise_error()


__all__ = ["LocalRuntime", "LocalTopology", "Task"]
