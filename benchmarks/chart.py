"""Line charts as SVG: a title, two axes (logarithmic on request), a line with its name for each series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 176, 46, 56
COLOURS = (
    "#1f6fb4", "#d9541e", "#2a8f3c", "#8e44ad", "#b8860b", "#17a2b8", "#c2185b", "#555555", "#7cb342", "#5d4037",
    "#000000", "#ff9800", "#3f51b5", "#9e9d24", "#e57373", "#4db6ac",
)  # fmt: skip
STYLE = (
    "text{font-family:system-ui,sans-serif;font-size:12px;fill:#333}.title{font-size:15px;font-weight:600}"
    ".grid{stroke:#ddd}.axis{stroke:#999}"
)

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """An axis and its label; with `base` it is logarithmic: 2 marks powers of two, 10 powers of ten.

    With `names`, the values 0, 1, 2, ... are labelled with them.
    """

    label: str
    base: int | None = None
    names: tuple[str, ...] = ()

    def place(self, value: float) -> float:
        return math.log(value, self.base) if self.base else value

    def ticks(self, low: float, high: float) -> list[float]:
        """Round numbers between two places on the axis, as places."""
        if self.names:
            return [float(number) for number in range(len(self.names))]
        if self.base:
            step = max(1, math.ceil((high - low) / 8))
            return [float(t) for t in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1, step)]
        size = 10.0 ** math.floor(math.log10((high - low) or 1))
        while (high - low) / size < 4:
            size /= 2
        return [size * t for t in range(math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9) + 1)]

    def name(self, place: float) -> str:
        if self.names:
            return self.names[int(place)]
        if self.base == 2:
            return f"2^{place:.0f}"
        value = self.base**place if self.base else place
        for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
            if abs(value) >= size:
                return f"{value / size:g}{unit}"
        return f"{value:g}"


def line_chart(path: Path, title: str, x: Axis, y: Axis, series: Mapping[str, Points]) -> None:
    """Draw `series` and write the picture to `path`."""
    placed = {name: [(x.place(a), y.place(b)) for a, b in points] for name, points in series.items()}
    every = [point for points in placed.values() for point in points]
    x_low, x_high = _ends([a for a, _ in every], exact=True)
    y_low, y_high = _ends([b for _, b in every] + ([] if y.base else [0.0]), exact=False)
    across = (WIDTH - LEFT - RIGHT) / (x_high - x_low)
    up = (HEIGHT - TOP - BOTTOM) / (y_high - y_low)

    def at(a: float, b: float) -> tuple[float, float]:
        return LEFT + (a - x_low) * across, HEIGHT - BOTTOM - (b - y_low) * up

    drawn = [f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>']
    for tick in y.ticks(y_low, y_high):
        _, level = at(x_low, tick)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{level + 4:.1f}" text-anchor="end">{y.name(tick)}</text>')
    for tick in x.ticks(x_low, x_high):
        place, _ = at(tick, y_low)
        drawn.append(
            f'<line class="axis" x1="{place:.1f}" x2="{place:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 5}"/>'
        )
        drawn.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{x.name(tick)}</text>')
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    drawn.append(f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x.label)}</text>')
    centre = TOP + (HEIGHT - TOP - BOTTOM) / 2
    drawn.append(f'<text transform="translate(18 {centre}) rotate(-90)" text-anchor="middle">{escape(y.label)}</text>')
    drawn += _lines(placed, at)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{STYLE}</style>'
    path.write_text(f'{svg}<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(drawn) + "\n</svg>\n")


def _ends(places: Sequence[float], exact: bool) -> tuple[float, float]:
    low, high = min(places), max(places)
    if low == high:
        return low - 0.5, high + 0.5
    spare = 0.0 if exact else 0.05 * (high - low)
    return low - (spare if low else 0.0), high + spare


def _lines(placed: Mapping[str, Points], at: object) -> list[str]:
    """The lines and, at their right ends, their names, pushed apart where they would overlap."""
    assert callable(at)
    drawn, labels = [], []
    for number, (name, points) in enumerate(placed.items()):
        colour = COLOURS[number % len(COLOURS)]
        corners = [at(a, b) for a, b in points]
        joined = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        drawn.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in corners]
        labels.append((corners[-1][1], name, colour))
    level = -math.inf
    for wanted, name, colour in sorted(labels):
        level = max(wanted, level + 15)
        drawn.append(f'<text x="{WIDTH - RIGHT + 10}" y="{level + 4:.1f}" style="fill:{colour}">{escape(name)}</text>')
    return drawn
