"""Counters of tasks and the metrics of a running topology."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

import numpy as np

RECENT = 4096
"""Percentiles are taken over this many of the latest latencies."""


@dataclass
class TaskCounters:
    """The counters of one task; only the thread that drives it writes them."""

    rows_in: int = 0
    rows_out: int = 0
    batches_in: int = 0
    batches_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_seconds: float = 0.0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))


@dataclass(frozen=True)
class TaskMetrics:
    """A copy of one task's counters; `own` are those that the task keeps itself."""

    component: str
    task: int
    rows_in: int
    rows_out: int
    batches_in: int
    batches_out: int
    bytes_in: int
    bytes_out: int
    busy_seconds: float
    waiting_bytes: int
    own: Mapping[str, float]
    latencies: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, component: str, task: int, counters: TaskCounters, waiting_bytes: int, own: Mapping[str, float]
    ) -> TaskMetrics:
        """Copy the counters of a task."""
        return cls(
            component,
            task,
            counters.rows_in,
            counters.rows_out,
            counters.batches_in,
            counters.batches_out,
            counters.bytes_in,
            counters.bytes_out,
            counters.busy_seconds,
            waiting_bytes,
            dict(own),
            tuple(counters.latencies),
        )


@dataclass(frozen=True)
class Metrics:
    """The metrics of all tasks of a topology at one moment."""

    tasks: tuple[TaskMetrics, ...]

    def of(self, component: str) -> tuple[TaskMetrics, ...]:
        """The metrics of the tasks of one component."""
        return tuple(task for task in self.tasks if task.component == component)

    def total(self, name: str, component: str | None = None) -> float:
        """The sum of one of the tasks' own counters, over one component or all."""
        return sum(task.own.get(name, 0.0) for task in self.tasks if component in (None, task.component))

    def latency(self, *percentiles: float) -> tuple[float, ...]:
        """Percentiles of the seconds from a row's entry to the arrival of its results at the sink.

        They cover the last few thousand steps; NaN if there are none.
        """
        recent = [latency for task in self.tasks for latency in task.latencies]
        if not recent:
            return tuple(float("nan") for _ in percentiles)
        return tuple(float(value) for value in np.percentile(recent, percentiles))

    def _repr_html_(self) -> str:
        right, left = "text-align:right", "text-align:left"
        header = ("component", "task", "rows in", "rows out", "bytes waiting", "seconds busy")
        lines = ["".join(f'<th style="{right if at else left}">{title}</th>' for at, title in enumerate(header))]
        for task in self.tasks:
            numbers = (str(task.task), *(f"{n:,}" for n in (task.rows_in, task.rows_out, task.waiting_bytes)))
            cells = "".join(f'<td style="{right}">{number}</td>' for number in (*numbers, f"{task.busy_seconds:.2f}"))
            lines.append(f'<td style="{left}">{escape(task.component)}</td>{cells}')
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"

    def __str__(self) -> str:
        header = f"{'component':<22}{'task':>5}{'rows in':>14}{'rows out':>14}{'waiting':>12}{'busy s':>9}"
        lines = [header]
        for task in self.tasks:
            lines.append(
                f"{task.component:<22}{task.task:>5}{task.rows_in:>14,}{task.rows_out:>14,}"
                f"{task.waiting_bytes:>12,}{task.busy_seconds:>9.2f}"
            )
        return "\n".join(lines)
