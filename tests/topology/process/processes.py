"""Groups of tasks, each with a port as a worker has one, joined by edges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from topology import Topology
from topology.edges.edge import SocketEdge
from topology.edges.edge_receiver import EdgeReceiver
from topology.edges.sockets import Peer
from topology.graph.graph import TaskName
from topology.process.hosted_task import GroupSettings
from topology.process.task_group import TaskGroup
from topology.security.tokens import Authority, Grant, Right


class Process:
    """A group with its port, as a worker has them."""

    def __init__(self, topology: Topology, names: list[TaskName], authority: Authority, edge_bytes: int) -> None:
        self.failures: list[Exception] = []
        self.group = TaskGroup(topology, names, GroupSettings(edge_bytes, threads=2), self.failures.append)
        self.receiver = EdgeReceiver(
            authority, {name: (task.origins, task.inbox) for name, task in self.group.tasks.items()}
        )


@contextmanager
def processes(
    topology: Topology, *parts: list[TaskName], edge_bytes: int = 1 << 20
) -> Iterator[tuple[list[Process], dict[tuple[TaskName, TaskName], SocketEdge]]]:
    authority = Authority()
    token = authority.issue(Grant(Right.CHANNEL))
    made = [Process(topology, names, authority, edge_bytes) for names in parts]
    where = {name: process for process in made for name in process.group.tasks}
    edges = {
        (producer, consumer): SocketEdge(
            Peer(where[consumer].receiver.location, token), producer, consumer,
            topology.input_index(producer, consumer), 0, edge_bytes, where[producer].failures.append,
        )
        for producer in where
        for consumer in topology.targets(producer)
        if where[producer] is not where[consumer]
    }  # fmt: skip
    for process in made:
        process.group.connect({pair: edge for pair, edge in edges.items() if where[pair[0]] is process})
        process.group.start()
    try:
        yield made, edges
    finally:
        for process in made:
            process.group.close_queues()
            process.group.join()
            process.receiver.close()
