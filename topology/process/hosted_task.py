"""One task of a group with what belongs to it, and what a group needs to know beside its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from topology.checks.quotas import Quotas
from topology.entry.idle_watch import EntryClock
from topology.graph.components import Facts, Input, SpoutTask, Task, TaskContext
from topology.graph.errors import TaskError
from topology.graph.graph import Node, TaskName, Topology
from topology.steps.sequenced import check_snapshots, given_origins
from topology.tasks.budget import Budget
from topology.tasks.inbox import DEFAULT_CAPACITY, Inbox
from topology.tasks.metrics import EdgeMetrics, TaskCounters, TaskMetrics
from topology.tasks.task_hook import TaskHook
from topology.tasks.user_traceback import user_traceback

ATTEMPTS = 3
"""A task is asked for its counters while it runs: Python refuses to iterate over a mapping that grows meanwhile."""


@dataclass(frozen=True)
class GroupSettings:
    """What a group needs to know beside its tasks.

    edge_bytes:      the bytes that may wait on each edge before its sender has to wait.
    spill_directory: where rows that wait for slower sources are spilled; None: the system's temporary directory.
    threads:         threads that drive the tasks; None: one more than there are cores, as one often waits for the GIL.
    quotas:          what clients of the group's inputs and sinks may use; None: the defaults of `Quotas`.
    clock:           see `Ingest`.
    hooks:           called when tasks start, stop and fail.
    budget:          what rows that wait may use in this process.
    """

    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None
    threads: int | None = None
    quotas: Quotas | None = None
    clock: EntryClock | None = None
    hooks: tuple[TaskHook, ...] = ()
    budget: Budget = field(default_factory=Budget)


class HostedTask:
    """A task with its inbox and its counters."""

    def __init__(self, topology: Topology, node: Node, number: int, settings: GroupSettings) -> None:
        self.node = node
        self.number = number
        self.origins = topology.origins(node.name)
        self.feeders = topology.feeders(node.name) or (("", 0),)
        self.given = given_origins(topology, node.name)
        self.is_aligned = bool(topology.sequencer) and not (
            node.name == topology.sequencer or isinstance(node.component, Input) or node.follows
        )
        self.inbox = Inbox(max(1, len(self.origins)), settings.edge_bytes, whole_steps=self.is_aligned)
        self.counters = TaskCounters()
        self.context = TaskContext(
            node.name, number, node.parallelism, tuple(self.given.values()), settings.spill_directory
        )
        self.task = self.build()
        if self.is_aligned:
            check_snapshots(node, self.task)

    def build(self) -> Task | SpoutTask:
        """Make a task, without any state."""
        try:
            return self.node.component.build(self.context)
        except Exception as error:
            raise TaskError(self.node.name, self.number, user_traceback(error)) from error

    @property
    def name(self) -> TaskName:
        return self.node.name, self.number

    def metrics(self, of_results: Mapping[str, float] | None = None) -> TaskMetrics:
        """Copy the task's counters; `of_results` are those of a sink's results."""
        waiting, counters = self.inbox.waiting_bytes, self.counters
        edges = tuple(
            EdgeMetrics(*feeder, rows, size, waiting[index])
            for index, (feeder, rows, size) in enumerate(
                zip(self.feeders, counters.edge_rows, counters.edge_bytes, strict=False)
            )
        )
        asked, details = self._asked()
        own = {**asked, **(of_results or {})}
        return TaskMetrics.of(self.node.name, self.number, counters, sum(waiting), own, edges, details)

    def _asked(self) -> tuple[Mapping[str, float], Facts]:
        """What the task tells about itself; asked again if it changed in the middle of its answer."""
        for _ in range(ATTEMPTS):
            with suppress(RuntimeError):
                return self.task.metrics(), self.task.details()
        return self.task.metrics(), self.task.details()
