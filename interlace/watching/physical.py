"""The graph as it is placed: a column for each node, and in it a box for each component that has tasks there."""

from __future__ import annotations

from typing import Any

from interlace.watching.load import stretches
from interlace.watching.look import Look
from topology import Topology, lay_out

BOX_HEIGHT, LEAST_WIDTH = 46, 168
GAP, LANE, LAYER_GAP, MARGIN, HEADER = 20, 62, 40, 12, 30
STEP = BOX_HEIGHT + LAYER_GAP
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
    found = stretches(before, now, lambda component, task: f"{component}@{where.get((component, task), NOWHERE)}")
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
    groups: list[dict[str, Any]] = []
    boxes: dict[tuple[str, str], dict[str, Any]] = {}
    ways: dict[tuple[str, str], list[list[float]]] = {}
    left = float(MARGIN)
    for node in sorted({node for node, _ in counts}):
        here = [each.name for each in topology.nodes if (node, each.name) in counts]
        inside = [pair for pair in streams if pair[0] in here and pair[1] in here]
        layout = lay_out({name: _width(name) for name in here}, inside, LANE, GAP)
        height = HEADER + MARGIN + len(layout.layers) * STEP - LAYER_GAP + MARGIN
        groups.append({"name": node, "x": left, "y": 0, "width": layout.width + 2 * MARGIN, "height": height})
        for name, slot in layout.boxes.items():
            described = topology.node(name)
            boxes[node, name] = {
                "id": f"{name}@{node}",
                "name": name,
                "node": node,
                "kind": described.component.kind,
                "class": type(described.component).__name__,
                "parallelism": counts[node, name],
                "note": described.component.note,
                "x": left + MARGIN + slot.x - slot.width / 2,
                "y": HEADER + MARGIN + slot.layer * STEP,
                "width": slot.width,
                "height": BOX_HEIGHT,
            }
        for (producer, consumer), route in layout.routes.items():
            points = [[left + MARGIN + slot.x, HEADER + MARGIN + slot.layer * STEP] for slot in route]
            ways[f"{producer}@{node}", f"{consumer}@{node}"] = points
        left += layout.width + 3 * MARGIN
    return {
        "width": left,
        "height": max(group["height"] for group in groups),
        "groups": groups,
        "boxes": list(boxes.values()),
        "edges": [
            {
                "from": start["id"],
                "to": end["id"],
                "streams": shown,
                "points": ways.get((start["id"], end["id"])) or [_top(start), _top(end)],
            }
            for (producer, consumer), shown in streams.items()
            for start in boxes.values()
            for end in boxes.values()
            if start["name"] == producer and end["name"] == consumer
        ],
    }


def _top(box: dict[str, Any]) -> list[float]:
    return [box["x"] + box["width"] / 2, box["y"]]


def _streams(topology: Topology) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for edge in topology.edges:
        found.setdefault((edge.producer, edge.consumer), []).append(f"{edge.stream} by {edge.shown_grouping}")
    return found


def _width(name: str) -> float:
    return max(LEAST_WIDTH, 8.2 * len(name) + 40)
