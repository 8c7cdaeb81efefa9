"""One task in a process of its own, run by a Ray actor.

Ray starts the process, names it and reports its death; rows never pass through Ray. The process uses the same parts as
the local runtime (`Inbox`, `Outputs`, `Ingest`), but its channels are Flight streams and `TaskLoop` drives the task.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray

from topology.entry.ingest import Ingest
from topology.flight.auth import Authority
from topology.flight.edge import FlightEdge
from topology.flight.edge_receiver import EdgeReceiver
from topology.flight.port import FlightPort
from topology.flight.server import TopologyServer
from topology.graph.components import Emit, Input, Sink, SpoutTask, TaskContext
from topology.graph.errors import ConnectionLostError, StoppedError
from topology.graph.graph import TaskName, Topology
from topology.graph.messages import Message
from topology.handle.endpoint import Endpoint
from topology.handle.results_queue import ResultsQueue
from topology.handle.spilling_results import results_queue
from topology.tasks.inbox import Inbox
from topology.tasks.metrics import TaskCounters, TaskMetrics
from topology.tasks.task_loop import Outputs, TaskLoop, run_spout
from topology.tasks.user_traceback import user_traceback


@dataclass(frozen=True)
class TaskOrder:
    """The description of a task that a new process gets."""

    topology: Topology
    name: TaskName
    incarnation: int
    edge_bytes: int
    spill_directory: str | None
    host: str
    authority: Authority = field(repr=False)
    channel_token: str = field(repr=False)


@dataclass(frozen=True)
class Address:
    """The location of a task's port and the machine that it runs on."""

    location: str
    node: str


@dataclass(frozen=True)
class Failure:
    """Why a task ended early; `lost`: only because another process went away."""

    text: str
    lost: bool = False


class TaskProcess:
    """Owns the task, its thread, its inbox and its port."""

    def __init__(self, order: TaskOrder) -> None:
        component, number = order.name
        node = order.topology.node(component)
        self._order = order
        self._counters = TaskCounters()
        self._failure: Failure | None = None
        self._over = threading.Event()
        self._channels: dict[TaskName, FlightEdge] = {}
        origins = order.topology.origins(component)
        self._origins = origins
        self._inbox = Inbox(max(1, len(origins)), order.edge_bytes)
        self._port = FlightPort(order.authority, order.host)
        self._ingest = Ingest(order.spill_directory)
        self._results: dict[str, ResultsQueue] = {}
        EdgeReceiver(self._port, {order.name: (origins, self._inbox)})
        if isinstance(node.component, Input):
            self._ingest.add(component, node.component, partial(self._inbox.put, 0))
        if isinstance(node.component, Sink):
            self._results[component] = results_queue(node.component, order.edge_bytes, order.spill_directory)
        TopologyServer(order.topology, self._ingest, self._results, port=self._port, authority=order.authority)
        context = TaskContext(component, number, node.parallelism, origins, spill_directory=order.spill_directory)
        try:
            self._task = node.component.build(context)
        except Exception as error:
            self._fail(Failure(user_traceback(error)))

    def address(self) -> Address | Failure:
        """Return the address of the task, or the failure if it could not be built."""
        return self._failure or Address(self._port.location, ray.get_runtime_context().get_node_id())

    def start(self, addresses: Mapping[TaskName, Address]) -> None:
        """Connect to the tasks downstream and start."""
        topology, name = self._order.topology, self._order.name
        for target in topology.targets(name):
            self._channels[target] = FlightEdge(
                Endpoint(addresses[target].location, self._order.channel_token),
                name,
                target,
                topology.input_index(name, target),
                self._order.incarnation,
                self._order.edge_bytes,
                self._edge_failed,
            )
        threading.Thread(target=self._run, args=(addresses,), name=f"{name[0]}[{name[1]}]", daemon=True).start()

    def wait(self) -> Failure | None:
        """Wait until the task has failed or been closed; return the failure, or None."""
        self._over.wait()
        return self._failure

    def metrics(self) -> TaskMetrics:
        """The task's counters so far."""
        return TaskMetrics.of(*self._order.name, self._counters, self._inbox.nbytes, self._task.metrics())

    def close(self) -> None:
        """Close all queues, which wakes everyone who waits here and in the tasks that feed this one."""
        self._inbox.close()
        for queue in self._results.values():
            queue.close()
        for edge in self._channels.values():
            edge.close()
        self._ingest.close()
        self._over.set()

    def _fail(self, failure: Failure) -> None:
        self._failure = self._failure or failure
        self.close()

    def _run(self, addresses: Mapping[TaskName, Address]) -> None:
        try:
            send, send_all = self._outlets(addresses)
            if isinstance(self._task, SpoutTask):
                run_spout(self._task, send, send_all, self._counters)
            else:
                TaskLoop(self._task, self._origins, self._inbox, send, send_all, self._counters).run()
        except (ConnectionLostError, StoppedError) as error:
            self._edge_failed(error)
        except BaseException as error:
            self._fail(Failure(user_traceback(error)))

    def _edge_failed(self, error: Exception) -> None:
        if isinstance(error, StoppedError):
            self.close()
        else:
            self._fail(Failure(str(error), lost=isinstance(error, ConnectionLostError)))

    def _outlets(
        self, addresses: Mapping[TaskName, Address]
    ) -> tuple[Callable[[Emit], None], Callable[[Message], None]]:
        component, number = self._order.name
        if component in self._results:
            queue = self._results[component]
            return partial(queue.take_from, self._counters), queue.end
        here = addresses[self._order.name].node

        def local(consumer: str) -> list[int]:
            tasks = range(self._order.topology.node(consumer).parallelism)
            return [task for task in tasks if addresses[consumer, task].node == here]

        channels = {target: edge.put for target, edge in self._channels.items()}
        outputs = Outputs(self._order.topology, component, number, channels, local)
        return outputs.send, outputs.send_all


def actor_class(name: str) -> type:
    """Return the class of the actor; Ray shows its name in lists of processes and actors.

    The class is made inside a function so that Ray sends it by value: a worker of a cluster that was started elsewhere
    cannot import this package before it knows the driver's module paths.
    """

    class TopologyTask:
        def __init__(self, paths: list[str], order: bytes) -> None:
            import sys

            sys.path.extend(path for path in paths if path not in sys.path)

            from topology.on_ray.actor import TaskProcess
            from topology.on_ray.by_value import loads

            self._process = TaskProcess(loads(order))

        def address(self) -> Any:
            return self._process.address()

        def start(self, addresses: Any) -> None:
            self._process.start(addresses)

        def wait(self) -> Any:
            return self._process.wait()

        def metrics(self) -> Any:
            return self._process.metrics()

        def close(self) -> None:
            self._process.close()

    TopologyTask.__name__ = TopologyTask.__qualname__ = name
    return TopologyTask
