"""Built-in functions of dates and times. A timestamp with a zone is taken apart in the time of its zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import Argument, ArgumentError, constant_text, require
from operators.functions.builtin import Builtin
from operators.functions.families import Family

_INSTANT: tuple[str, tuple[Family, ...]] = ("a date or a timestamp", ("date", "timestamp", "zoned timestamp"))
_TIMED: tuple[str, tuple[Family, ...]] = (
    "a date, a timestamp or a time of day",
    (*_INSTANT[1], "time of day"),
)
_WHOLE: tuple[str, tuple[Family, ...]] = ("a whole number", ("integer",))
_CLOCK = ("hour", "minute", "second", "millisecond", "microsecond")

PARTS: dict[str, Callable[[pa.Array], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dow": lambda times: pc.day_of_week(times, count_from_zero=True, week_start=7),
    "isodow": lambda times: pc.day_of_week(times, count_from_zero=False, week_start=1),
    "doy": pc.day_of_year,
    "isoyear": pc.iso_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": lambda times: pc.add(pc.multiply(pc.second(times), 1000), pc.millisecond(times)),
    "microsecond": lambda times: pc.add(
        pc.multiply(pc.add(pc.multiply(pc.second(times), 1000), pc.millisecond(times)), 1000), pc.microsecond(times)
    ),
    "epoch": lambda times: pc.floor_temporal(times, unit="second").cast(pa.timestamp("s")).cast(pa.int64()),
}
"""The parts of a time; Sunday is 0 for dow and 7 for isodow, weeks are those of ISO 8601, epoch is in seconds."""

_OTHER_NAMES = {
    "years": "year", "months": "month", "days": "day", "dayofmonth": "day", "hours": "hour", "minutes": "minute",
    "seconds": "second", "milliseconds": "millisecond", "microseconds": "microsecond", "weeks": "week",
    "weekofyear": "week", "quarters": "quarter", "dayofweek": "dow", "weekday": "dow", "dayofyear": "doy",
}  # fmt: skip

_TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")

_BETWEEN: dict[str, Callable[[pa.Array, pa.Array], Any]] = {
    "year": pc.years_between,
    "quarter": pc.quarters_between,
    "month": lambda one, other: pc.add(
        pc.multiply(pc.years_between(one, other), 12), pc.subtract(pc.month(other), pc.month(one))
    ),
    "week": pc.weeks_between,
    "day": pc.days_between,
    "hour": pc.hours_between,
    "minute": pc.minutes_between,
    "second": pc.seconds_between,
    "millisecond": pc.milliseconds_between,
    "microsecond": pc.microseconds_between,
}


def part_named(written: str, known: Sequence[str] = tuple(PARTS)) -> str:
    """The name of a part, as the table has it; raises ArgumentError."""
    name = written.lower()
    name = _OTHER_NAMES.get(name, name)
    if name not in known:
        raise ArgumentError(f"'{written}' is not a part of a time: write one of {', '.join(known)}")
    return name


def _instants(times: pa.Array) -> pa.Array:
    """Dates as timestamps, whose parts Arrow knows all."""
    return times.cast(pa.timestamp("s")) if pa.types.is_date(times.type) else times


def _part_of(name: str, times: pa.Array) -> pa.Array:
    if times.type == pa.null():
        return pa.nulls(len(times), pa.int64())
    return PARTS[name](_instants(times)).cast(pa.int64())


def _check_part(name: str, argument: Argument) -> None:
    require([argument], [_TIMED if name in _CLOCK else _INSTANT])


def _named_type(arguments: Sequence[Argument]) -> pa.DataType:
    _check_part(part_named(constant_text(arguments[0], "the part", tuple(PARTS))), arguments[1])
    return pa.int64()


def _named(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    return _part_of(part_named(arguments[0].value), columns[1])


def _part(name: str, summary: str, *aliases: str) -> Builtin:
    def result(arguments: Sequence[Argument]) -> pa.DataType:
        _check_part(name, arguments[0])
        return pa.int64()

    def compute(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        return _part_of(name, columns[0])

    return Builtin(name, summary, 1, 1, result, compute, aliases=aliases)


def _truncated_type(arguments: Sequence[Argument]) -> pa.DataType:
    part_named(constant_text(arguments[0], "the unit", _TRUNCATED), _TRUNCATED)
    require(arguments[1:], [_INSTANT])
    kind = arguments[1].kind
    return kind if pa.types.is_timestamp(kind) else pa.timestamp("s")


def _truncated(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    if columns[1].type == pa.null():
        return pa.nulls(len(columns[1]), kind)
    return pc.floor_temporal(_instants(columns[1]), unit=part_named(arguments[0].value)).cast(kind)


def _difference_type(arguments: Sequence[Argument]) -> pa.DataType:
    part_named(constant_text(arguments[0], "the unit", tuple(_BETWEEN)), tuple(_BETWEEN))
    require(arguments[1:], [_INSTANT, _INSTANT])
    zones = {each.family == "zoned timestamp" for each in arguments[1:]}
    if len(zones) > 1:
        raise ArgumentError("both times need a zone, or neither")
    return pa.int64()


def _difference(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    if any(column.type == pa.null() for column in columns[1:]):
        return pa.nulls(len(columns[1]), kind)
    one, other = map(_instants, columns[1:])
    finest = max(one.type.unit, other.type.unit, key=("s", "ms", "us", "ns").index)
    target = pa.timestamp(finest, one.type.tz)
    return _BETWEEN[part_named(arguments[0].value)](one.cast(target), other.cast(target)).cast(kind)


def _months_later_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, (_INSTANT, _WHOLE))
    if arguments[0].family == "zoned timestamp":
        raise ArgumentError("a month in a time zone depends on its clock changes: add days, or CAST it AS TIMESTAMP")
    return arguments[0].kind


def _months_later(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    """The same day and time so many months later; the last day of the month if it has no such day."""
    times, months = columns
    if pa.types.is_null(times.type) or pa.types.is_null(months.type):
        return pa.nulls(len(times), kind)
    times = times if times.type == kind else times.cast(kind)  # a constant has the coarsest unit that holds it
    known = pc.and_(times.is_valid(), months.is_valid()).to_numpy(zero_copy_only=False)
    unit = "D" if pa.types.is_date(kind) else kind.unit
    ticks = times.cast(pa.int32() if pa.types.is_date(kind) else pa.int64())
    numbers = ticks.fill_null(0).to_numpy(zero_copy_only=False)
    moments = numbers.astype(np.int64).view(f"M8[{unit}]") if unit != "D" else numbers.astype("M8[D]")
    days = moments.astype("M8[D]")
    first = days.astype("M8[M]")
    target = first + months.fill_null(0).to_numpy(zero_copy_only=False).astype("m8[M]")
    last = ((target + 1).astype("M8[D]") - target.astype("M8[D]")).astype(np.int64)
    in_month = np.minimum((days - first.astype("M8[D]")).astype(np.int64), last - 1)
    moved = target.astype("M8[D]") + in_month
    if unit == "D":
        return pa.array(moved.astype(np.int64).astype(np.int32), mask=~known).cast(kind)
    found = moved.astype(f"M8[{unit}]") + (moments - days.astype(f"M8[{unit}]"))
    return pa.array(found.astype(np.int64), mask=~known).cast(kind)


TIME_FUNCTIONS = (
    Builtin("date_part", "a part of a time, by name; EXTRACT(part FROM time) in SQL", 2, 2, _named_type, _named,
            aliases=("datepart", "extract")),
    Builtin("date_trunc", "the time at the start of its year, month, day, ..", 2, 2, _truncated_type, _truncated,
            aliases=("datetrunc",)),
    Builtin("date_diff", "how many ends of years, months, days, .. lie between two times", 3, 3, _difference_type,
            _difference, aliases=("datediff",)),
    Builtin("add_months", "the same day so many months later, or the last of the month", 2, 2, _months_later_type,
            _months_later),
    _part("year", "the year of a time"),
    _part("quarter", "its quarter, from 1"),
    _part("month", "its month"),
    _part("week", "its week, as ISO 8601 counts them", "weekofyear"),
    _part("day", "its day of the month", "dayofmonth"),
    _part("hour", "its hour"),
    _part("minute", "its minute"),
    _part("second", "its second, without a fraction"),
    _part("dow", "its day of the week; Sunday is 0", "dayofweek"),
    _part("isodow", "its day of the week; Monday is 1, Sunday 7"),
    _part("doy", "its day of the year, from 1", "dayofyear"),
    _part("epoch", "whole seconds since 1970"),
)  # fmt: skip
