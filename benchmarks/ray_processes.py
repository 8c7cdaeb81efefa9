"""The processes of a join on Ray: their processor time, the tasks in each, and the bytes that crossed between them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from operators import RunningJoin
from topology import Metrics

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Crossed:
    """Bytes of Arrow data that went from one process to another.

    probes: those that brought probe rows from the router to elements in other processes.
    tasks:  all that went from task to task, probes included.
    driver: rows sent by the driver, and results read by it.
    """

    probes: int
    tasks: int
    driver: int


Processes = dict[str, tuple[str, ...]]
"""The tasks of each process, by the name of the process."""


_ticks: dict[int, int] = {}
"""The processor time of each process when it was last seen."""


def processor_seconds() -> float:
    """Processor time of this process and all below it: with a cluster started here, the workers and Ray's own.

    A process that has ended keeps the time that it was last seen with, so the sum never falls.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    _ticks.update((process, ticks[process]) for process in ours)
    return sum(_ticks.values()) / TICK


def processes_of(running: RunningJoin) -> Processes:
    """The processes and their tasks."""
    return {
        worker.name: tuple(f"{component}[{number}]" for component, number in worker.tasks)
        for worker in running.status().workers
    }


@dataclass(frozen=True)
class WorkerMemory:
    """MiB of a process: resident, and its own share, in which a page that n processes share counts as 1/n."""

    resident: float
    share: float


def memory_of(running: RunningJoin) -> dict[str, WorkerMemory]:
    """The memory of each process, by its name."""
    return {worker.name: _memory_of(worker.pid) for worker in running.status().workers}


def _memory_of(pid: int) -> WorkerMemory:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {name: int(value) for name, value, *_ in (line.split() for line in lines)}
    return WorkerMemory(kib["Rss:"] / 1024, kib["Pss:"] / 1024)


def crossed(running: RunningJoin, processes: Processes) -> Crossed:
    """Sum what tasks have taken in from producers in other processes; without any, nothing has crossed."""
    if not processes:
        return Crossed(0, 0, 0)
    metrics, topology = running.metrics(), running.topology
    home = {task: name for name, tasks in processes.items() for task in tasks}
    outside = {"probes": 0, "tasks": 0, "driver": 0}
    for task in metrics.tasks:
        here = home[f"{task.component}[{task.task}]"]
        edges = [edge for edge in topology.edges if edge.consumer == task.component]
        if not edges or task.component in topology.sinks:
            outside["driver"] += task.bytes_in
        away = [edge for edge in edges if here not in _homes(metrics, home, edge.producer)]
        if not away:
            continue
        taken = task.bytes_in
        if len(away) < len(edges):  # of what came from here and elsewhere, no more than was emitted elsewhere
            emitted = {edge.producer for edge in away}
            taken = min(taken, sum(each.bytes_out for name in emitted for each in metrics.of(name)))
        outside["tasks"] += taken
        if any(edge.stream.startswith("probes") for edge in away):
            outside["probes"] += taken
    return Crossed(**outside)


def _homes(metrics: Metrics, home: dict[str, str], component: str) -> set[str]:
    return {home[f"{component}[{each.task}]"] for each in metrics.of(component)}
