"""A worker: one process of a topology on Ray, with one or more of its tasks.

Ray starts the process, names it and reports its death; rows never pass through Ray. Inside the process runs a
`TaskGroup`, as in the embedded runtime. Edges to tasks in other workers are sockets. The worker listens on the
address of its own node, and on loopback only if the whole topology is on one machine.

A worker is detached: it does not die with the program that launched it. It ends itself when its controller has gone or
has not answered for the time of its lease.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import ray

from topology.edges.edge import SocketEdge
from topology.edges.edge_receiver import EdgeReceiver
from topology.edges.sockets import Peer
from topology.graph.errors import FencedError, InterlaceError, MissingPackageError, StoppedError, TaskError
from topology.graph.graph import TaskName, Topology
from topology.handle.endpoint import Endpoint, Secret
from topology.handle.log_lines import CollectedLines, LogLine, collect_output
from topology.handle.results_queue import Progress
from topology.handle.status import Vitals
from topology.journal.opening import Opened
from topology.journal.snapshots import Snapshots
from topology.on_ray.by_value import loads
from topology.on_ray.lease import RENEWAL_SECONDS, Lease
from topology.on_ray.worker_actor import Address, Failure, KeptState, WorkerOrder
from topology.process.hosted_task import GroupSettings
from topology.process.memory import keep_freed_memory
from topology.process.task_group import TaskGroup
from topology.process.vitals import read_vitals
from topology.process.without_pandas import hide_pandas
from topology.tasks.metrics import TaskMetrics

if TYPE_CHECKING:
    from topology.flight.client_port import ClientPort
    from topology.flight.progress_reports import ProgressReports
    from topology.process.state import StatePlace

CALL_SECONDS = 5.0


class WorkerProcess:
    """Owns the group of tasks and the port of one worker."""

    def __init__(self, order: WorkerOrder) -> None:
        hide_pandas()
        keep_freed_memory()
        self._order = order
        self._failure: Failure | None = None
        self._over = threading.Event()
        self._group: TaskGroup | None = None
        self._receiver: EdgeReceiver | None = None
        self._port: ClientPort | None = None
        self._reports: ProgressReports | None = None
        self._opened: Opened | None = None
        snapshots: Snapshots | None = None
        try:
            topology, settings = cast(tuple[Topology, GroupSettings], loads(order.work))
            self._edge_bytes = settings.edge_bytes
            if order.state is not None:
                place = _place(order.state)
                if order.state.task in order.tasks:
                    self._opened = place.open(topology, settings.spill_directory)
                snapshots = place.open_snapshots(topology)
            self._group = TaskGroup(topology, order.tasks, settings, self._failed, self._opened, snapshots=snapshots)
        except TaskError as error:
            self._failed(error)
            return
        except MissingPackageError as error:
            self._fail(Failure(order.tasks[0], str(error)))
            return
        except InterlaceError as error:  # the description cannot be read here, or the state cannot be opened
            self._fail(Failure(None if order.state is not None else order.tasks[0], str(error)))
            return
        self._group.set_active(order.active)
        if self._opened is not None:
            self._opened.journal.committer.on_end = self._journal_ended
        elif order.state is not None:
            for queue in self._group.results.values():
                queue.awaits_resume = True
        here = self._group.tasks
        fed_from_elsewhere = {
            name: (task.origins, task.inbox)
            for name, task in here.items()
            if any(feeder not in here for feeder in self._group.topology.feeders(name[0]))
        }
        self._receiver = EdgeReceiver(
            order.authority, fed_from_elsewhere, order.host, order.certificate, order.incarnation
        )
        if self._group.ingest.streams or self._group.results:
            self._port = self._serve_clients(self._group, settings)
        threading.Thread(target=self._prepare, args=(self._group,), name="preparing", daemon=True).start()

    def address(self) -> Address | Failure:
        """Return where the worker listens, or why a task could not be built."""
        node = ray.get_runtime_context().get_node_id()
        if self._receiver is None:
            assert self._failure is not None
            return self._failure
        clients = "" if self._port is None else self._port.location
        progress = None if self._opened is None else self._opened.progress
        return self._failure or Address(self._receiver.location, clients, node, os.getpid(), progress)

    def start(self, addresses: Mapping[TaskName, Address]) -> None:
        """Connect to the tasks in other workers and start."""
        group, order = self._group, self._order
        assert group is not None
        here = ray.get_runtime_context().get_node_id()
        self._report_progress(group, addresses)
        edges = {}
        for producer in order.tasks:
            for consumer in group.topology.targets(producer):
                if consumer not in group.tasks:
                    edges[producer, consumer] = SocketEdge(
                        Peer(addresses[consumer].location, order.channel_token, order.root),
                        producer,
                        consumer,
                        group.topology.input_index(producer, consumer),
                        order.incarnation,
                        self._edge_bytes,
                        partial(self._edge_broke, producer),
                        order.certificate,
                        whole_steps=bool(group.topology.sequencer) and not group.topology.node(consumer[0]).follows,
                    )

        def near(component: str) -> list[int]:
            tasks = range(group.topology.node(component).parallelism)
            return [task for task in tasks if addresses[component, task].node_id == here]

        group.connect(edges, near)
        group.start()

    def wait(self) -> Failure | None:
        """Wait until a task has failed or the worker has been closed; return the failure, or None."""
        self._over.wait()
        return self._failure

    def vitals(self) -> Vitals:
        """What the process uses."""
        return read_vitals() if self._group is None else self._group.vitals()

    def metrics(self) -> tuple[TaskMetrics, ...]:
        """The counters of the tasks so far."""
        return () if self._group is None else self._group.metrics()

    def task_of(self, thread: int) -> TaskName | None:
        """The task that a thread works for."""
        return None if self._group is None else self._group.task_of(thread)

    def rows_after(self, seq: int) -> str:
        """The rows of the step behind `seq` in words; known only where the state is kept."""
        return "" if self._group is None else self._group.rows_after(seq)

    def savepoint(self) -> str:
        """Copy what is needed to go on from here; only where the state is kept."""
        state, opened = self._order.state, self._opened
        assert state is not None
        assert opened is not None
        return _place(state).save(opened.journal)

    def set_active(self, active: bool) -> None:
        """Take rows from now on, or none."""
        if self._group is not None:
            self._group.set_active(active)

    def close(self) -> None:
        """Close all queues and edges, which wakes everyone who waits here and in the workers that feed this one."""
        if self._group is not None:
            self._group.close_queues()
            self._group.ingest.close()
            self._group.tell_stopped()
        if self._reports is not None:
            self._reports.close()
        self._over.set()

    def end(self) -> None:
        """Close, and let go of all threads, ports and the journal: another life begins in this process."""
        self.close()
        if self._receiver is not None:
            self._receiver.close()
        if self._port is not None:  # clients that wait hold it up, and nobody waits for them
            threading.Thread(target=self._port.close, name="closing", daemon=True).start()
        if self._group is not None:
            self._group.join()
        elif self._opened is not None:
            self._opened.journal.close()

    def _serve_clients(self, group: TaskGroup, settings: GroupSettings) -> ClientPort:
        """Let clients reach the inputs and sinks of the group. Only such workers need gRPC for Python."""
        from topology.flight.client_port import ClientPort
        from topology.flight.server import TopologyServer

        order, opened = self._order, self._opened
        port = ClientPort(order.authority, order.host, order.certificate, settings.quotas, order.client_port)
        TopologyServer(
            group.topology, group.ingest, group.results, port=port, authority=order.authority, settled=self._settle
        )
        if opened is not None:
            from topology.flight.progress_reports import serve_progress, serve_snapshots

            def record(sink: str, progress: Progress) -> None:
                group.record_progress(opened.journal, sink, progress).wait()

            serve_progress(port, order.incarnation, record)
            if group.rounds is not None:
                serve_snapshots(port, order.incarnation, group.rounds.saved)
        return port

    def _report_progress(self, group: TaskGroup, addresses: Mapping[TaskName, Address]) -> None:
        """Let the worker that keeps the journal know how far the sinks here are, if it is another one."""
        order = self._order
        if order.state is None or self._opened is not None or not (group.results or group.snapshots):
            return
        from topology.flight.progress_reports import ProgressReports

        journal = addresses[order.state.task].clients
        self._reports = ProgressReports(Endpoint(journal, Secret(order.channel_token), order.root), order.incarnation)
        for sink, queue in group.results.items():
            queue.on_progress = partial(self._reports.report, sink)
        if group.snapshots is not None:
            group.snapshots.on_saved = self._reports.report_snapshot

    def _settle(self) -> None:
        """Wait until what has been acknowledged here is so after a failure, too."""
        if self._reports is not None:
            self._reports.wait()
        elif self._group is not None:
            self._group.wait_for_acknowledgements()

    def _prepare(self, group: TaskGroup) -> None:
        """Do what the first rows would wait for, while other workers start."""
        for component in {name: task.node.component for (name, _), task in group.tasks.items()}.values():
            with suppress(Exception):  # tasks meet the same error with their first rows, and report it
                component.prepare()

    def _failed(self, error: TaskError) -> None:
        fenced = isinstance(error.__cause__, FencedError)
        self._fail(Failure((error.component, error.task), error.traceback_text, fenced=fenced, after=error.after))

    def _journal_ended(self, error: InterlaceError) -> None:
        """Tell the controller, whoever meets the error: a row that comes in, or the task that decides."""
        if self._order.state is not None and not isinstance(error, StoppedError):
            self._fail(Failure(self._order.state.task, str(error), fenced=isinstance(error, FencedError)))

    def _edge_broke(self, producer: TaskName, error: Exception) -> None:
        self._fail(Failure(producer, str(error), lost=isinstance(error, StoppedError)))

    def _fail(self, failure: Failure) -> None:
        self._failure = self._failure or failure
        self.close()


def collect_lines(task_of: Callable[[int], TaskName | None]) -> CollectedLines:
    """Begin to collect what this process logs and prints."""
    lines = CollectedLines(task_of)
    collect_output(lines)
    return lines


def serve_while_led(
    controller: Any,
    worker: str,
    lease: Lease,
    end: Callable[[], None],
    lines: CollectedLines,
    vitals: Callable[[], Vitals],
) -> None:
    """Report to the controller until it has gone, dismisses the worker or has not answered for its lease; then `end`.

    A process that was frozen itself asks once more before it gives up: only unanswered calls count.
    """
    pause = threading.Event()
    unsent: list[LogLine] = []
    while True:
        try:
            unsent += lines.fetch()
            if not ray.get(controller.beat.remote(worker, unsent, vitals()), timeout=CALL_SECONDS):
                break
            unsent = []
            lease.renew()
        except ray.exceptions.GetTimeoutError:
            if lease.lapsed:
                break
        except ray.exceptions.RayError:  # the controller is dead, or the node has lost the cluster
            if lease.lapsed or _is_gone(controller):
                break
        pause.wait(RENEWAL_SECONDS)
    end()


def _place(state: KeptState) -> StatePlace:
    from topology.process.state import StatePlace  # most workers keep no state, and need no stores

    return StatePlace(state.uri, state.name, state.savepoint, state.new_query)


def _is_gone(controller: Any) -> bool:
    """Whether Ray knows that the controller has died, as opposed to being out of reach for the moment."""
    try:
        ray.get(controller.status.remote(), timeout=CALL_SECONDS)
    except ray.exceptions.ActorDiedError:
        return True
    except ray.exceptions.RayError:
        return False
    return False
