"""Puts a topology into another one under a name.

Its components keep their names, behind that of the part: `pairs/gate`. Inputs that are bound to streams outside become
inlets; others remain inputs. Its sinks become streams of the part: a component outside that subscribes to one gets what
the sink would have got.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from topology.graph.components import DEFAULT_STREAM, Input, Sink
from topology.graph.errors import TopologyError, UnknownInputError, UnknownStreamError
from topology.graph.graph import Edge, Node, Part, Topology
from topology.graph.groupings import Global
from topology.parts.inlet import Inlet

Stream = tuple[str, str]
"""A component, or a part, and one of its streams."""

Upstream = str | Stream | Sequence[str | Stream]
"""What feeds an input of a part: a component (its default stream), a component and a stream, or a list of these."""


@dataclass(frozen=True)
class Inclusion:
    """A topology to be included, and the streams that feed its inputs."""

    name: str
    topology: Topology
    kind: str
    note: str
    inputs: Mapping[str, tuple[Stream, ...]]

    def part(self) -> Part:
        """The part as others see it."""
        sinks = {sink: self._feeding(sink) for sink in self.topology.sinks}
        main = self.topology.main_sink
        if main is not None:
            sinks.setdefault(DEFAULT_STREAM, sinks[main])
        return Part((self.name,), self.kind, self.note, tuple(sinks.items()), self.topology.identity)

    def inner_parts(self) -> Iterator[Part]:
        """The parts of the included topology."""
        for part in self.topology.parts:
            outputs = tuple(
                (stream, tuple((self._renamed(component), inner) for component, inner in feeding))
                for stream, feeding in part.outputs
            )
            yield replace(part, path=(self.name, *part.path), outputs=outputs)

    def nodes(self, inlets: Mapping[str, Inlet]) -> Iterator[Node]:
        """The components, without the sinks; `inlets` take the place of inputs."""
        for node in self.topology.nodes:
            if not isinstance(node.component, Sink):
                component = inlets.get(node.name, node.component)
                yield replace(node, name=self._renamed(node.name), component=component, part=(self.name, *node.part))

    def edges(self) -> Iterator[Edge]:
        """The edges inside, and those from outside to the inlets."""
        for edge in self.topology.edges:
            if edge.consumer not in self.topology.sinks:
                yield replace(edge, producer=self._renamed(edge.producer), consumer=self._renamed(edge.consumer))
        for name, streams in self.inputs.items():
            for producer, stream in streams:
                yield Edge(producer, stream, self._renamed(name), Global())

    def _feeding(self, sink: str) -> tuple[Stream, ...]:
        edges = self.topology.edges
        return tuple((self._renamed(edge.producer), edge.stream) for edge in edges if edge.consumer == sink)

    def _renamed(self, name: str) -> str:
        return f"{self.name}/{name}"


def inclusion(name: str, topology: Topology, inputs: Mapping[str, Upstream] | None, kind: str, note: str) -> Inclusion:
    """Check the arguments of an inclusion; raises a `TopologyError` that names the part."""
    if not isinstance(topology, Topology):
        raise TopologyError(f"part '{name}' must be a topology, as build() returns it, not {type(topology).__name__}")
    if inputs is not None and not isinstance(inputs, Mapping):
        raise TopologyError(
            f"part '{name}': inputs must say what feeds each input, such as {{'R': ('component', 'stream')}}, "
            f"not {inputs!r}"
        )
    bound = {}
    for stream, upstream in (inputs or {}).items():
        if stream not in topology.inputs:
            known = ", ".join(f"'{each}'" for each in topology.inputs) or "none"
            raise UnknownInputError(f"part '{name}' has no input '{stream}'; its inputs: {known}")
        if topology.inputs[stream].idle_after is not None:
            raise TopologyError(
                f"part '{name}': input '{stream}' has idle_after, which is for rows from outside: set it on the "
                f"inputs of the whole topology, Input(idle_after=...)"
            )
        bound[stream] = _streams(name, stream, upstream)
    return Inclusion(name, topology, kind, note, bound)


def resolved(edges: Sequence[Edge], parts: Mapping[str, Part]) -> Iterator[Edge]:
    """The edges with those that name a part's stream replaced by edges from the components inside."""
    for edge in edges:
        part = parts.get(edge.producer)
        if part is None:
            yield edge
            continue
        outputs = dict(part.outputs)
        if edge.stream not in outputs:
            known = ", ".join(f"'{name}'" for name in outputs) or "none"
            raise UnknownStreamError(
                f"component '{edge.consumer}' subscribes to stream '{edge.stream}' of '{edge.producer}', "
                f"which emits only: {known}"
            )
        for producer, stream in outputs[edge.stream]:
            yield replace(edge, producer=producer, stream=stream)


def inlets_of(included: Inclusion, edges: Sequence[Edge], nodes: Mapping[str, Node]) -> dict[str, Inlet]:
    """The inlets of a part, which depend on what feeds them; `edges` are resolved, `nodes` all that exist."""
    made = {}
    for name in included.inputs:
        feeding = [edge for edge in edges if edge.consumer == f"{included.name}/{name}" and edge.producer in nodes]
        producers = [(nodes[edge.producer], edge.stream) for edge in feeding]
        inputs = {node.path[0] for node, _ in producers if isinstance(node.component, Input)}
        unordered = {node.path[0] for node, stream in producers if stream in node.component.unordered_streams}
        made[name] = Inlet(included.topology.inputs[name], frozenset(inputs), frozenset(unordered))
    return made


def _streams(part: str, name: str, upstream: Upstream) -> tuple[Stream, ...]:
    """The streams that feed an input, in one form."""
    if isinstance(upstream, str):
        return ((upstream, DEFAULT_STREAM),)
    if isinstance(upstream, tuple) and len(upstream) == 2 and all(isinstance(each, str) for each in upstream):
        return ((upstream[0], upstream[1]),)  # type: ignore[return-value]
    if isinstance(upstream, list) and upstream:
        return tuple(stream for each in upstream for stream in _streams(part, name, each))
    raise TopologyError(
        f"part '{part}': what feeds input '{name}' must be a component, such as 'quotes', a component and its stream, "
        f"such as ('quotes', 'default'), or a list of these, not {upstream!r}"
    )
