"""The embedded runtime: a few threads in this process drive all tasks; no daemon, no port, started in milliseconds.

The kernels release the GIL, so the threads use all cores. Spouts have threads of their own, because they may wait for
the file or socket that they read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from topology.entry.ingest import Ingest
from topology.flight.server import TopologyServer
from topology.graph.components import Emit, SpoutTask, Task, TaskContext
from topology.graph.errors import StoppedError, TaskError
from topology.graph.graph import Node, Topology
from topology.graph.messages import Message
from topology.handle.handle import Endpoint, log
from topology.handle.running import RunningTopology, Runtime
from topology.handle.spilling_results import results_queue
from topology.local.workers import DrivenTask, Workers
from topology.tasks.inbox import DEFAULT_CAPACITY, Inbox
from topology.tasks.metrics import Metrics, TaskCounters, TaskMetrics
from topology.tasks.task_loop import Channel, Outputs, TaskCore, run_spout
from topology.tasks.user_traceback import user_traceback

UNREAD_WARNING_SECONDS = 10.0
JOIN_SECONDS = 10.0


@dataclass(frozen=True)
class LocalRuntime(Runtime):
    """Runs a topology in this process.

    workers:         threads that drive the tasks; None: one more than there are cores, as one often waits for the GIL.
    edge_bytes:      the bytes that may wait on each edge before its sender has to wait.
    spill_directory: where rows that wait for slower sources are spilled; None: the system's temporary directory.
    """

    workers: int | None = None
    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None

    def launch(self, topology: Topology) -> RunningTopology:
        """Build all tasks and start the threads."""
        return LocalTopology(topology, self)


class _RunningTask:
    """A task with its inbox and its counters."""

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
        self._server: TopologyServer | None = None
        self._results_of = {
            sink: results_queue(topology.node(sink).component, runtime.edge_bytes, runtime.spill_directory)
            for sink in topology.sinks
        }
        self._tasks = {
            (node.name, number): _RunningTask(node, number, self)
            for node in topology.nodes
            for number in range(node.parallelism)
        }
        self._ingest = Ingest(runtime.spill_directory)
        for name, description in topology.inputs.items():
            self._ingest.add(name, description, partial(self._put_input, name))
        self._workers = Workers(runtime.workers or 1 + (os.cpu_count() or 1), self._task_failed)
        self._driven = {key: self._drive(task) for key, task in self._tasks.items() if isinstance(task.task, Task)}
        self._connect()
        self._spouts = [
            threading.Thread(target=self._run_spout, args=(task,), name=f"{key[0]}[{key[1]}]", daemon=True)
            for key, task in self._tasks.items()
            if isinstance(task.task, SpoutTask)
        ]
        self._workers.start()
        for driven in self._driven.values():
            self._workers.notify(driven)  # each task is idle once before its first message
        for spout in self._spouts:
            spout.start()

    def _drive(self, task: _RunningTask) -> DrivenTask:
        """Make the part of a task that the workers use: how it takes messages, sends, and asks for room."""
        assert isinstance(task.task, Task)
        core = TaskCore(task.task, task.origins, task.counters)
        depth = [node.name for node in self.topology.nodes].index(task.node.name)
        send: Callable[[Emit], None]
        room: Callable[[], bool]
        if task.node.name in self._results_of:
            queue = self._results_of[task.node.name]
            send, room = partial(queue.push, task.counters), lambda: queue.has_room
        else:
            targets = self._targets(task)
            inboxes = [(inbox, index) for inbox, index in targets.values()]
            channels = {key: partial(inbox.push, index) for key, (inbox, index) in targets.items()}
            send, room = self._outputs(task, channels).send, lambda: all(inbox.has_room(i) for inbox, i in inboxes)
        return DrivenTask(f"{task.node.name}[{task.number}]", depth, core, task.inbox, send, room)

    def _connect(self) -> None:
        """Schedule a task when a message arrives for it, and when a queue that it fills has room again."""
        for key, driven in self._driven.items():
            task = self._tasks[key]
            task.inbox.on_arrival = partial(self._workers.notify, driven)
            feeders = [self._driven.get((origin.component, origin.task)) for origin in task.origins]
            task.inbox.on_room = partial(self._room_for, feeders)
            if key[0] in self._results_of:
                self._results_of[key[0]].call_when_room(partial(self._workers.notify, driven))

    def _room_for(self, feeders: list[DrivenTask | None], index: int) -> None:
        feeder = feeders[index]
        if feeder is not None:  # spouts and senders from outside wait in their own threads
            self._workers.notify(feeder)

    def _targets(self, task: _RunningTask) -> dict[tuple[str, int], tuple[Inbox, int]]:
        """The inboxes that a task sends to, each with the index of its input there."""
        targets = {}
        for consumer in self.topology.consumers(task.node.name):
            for number in range(self.topology.node(consumer).parallelism):
                target = self._tasks[consumer, number]
                index = next(
                    origin.index
                    for origin in target.origins
                    if (origin.component, origin.task) == (task.node.name, task.number)
                )
                targets[consumer, number] = (target.inbox, index)
        return targets

    def _outputs(self, task: _RunningTask, channels: Mapping[tuple[str, int], Channel]) -> Outputs:
        return Outputs(
            self.topology,
            task.node.name,
            task.number,
            channels,
            local=lambda component: range(self.topology.node(component).parallelism),
        )

    def _run_spout(self, task: _RunningTask) -> None:
        assert isinstance(task.task, SpoutTask)
        channels = {key: partial(inbox.put, index) for key, (inbox, index) in self._targets(task).items()}
        outputs = self._outputs(task, channels)
        try:
            run_spout(task.task, outputs.send, outputs.send_all, task.counters)
        except StoppedError:
            return
        except BaseException as error:
            self.fail(TaskError(task.node.name, task.number, user_traceback(error)))

    def _task_failed(self, driven: DrivenTask, error: BaseException) -> None:
        component, number = next(key for key, each in self._driven.items() if each is driven)
        self.fail(TaskError(component, number, user_traceback(error)))

    def fail(self, error: TaskError) -> None:
        """Keep the first error and close all queues, which wakes everyone who waits."""
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
            if self._server is None:
                self._server = TopologyServer(
                    self.topology, self._ingest, self._results_of, failure=lambda: self._error
                )
        return self._server.endpoint(stream, control)

    def pin(self, stream: str, schema: pa.Schema) -> None:
        self.topology.require_input(stream)
        self._ingest.pin(stream, schema)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self.topology.require_input(stream)
        with self._translated_stop():
            self._ingest.commit(stream, source, attempt, rows)

    def stop(self) -> None:
        with self._state:
            was_running = not self._stopped
            self._stopped = True
            server = self._server
        if was_running:
            self._close_queues()
            if server is not None:
                server.close()
            busy = self._workers.stop(JOIN_SECONDS)
            for spout in self._spouts:
                spout.join(JOIN_SECONDS)
            for name in [*busy, *(spout.name for spout in self._spouts if spout.is_alive())]:
                log.warning("%s is still busy; it ends with the process", name)
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
        """Queue a message for an input; log a warning while it waits because results are unread."""
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
    """Replaces the error 'the queue is closed' by the error that closed it."""

    def __init__(self, running: LocalTopology) -> None:
        self._running = running

    def __enter__(self) -> None:
        self._running._raise_error()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StoppedError):
            self._running._raise_error()
