"""The plan of a topology, as text for a terminal and as a picture for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topology.graph.picture import draw

if TYPE_CHECKING:
    from topology.graph.graph import Edge, Node, Topology


@dataclass(frozen=True)
class Plan:
    """The components with their tasks, and the edges between them."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, topology: Topology) -> Plan:
        """Make the plan of a topology."""
        return cls(topology.name, topology.nodes, topology.edges)

    def __str__(self) -> str:
        return f"{self.logical()}\n\n{self.physical()}"

    def logical(self) -> str:
        """Describe the components and streams as text."""
        lines = [f"topology '{self.name}': {len(self.nodes)} components"]
        for node in self.nodes:
            note = f"  ({node.component.note})" if node.component.note else ""
            tasks = f" x{node.parallelism}" if node.parallelism > 1 else ""
            wishes = f"  each needs {node.resources}" if str(node.resources) else ""
            lines.append(f"  {node.name}{tasks} [{type(node.component).__name__}]{note}{wishes}")
            for edge in self.edges:
                if edge.consumer == node.name:
                    lines.append(f"    <- {edge.producer}.{edge.stream} by {edge.shown_grouping}")
        return "\n".join(lines)

    def physical(self) -> str:
        """Describe the tasks and the channels between them as text."""
        tasks = sum(node.parallelism for node in self.nodes)
        size = {node.name: node.parallelism for node in self.nodes}
        pairs = dict.fromkeys((edge.producer, edge.consumer) for edge in self.edges)
        channels = sum(size[producer] * size[consumer] for producer, consumer in pairs)
        lines = [f"physical: {tasks} tasks, {channels} channels"]
        lines += [
            f"  {producer}[0..{size[producer] - 1}] -> {consumer}[0..{size[consumer] - 1}]: "
            f"{size[producer] * size[consumer]} channels"
            for producer, consumer in pairs
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """Draw the graph from top to bottom; a notebook shows it so, at most as wide as its cell."""
        return draw(self.name, self.nodes, self.edges)
