"""The plan of a topology, as text for a terminal and as a picture for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topology.graph.graph import Edge, Node, Topology

BOX_WIDTH = 190
BOX_HEIGHT = 46
GAP_X = 90
GAP_Y = 24
COLOURS = {"input": "#d7ecd9", "spout": "#d7ecd9", "bolt": "#dbe7f6", "sink": "#f6e7d3"}


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
                    lines.append(f"    <- {edge.producer}.{edge.stream} by {_grouping(edge)}")
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
        """Draw the graph, with one column per distance from the inputs."""
        columns = self._columns()
        place = {
            name: (20 + column * (BOX_WIDTH + GAP_X), 20 + row * (BOX_HEIGHT + GAP_Y))
            for column, names in enumerate(columns)
            for row, name in enumerate(names)
        }
        width = 40 + len(columns) * (BOX_WIDTH + GAP_X) - GAP_X
        height = 40 + max(len(names) for names in columns) * (BOX_HEIGHT + GAP_Y) - GAP_Y
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="12">',
            '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
            '<path d="M0,0 L8,4 L0,8 z" fill="#667"/></marker></defs>',
        ]
        for edge in self.edges:
            x1, y1 = place[edge.producer]
            x2, y2 = place[edge.consumer]
            start, stop = (x1 + BOX_WIDTH, y1 + BOX_HEIGHT / 2), (x2, y2 + BOX_HEIGHT / 2)
            bend = (start[0] + stop[0]) / 2
            parts.append(
                f'<path d="M{start[0]},{start[1]} C{bend},{start[1]} {bend},{stop[1]} {stop[0]},{stop[1]}" '
                f'fill="none" stroke="#667" marker-end="url(#tip)"><title>{escape(edge.stream)} by '
                f"{escape(_grouping(edge))}</title></path>"
            )
        for node in self.nodes:
            x, y = place[node.name]
            tasks = f" x{node.parallelism}" if node.parallelism > 1 else ""
            parts.append(
                f'<g><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" '
                f'fill="{COLOURS.get(node.component.kind, "#eee")}" stroke="#667"/>'
                f'<text x="{x + 10}" y="{y + 19}" font-weight="bold">{escape(node.name + tasks)}</text>'
                f'<text x="{x + 10}" y="{y + 36}" fill="#445">{escape(type(node.component).__name__)}</text>'
                f"<title>{escape(node.component.note)}</title></g>"
            )
        return "".join([*parts, "</svg>"])

    def _columns(self) -> list[list[str]]:
        depth: dict[str, int] = {}
        for node in self.nodes:  # producers come first
            feeders = [depth[edge.producer] for edge in self.edges if edge.consumer == node.name]
            depth[node.name] = max(feeders, default=-1) + 1
        columns: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
        for name, column in depth.items():
            columns[column].append(name)
        return columns


def _grouping(edge: Edge) -> str:
    name = type(edge.grouping).__name__.lower()
    return f"{name}({', '.join(edge.grouping.fields)})" if edge.grouping.fields else name
