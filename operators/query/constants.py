"""Constants of a condition: their types, the conversion from Python, NumPy and Arrow values, and their SQL text."""

from __future__ import annotations

import math
import operator
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from operators.query.errors import PredicateError

ConstantValue = int | float | Decimal | str | bytes | bool | timedelta | date | datetime | time

_UNITS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000),
          ("SECOND", 1_000_000), ("MILLISECOND", 1_000), ("MICROSECOND", 1))  # fmt: skip


class WrittenFloat(float):
    """A float written with more digits than a float holds. In a comparison with decimals, all of them count.

    It prints as written, so ``Decimal(repr(value))`` is the written number for every float constant.
    """

    written: str

    def __new__(cls, written: str) -> WrittenFloat:
        value = super().__new__(cls, written)
        value.written = written
        return value

    def __repr__(self) -> str:
        return self.written

    __str__ = __repr__

    def __neg__(self) -> WrittenFloat:
        return WrittenFloat(self.written[1:] if self.written.startswith("-") else f"-{self.written}")

    def __reduce__(self) -> tuple[type[WrittenFloat], tuple[str]]:
        return (WrittenFloat, (self.written,))


def written_number(text: str) -> int | float:
    """The number that SQL text such as ``3``, ``0.5`` or ``1e-3`` means."""
    if text.isdigit():
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        raise PredicateError(f"{text} is too large for a float")
    return number if Decimal(repr(number)) == Decimal(text) else WrittenFloat(text)


def constant_value(value: object) -> ConstantValue:
    """``value`` as one of the constant types; raises PredicateError if the conversion is not exact."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = _from_numpy(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, date | time | timedelta):
        return _plain_time(value)
    if isinstance(value, Decimal):
        if value.is_finite():
            return value
        raise PredicateError(f"{value} cannot be used in a join condition: write a finite number")
    if value is None:
        raise PredicateError(
            "None cannot be used in a join condition: a comparison with NULL is never true; "
            "write column.is_null() or column.is_not_null()"
        )
    number: Any = value
    try:
        return operator.index(number)
    except TypeError:
        pass
    if isinstance(number, float | np.floating):
        if math.isfinite(number):
            return number if isinstance(number, WrittenFloat) else float(number)
        raise PredicateError(f"{number} cannot be used in a join condition: write a finite number")
    raise PredicateError(
        f"{value!r} ({type(value).__name__}) cannot be used in a join condition: write a number, a Decimal, a string, "
        "bytes, a bool, or a date, time, datetime or timedelta"
    )


def written_constant(value: ConstantValue | None) -> str:
    """``value`` as SQL text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case timedelta():
            total = value // timedelta(microseconds=1)
            unit, size = next((unit, size) for unit, size in _UNITS if total % size == 0)
            return f"INTERVAL '{total // size}' {unit}"
    return str(value)


def identifier(name: str) -> str:
    """``name`` as SQL text, quoted if necessary."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'


def _plain_time(value: date | time | timedelta) -> ConstantValue:
    """A pandas time as the standard library's type; refuses to lose digits."""
    if getattr(value, "nanoseconds", 0) or getattr(value, "nanosecond", 0):
        raise PredicateError(f"{value!r} is finer than a microsecond, which is not supported")
    if value != value:  # pandas.NaT is a datetime that equals nothing
        raise PredicateError(f"{value!r} cannot be used in a join condition: write column.is_null()")
    if isinstance(value, timedelta):
        return timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, datetime):
        clock = (value.hour, value.minute, value.second, value.microsecond)
        return datetime(value.year, value.month, value.day, *clock, tzinfo=value.tzinfo, fold=value.fold)
    if isinstance(value, time) and value.tzinfo is not None:
        raise PredicateError(f"{value!r} has a time zone: a time of day is written without one")
    return value


def _from_numpy(value: np.datetime64 | np.timedelta64) -> object:
    if np.isnat(value):
        raise PredicateError(f"{value!r} cannot be used in a join condition: write column.is_null()")
    unit = "D" if np.datetime_data(value.dtype)[0] == "D" and isinstance(value, np.datetime64) else "us"
    kind = "datetime64" if isinstance(value, np.datetime64) else "timedelta64"
    try:
        coarse: Any = value.astype(f"{kind}[{unit}]")
        exact = bool(coarse == value)
    except TypeError:
        raise PredicateError(f"{value!r} is not a length of time of fixed length") from None
    if not exact:
        raise PredicateError(f"{value!r} is finer than a microsecond, which is not supported")
    return coarse.item()
