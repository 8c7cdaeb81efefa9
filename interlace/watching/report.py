"""What a watch knows, as JSON: for the REST API, the page and programs."""

from __future__ import annotations

from typing import Any

from interlace.watching.critical_path import critical_path, traced
from interlace.watching.load import Load, by_component, loads, stretches
from interlace.watching.look import Look
from interlace.watching.physical import placed_flows
from interlace.watching.watch import Watch, jsonable
from topology import LogLine, Status, Topology, lay_out


def status_as_json(status: Status) -> dict[str, Any]:
    """The status of a topology."""
    return {
        "name": status.name,
        "state": status.state.value,
        "active": status.active,
        "detached": status.detached,
        "encrypted": status.encrypted,
        "error": status.error or None,
        "trouble": status.trouble or None,
        "recoveries": status.recoveries,
        "workers": [
            {
                "name": worker.name,
                "node": worker.node,
                "process": worker.pid,
                "silent_seconds": round(worker.silent, 3),
                "tasks": [f"{component}/{number}" for component, number in worker.tasks],
                "memory_bytes": None if worker.vitals is None else worker.vitals.memory,
                "free_memory_bytes": None if worker.vitals is None else worker.vitals.free_memory,
                "free_disk_bytes": None if worker.vitals is None else worker.vitals.free_disk,
                "log_bytes": None if worker.vitals is None else worker.vitals.log_bytes,
                "checkpoint_bytes": None if worker.vitals is None else worker.vitals.checkpoint_bytes,
                "free_state_bytes": None if worker.vitals is None else worker.vitals.free_state,
            }
            for worker in status.workers
        ],
        "events": [
            {
                "at": event.at,
                "state": event.state.value,
                "text": event.text or None,
                "task": None if event.task is None else f"{event.task[0]}/{event.task[1]}",
            }
            for event in status.events
        ],
    }


def report(watch: Watch) -> dict[str, Any]:
    """Everything about the last look."""
    now, before = watch.now()
    tasks = loads(before, now)
    components = by_component(tasks)
    verdict = watch.verdict()
    hops = critical_path(now.topology, components)
    places = {task: worker for worker in now.status.workers for task in worker.tasks}
    found = {
        **status_as_json(now.status),
        "at": now.at,
        "age_seconds": watch.age,
        "verdict": {
            "health": verdict.health,
            "summary": verdict.summary,
            "speed": verdict.speed,
            "bottleneck": verdict.bottleneck,
            "component": verdict.component,
            "loss": verdict.loss,
            "outlook": verdict.outlook,
        },
        "rows_in": now.rows_in,
        "rows_out": now.rows_out,
        "late_rows": int(now.metrics.total("late")),
        "rejected_rows": int(now.metrics.total("rejected")),
        "state_bytes": now.state_bytes,
        "log_bytes": now.log_bytes,
        "checkpoint_bytes": now.checkpoint_bytes,
        "window_fill": now.window_fill,
        "components": [
            {
                **load_as_json(components[node.name]),
                "kind": node.component.kind,
                "class": type(node.component).__name__,
                "note": node.component.note,
                "own": own_counters(now, node.name),
                "parts": [
                    {
                        **load_as_json(load),
                        "task": number,
                        "node": places[name, number].node if (name, number) in places else None,
                        "worker": places[name, number].name if (name, number) in places else None,
                    }
                    for (name, number), load in tasks.items()
                    if name == node.name
                ],
            }
            for node in now.topology.nodes
            if node.name in components
        ],
        "edges": [
            {
                "from": producer,
                "to": consumer,
                "rows": edge.rows,
                "bytes": edge.bytes,
                "rows_per_second": edge.row_rate,
                "bytes_per_second": edge.byte_rate,
                "waiting_bytes": edge.waiting_bytes,
            }
            for (producer, consumer), edge in stretches(before, now).items()
        ],
        "placed_edges": placed_flows(before, now),
        "critical_path": {
            "summary": traced(hops),
            "hops": [{"from": hop.producer, "to": hop.consumer, "seconds": hop.seconds} for hop in hops],
        },
        "sources": now.sources,
        "unknown_streams": now.unknown_streams,
        "late": now.late,
        "waiting_for": now.waiting_for or None,
    }
    result: dict[str, Any] = jsonable(found)
    return result


def load_as_json(load: Load) -> dict[str, Any]:
    """What a component or a task does."""
    p50, p95, p99 = load.ages.percentiles(50, 95, 99)
    return {
        "component": load.component,
        "tasks": load.tasks,
        "rows_in": load.rows_in,
        "rows_out": load.rows_out,
        "rows_in_per_second": load.rows_in_rate,
        "rows_out_per_second": load.rows_out_rate,
        "busy": load.busy,
        "busiest": load.busiest,
        "blocked": load.blocked,
        "idle": load.idle,
        "waiting_bytes": load.waiting_bytes,
        "state_bytes": load.state_bytes,
        "age_seconds": {"p50": p50, "p95": p95, "p99": p99},
    }


def own_counters(look: Look, component: str) -> dict[str, float]:
    """The sums of the counters that the tasks of a component keep themselves."""
    sums: dict[str, float] = {}
    for task in look.metrics.of(component):
        for name, value in task.own.items():
            sums[name] = sums.get(name, 0.0) + value
    return sums


BOX = (168, 46)
GAP, LANE, LAYER_GAP, MARGIN = 26, 62, 42, 10


def graph(topology: Topology) -> dict[str, Any]:
    """The graph, laid out in layers from top to bottom: boxes with their places, and for each edge its way."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for edge in topology.edges:
        pairs.setdefault((edge.producer, edge.consumer), []).append(f"{edge.stream} by {edge.shown_grouping}")
    widths = {node.name: max(BOX[0], 8.2 * len(node.name) + 40) for node in topology.nodes}
    layout = lay_out(widths, list(pairs), LANE, GAP)
    height, step = BOX[1], BOX[1] + LAYER_GAP
    return {
        "width": layout.width + 2 * MARGIN,
        "height": len(layout.layers) * step - LAYER_GAP + 2 * MARGIN,
        "groups": [],
        "boxes": [
            {
                "id": node.name,
                "name": node.name,
                "kind": node.component.kind,
                "class": type(node.component).__name__,
                "parallelism": node.parallelism,
                "note": node.component.note,
                "x": layout.boxes[node.name].x - layout.boxes[node.name].width / 2 + MARGIN,
                "y": layout.boxes[node.name].layer * step + MARGIN,
                "width": layout.boxes[node.name].width,
                "height": height,
            }
            for node in topology.nodes
        ],
        "edges": [
            {
                "from": producer,
                "to": consumer,
                "streams": pairs[producer, consumer],
                "points": [[slot.x + MARGIN, slot.layer * step + MARGIN] for slot in route],
            }
            for (producer, consumer), route in layout.routes.items()
        ],
    }


def line_as_json(line: LogLine) -> dict[str, Any]:
    """A line of the log."""
    return {
        "number": line.number,
        "at": line.at,
        "level": line.level,
        "text": line.text,
        "topology": line.topology or None,
        "component": line.component or None,
        "task": line.task,
        "worker": line.worker or None,
        "repeated": line.repeated,
    }
