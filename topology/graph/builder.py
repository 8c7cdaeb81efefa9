"""Describes a topology: add components by name, subscribe them to each other, build."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias, cast

import pyarrow as pa

from topology.graph.by_value import dumps
from topology.graph.components import DEFAULT_STREAM, Bolt, Component, Input, Sink, Spout
from topology.graph.errors import (
    CycleError,
    DuplicateComponentError,
    GroupingError,
    TopologyError,
    UnknownComponentError,
    UnknownStreamError,
    UnpicklableError,
)
from topology.graph.graph import Edge, Node, Part, Topology
from topology.graph.groupings import (
    All,
    Assignment,
    Custom,
    Direct,
    Fields,
    Global,
    Grouping,
    LocalOrShuffle,
    PartialKey,
    Shuffle,
)
from topology.graph.hashing import can_hash
from topology.graph.resources import checked_resources

BoltLike: TypeAlias = Any
"""A `Bolt`; type checkers take a decorated class for the class that it was."""


class Added:
    """A component that has just been added; `input` and `spout` return it, to say what its tasks need."""

    def __init__(self, name: str, nodes: dict[str, Node]) -> None:
        self._name = name
        self._nodes = nodes

    def resources(
        self, *, cpus: float | None = None, memory: int | None = None, labels: Mapping[str, str] | None = None
    ) -> Self:
        """Say what each task needs on a cluster: processors, bytes of memory, labels of its node (see `Resources`).

        A later call replaces an earlier one.
        """
        wishes = checked_resources(self._name, cpus, memory, labels)
        self._nodes[self._name] = replace(self._nodes[self._name], resources=wishes)
        return self


class Subscriptions(Added):
    """The subscriptions of one component; `bolt` and `sink` return it, and each call adds one edge."""

    def __init__(self, consumer: str, nodes: dict[str, Node], edges: list[Edge]) -> None:
        super().__init__(consumer, nodes)
        self._edges = edges

    def grouping(self, producer: str, grouping: Grouping, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """Subscribe to a stream of `producer` with any grouping."""
        self._edges.append(Edge(producer, stream, self._name, grouping))
        return self

    def shuffle_grouping(self, producer: str, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """Each task gets batches in turn, an equal share of them."""
        return self.grouping(producer, Shuffle(), stream)

    def fields_grouping(self, producer: str, *columns: str, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """Rows that agree in `columns` go to the same task."""
        return self.grouping(producer, Fields(columns), stream)

    def partial_key_grouping(self, producer: str, *columns: str, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """As fields grouping, but a key may use two tasks, which balances skewed keys."""
        return self.grouping(producer, PartialKey(columns), stream)

    def all_grouping(self, producer: str, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """Every task gets every row."""
        return self.grouping(producer, All(), stream)

    def global_grouping(self, producer: str, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """All rows go to the first task."""
        return self.grouping(producer, Global(), stream)

    def direct_grouping(self, producer: str, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """The producer names the task."""
        return self.grouping(producer, Direct(), stream)

    def local_or_shuffle_grouping(self, producer: str, stream: str = DEFAULT_STREAM) -> Subscriptions:
        """Tasks on the producer's machine get batches in turn; all tasks if none is there."""
        return self.grouping(producer, LocalOrShuffle(), stream)

    def custom_grouping(
        self,
        producer: str,
        assign: Callable[[pa.RecordBatch, int], Sequence[int] | Assignment],
        stream: str = DEFAULT_STREAM,
    ) -> Subscriptions:
        """`assign(rows, tasks)` returns the task of each row."""
        return self.grouping(producer, Custom(assign), stream)


class GraphBuilder:
    """Collects components and edges; `build` checks them all and freezes the result."""

    def __init__(self, name: str = "topology") -> None:
        self._name = name
        self._nodes: dict[str, Node] = {}
        self._edges: list[Edge] = []
        self._parts: list[Part] = []

    def input(self, name: str, component: Input | None = None) -> Added:
        """Add a stream that takes rows from outside."""
        self._add(name, component or Input(), 1, Input)
        return Added(name, self._nodes)

    def spout(self, name: str, spout: Spout, parallelism: int = 1) -> Added:
        """Add a component that produces its own rows."""
        self._add(name, spout, parallelism, Spout)
        return Added(name, self._nodes)

    def bolt(self, name: str, bolt: BoltLike, parallelism: int = 1) -> Subscriptions:
        """Add a component that other components feed; subscribe it to them on the returned object.

        bolt: a `Bolt`, which functions and classes decorated with `bolt` are, too.
        """
        self._add(name, bolt, parallelism, Bolt)
        return Subscriptions(name, self._nodes, self._edges)

    def sink(self, name: str = "results", *, aside: bool = False) -> Subscriptions:
        """Add a sink, which the handle's `results()` reads; with `aside`, reading it is optional (see `Sink`)."""
        self._add(name, Sink(aside), 1, Sink)
        return Subscriptions(name, self._nodes, self._edges)

    def build(self) -> Topology:
        """Check everything and return the frozen topology; raise a `TopologyError` that names the component."""
        if not self._nodes:
            raise TopologyError(f"topology '{self._name}' has no components: add an input or a spout first")
        for edge in self._edges:
            self._check_edge(edge)
        self._check_subscribed_once()
        for node in self._nodes.values():
            self._check_node(node)
        return Topology(self._name, self._in_order(), tuple(self._edges), parts=tuple(self._parts))

    def _check_name(self, name: object) -> None:
        """Refuse a name that is none, or that is taken."""
        if not name or not isinstance(name, str):
            raise TopologyError(f"a component needs a name, not {name!r}")
        if name in self._nodes:
            raise DuplicateComponentError(f"component '{name}' exists already in topology '{self._name}': rename one")

    def _add(self, name: str, component: Any, parallelism: int, expected: type) -> None:
        self._check_name(name)
        if not isinstance(component, expected):
            article = "an" if expected.__name__[0] in "AEIOU" else "a"
            remedy = ""
            if isinstance(component, type) and issubclass(component, Component):
                remedy = f": make one, as in {component.__name__}()"
            elif expected is Bolt and hasattr(component, "as_part"):
                remedy = f": add a join with builder.join('{name}', join, inputs={{'stream': 'component'}})"
            elif expected is Bolt and isinstance(component, Topology):
                remedy = f": add a topology with builder.include('{name}', topology, inputs={{'input': 'component'}})"
            elif expected is Bolt and callable(component):
                remedy = ": decorate it with @il.bolt"
            raise TopologyError(
                f"component '{name}' must be {article} {expected.__name__}, not {type(component).__name__}{remedy}"
            )
        if not isinstance(parallelism, int) or parallelism < 1:
            raise TopologyError(
                f"component '{name}': parallelism must be a whole number of 1 or more, not {parallelism!r}"
            )
        self._nodes[name] = Node(name, cast(Component, component), parallelism)

    def _check_edge(self, edge: Edge) -> None:
        producer = self._nodes.get(edge.producer)
        if producer is None:
            known = ", ".join(f"'{name}'" for name in self._nodes)
            raise UnknownComponentError(
                f"component '{edge.consumer}' subscribes to '{edge.producer}', which does not exist; "
                f"components: {known}"
            )
        streams = producer.component.outputs
        if edge.stream not in streams:
            known = ", ".join(f"'{name}'" for name in streams) or "none"
            raise UnknownStreamError(
                f"component '{edge.consumer}' subscribes to stream '{edge.stream}' of '{edge.producer}', "
                f"which emits only: {known}"
            )
        self._check_grouping(edge, streams[edge.stream])

    def _check_grouping(self, edge: Edge, schema: pa.Schema | None) -> None:
        grouping = edge.grouping
        if isinstance(grouping, Fields | PartialKey) and not grouping.columns:
            raise GroupingError(
                f"component '{edge.consumer}' groups '{edge.producer}' by fields but names none: add a column"
            )
        for column in grouping.fields:
            if schema is not None and column not in schema.names:
                raise GroupingError(
                    f"component '{edge.consumer}' groups stream '{edge.stream}' of '{edge.producer}' by '{column}', "
                    f"which has only: {', '.join(schema.names)}"
                )
            if schema is not None and not can_hash(schema.field(column).type):
                raise GroupingError(
                    f"component '{edge.consumer}' groups stream '{edge.stream}' of '{edge.producer}' by '{column}', "
                    f"a {schema.field(column).type}, which has no hash: group by a plain column"
                )
        _require_pickle(
            grouping, f"component '{edge.consumer}': the {type(grouping).__name__} grouping on '{edge.producer}'"
        )

    def _check_subscribed_once(self) -> None:
        seen: set[tuple[str, str, str]] = set()
        for edge in self._edges:
            subscription = (edge.producer, edge.stream, edge.consumer)
            if subscription in seen:
                raise GroupingError(
                    f"component '{edge.consumer}' subscribes twice to stream '{edge.stream}' of '{edge.producer}' "
                    f"and would get its rows twice: keep one grouping"
                )
            seen.add(subscription)

    def _check_node(self, node: Node) -> None:
        is_source = isinstance(node.component, Input | Spout)
        if not is_source and not any(edge.consumer == node.name for edge in self._edges):
            raise TopologyError(
                f"component '{node.name}' subscribes to no other component: add a grouping, such as shuffle_grouping"
            )
        _require_pickle(node.component, f"component '{node.name}'")

    def _in_order(self) -> tuple[Node, ...]:
        """Order producers before consumers; components that cannot be placed form a cycle."""
        waiting = dict(self._nodes)
        placed: dict[str, Node] = {}
        while waiting:
            ready = [
                node
                for node in waiting.values()
                if all(edge.producer in placed for edge in self._edges if edge.consumer == node.name)
            ]
            if not ready:
                raise CycleError(f"components {self._cycle(set(waiting))} feed each other in a cycle: remove one edge")
            for node in ready:
                placed[node.name] = waiting.pop(node.name)
        return tuple(placed.values())

    def _cycle(self, among: set[str]) -> str:
        feeder = {edge.consumer: edge.producer for edge in self._edges if {edge.consumer, edge.producer} <= among}
        path = [next(iter(sorted(feeder)))]
        while feeder[path[-1]] not in path:
            path.append(feeder[path[-1]])
        start = path.index(feeder[path[-1]])
        cycle = path[start:][::-1]
        return " -> ".join(f"'{name}'" for name in [*cycle, cycle[0]])


def _require_pickle(description: object, what: str) -> None:
    """Refuse a description that no other process could get.

    One that only refers to its module passes here: the module may hold what cannot be sent, such as a lock, and the
    embedded runtime does not mind. A launch on a cluster sends the code itself and judges again.
    """
    try:
        pickle.dumps(description)
        return
    except Exception:  # local functions and lambdas, which travel by value
        pass
    try:
        dumps(description)
    except Exception as error:
        raise UnpicklableError(
            f"{what} cannot be sent to another process ({error}): open files, sockets and locks in build(), "
            f"or in the function that uses them"
        ) from error
