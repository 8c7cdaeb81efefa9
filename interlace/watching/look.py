"""One look at a running topology: what its tasks have counted, and its status, at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from topology import Ages, Metrics, Status, TaskMetrics, Topology

STATE_COUNTERS = ("index_bytes", "payload_bytes")
"""Counters of tasks whose sum is what windows hold in memory."""


@dataclass(frozen=True)
class Look:
    """What was seen.

    at:          seconds since 1970.
    waiting_for: what the handle says that rows wait for; empty: nothing.
    """

    at: float
    topology: Topology
    metrics: Metrics
    status: Status
    waiting_for: str = ""

    @cached_property
    def tasks(self) -> Mapping[tuple[str, int], TaskMetrics]:
        """The tasks by name."""
        return {(task.component, task.task): task for task in self.metrics.tasks}

    @property
    def rows_in(self) -> int:
        """Rows that have entered the topology."""
        entries = {node.name: node.component.kind for node in self.topology.nodes}
        return sum(
            task.rows_out if entries[task.component] == "spout" else task.rows_in
            for task in self.metrics.tasks
            if entries.get(task.component) in ("input", "spout")
        )

    @property
    def rows_out(self) -> int:
        """Rows that have reached the sinks that somebody has to read."""
        return sum(task.rows_in for task in self._results())

    @property
    def latency(self) -> Ages:
        """How old rows were when their results reached these sinks."""
        return sum((task.ages for task in self._results()), Ages())

    @property
    def state_bytes(self) -> float:
        """Bytes that windows hold."""
        return sum(self.metrics.total(name) for name in STATE_COUNTERS)

    @property
    def log_bytes(self) -> int:
        """Bytes of the log, where a state is kept."""
        return sum(worker.vitals.log_bytes for worker in self.status.workers if worker.vitals)

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of the snapshots that belong to the log."""
        return sum(worker.vitals.checkpoint_bytes for worker in self.status.workers if worker.vitals)

    @property
    def free_memory_bytes(self) -> int | None:
        """What the machine with the least memory left could still give; None if nothing is known."""
        return min((worker.vitals.free_memory for worker in self.status.workers if worker.vitals), default=None)

    @property
    def window_rows(self) -> float:
        """Rows that are live in the windows of all streams."""
        return sum(value for task in self.metrics.tasks for name, value in task.own.items() if name.endswith("_live"))

    @property
    def window_fill(self) -> float | None:
        """Which share of the fullest window has rows; None where no window has a greatest number of rows."""
        shares = [
            value / most
            for task in self.metrics.tasks
            for name, value in task.own.items()
            if name.endswith("_live") and (most := task.own.get(f"{name.removesuffix('_live')}_window"))
        ]
        return min(1.0, max(shares)) if shares else None

    @property
    def waiting_bytes(self) -> int:
        """Bytes of messages on their way."""
        return sum(task.waiting_bytes for task in self.metrics.tasks)

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """The physical sources, as tasks describe them; see `operators/intake/source_progress.py`."""
        return [source for details in self._details() for source in details.get("sources", ())]

    @property
    def unknown_streams(self) -> list[str]:
        """Streams of which nothing has come, so that all others wait."""
        return [stream for details in self._details() for stream in details.get("unknown_streams", ())]

    @property
    def late(self) -> Mapping[str, Mapping[str, Any]]:
        """Rows that take no part, by reason: how many at all gates, and the last of each."""
        found: dict[str, dict[str, Any]] = {}
        for details in self._details():
            for reason, there in details.get("late", {}).items():
                sums = found.setdefault(reason, {"rows": 0, "samples": []})
                sums["rows"] += there["rows"]
                sums["samples"] += there["samples"]
        return found

    def _details(self) -> Iterator[Mapping[str, Any]]:
        return (task.details for task in self.metrics.tasks if task.details)

    def _results(self) -> list[TaskMetrics]:
        read = {name for name in self.topology.sinks if not getattr(self.topology.node(name).component, "aside", False)}
        return [task for task in self.metrics.tasks if task.component in read]
