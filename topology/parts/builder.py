"""Describes a topology: components, and whole topologies as parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from topology.graph.builder import GraphBuilder
from topology.graph.errors import DuplicateComponentError, TopologyError
from topology.graph.graph import Topology
from topology.parts.inclusion import Inclusion, Upstream, inclusion, inlets_of, resolved


class JoinDescription(Protocol):
    """A join of streams, as `TopologyBuilder.join` needs it."""

    def as_part(self, event_time: str | None) -> Topology:
        """The topology of the join, with the streams as its inputs and its results with their event time."""


class TopologyBuilder(GraphBuilder):
    """Collects components, parts and edges; `build` checks them all and freezes the result."""

    def __init__(self, name: str = "topology") -> None:
        super().__init__(name)
        self._included: dict[str, Inclusion] = {}

    def include(self, name: str, topology: Topology, *, inputs: Mapping[str, Upstream] | None = None) -> None:
        """Add the components of a topology, as one part of this one.

        name:   the part's; those of its components begin with it: `name/component`.
        inputs: for each input of the topology what feeds it here: a component, ("component", "stream"), or a list of
                these. An input that is not named here stays one, and is called `name/input`.

        The sinks of the topology are the part's streams, and the only one, if it is one, its default stream too.
        """
        self._include(name, topology, inputs, "Topology", topology.name if isinstance(topology, Topology) else "")

    def join(
        self, name: str, join: JoinDescription, *, inputs: Mapping[str, Upstream], event_time: str | None = "later"
    ) -> None:
        """Add a join, whose streams other components feed.

        name:       the join's; those of its components begin with it: `name/gate`.
        inputs:     for each stream of the join what feeds it: a component, ("component", "stream"), or a list of these.
        event_time: that of the results, in their column `event_time`: "later" is that of the row they belong to, the
                    name of a side that of this side's row. None: results have none, and no watermarks.

        Its results are its default stream, also called "results". Rows that take no part are its stream "late".
        """
        if not hasattr(join, "as_part"):
            raise TopologyError(f"part '{name}' must be a join, such as StreamJoin(...), not {type(join).__name__}")
        topology = join.as_part(event_time)
        missing = [stream for stream in topology.inputs if stream not in (inputs or {})]
        if missing:
            raise TopologyError(
                f"join '{name}': nothing feeds its stream '{missing[0]}': add it to inputs=, such as "
                f"{{'{missing[0]}': ('component', 'stream')}}"
            )
        self._include(name, topology, inputs, type(join).__name__, topology.name)

    def build(self) -> Topology:
        """Check everything and return the frozen topology; raise a `TopologyError` that names the component."""
        if not self._included:
            return super().build()
        whole = GraphBuilder(self._name)
        whole._nodes |= self._nodes
        for included in self._included.values():
            whole._nodes |= {node.name: node for node in included.nodes({})}
        parts = {name: included.part() for name, included in self._included.items()}
        edges = [*self._edges, *(edge for included in self._included.values() for edge in included.edges())]
        whole._edges += resolved(edges, parts)
        for included in self._included.values():
            inlets = inlets_of(included, whole._edges, whole._nodes)
            whole._nodes |= {node.name: node for node in included.nodes(inlets)}
            whole._parts += [parts[included.name], *included.inner_parts()]
        return whole.build()

    def _include(
        self, name: str, topology: Topology, inputs: Mapping[str, Upstream] | None, kind: str, note: str
    ) -> None:
        self._check_name(name)
        if "/" in name:
            raise TopologyError(f"part '{name}': the name of a part has no '/', which separates it from its components")
        self._included[name] = inclusion(name, topology, inputs, kind, note)

    def _check_name(self, name: object) -> None:
        super()._check_name(name)
        first = str(name).partition("/")[0]
        if first in self._included or any(known.startswith(f"{name}/") for known in self._nodes):
            raise DuplicateComponentError(f"component '{first}' exists already in topology '{self._name}': rename one")
