"""One process of a topology, driven in one thread, a step at a time, as somebody outside decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from topology.edges.edge_input import EdgeInput
from topology.graph.errors import TaskError
from topology.graph.graph import TaskName, Topology
from topology.graph.messages import Message
from topology.journal.opening import Opened
from topology.process.hosted_task import GroupSettings
from topology.process.task_group import TaskGroup
from topology.process.task_threads import TaskThreads
from topology.simulated.edge import SimulatedEdge


class SimulatedWorker:
    """A group of tasks, and the ends of the edges into it.

    alive:  whether its process runs; a worker that was killed is never stepped again.
    frozen: it does nothing, and may go on later.
    """

    def __init__(
        self,
        topology: Topology,
        names: Sequence[TaskName],
        settings: GroupSettings,
        incarnation: int,
        on_failure: Callable[[TaskError], None],
        opened: Opened | None,
    ) -> None:
        self.names = tuple(names)
        self.alive = True
        self.frozen = False
        self.group = TaskGroup(topology, names, settings, on_failure, opened)
        if opened is None:
            for queue in self.group.results.values():
                queue.awaits_resume = True
        self.inputs: dict[tuple[TaskName, int], EdgeInput] = {}
        for name, task in self.group.tasks.items():
            if any(origin.component and (origin.component, origin.task) not in names for origin in task.origins):
                ends = [EdgeInput(origin, task.inbox, incarnation) for origin in task.origins]
                self.inputs |= {(name, index): end for index, end in enumerate(ends)}
                task.inbox.on_taken = partial(_note_taken, ends)
        self._threads: TaskThreads | None = None

    @property
    def ready(self) -> list[str]:
        """The names of its tasks that can do something."""
        return self._threads.ready if self._threads is not None and self.runs else []

    @property
    def runs(self) -> bool:
        """Whether its process does anything at the moment."""
        return self.alive and not self.frozen

    def start(self, edges: Iterable[tuple[TaskName, TaskName, SimulatedEdge]]) -> None:
        """Connect its tasks; each is idle once before its first message."""
        self.group.connect({(producer, consumer): edge for producer, consumer, edge in edges})
        self._threads = self.group.schedule_all()

    def step(self, number: int) -> None:
        """Let one of the ready tasks handle one message."""
        assert self._threads is not None
        self._threads.step(number)


def _note_taken(ends: Sequence[EdgeInput], index: int, message: Message) -> None:
    ends[index].note_taken(message)
