"""The graph as it is placed: a column for each node, and in it a box for each component that has tasks there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlace.watching.load import stretches
from interlace.watching.look import Look
from topology import Layout, Topology, lay_out

BOX_HEIGHT, LEAST_WIDTH = 46, 168
GAP, LANE, LAYER_GAP, MARGIN, HEADER = 20, 62, 40, 12, 30
STEP = BOX_HEIGHT + LAYER_GAP
MOST_WITH_LANES = 4
"""Between more nodes there are too many edges to give each a lane of its own: they go straight."""

NOWHERE = "–"
"""The node of tasks that no process holds, while a topology starts."""


def places(look: Look) -> dict[tuple[str, int], str]:
    """The node of each task."""
    known = {task: worker.node for worker in look.status.workers for task in worker.tasks}
    return {
        (node.name, number): known.get((node.name, number), NOWHERE)
        for node in look.topology.nodes
        for number in range(node.parallelism)
    }


def placed_flows(before: Look, now: Look) -> list[dict[str, Any]]:
    """What went from the tasks of a component on one node to those of another component on one node."""
    where = places(now)
    found = stretches(before, now, lambda component, task: _id(component, where.get((component, task), NOWHERE)))
    return [
        {
            "from": producer,
            "to": consumer,
            "rows": flow.rows,
            "bytes": flow.bytes,
            "rows_per_second": flow.row_rate,
            "bytes_per_second": flow.byte_rate,
            "waiting_bytes": flow.waiting_bytes,
        }
        for (producer, consumer), flow in found.items()
    ]


def physical_graph(look: Look) -> dict[str, Any]:
    """Boxes, edges and columns, with places for a picture; ids are `component@node`."""
    topology = look.topology
    counts: dict[tuple[str, str], int] = {}
    for (component, _), node in places(look).items():
        counts[node, component] = counts.get((node, component), 0) + 1
    streams = _streams(topology)
    known = [each.name for each in topology.nodes]
    nodes = sorted({node for node, _ in counts})
    named = {_id(name, node): (name, node) for name in known for node in nodes if (node, name) in counts}
    pairs = {
        (start, end): shown
        for (producer, consumer), shown in streams.items()
        for start, (name, _) in named.items()
        if name == producer
        for end, (other, _) in named.items()
        if other == consumer
    }
    widths = {box: _width(name) for box, (name, _) in named.items()}
    few = len(nodes) <= MOST_WITH_LANES
    layout = lay_out(widths, list(pairs) if few else _one_of_each(pairs, named), LANE if few else 0, GAP)
    columns = _columns(layout, {box: node for box, (_, node) in named.items()}, nodes)
    height = HEADER + MARGIN + len(layout.layers) * STEP - LAYER_GAP + MARGIN
    return {
        "width": max(column.right for column in columns.values()) + MARGIN,
        "height": height,
        "groups": [
            {"name": node, "x": column.left, "y": 0, "width": column.right - column.left, "height": height}
            for node, column in columns.items()
        ],
        "boxes": [
            {
                "id": box,
                "name": name,
                "node": node,
                "kind": topology.node(name).component.kind,
                "class": type(topology.node(name).component).__name__,
                "parallelism": counts[node, name],
                "note": topology.node(name).component.note,
                "x": layout.boxes[box].x - layout.boxes[box].width / 2,
                "y": HEADER + MARGIN + layout.boxes[box].layer * STEP,
                "width": layout.boxes[box].width,
                "height": BOX_HEIGHT,
            }
            for box, (name, node) in named.items()
        ],
        "edges": [
            {
                "from": start,
                "to": end,
                "streams": shown,
                "points": [
                    [slot.x, HEADER + MARGIN + slot.layer * STEP]
                    for slot in layout.routes.get((start, end)) or [layout.boxes[start], layout.boxes[end]]
                ],
            }
            for (start, end), shown in pairs.items()
        ],
    }


def _one_of_each(pairs: Iterable[tuple[str, str]], named: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """For each box one edge from each component that feeds it: enough to find its layer."""
    chosen: dict[tuple[str, str], tuple[str, str]] = {}
    for start, end in pairs:
        chosen.setdefault((named[start][0], end), (start, end))
    return list(chosen.values())


@dataclass
class _Column:
    """The place of a node in the picture."""

    left: float
    right: float


def _columns(layout: Layout, node_of: Mapping[str, str], nodes: Sequence[str]) -> dict[str, _Column]:
    """Move boxes and lanes into the columns of their nodes, in the order that they have; an edge is its consumer's."""
    owner = {id(slot): node_of[end] for (_, end), route in layout.routes.items() for slot in route if slot.is_lane}
    owner |= {id(slot): node_of[name] for name, slot in layout.boxes.items()}
    if len(nodes) == 1:
        for layer in layout.layers:
            for slot in layer:
                slot.x += 2 * MARGIN
        return {nodes[0]: _Column(MARGIN, layout.width + 3 * MARGIN)}
    columns: dict[str, _Column] = {}
    left = float(MARGIN)
    for node in nodes:
        rows = [[slot for slot in layer if owner[id(slot)] == node] for layer in layout.layers]
        widths = [sum(slot.width for slot in row) + GAP * max(0, len(row) - 1) for row in rows]
        inner = max(widths)
        for row, width in zip(rows, widths, strict=True):
            x = left + MARGIN + (inner - width) / 2
            for slot in row:
                slot.x = x + slot.width / 2
                x += slot.width + GAP
        columns[node] = _Column(left, left + inner + 2 * MARGIN)
        left = columns[node].right + MARGIN
    return columns


def _id(component: str, node: str) -> str:
    return f"{component}@{node}"


def _streams(topology: Topology) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for edge in topology.edges:
        found.setdefault((edge.producer, edge.consumer), []).append(f"{edge.stream} by {edge.shown_grouping}")
    return found


def _width(name: str) -> float:
    return max(LEAST_WIDTH, 8.2 * len(name) + 40)
