"""The pictures of docs/indexes.md, drawn from what `python -m benchmarks indexes --json FILE` wrote.

`python -m benchmarks.index_figures FILE docs/figures`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.chart import Axis, line_chart
from benchmarks.splitter_figure import plot as plot_splitters

RATE = Axis("tuples/s", 10)
Row = dict[str, Any]


def draw(rows: list[Row], folder: Path) -> None:
    """Draw all figures for which there are rows."""
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, tuple[str, str, Axis]] = {
        "by-window": ("window=2^", "Throughput over window", Axis("rows of a window", 2)),
        "by-batch": ("batch=", "Throughput over batch size", Axis("rows of a batch", 10)),
        "by-match-rate": ("match rate=2^", "Throughput over match rate", Axis("matches per tuple", 2)),
        "merge-ratio": ("merge ratio=2^", "Throughput over merge ratio", Axis("merge ratio", 2)),
    }
    for name, (prefix, title, axis) in figures.items():
        power = prefix.endswith("^")
        number: Callable[[str], float] = (lambda text: 2.0 ** int(text)) if power else float
        series = _series(rows, prefix, number)
        if series:
            line_chart(folder / f"{name}.svg", title, axis, RATE, series)
    depths = _series(rows, "insertion depth=", float)
    if depths:
        line_chart(folder / "insertion-depth.svg", "Throughput over insertion depth", Axis("depth"), RATE, depths)
    _draw_partitions(rows, folder)
    _draw_distributions(rows, folder)
    plot_splitters(folder / "splitters.svg")


def _series(rows: list[Row], prefix: str, number: Callable[[str], float]) -> dict[str, list[tuple[float, float]]]:
    """The rate of each index over the number after `prefix` in the case."""
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        case = row["case"]
        if case.startswith(prefix) and " " not in case.removeprefix(prefix) and "rate" in row:
            series.setdefault(row["index"], []).append((number(case.removeprefix(prefix)), row["rate"]))
    return {name: sorted(points) for name, points in series.items()}


def _draw_partitions(rows: list[Row], folder: Path) -> None:
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        batch, _, partitions = row["case"].partition(" partitions=2^")
        if partitions:
            name = f"{row['index']}, 2^{partitions}"
            series.setdefault(name, []).append((float(batch.removeprefix("batch=")), row["rate"]))
    if series:
        title = "PanJoin's structures over batch size, by partition count"
        line_chart(folder / "partitions.svg", title, Axis("rows of a batch", 2), RATE, series)


def _draw_distributions(rows: list[Row], folder: Path) -> None:
    kinds = ("uniform", "drifting", "heavy-tailed", "increasing")
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["case"] in kinds:
            series.setdefault(row["index"], []).append((float(kinds.index(row["case"])), row["rate"]))
    if series:
        title = "Throughput by distribution"
        line_chart(folder / "by-distribution.svg", title, Axis("", names=kinds), RATE, series)


if __name__ == "__main__":
    source, target = sys.argv[1:]
    draw(json.loads(Path(source).read_text())["rows"], Path(target))
