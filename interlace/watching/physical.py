"""The graph as it is placed: a column for each node, in it a box for each component with its tasks there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from interlace.watching.load import stretches
from interlace.watching.look import Look
from topology import Topology, lay_out

BOX_HEIGHT, LEAST_WIDTH = 46, 168
GAP, LAYER_GAP, MARGIN, HEADER = 20, 38, 12, 30
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
    topology, where = look.topology, places(look)
    layer_of = _layers(topology)
    counts: dict[tuple[str, str], int] = {}
    for (component, _), node in where.items():
        counts[node, component] = counts.get((node, component), 0) + 1
    boxes: dict[str, dict[str, Any]] = {}
    groups = []
    step, left = BOX_HEIGHT + LAYER_GAP, float(MARGIN)
    height = HEADER + (max(layer_of.values(), default=0) + 1) * step - LAYER_GAP + 3 * MARGIN
    for node in sorted({node for node, _ in counts}):
        here = sorted((name for place, name in counts if place == node), key=lambda name: layer_of[name])
        rows = {layer: list(names) for layer, names in groupby(here, key=lambda name: layer_of[name])}
        widths = {layer: sum(map(_width, names)) + GAP * (len(names) - 1) for layer, names in rows.items()}
        inner = max(*widths.values(), LEAST_WIDTH)
        for layer, names in rows.items():
            x = left + MARGIN + (inner - widths[layer]) / 2
            for name in names:
                described = topology.node(name)
                boxes[f"{name}@{node}"] = {
                    "id": f"{name}@{node}",
                    "name": name,
                    "node": node,
                    "kind": described.component.kind,
                    "class": type(described.component).__name__,
                    "parallelism": counts[node, name],
                    "note": described.component.note,
                    "x": x,
                    "y": HEADER + MARGIN + layer * step,
                    "width": _width(name),
                    "height": BOX_HEIGHT,
                }
                x += _width(name) + GAP
        groups.append({"name": node, "x": left, "y": 0, "width": inner + 2 * MARGIN, "height": height})
        left += inner + 3 * MARGIN
    return {
        "width": left,
        "height": height,
        "groups": groups,
        "boxes": list(boxes.values()),
        "edges": [
            {
                "from": start["id"],
                "to": end["id"],
                "streams": streams,
                "points": [[box["x"] + box["width"] / 2, box["y"]] for box in (start, end)],
            }
            for (producer, consumer), streams in _streams(topology).items()
            for start in boxes.values()
            for end in boxes.values()
            if start["name"] == producer and end["name"] == consumer
        ],
    }


def _layers(topology: Topology) -> Mapping[str, int]:
    layout = lay_out({node.name: _width(node.name) for node in topology.nodes}, list(_streams(topology)), 0, GAP)
    return {name: slot.layer for name, slot in layout.boxes.items()}


def _streams(topology: Topology) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for edge in topology.edges:
        found.setdefault((edge.producer, edge.consumer), []).append(f"{edge.stream} by {edge.shown_grouping}")
    return found


def _width(name: str) -> float:
    return max(LEAST_WIDTH, 8.2 * len(name) + 40)
