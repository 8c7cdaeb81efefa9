"""Durations as users write them: a number in the event time's unit, a timedelta, or text such as "10 min"."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from math import isfinite

import pyarrow as pa

from operators.query.errors import DurationError

Duration = int | float | timedelta | str
"""A number is in the event-time column's own unit; the other forms need a column of timestamps, dates or times.

`parse_duration` reads text."""

FORMS = '"250 ms", "5 s", "10 min", "1.5 h", "2 days", "1 h 30 min"'
"""Examples for error messages."""

# From the longest to the shortest, in microseconds.
_UNITS = {
    ("w", "week", "weeks"): 604_800_000_000,
    ("d", "day", "days"): 86_400_000_000,
    ("h", "hour", "hours"): 3_600_000_000,
    ("min", "mins", "minute", "minutes"): 60_000_000,
    ("s", "sec", "secs", "second", "seconds"): 1_000_000,
    ("ms", "millisecond", "milliseconds"): 1_000,
    ("us", "µs", "μs", "microsecond", "microseconds"): 1,  # the micro sign, and the Greek letter that looks like it
}
_LENGTHS = {name: length for names, length in _UNITS.items() for name in names}
_SHOWN = ", ".join(names[0] for names in reversed(_UNITS))
_HINTS = {
    "m": "m may be minutes or months: write min",
    "month": "months differ in length: write days",
    "year": "years differ in length: write days",
    "ns": "the shortest unit of text is the microsecond: give nanoseconds as a number in the event time's own unit",
    "nanosecond": "the shortest unit of text is the microsecond: give nanoseconds as a number in the event time's "
    "own unit",
}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([^\W\d_]+)")
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def parse_duration(text: str) -> timedelta:
    """Read a length of time: numbers with units, the longest unit first, each unit once; a minus sign negates it all.

    Units: us, ms, s, min, h, d, w, or their names, in any case. The result is exact: a duration that is not a whole
    number of microseconds is refused, never rounded. Raises `DurationError`, which shows valid forms.
    """
    stripped = text.strip()
    negative = stripped.startswith("-")
    at, total, shortest = int(negative), Fraction(0), None
    while at < len(stripped) or shortest is None:
        part = _PART.match(stripped, at)
        if part is None:
            raise _unreadable(text, stripped[at:].strip())
        number, unit = part[1], part[2].lower()
        length = _LENGTHS.get(unit)
        if length is None:
            hint = _HINTS.get(unit) or _HINTS.get(unit.removesuffix("s")) or f"units are {_SHOWN}"
            raise DurationError(f"{text!r} is not a length of time, since {part[2]!r} is not a unit of one: {hint}")
        if shortest is not None and length >= shortest:
            raise DurationError(f'{text!r}: write the longest unit first and each unit once, such as "1 h 30 min"')
        total += Fraction(number) * length
        at, shortest = part.end(), length
    if total.denominator != 1:
        raise DurationError(f"{text!r} is not a whole number of microseconds: round it")
    try:
        return timedelta(microseconds=-int(total) if negative else int(total))
    except OverflowError:
        raise DurationError(f"{text!r} is longer than the {timedelta.max.days:,} days that fit") from None


def checked_duration(value: Duration) -> int | float | timedelta:
    """The duration, with text parsed; raises `DurationError` for anything else, and for infinite numbers."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DurationError(f"{value!r} is not a length of time: write a timedelta, a number or text such as {FORMS}")
    if not isfinite(value):
        raise DurationError(f"{value!r} is not a length of time: write a finite number")
    return value


def in_unit(value: Duration, kind: pa.DataType | None) -> Fraction:
    """The duration as an exact number in the unit of an event-time column; None means row numbers.

    A number is in that unit already. Raises `DurationError` for text or a timedelta if the column has no unit of time.
    """
    length = checked_duration(value)
    if not isinstance(length, timedelta):
        return Fraction(length)
    seconds = Fraction(length // timedelta(microseconds=1), 1_000_000)
    if kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind)):
        return seconds * _PER_SECOND[kind.unit]
    if kind is not None and pa.types.is_date32(kind):
        return seconds / 86_400
    if kind is not None and pa.types.is_date64(kind):
        return seconds * 1_000
    found = "row numbers" if kind is None else str(kind)
    raise DurationError(
        f"{written(value)} is a length of time, but event time is {found}: write it as a number in that unit, "
        f"or make the event-time column a timestamp"
    )


def written(value: Duration) -> str:
    """The duration for display: text as given, a timedelta in units, a number as it is."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, timedelta):
        return str(value)
    rest = abs(value) // timedelta(microseconds=1)
    parts = []
    for names, length in _UNITS.items():
        if names[0] != "w" and rest >= length:
            parts.append(f"{rest // length} {names[0]}")
            rest %= length
    return ("-" if value < timedelta(0) else "") + (" ".join(parts) or "0 s")


def _unreadable(text: str, rest: str) -> DurationError:
    place = f" from {rest!r} on" if rest and rest != text.strip() else ""
    return DurationError(f"{text!r} is not a length of time{place}: write numbers with units, such as {FORMS}")
