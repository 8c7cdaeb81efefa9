"""The result of placing a topology: its workers, their tasks, and what each asks of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topology.graph.resources import bytes_text, labels_text
from topology.placement.wishes import Strategy

if TYPE_CHECKING:
    from topology.graph.graph import TaskName, Topology

LONGEST_NAME = 60
RESERVED = "controller"
"""The topology's controller has this name beside its workers."""


@dataclass(frozen=True)
class WorkerPlan:
    """One worker process.

    name:   unique within the topology: `component/task` of its only task, or its components joined by "+".
    tasks:  in the order of the topology.
    cpus:   processors to reserve, 0.01 or more.
    memory: bytes to reserve; None: no task asks for memory.
    labels: selectors of the nodes that may run it.
    """

    name: str
    tasks: tuple[TaskName, ...]
    cpus: float
    memory: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Placement:
    """All workers of a topology, entry first.

    strategy: how the workers are spread over the nodes.
    note:     what the reader of the placement should know; often empty.
    """

    workers: tuple[WorkerPlan, ...]
    strategy: Strategy = "SPREAD"
    note: str = ""

    def worker_of(self, task: TaskName) -> WorkerPlan:
        """Return the worker that runs a task."""
        return next(worker for worker in self.workers if task in worker.tasks)

    def crossing(self, topology: Topology) -> tuple[tuple[TaskName, TaskName], ...]:
        """The edges that leave a process: each pair of a sending and a receiving task in different workers."""
        worker_of = {task: worker.name for worker in self.workers for task in worker.tasks}
        pairs = dict.fromkeys((edge.producer, edge.consumer) for edge in topology.edges)
        channels = (
            ((producer, sender), (consumer, receiver))
            for producer, consumer in pairs
            for sender in range(topology.node(producer).parallelism)
            for receiver in range(topology.node(consumer).parallelism)
        )
        return tuple((sender, receiver) for sender, receiver in channels if worker_of[sender] != worker_of[receiver])

    def __str__(self) -> str:
        workers = "1 worker" if len(self.workers) == 1 else f"{len(self.workers)} workers"
        lines = [f"placement: {workers}, {self.strategy}"]
        rows = [("worker", "tasks", "cpus", "memory", "labels")]
        for worker in self.workers:
            memory = "" if worker.memory is None else bytes_text(worker.memory)
            rows.append((worker.name, tasks_text(worker.tasks), f"{worker.cpus:g}", memory, labels_text(worker.labels)))
        filled = [column for column in range(len(rows[0])) if any(row[column] for row in rows[1:])]
        widths = {column: max(len(row[column]) for row in rows) for column in filled}
        lines += ["  " + "  ".join(row[column].ljust(widths[column]) for column in filled).rstrip() for row in rows]
        return "\n".join([*lines, self.note] if self.note else lines)


def tasks_text(tasks: Sequence[TaskName]) -> str:
    """Return tasks as `component[0,1]`, with the numbers of each component together."""
    numbers: dict[str, list[str]] = {}
    for component, number in tasks:
        numbers.setdefault(component, []).append(str(number))
    return " ".join(f"{component}[{','.join(numbers[component])}]" for component in numbers)


def worker_names(workers: Sequence[Sequence[TaskName]]) -> list[str]:
    """Return a readable name for each worker; those that would be equal are numbered."""
    used = {RESERVED}
    names = []
    for tasks in workers:
        wanted = name = _readable(tasks)
        number = 2
        while name in used:
            name = f"{wanted}#{number}"
            number += 1
        used.add(name)
        names.append(name)
    return names


def _readable(tasks: Sequence[TaskName]) -> str:
    if len(tasks) == 1:
        component, number = tasks[0]
        return f"{component}/{number}"
    components = list(dict.fromkeys(component for component, _ in tasks))
    name = "+".join(components)
    shown = len(components)
    while len(name) > LONGEST_NAME and shown > 1:
        shown -= 1
        name = "+".join([*components[:shown], f"{len(components) - shown} more"])
    return name
