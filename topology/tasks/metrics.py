"""Counters of tasks and the metrics of a running topology."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate
from typing import Any

import numpy as np

RECENT = 4096
"""Percentiles are taken over this many of the latest latencies."""


AGE_BOUNDS = (*(float(f"{step}e{tens}") for tens in range(-3, 2) for step in (1, 1.5, 2, 3, 5, 7)), 100.0)
"""The upper ends of the classes in which ages are counted, in seconds; one more class has none."""


@dataclass
class TaskCounters:
    """The counters of one task; only the thread that drives it writes them.

    busy_since:    when the call of the task began that is under way; 0: none is.
    blocked_since: since when the task has waited for room downstream; 0: it does not.
    edge_rows:     rows by the index of the input; `edge_bytes` likewise.
    ages:          how many batches and steps were how old when they arrived here, by the classes of `AGE_BOUNDS`.
    age_seconds:   the sum of these ages.
    """

    rows_in: int = 0
    rows_out: int = 0
    batches_in: int = 0
    batches_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_seconds: float = 0.0
    busy_since: float = 0.0
    blocked_seconds: float = 0.0
    blocked_since: float = 0.0
    edge_rows: list[int] = field(default_factory=list)
    edge_bytes: list[int] = field(default_factory=list)
    ages: list[int] = field(default_factory=lambda: [0] * (len(AGE_BOUNDS) + 1))
    age_seconds: float = 0.0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))


@dataclass(frozen=True)
class EdgeMetrics:
    """What one task has got from another; `waiting_bytes` have arrived and have not been taken."""

    producer: str
    task: int
    rows: int
    bytes: int
    waiting_bytes: int = 0


@dataclass(frozen=True)
class Ages:
    """How old rows were when they arrived: since their entry into the topology, by the classes of `AGE_BOUNDS`."""

    counts: tuple[int, ...] = (0,) * (len(AGE_BOUNDS) + 1)
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """How many batches and steps have been counted."""
        return sum(self.counts)

    def __add__(self, other: Ages) -> Ages:
        return Ages(tuple(map(int.__add__, self.counts, other.counts)), self.seconds + other.seconds)

    def since(self, earlier: Ages) -> Ages:
        """What has been counted after an earlier copy; nothing if counting has begun anew."""
        if earlier.count > self.count:
            return Ages()
        return Ages(tuple(map(int.__sub__, self.counts, earlier.counts)), self.seconds - earlier.seconds)

    def percentiles(self, *percents: float) -> tuple[float, ...]:
        """Ages below which so many percent are, within the width of a class; NaN if there are none."""
        sums = list(accumulate(self.counts))
        if not sums[-1]:
            return tuple(float("nan") for _ in percents)
        return tuple(self._below(sums, sums[-1] * percent / 100) for percent in percents)

    def _below(self, sums: Sequence[int], wanted: float) -> float:
        at = next(number for number, reached in enumerate(sums) if reached >= wanted and self.counts[number])
        lower = AGE_BOUNDS[at - 1] if at else 0.0
        if at == len(AGE_BOUNDS):
            return lower
        before = sums[at] - self.counts[at]
        return lower + (AGE_BOUNDS[at] - lower) * max(0.0, wanted - before) / self.counts[at]


@dataclass(frozen=True)
class TaskMetrics:
    """A copy of one task's counters.

    busy_seconds:    spent in the task's own code; `blocked_seconds` in waiting for room downstream. The rest is idle.
    edges:           what came from each task that feeds this one.
    ages:            how old rows were when they arrived here; at a sink, the latency of results.
    own:             the counters that the task keeps itself.
    details:         what else the task can tell, as JSON can express it; see `Task.details`.
    """

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
    blocked_seconds: float = 0.0
    edges: tuple[EdgeMetrics, ...] = ()
    ages: Ages = field(default_factory=Ages)
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        component: str,
        task: int,
        counters: TaskCounters,
        waiting_bytes: int,
        own: Mapping[str, float],
        edges: tuple[EdgeMetrics, ...] = (),
        details: Mapping[str, Any] | None = None,
    ) -> TaskMetrics:
        """Copy the counters of a task; a call or a wait that is under way counts up to now."""
        now = time.perf_counter()
        busy_since, blocked_since = counters.busy_since, counters.blocked_since
        return cls(
            component,
            task,
            counters.rows_in,
            counters.rows_out,
            counters.batches_in,
            counters.batches_out,
            counters.bytes_in,
            counters.bytes_out,
            counters.busy_seconds + (now - busy_since if busy_since else 0.0),
            waiting_bytes,
            dict(own),
            tuple(counters.latencies),
            counters.blocked_seconds + (now - blocked_since if blocked_since else 0.0),
            edges,
            Ages(tuple(counters.ages), counters.age_seconds),
            dict(details or {}),
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
