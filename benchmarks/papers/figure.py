"""A figure of a paper: what it varies, how it is measured here, what the paper prints, and how the two compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

from benchmarks.chart import Axis


class Point(NamedTuple):
    """One measured value: of a series (a line of the plot), at a place on the axis."""

    series: str
    x: float
    y: float


Points = Sequence[Point]
Measure = Callable[[bool], Iterable[Point]]
"""Measures all points of a figure; `True` asks for the quick form, which only shows that it works."""


@dataclass(frozen=True)
class Claim:
    """A number that the paper's text prints, and the same number from our points.

    kind: ratio: which of two is ahead matters first, so 1 divides agreement from disagreement. value: a number of its
          own.
    """

    text: str
    printed: float
    ours: Callable[[Points], float]
    unit: str = "times"
    kind: Literal["ratio", "value"] = "ratio"

    def verdict(self, points: Points) -> str:
        """How ours compares, in two or three words."""
        ours = self.ours(points)
        if self.kind == "value":
            return (
                "as printed" if ours == self.printed else "ours is lower" if ours < self.printed else "ours is higher"
            )
        if (ours - 1) * (self.printed - 1) <= 0:
            return "the other way round"
        closeness = max(ours, self.printed) / min(ours, self.printed)
        return "about the same" if closeness <= 1.5 else "same direction"


@dataclass(frozen=True)
class Figure:
    """One figure, or one part of it, that `measure` reproduces.

    number:   as in the paper, with the letter of the part.
    varies:   what changes along the x axis and between the series.
    workload: what runs; ends with which data, real or generated.
    claims:   what the paper's text prints and the same from our points. Nothing is read off the paper's plots.
    printed:  points that the text prints in the units of the plot; they are drawn beside ours.
    conclude: what a reader should take from it.
    differs:  why our shape may differ from the paper's.
    """

    number: str
    title: str
    varies: str
    workload: str
    x: Axis
    y: Axis
    measure: Measure
    conclude: str
    differs: str
    claims: tuple[Claim, ...] = ()
    printed: tuple[Point, ...] = ()


@dataclass(frozen=True)
class NotCovered:
    """A figure, or a part of one, that is not measured, and the reason."""

    number: str
    reason: str


@dataclass(frozen=True)
class Paper:
    """A paper, its hardware, and its figures in the order of their numbers."""

    key: str
    title: str
    hardware: str
    figures: tuple[Figure, ...]
    missing: tuple[NotCovered, ...] = ()


def _values(points: Points, series: str) -> dict[float, float]:
    return {point.x: point.y for point in points if point.series == series}


def at(series: str, place: float) -> Callable[[Points], float]:
    """The value of a series at one place."""
    return lambda points: _values(points, series)[place]


def times(upper: str, lower: str, place: float | None = None) -> Callable[[Points], float]:
    """One series over another: the mean of the ratios where both have a value, or the ratio at one place."""

    def ratio(points: Points) -> float:
        above, below = _values(points, upper), _values(points, lower)
        places = [place] if place is not None else sorted(above.keys() & below.keys())
        return fmean(above[x] / below[x] for x in places)

    return ratio


def greatest_times(upper: str, lower: str) -> Callable[[Points], float]:
    """The greatest ratio of one series over another."""
    return lambda points: max(
        _values(points, upper)[x] / below for x, below in _values(points, lower).items() if x in _values(points, upper)
    )


def growth(series: str, first: float | None = None, last: float | None = None) -> Callable[[Points], float]:
    """The value of a series at one place over that at another; by default its last over its first."""

    def ratio(points: Points) -> float:
        values = _values(points, series)
        return values[max(values) if last is None else last] / values[min(values) if first is None else first]

    return ratio


def extreme(series: str, pick: Callable[[Iterable[float]], float] = max) -> Callable[[Points], float]:
    """The greatest (or least) value of a series."""
    return lambda points: pick(_values(points, series).values())


def best_place(series: str) -> Callable[[Points], float]:
    """Where a series has its greatest value."""

    def place(points: Points) -> float:
        values = _values(points, series)
        return max(values, key=lambda x: values[x])

    return place
