"""Constants as exact numbers, and their Arrow types in results."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from operators.query.constant_arithmetic import exact_number
from operators.query.constants import ConstantValue
from operators.query.expressions import Absolute, Arithmetic, Constant, Expression, Negate

TICKS = (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1))
"""Units of time and their nanoseconds, the longest first."""

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def constant_fraction(term: Expression) -> Fraction | None:
    """The exact value of a constant term, floats as written decimals; None if it has a column."""
    match term:
        case Constant(bool() | int() | Decimal() | float() as value):
            return exact_number(value)
        case Negate(operand) | Absolute(operand):
            inner = constant_fraction(operand)
            return inner if inner is None else (-inner if isinstance(term, Negate) else abs(inner))
        case Arithmetic(operator, left, right):
            one, other = constant_fraction(left), constant_fraction(right)
            if one is None or other is None or (operator == "/" and not other):
                return None
            if operator == "/":
                return one / other
            return {"+": one + other, "-": one - other, "*": one * other}[operator]
    return None


def exact_constant(value: ConstantValue) -> tuple[int, Fraction]:
    """A constant as (whole number, unit): times in ticks since 1970 or midnight, floats as written decimals."""
    match value:
        case bool() | int():
            return int(value), Fraction(1)
        case float() | Decimal():
            exact = exact_number(value)
            return exact.numerator, Fraction(1, exact.denominator)
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return _in_ticks((moment - _EPOCH) // _MICROSECOND * 1000)
        case date():
            return (value - _EPOCH.date()).days, Fraction(86_400_000_000_000)
        case time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return _in_ticks((seconds * 1_000_000 + value.microsecond) * 1000)
        case timedelta():
            return _in_ticks(value // _MICROSECOND * 1000)
    raise AssertionError(f"{value!r} has no number")


def _in_ticks(nanoseconds: int) -> tuple[int, Fraction]:
    tick = next(tick for _, tick in TICKS if nanoseconds % tick == 0)
    return nanoseconds // tick, Fraction(tick)


def constant_type(value: ConstantValue | None) -> pa.DataType:
    """The Arrow type of a constant in a select list."""
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if -(2**63) <= value < 2**63 else pa.scalar(Decimal(value)).type
        case float():
            return pa.float64()
        case datetime():
            return pa.timestamp("us", None if value.tzinfo is None else "UTC")
    return pa.scalar(value).type
