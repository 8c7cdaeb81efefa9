"""The plan of a topology, as text for a terminal and as a picture for a notebook.

A part, such as a join, is folded: it is shown as one component, with the streams that it takes and emits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from topology.graph.picture import Box, Line, draw

if TYPE_CHECKING:
    from topology.graph.graph import Edge, Node, Part, Topology


@dataclass(frozen=True)
class Plan:
    """The components with their tasks, and the edges between them.

    folded: show a part as one component.
    """

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    parts: tuple[Part, ...] = ()
    folded: bool = True
    sequencer: str = ""

    @classmethod
    def of(cls, topology: Topology) -> Plan:
        """Make the plan of a topology."""
        plan = cls(topology.name, topology.nodes, topology.edges, topology.parts, sequencer=topology.sequencer)
        return plan if plan._can_be_drawn() else plan.unfolded()

    def unfolded(self) -> Plan:
        """The same plan with every component of every part."""
        return replace(self, folded=False)

    def __str__(self) -> str:
        return f"{self.logical()}\n\n{self.physical()}"

    def logical(self) -> str:
        """Describe the components and streams as text."""
        boxes, lines = self._boxes(), self._lines()
        inside = f", {len(self.nodes)} with those of its parts" if len(boxes) < len(self.nodes) else ""
        written = [f"topology '{self.name}': {len(boxes)} components{inside}"]
        forgetful = {self._box_of(node.name) for node in self.nodes if not (node.component.snapshots or node.follows)}
        for box in boxes:
            note = f"  ({box.note})" if box.note else ""
            wishes = f"  each needs {box.wishes}" if box.wishes else ""
            written.append(f"  {box.label} [{box.kind}]{note}{wishes}")
            if self.sequencer and box.name in forgetful - {self.sequencer}:
                written.append("    has no snapshots: the log is kept whole, and repeated from its start")
            taken = [line for line in lines if line.consumer == box.name]
            written += [f"    <- {line.producer}.{line.stream} {line.how}" for line in taken]
        return "\n".join(written)

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
            if self._box_of(producer) != self._box_of(consumer)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """Draw the graph from top to bottom; a notebook shows it so, at most as wide as its cell."""
        return draw(self.name, self._boxes(), self._lines())

    def _box_of(self, component: str) -> str:
        """The name of the box that shows a component: its own, or that of the part that it is folded into."""
        node = next(node for node in self.nodes if node.name == component)
        return node.part[0] if self.folded and node.part else node.name

    def _boxes(self) -> list[Box]:
        """What is shown, producers before their consumers."""
        parts = {part.name: part for part in self.parts}
        boxes: dict[str, Box] = {}
        for node in self.nodes:
            name = self._box_of(node.name)
            if name == node.name:
                kind = type(node.component).__name__
                boxes[name] = Box(
                    name, kind, node.parallelism, node.component.kind, node.component.note, str(node.resources)
                )
            else:
                boxes[name] = Box(name, parts[name].kind, 1, "part", parts[name].note)
        return _in_order(boxes, self._lines())

    def _lines(self) -> list[Line]:
        """The streams between what is shown, in the order of the subscriptions."""
        lines = []
        for edge in self.edges:
            producer, consumer = self._box_of(edge.producer), self._box_of(edge.consumer)
            if producer == consumer:
                continue
            stream = edge.stream if producer == edge.producer else self._stream_of_part(producer, edge)
            inlet = edge.consumer.removeprefix(f"{consumer}/")
            how = f"by {edge.shown_grouping}" if consumer == edge.consumer else f"as {inlet}"
            lines.append(Line(producer, consumer, stream, how))
        return list(dict.fromkeys(lines))

    def _stream_of_part(self, part: str, edge: Edge) -> str:
        """The name of a part's stream that an edge from inside belongs to."""
        outputs = next(each.outputs for each in self.parts if each.name == part)
        names = [name for name, feeding in outputs if (edge.producer, edge.stream) in feeding]
        return names[-1]

    def _can_be_drawn(self) -> bool:
        """Whether the boxes have an order: a part may feed itself through others."""
        return len(self._boxes()) == len({self._box_of(node.name) for node in self.nodes})


def _in_order(boxes: dict[str, Box], lines: list[Line]) -> list[Box]:
    """The boxes with producers before their consumers, as far as there is such an order."""
    waiting = dict(boxes)
    placed: dict[str, Box] = {}
    while waiting:
        ready = [name for name in waiting if all(line.producer in placed for line in lines if line.consumer == name)]
        if not ready:
            break
        for name in ready:
            placed[name] = waiting.pop(name)
    return list(placed.values())
