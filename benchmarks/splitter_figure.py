"""The number of rounds PanJoin's splitters need to adjust to a distribution (its section V-A1, figure 10f).

`python -m benchmarks.splitter_figure FILE.svg` draws it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from indexes import adjusted, quantiles, spread

KEYS = 2**32
"""The keys are 32-bit integers, and the first splitters are spread evenly over them."""

ROUNDS = 5


class Adjustment(NamedTuple):
    """Rounds 0..ROUNDS of one case, each with rows of its own; row counts per partition in units of their mean."""

    name: str
    error: list[float]  # the mean distance from the mean: the paper's normalised MAE
    imbalance: list[float]  # the largest partition
    least_error: float  # with the exact quantiles of the round's rows: the best that equal keys allow
    least_imbalance: float


def _modes(rng: np.random.Generator, rows: int, modes: int) -> np.ndarray:
    return (rng.integers(0, modes, rows) + 0.5) / modes


def normal(deviation: float, modes: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    """`modes` bells at equal distances, `deviation` of the range of keys wide together."""
    return lambda rng, rows: _modes(rng, rows, modes) + rng.normal(0, deviation / modes, rows)


def uniform(width: float, modes: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    """`modes` boxes at equal distances, that cover `width` of the range of keys together."""
    return lambda rng, rows: _modes(rng, rows, modes) + rng.uniform(-width / 2, width / 2, rows) / modes


def view_counts(rng: np.random.Generator, rows: int) -> np.ndarray:
    """A rank-size distribution like that of view counts: nearly all values in a ten-thousandth of the range.

    Log-normal with a median of 2,000 views, where 99% have less than 430,000 views: 0.01% of 2^32.
    """
    return np.floor(np.exp(rng.normal(np.log(2000), 2.3, rows))) / KEYS


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform, 1 mode": uniform(1.0, 1),
    "uniform, 1% of the range": uniform(0.01, 1),
    "uniform, 8 modes, 10%": uniform(0.1, 8),
    "normal, deviation 10%": normal(0.1, 1),
    "normal, deviation 1%": normal(0.01, 1),
    "normal, 8 modes, 1%": normal(0.01, 8),
    "view counts": view_counts,
}


def _counts(splitters: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, least and greatest key of each partition of ascending keys; the latter arbitrary where there is no row."""
    ends = np.append(np.searchsorted(keys, splitters, "right"), len(keys))
    begins = np.append(0, ends[:-1])
    return ends - begins, keys[np.minimum(begins, len(keys) - 1)], keys[np.maximum(ends - 1, 0)]


def _evenness(count: np.ndarray) -> tuple[float, float]:
    mean = count.mean()
    return float(np.abs(count - mean).mean() / mean), float(count.max() / mean)


def adjustments(partitions: int = 1024, rows: int = 1 << 20, seed: int = 1) -> list[Adjustment]:
    """Every distribution, adjusted `ROUNDS` times; each round is a new subwindow of `rows` rows."""
    results = []
    for name, draw in DISTRIBUTIONS.items():
        rng = np.random.default_rng(seed)
        splitters = spread(partitions, 0, KEYS)
        rounds = []
        for _ in range(ROUNDS + 1):
            keys = np.sort(np.clip(draw(rng, rows) * KEYS, 0, KEYS - 1).astype(np.int64))
            count, lowest, highest = _counts(splitters, keys)
            rounds.append(_evenness(count))
            splitters = adjusted(count, lowest, highest)
        least = _evenness(_counts(quantiles(keys, partitions), keys)[0])
        results.append(Adjustment(name, [e for e, _ in rounds], [i for _, i in rounds], *least))
    return results


COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#333333")


def plot(path: str | Path, partitions: int = 1024, rows: int = 1 << 20) -> None:
    """Draw the largest partition over the rounds, on a logarithmic scale, as SVG."""
    cases = adjustments(partitions, rows)
    left, top, width, height = 60, 40, 420, 300
    decades = max(1, int(np.ceil(np.log10(max(max(case.imbalance) for case in cases)))))

    def place(step: int, value: float) -> tuple[float, float]:
        return left + width * step / ROUNDS, top + height * (1 - np.log10(value) / decades)

    parts = [f'<text x="{left}" y="20">largest partition / mean, {partitions} partitions of {rows} rows</text>']
    for decade in range(decades + 1):
        y = place(0, 10.0**decade)[1]
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10**decade}</text>')
    for step in range(ROUNDS + 1):
        parts.append(f'<text x="{place(step, 1)[0]:.1f}" y="{top + height + 18}" text-anchor="middle">{step}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 36}" text-anchor="middle">adjustments</text>')
    for number, (case, colour) in enumerate(zip(cases, COLOURS, strict=True)):
        points = " ".join("{:.1f},{:.1f}".format(*place(step, value)) for step, value in enumerate(case.imbalance))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = top + 16 * number
        parts.append(f'<rect x="{left + width + 16}" y="{y}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{left + width + 32}" y="{y + 9}">{escape(case.name)}</text>')
    size = f'width="{left + width + 220}" height="{top + height + 50}"'
    style = 'font-family="sans-serif" font-size="12"'
    body = "\n".join(parts)
    white = '<rect width="100%" height="100%" fill="white"/>'
    Path(path).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{white}\n{body}\n</svg>\n')


if __name__ == "__main__":
    plot(sys.argv[1])
