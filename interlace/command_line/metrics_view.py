"""The metrics of a topology: once, or again and again."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from interlace.command_line.columns_text import bytes_text, print_columns
from interlace.command_line.outcome import is_terminal, say_json
from interlace.watching.load import Load, combined, task_load

if TYPE_CHECKING:
    from topology import Handle, Metrics

Key = tuple[str, int | None]


def loads(metrics: Metrics, before: Metrics | None, seconds: float, *, by_task: bool) -> dict[Key, Load]:
    """What each component, or each task, has done since the counters were as `before`."""
    known = {} if before is None else {(task.component, task.task): task for task in before.tasks}
    found: dict[Key, list[Load]] = defaultdict(list)
    for task in metrics.tasks:
        load = task_load(known.get((task.component, task.task)), task, seconds)
        found[task.component, task.task if by_task else None].append(load)
    return {key: combined(each) for key, each in found.items()}


def metrics_as_json(metrics: Metrics) -> dict[str, Any]:
    """The metrics for programs."""
    return {
        "latency_seconds": latency(metrics),
        "tasks": [
            {
                "component": task.component,
                "task": task.task,
                "rows_in": task.rows_in,
                "rows_out": task.rows_out,
                "batches_in": task.batches_in,
                "batches_out": task.batches_out,
                "bytes_in": task.bytes_in,
                "bytes_out": task.bytes_out,
                "busy_seconds": round(task.busy_seconds, 6),
                "waiting_bytes": task.waiting_bytes,
                "own": dict(task.own),
            }
            for task in metrics.tasks
        ],
    }


def latency(metrics: Metrics) -> dict[str, float | None]:
    """The latency from a row's entry to its results; None where there are none yet."""
    found = metrics.latency(50, 99)
    return {name: None if math.isnan(value) else value for name, value in zip(("p50", "p99"), found, strict=True)}


def print_metrics(metrics: Metrics, *, by_task: bool) -> None:
    """Print a line for each component, or for each task."""
    names = ("component", "task" if by_task else "tasks", "rows in", "rows out", "waiting", "busy")
    rows = [
        (
            component,
            str(load.tasks if task is None else task),
            f"{load.rows_in:,}",
            f"{load.rows_out:,}",
            bytes_text(load.waiting_bytes),
            f"{load.busy_seconds:.2f} s",
        )
        for (component, task), load in loads(metrics, None, 1.0, by_task=by_task).items()
    ]
    print_columns(names, rows, right=names[1:])


def watch(running: Handle, seconds: float, count: int | None, *, by_task: bool, as_json: bool) -> None:
    """Show the rates of a running topology again and again, on a terminal in one place."""
    look = _Look(running, by_task)
    if as_json or not is_terminal():
        for number in _numbers(count):
            rates = look.next()
            if as_json:
                say_json(rates)
            else:
                print_columns(_NAMES, [_cells(each) for each in rates["components"]], right=_NAMES[1:])
            _pause(seconds, number, count)
        return
    from rich.live import Live

    with Live(auto_refresh=False, screen=False) as live:
        for number in _numbers(count):
            live.update(_table(running.name, look.next()), refresh=True)
            _pause(seconds, number, count)


_NAMES = ("component", "tasks", "rows in/s", "rows out/s", "rows in", "rows out", "waiting", "busy")


class _Look:
    """Looks at the metrics and compares them with those of the last look."""

    def __init__(self, running: Handle, by_task: bool) -> None:
        self._running = running
        self._by_task = by_task
        self._before: Metrics | None = None
        self._at = time.monotonic()

    def next(self) -> dict[str, Any]:
        metrics, now = self._running.metrics(), time.monotonic()
        passed = max(now - self._at, 1e-9)
        components = [
            {
                "component": component,
                "task": task,
                "tasks": load.tasks,
                "rows_in": load.rows_in,
                "rows_out": load.rows_out,
                "rows_in_per_second": load.rows_in_rate,
                "rows_out_per_second": load.rows_out_rate,
                "waiting_bytes": load.waiting_bytes,
                "busy": load.busy,
            }
            for (component, task), load in loads(metrics, self._before, passed, by_task=self._by_task).items()
        ]
        self._before, self._at = metrics, now
        return {"latency_seconds": latency(metrics), "components": components}


def _cells(rates: dict[str, Any]) -> tuple[str, ...]:
    return (
        rates["component"],
        str(rates["tasks"] if rates["task"] is None else f"#{rates['task']}"),
        f"{rates['rows_in_per_second']:,.0f}",
        f"{rates['rows_out_per_second']:,.0f}",
        f"{rates['rows_in']:,}",
        f"{rates['rows_out']:,}",
        bytes_text(rates["waiting_bytes"]),
        f"{rates['busy']:.0%}",
    )


def _table(name: str, rates: dict[str, Any]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    found = [
        f"p{key[1:]} {value * 1000:,.1f} ms" for key, value in rates["latency_seconds"].items() if value is not None
    ]
    title = f"{name}   latency {', '.join(found)}" if found else name
    table = Table(title=escape(title), title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in _NAMES:
        table.add_column(column, justify="left" if column == "component" else "right", no_wrap=True)
    for each in rates["components"]:
        style = "red" if each["busy"] > 0.9 else "yellow" if each["busy"] > 0.6 else ""
        *cells, busy = _cells(each)
        table.add_row(*map(escape, cells), f"[{style}]{busy}" if style else busy)
    return table


def _numbers(count: int | None) -> Any:
    import itertools

    return itertools.count(1) if count is None else range(1, count + 1)


def _pause(seconds: float, number: int, count: int | None) -> None:
    if number != count:
        time.sleep(seconds)
