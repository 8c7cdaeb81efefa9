"""What watches know, in the text format that Prometheus reads; one table names and explains every metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from interlace.watching.look import STATE_COUNTERS, Look
from topology import AGE_BOUNDS, State, Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Family:
    """One metric: its name, kind, labels and meaning."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its time series: a histogram has three."""
        if self.kind != "histogram":
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))


_TASK = ("topology", "component", "task", "node")
_WORKER = ("topology", "worker", "node")

FAMILIES = (
    Family("interlace_up", "gauge", ("topology",), "Whether the topology runs: 1, otherwise 0."),
    Family("interlace_active", "gauge", ("topology",), "Whether it takes rows: 1, or 0 while it is deactivated."),
    Family("interlace_recoveries_total", "counter", ("topology",), "How often it has been started again."),
    Family("interlace_rows_in_total", "counter", _TASK, "Rows that a task has taken."),
    Family("interlace_rows_out_total", "counter", _TASK, "Rows that a task has emitted."),
    Family("interlace_bytes_in_total", "counter", _TASK, "Bytes of the rows that a task has taken."),
    Family("interlace_bytes_out_total", "counter", _TASK, "Bytes of the rows that a task has emitted."),
    Family("interlace_busy_seconds_total", "counter", _TASK, "Seconds in the code of a task."),
    Family("interlace_blocked_seconds_total", "counter", _TASK, "Seconds in which a task waited for room downstream."),
    Family("interlace_queue_bytes", "gauge", _TASK, "Bytes of messages that wait for a task."),
    Family("interlace_state_bytes", "gauge", _TASK, "Bytes of windows and payload that a task holds."),
    Family("interlace_edge_rows_total", "counter", ("topology", "producer", "consumer"), "Rows between components."),
    Family("interlace_edge_bytes_total", "counter", ("topology", "producer", "consumer"), "Bytes between components."),
    Family("interlace_latency_seconds", "histogram", _TASK,
           "From a row's entry to the arrival of its results at a sink."),
    Family("interlace_late_rows_total", "counter", ("topology", "reason"), "Rows that take no part in the join."),
    Family("interlace_waiting_rows", "gauge", ("topology",), "Rows that wait for slower sources."),
    Family("interlace_spilled_bytes", "gauge", ("topology",), "Bytes of waiting rows on disk."),
    Family("interlace_log_bytes", "gauge", ("topology",), "Bytes of the log that keeps the state."),
    Family("interlace_checkpoint_bytes", "gauge", ("topology",), "Bytes of the snapshots that belong to the log."),
    Family("interlace_window_rows", "gauge", ("topology",), "Rows that are live in windows."),
    Family("interlace_source_behind_seconds", "gauge", ("topology", "stream", "source"),
           "How far the event time of a source is behind the furthest one."),
    Family("interlace_source_awaited", "gauge", ("topology", "stream", "source"),
           "1 if rows wait for this source, otherwise 0."),
    Family("interlace_worker_memory_bytes", "gauge", _WORKER, "Memory of a process."),
    Family("interlace_worker_free_memory_bytes", "gauge", _WORKER, "Memory that its machine could still give."),
    Family("interlace_worker_free_disk_bytes", "gauge", _WORKER, "Disk space that is left for spilling."),
    Family("interlace_worker_free_state_bytes", "gauge", _WORKER, "What is left where the process keeps the state."),
    Family("interlace_worker_silent_seconds", "gauge", _WORKER, "Seconds since the last sign of life of a process."),
)  # fmt: skip

_BY_NAME = {family.name: family for family in FAMILIES}

Labels = tuple[str, ...]
Values = list[tuple[Labels, float]]


def exposition(looks: Iterable[Look], others: Iterable[Status] = ()) -> str:
    """The text for the last looks at some topologies; `others` cannot be looked at: only their status is told."""
    looks = list(looks)
    values = measured(looks)
    for status in others:
        _collect_status(status, values)
    lines: list[str] = []
    for family in FAMILIES:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        if family.kind == "histogram":
            lines += [_line(*each) for look in looks for each in histograms(look)]
        else:
            lines += [_line(family.name, family.labels, labels, value) for labels, value in values[family.name]]
    return "\n".join([*lines, ""])


def measured(looks: Iterable[Look]) -> dict[str, Values]:
    """The values of each metric but histograms, with their labels in the order of its family."""
    values: dict[str, Values] = {family.name: [] for family in FAMILIES}
    for look in looks:
        _collect(look, values)
    return values


def _collect_status(status: Status, values: Mapping[str, Values]) -> None:
    values["interlace_up"].append(((status.name,), float(status.state is State.RUNNING)))
    values["interlace_active"].append(((status.name,), float(status.active)))
    values["interlace_recoveries_total"].append(((status.name,), float(status.recoveries)))


def _collect(look: Look, values: Mapping[str, Values]) -> None:
    name, status, nodes = look.status.name, look.status, _nodes(look)
    _collect_status(status, values)

    def put(family: str, value: float, *labels: str) -> None:
        values[f"interlace_{family}"].append(((name, *labels), float(value)))

    edges: dict[tuple[str, str], tuple[int, int]] = {}
    for task in look.metrics.tasks:
        place = (task.component, str(task.task), nodes.get((task.component, task.task), ""))
        put("rows_in_total", task.rows_in, *place)
        put("rows_out_total", task.rows_out, *place)
        put("bytes_in_total", task.bytes_in, *place)
        put("bytes_out_total", task.bytes_out, *place)
        put("busy_seconds_total", task.busy_seconds, *place)
        put("blocked_seconds_total", task.blocked_seconds, *place)
        put("queue_bytes", task.waiting_bytes, *place)
        if any(counter in task.own for counter in STATE_COUNTERS):
            put("state_bytes", sum(task.own.get(counter, 0.0) for counter in STATE_COUNTERS), *place)
        for edge in task.edges:
            if edge.producer:
                rows, size = edges.get((edge.producer, task.component), (0, 0))
                edges[edge.producer, task.component] = (rows + edge.rows, size + edge.bytes)
    for (producer, consumer), (rows, size) in edges.items():
        put("edge_rows_total", rows, producer, consumer)
        put("edge_bytes_total", size, producer, consumer)
    for reason, found in look.late.items():
        put("late_rows_total", found["rows"], reason)
    put("waiting_rows", look.metrics.total("waiting_rows"))
    put("spilled_bytes", look.metrics.total("spilled_bytes"))
    put("log_bytes", look.log_bytes)
    put("checkpoint_bytes", look.checkpoint_bytes)
    put("window_rows", look.window_rows)
    for source in look.sources:
        names = (source["stream"], source["source"])
        put("source_awaited", source["awaited"], *names)
        if source["unit"] == "s" and source["behind"] is not None:
            put("source_behind_seconds", source["behind"], *names)
    for worker in status.workers:
        put("worker_silent_seconds", worker.silent, worker.name, worker.node)
        if worker.vitals is not None:
            put("worker_memory_bytes", worker.vitals.memory, worker.name, worker.node)
            put("worker_free_memory_bytes", worker.vitals.free_memory, worker.name, worker.node)
            put("worker_free_disk_bytes", worker.vitals.free_disk, worker.name, worker.node)
            if worker.vitals.free_state is not None:
                put("worker_free_state_bytes", worker.vitals.free_state, worker.name, worker.node)


def histograms(look: Look) -> Iterator[tuple[str, Labels, Labels, float]]:
    """The time series of histograms: the name, the names of its labels, the labels and the value of each."""
    family = _BY_NAME["interlace_latency_seconds"]
    nodes = _nodes(look)
    for sink in look.topology.sinks:
        for task in look.metrics.of(sink):
            labels = (look.status.name, sink, str(task.task), nodes.get((sink, task.task), ""))
            for bound, count in zip((*AGE_BOUNDS, math.inf), accumulate(task.ages.counts), strict=True):
                shown = "+Inf" if math.isinf(bound) else f"{bound:g}"
                yield f"{family.name}_bucket", (*family.labels, "le"), (*labels, shown), count
            yield f"{family.name}_sum", family.labels, labels, task.ages.seconds
            yield f"{family.name}_count", family.labels, labels, task.ages.count


def _nodes(look: Look) -> dict[tuple[str, int], str]:
    return {task: worker.node for worker in look.status.workers for task in worker.tasks}


def _line(name: str, names: Labels, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in zip(names, labels, strict=True))
    return f"{name}{{{shown}}} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
