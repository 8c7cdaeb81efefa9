"""The windows of the law (docs/semantics.md, Windows): which rows before t are live at t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa

Number = int | float


@dataclass(frozen=True)
class Count:
    """The last `size` rows, moving in steps of `slide`; per key: of the rows of each key."""

    size: int
    slide: int = 1
    per_key: bool = False


@dataclass(frozen=True)
class Time:
    """The last `size` of event time, in its own unit; for timestamps a timedelta will do as well."""

    size: Number | timedelta
    slide: Number | timedelta | None = None


@dataclass(frozen=True)
class Unbounded:
    """Every row, for ever."""


Window = Count | Time | Unbounded


def unit_of(event_time: pa.DataType | None) -> Fraction | None:
    """Event-time units per microsecond; None where the time is a plain number."""
    if event_time is None or pa.types.is_integer(event_time) or pa.types.is_floating(event_time):
        return None
    if pa.types.is_date32(event_time):
        return Fraction(1, 86_400 * 10**6)
    if pa.types.is_date64(event_time):
        return Fraction(1, 1000)
    return {"s": Fraction(1, 10**6), "ms": Fraction(1, 1000), "us": Fraction(1), "ns": Fraction(1000)}[event_time.unit]


def in_units(value: Any, unit: Fraction | None) -> Any:
    """A length of time in the unit of the event times."""
    if not isinstance(value, timedelta):
        return value
    if unit is None:
        raise TypeError("a timedelta needs a timestamp as event time")
    exact = Fraction(value // timedelta(microseconds=1)) * unit
    return exact.numerator if exact.denominator == 1 else exact


def first_counted(window: Count, n: int) -> int:
    """The first position that is live when n rows came before."""
    return max(0, math.ceil(Fraction(n - window.size, window.slide)) * window.slide)


def first_time(window: Time, unit: Fraction | None, now: Any) -> Any:
    """The first time that is live at `now` in a window with a slide."""
    size, slide = in_units(window.size, unit), in_units(window.slide, unit)
    if isinstance(now, float) or isinstance(size, float) or isinstance(slide, float):
        return (math.floor((now - size) / slide) + 1) * slide
    return ((now - size) // slide + 1) * slide  # floor division of integers is exact


@dataclass(frozen=True)
class Group:
    """What a window per key knows at t of the side: each earlier row's key and its position among its key's rows."""

    keys: Sequence[Any]
    positions: Sequence[int]
    key_of_t: Any


def live(
    window: Window, unit: Fraction | None, now: Any, times: Sequence[Any], n: int, group: Group | None = None
) -> list[int]:
    """Positions of the side's n rows before t (whose time is `now`) that are live at t."""
    match window:
        case Unbounded():
            return list(range(n))
        case Count(per_key=True):
            assert group is not None
            mine = [y for y in range(n) if group.key_of_t is not None and group.keys[y] == group.key_of_t]
            first = first_counted(window, len(mine))
            # A row of another key says nothing about y: it can neither meet it nor make it expire.
            keyed = [y for y in range(n) if group.keys[y] is not None]
            return [y for y in keyed if y not in mine or group.positions[y] >= first]
        case Count():
            first = first_counted(window, n)
            return [y for y in range(n) if y >= first]
        case Time(slide=None):
            size = in_units(window.size, unit)
            return [y for y in range(n) if now - times[y] <= size]
    start = first_time(window, unit, now)
    return [y for y in range(n) if times[y] >= start]
