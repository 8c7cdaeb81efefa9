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
from typing import Any, cast

import ray

from topology.edges.edge import SocketEdge
from topology.edges.edge_receiver import EdgeReceiver
from topology.edges.sockets import Peer
from topology.graph.errors import InterlaceError, StoppedError, TaskError
from topology.graph.graph import TaskName, Topology
from topology.on_ray.by_value import loads
from topology.on_ray.lease import RENEWAL_SECONDS, Lease
from topology.on_ray.without_pandas import hide_pandas
from topology.on_ray.worker_actor import Address, Failure, WorkerOrder
from topology.process.memory import keep_freed_memory
from topology.process.task_group import GroupSettings, TaskGroup
from topology.tasks.metrics import TaskMetrics

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
        self._clients = ""
        try:
            topology, settings = cast(tuple[Topology, GroupSettings], loads(order.work))
            self._edge_bytes = settings.edge_bytes
            self._group = TaskGroup(topology, order.tasks, settings, self._failed)
        except TaskError as error:
            self._failed(error)
            return
        except InterlaceError as error:  # the description cannot be read here
            self._fail(Failure(order.tasks[0], str(error)))
            return
        here = self._group.tasks
        fed_from_elsewhere = {
            name: (task.origins, task.inbox)
            for name, task in here.items()
            if any(origin.component and (origin.component, origin.task) not in here for origin in task.origins)
        }
        self._receiver = EdgeReceiver(order.authority, fed_from_elsewhere, order.host, order.certificate)
        if self._group.ingest.streams or self._group.results:
            self._clients = _serve_clients(self._group, order, settings)
        threading.Thread(target=self._prepare, args=(self._group,), name="preparing", daemon=True).start()

    def address(self) -> Address | Failure:
        """Return where the worker listens, or why a task could not be built."""
        node = ray.get_runtime_context().get_node_id()
        if self._receiver is None:
            assert self._failure is not None
            return self._failure
        return self._failure or Address(self._receiver.location, self._clients, node, os.getpid())

    def start(self, addresses: Mapping[TaskName, Address]) -> None:
        """Connect to the tasks in other workers and start."""
        group, order = self._group, self._order
        assert group is not None
        here = ray.get_runtime_context().get_node_id()
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

    def metrics(self) -> tuple[TaskMetrics, ...]:
        """The counters of the tasks so far."""
        return () if self._group is None else self._group.metrics()

    def close(self) -> None:
        """Close all queues and edges, which wakes everyone who waits here and in the workers that feed this one."""
        if self._group is not None:
            self._group.close_queues()
            self._group.ingest.close()
        self._over.set()

    def _prepare(self, group: TaskGroup) -> None:
        """Do what the first rows would wait for, while other workers start."""
        for component in {name: task.node.component for (name, _), task in group.tasks.items()}.values():
            with suppress(Exception):  # tasks meet the same error with their first rows, and report it
                component.prepare()

    def _failed(self, error: TaskError) -> None:
        self._fail(Failure((error.component, error.task), error.traceback_text))

    def _edge_broke(self, producer: TaskName, error: Exception) -> None:
        self._fail(Failure(producer, str(error), lost=isinstance(error, StoppedError)))

    def _fail(self, failure: Failure) -> None:
        self._failure = self._failure or failure
        self.close()


def _serve_clients(group: TaskGroup, order: WorkerOrder, settings: GroupSettings) -> str:
    """Let clients reach the inputs and sinks of the group; return where. Only such workers need gRPC for Python."""
    from topology.flight.client_port import ClientPort
    from topology.flight.server import TopologyServer

    port = ClientPort(order.authority, order.host, order.certificate, settings.quotas)
    TopologyServer(group.topology, group.ingest, group.results, port=port, authority=order.authority)
    return port.location


def serve_while_led(controller: Any, worker: str, lease: Lease, end: Callable[[], None]) -> None:
    """Report to the controller until it has gone, dismisses the worker or has not answered for its lease; then `end`.

    A process that was frozen itself asks once more before it gives up: only unanswered calls count.
    """
    pause = threading.Event()
    while True:
        try:
            if not ray.get(controller.beat.remote(worker), timeout=CALL_SECONDS):
                break
            lease.renew()
        except ray.exceptions.GetTimeoutError:
            if lease.lapsed:
                break
        except ray.exceptions.RayError:  # the controller is dead, or the node has lost the cluster
            if lease.lapsed or _is_gone(controller):
                break
        pause.wait(RENEWAL_SECONDS)
    end()


def _is_gone(controller: Any) -> bool:
    """Whether Ray knows that the controller has died, as opposed to being out of reach for the moment."""
    try:
        ray.get(controller.status.remote(), timeout=CALL_SECONDS)
    except ray.exceptions.ActorDiedError:
        return True
    except ray.exceptions.RayError:
        return False
    return False
