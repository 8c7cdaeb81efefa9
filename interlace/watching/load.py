"""What tasks, components and edges did between two looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from interlace.watching.look import STATE_COUNTERS, Look
from topology import Ages, TaskMetrics


@dataclass(frozen=True)
class Load:
    """One task, or all tasks of a component.

    rows_in_rate: a second; `rows_out_rate` likewise.
    busy:         the share of the time in its own code; of several tasks the mean, and `busiest` is the greatest.
    blocked:      the share in which it waited for room downstream; of several tasks the mean.
    ages:         how old rows were when they arrived, between the two looks.
    """

    component: str
    tasks: int
    rows_in: int
    rows_out: int
    rows_in_rate: float
    rows_out_rate: float
    busy: float
    busiest: float
    blocked: float
    busy_seconds: float
    waiting_bytes: int
    state_bytes: float
    ages: Ages

    @property
    def idle(self) -> float:
        """The rest of the time."""
        return max(0.0, 1.0 - self.busy - self.blocked)


class Stretch(NamedTuple):
    """From one component to another: rows and bytes in all and a second, and what waits at the consumer."""

    rows: int
    bytes: int
    row_rate: float
    byte_rate: float
    waiting_bytes: int


def task_load(before: TaskMetrics | None, now: TaskMetrics, seconds: float) -> Load:
    """What one task did. If it was not there before, or has begun anew since, nothing is known of its rate."""
    if before is None or before.rows_in > now.rows_in or before.busy_seconds > now.busy_seconds + 1.0:
        before = now
    busy = _share(now.busy_seconds - before.busy_seconds, seconds)
    return Load(
        now.component,
        1,
        now.rows_in,
        now.rows_out,
        (now.rows_in - before.rows_in) / seconds,
        (now.rows_out - before.rows_out) / seconds,
        busy,
        busy,
        min(1.0 - busy, _share(now.blocked_seconds - before.blocked_seconds, seconds)),
        now.busy_seconds,
        now.waiting_bytes,
        sum(now.own.get(name, 0.0) for name in STATE_COUNTERS),
        now.ages.since(before.ages),
    )


def combined(loads: Iterable[Load]) -> Load:
    """The load of a component, from the loads of its tasks; it has at least one."""
    first, *others = loads
    if not others:
        return first
    every = [first, *others]
    return Load(
        first.component,
        len(every),
        sum(load.rows_in for load in every),
        sum(load.rows_out for load in every),
        sum(load.rows_in_rate for load in every),
        sum(load.rows_out_rate for load in every),
        sum(load.busy for load in every) / len(every),
        max(load.busiest for load in every),
        sum(load.blocked for load in every) / len(every),
        sum(load.busy_seconds for load in every),
        sum(load.waiting_bytes for load in every),
        sum(load.state_bytes for load in every),
        sum((load.ages for load in others), first.ages),
    )


def loads(before: Look, now: Look) -> dict[tuple[str, int], Load]:
    """The load of each task."""
    seconds = max(now.at - before.at, 1e-3)
    return {name: task_load(before.tasks.get(name), task, seconds) for name, task in now.tasks.items()}


def by_component(tasks: Mapping[tuple[str, int], Load]) -> dict[str, Load]:
    """The load of each component."""
    grouped: dict[str, list[Load]] = {}
    for (component, _), load in tasks.items():
        grouped.setdefault(component, []).append(load)
    return {component: combined(each) for component, each in grouped.items()}


def stretches(
    before: Look, now: Look, called: Callable[[str, int], str] = lambda component, task: component
) -> dict[tuple[str, str], Stretch]:
    """What went from component to component; `called` gives tasks other names, of which each is a sum."""
    seconds = max(now.at - before.at, 1e-3)
    earlier = _edges(before, called)
    found = {}
    for pair, (rows, size, waiting) in _edges(now, called).items():
        old_rows, old_size, _ = earlier.get(pair, (rows, size, 0))
        if old_rows > rows:  # it began anew
            old_rows, old_size = rows, size
        found[pair] = Stretch(rows, size, (rows - old_rows) / seconds, (size - old_size) / seconds, waiting)
    return found


def _edges(look: Look, called: Callable[[str, int], str]) -> dict[tuple[str, str], tuple[int, int, int]]:
    sums: dict[tuple[str, str], tuple[int, int, int]] = {}
    for task in look.metrics.tasks:
        for edge in task.edges:
            if edge.producer:
                pair = (called(edge.producer, edge.task), called(task.component, task.task))
                rows, size, waiting = sums.get(pair, (0, 0, 0))
                sums[pair] = (rows + edge.rows, size + edge.bytes, waiting + edge.waiting_bytes)
    return sums


def _share(spent: float, seconds: float) -> float:
    return min(1.0, max(0.0, spent / seconds))
