"""A topology: the frozen, validated graph of components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from topology.graph.components import Component, FetchedInput, Input, Origin, Sink
from topology.graph.errors import UnknownInputError
from topology.graph.groupings import Grouping
from topology.graph.plan import Plan
from topology.graph.resources import Resources

TaskName = tuple[str, int]
"""A task: its component and its number among that component's tasks."""


@dataclass(frozen=True)
class Edge:
    """One subscription: a producer's stream, the consumer, and the grouping that divides rows among its tasks."""

    producer: str
    stream: str
    consumer: str
    grouping: Grouping

    @property
    def shown_grouping(self) -> str:
        """The grouping in a few letters."""
        name = type(self.grouping).__name__.lower()
        return f"{name}({', '.join(self.grouping.fields)})" if self.grouping.fields else name


@dataclass(frozen=True)
class Node:
    """A component with its name, its number of tasks, and what each task asks of its node.

    part: the names of the parts that it belongs to, from the outermost; its own name begins with them.
    follows: in a topology with a sequencer, the component of its part that puts rows in order, a join's gate: its tasks
             follow from the steps of that one. "": it takes the steps of the sequencer itself.
    """

    name: str
    component: Component
    parallelism: int
    resources: Resources = field(default_factory=Resources)
    part: tuple[str, ...] = ()
    follows: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The names of its parts, and its own name in the innermost."""
        return (*self.part, self.name[sum(len(name) + 1 for name in self.part) :])


@dataclass(frozen=True)
class Part:
    """Components that others see as one: a sub-topology, such as a join.

    path:    the names of the parts that it belongs to, and its own.
    kind:    what it is, in a word, for the plan.
    note:    one line for the plan about its settings.
    outputs: each of its streams, with the components and streams inside that it consists of.
    identity: what its results mean; see `Topology.identity`.
    """

    path: tuple[str, ...]
    kind: str
    note: str = ""
    outputs: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    identity: str = ""

    @property
    def name(self) -> str:
        """The name that those of its components begin with."""
        return "/".join(self.path)


@dataclass(frozen=True)
class Topology:
    """The result of `TopologyBuilder.build`; producers come before their consumers in `nodes`.

    identity:  what its results mean, in words. A state that was kept for another identity is not used for this one,
               unless the user asks for a new series of results.
    intake:    of a join: how its rows come to be in one order, in words: what a new series cannot change.
    sequencer: the component that puts the rows of all inputs into steps, for a topology that keeps a state and has no
               gate; its streams stand for the inputs. "": there is none.
    """

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    identity: str = ""
    intake: str = ""
    parts: tuple[Part, ...] = ()
    sequencer: str = ""

    def node(self, name: str) -> Node:
        """Return the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The components that programs send rows to, by name."""
        return {name: each for name, each in self.entries.items() if not isinstance(each, FetchedInput)}

    @property
    def entries(self) -> Mapping[str, Input]:
        """The inputs, and those whose rows the topology fetches by itself."""
        return {node.name: node.component for node in self.nodes if isinstance(node.component, Input)}

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of the components whose rows `results()` reads."""
        return tuple(node.name for node in self.nodes if isinstance(node.component, Sink))

    @property
    def main_sink(self) -> str | None:
        """The sink to read when none is named: the only one that is not aside; None if there are several."""
        sinks = [name for name in self.sinks if not _is_aside(self.node(name).component)]
        return sinks[0] if len(sinks) == 1 else None

    def require_input(self, name: str) -> Input:
        """Return the input of that name, or raise an error that lists the inputs."""
        for node in self.nodes:  # asked with each batch that is sent
            if node.name == name and isinstance(node.component, Input) and not isinstance(node.component, FetchedInput):
                return node.component
        known = ", ".join(f"'{known}'" for known in self.inputs) or "none"
        raise UnknownInputError(f"topology '{self.name}' has no input stream '{name}'; its input streams: {known}")

    def producers(self, consumer: str) -> tuple[str, ...]:
        """The distinct components that feed `consumer`, in the order of its subscriptions."""
        return tuple(dict.fromkeys(edge.producer for edge in self.edges if edge.consumer == consumer))

    def consumers(self, producer: str) -> tuple[str, ...]:
        """The distinct components that `producer` feeds."""
        return tuple(dict.fromkeys(edge.consumer for edge in self.edges if edge.producer == producer))

    def feeders(self, consumer: str) -> tuple[TaskName, ...]:
        """The tasks that feed each task of `consumer`, in the order of its origins; none feeds an input."""
        return tuple(
            (producer, task) for producer in self.producers(consumer) for task in range(self.node(producer).parallelism)
        )

    def origins(self, consumer: str) -> tuple[Origin, ...]:
        """The inputs of each task of `consumer`: one per task of each producer.

        An origin has the name by which `consumer` knows it: inside a part, that without the part's; of a component in
        another part, the part's.
        """
        if isinstance(self.node(consumer).component, Input):
            return (Origin("", 0, 0),)
        return self.seen_by(consumer, self.feeders(consumer))

    def seen_by(self, consumer: str, feeders: Sequence[TaskName]) -> tuple[Origin, ...]:
        """These tasks as inputs of each task of `consumer`, under the names by which it knows them."""
        part = self.node(consumer).part
        nodes = [(self.node(component), task) for component, task in feeders]
        return tuple(
            Origin(_as_seen(node.path, part), task, index, node.component.watermark_lag)
            for index, (node, task) in enumerate(nodes)
        )

    @property
    def deciding(self) -> Node | None:
        """The component that decides what everything after it follows from; None if there is none."""
        if self.sequencer:
            return self.node(self.sequencer)
        return next((node for node in self.nodes if node.component.decides), None)

    @property
    def task_names(self) -> tuple[TaskName, ...]:
        """All tasks, those of producers before those of their consumers."""
        return tuple((node.name, number) for node in self.nodes for number in range(node.parallelism))

    def targets(self, producer: TaskName) -> tuple[TaskName, ...]:
        """The tasks that one task may send to."""
        return tuple(
            (consumer, number)
            for consumer in self.consumers(producer[0])
            for number in range(self.node(consumer).parallelism)
        )

    def input_index(self, producer: TaskName, consumer: TaskName) -> int:
        """The index of the input of `consumer` that `producer` feeds."""
        return self.feeders(consumer[0]).index(producer)

    def plan(self) -> Plan:
        """Return the plan, which prints as text and draws itself in a notebook; this runs nothing."""
        return Plan.of(self)


def _as_seen(path: tuple[str, ...], part: tuple[str, ...]) -> str:
    """The name of a component at `path` for one inside `part`: the first name after those that they share."""
    shared = 0
    while shared < min(len(path) - 1, len(part)) and path[shared] == part[shared]:
        shared += 1
    return path[shared]


def _is_aside(component: Component) -> bool:
    return isinstance(component, Sink) and component.aside
