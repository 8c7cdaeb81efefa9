"""Literals of SQL text: numbers, strings, DATE, TIME, TIMESTAMP, DECIMAL, INTERVAL and X'..'."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NamedTuple

from sqlglot import exp

from operators.query.constants import ConstantValue, written_number
from operators.query.durations import parse_duration
from operators.query.errors import DurationError, PredicateError
from operators.sql.text import error_at

_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120}


class CalendarLength(NamedTuple):
    """Months, which have no fixed length, and what comes after them."""

    months: int
    rest: timedelta


def calendar_length(text: str, node: exp.Expression) -> CalendarLength | None:
    """The value of ``INTERVAL '1' MONTH`` or ``INTERVAL '1 year 3 days'``; None if the node has no months."""
    inner = node.unnest()
    if not isinstance(inner, exp.Interval) or not isinstance(inner.this, exp.Literal):
        return None
    written, unit = str(inner.this.this), inner.args.get("unit")
    if isinstance(unit, exp.Var):
        written = f"{written} {unit.this}"
    months, rest = 0, timedelta(0)
    parts = re.findall(r"([+-]?\d+)\s*([A-Za-z]+)", written)
    names = [name.upper().removesuffix("S") for _, name in parts]
    if not any(name in _MONTHS for name in names):
        return None
    if re.sub(r"([+-]?\d+)\s*([A-Za-z]+)", "", written).strip():
        raise error_at(text, inner, f"INTERVAL '{written}' is not a whole number of months")
    for (number, _), name in zip(parts, names, strict=True):
        if name in _MONTHS:
            months += int(number) * _MONTHS[name]
            continue
        length = length_of(number, name)
        if isinstance(length, str):
            raise error_at(text, inner, length)
        rest += length
    return CalendarLength(months, rest)


def length_of(number: str | int | float, unit: str) -> timedelta | str:
    """``number`` of ``unit`` as a timedelta, or an error message."""
    name = unit.upper()
    size = _MICROSECONDS.get(name) or _MICROSECONDS.get(name.removesuffix("S"))
    if size is None:
        known = ", ".join(_MICROSECONDS)
        return f"{unit} is not a unit of fixed length: use one of {known}"
    try:
        total = Fraction(number) * size
    except ValueError:
        return f"'{number}' is not a number"
    if total.denominator != 1:
        return f"'{number}' {unit} is not a whole number of microseconds"
    try:
        return timedelta(microseconds=int(total))
    except OverflowError:
        return f"'{number}' {unit} is longer than the {timedelta.max.days:,} days that fit"


def literal(text: str, node: exp.Expression) -> ConstantValue | None:
    """The value of ``node`` in the query ``text``; None if it is not a literal."""
    match node:
        case exp.Literal():
            return str(node.this) if node.is_string else _number(text, node)
        case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return -_number(text, node.this)  # -3 is a number, not an operation on one
        case exp.Boolean():
            return bool(node.this)
        case exp.HexString():
            return _bytes(text, node)
        case exp.Interval():
            if calendar_length(text, node) is not None:
                raise error_at(
                    text,
                    node,
                    f"`{node.sql()}` has no fixed length: add it to a time, R.ts + INTERVAL '1' MONTH, or write "
                    "INTERVAL '30' DAY",
                )
            return _interval(text, node)
        case exp.Cast() if isinstance(node.this, exp.Literal) and not isinstance(node, exp.TryCast):
            return _typed(text, node)
    return None


def _number(text: str, node: exp.Literal) -> int | float:
    try:
        return written_number(str(node.this))
    except PredicateError as error:
        raise error_at(text, node, str(error)) from None


def _bytes(text: str, node: exp.HexString) -> bytes:
    try:
        return bytes.fromhex(str(node.this))
    except ValueError:
        raise error_at(text, node, f"X'{node.this}' is not binary: write two hexadecimal digits per byte") from None


def _interval(text: str, node: exp.Interval) -> timedelta:
    unit, number = node.args.get("unit"), node.this
    if isinstance(number, exp.Literal) and isinstance(unit, exp.Var):
        length = length_of(str(number.this), str(unit.this))
        if isinstance(length, timedelta):
            return length
        raise error_at(text, node, length)
    if not isinstance(number, exp.Literal) or unit is not None:
        raise error_at(text, node, f"`{node.sql()}` is not supported: write INTERVAL '5' MINUTE")
    written = str(number.this)
    if re.fullmatch(r"\s*-?[\d.]+\s*", written):
        raise error_at(text, node, f"INTERVAL '{written}' has no unit: write INTERVAL '{written.strip()}' MINUTE")
    try:
        return parse_duration(written)
    except DurationError as error:
        raise error_at(text, node, str(error)) from None


def _typed(text: str, node: exp.Cast) -> ConstantValue | None:
    """``DATE '2024-02-29'`` and similar literals, which sqlglot parses as casts of a string; None for other casts."""
    name, written = str(node.to.sql()).upper(), str(node.this.this)
    kind = "TIMESTAMP" if name in ("TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME") else name
    reader, example = _READERS.get(kind, (None, ""))
    if reader is None or not node.this.is_string:
        return None
    if re.search(r"\.\d{7}", written) and kind != "DECIMAL":
        raise error_at(text, node, f"{name} '{written}' is finer than a microsecond, which is not supported")
    try:
        value = reader(written.strip())
    except (ValueError, InvalidOperation):
        raise error_at(text, node, f"'{written}' is not a {name}: write {name} '{example}'") from None
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    if name == "TIMESTAMPTZ" and not zoned:
        raise error_at(text, node, f"{name} '{written}' has no time zone: write {name} '{written}+00:00'")
    if name == "TIMESTAMPNTZ" and zoned:
        raise error_at(text, node, f"{name} '{written}' has a time zone: write TIMESTAMP '{written}'")
    return value


def _decimal(written: str) -> Decimal:
    value = Decimal(written)
    if not value.is_finite():
        raise ValueError(written)
    return value


_READERS: dict[str, tuple[Callable[[str], ConstantValue], str]] = {
    "DATE": (date.fromisoformat, "2024-02-29"),
    "TIME": (time.fromisoformat, "08:30:00"),
    "TIMESTAMP": (datetime.fromisoformat, "2024-02-29 08:30:00"),
    "DECIMAL": (_decimal, "0.10"),
}
