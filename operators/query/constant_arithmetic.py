"""Arithmetic on the constants of a condition, both exact and in float64.

Whether ``0.1 + 0.2`` is 0.3 or 0.30000000000000004 depends on the columns in the comparison: with decimals the numbers
are taken as written, otherwise they are doubles. So a result that is not whole carries both values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from operators.query.errors import PredicateError
from operators.query.expressions import Absolute, Arithmetic, ArithmeticOperator, Constant, Expression, Negate

Number = int | float | Decimal

_COMPUTE: dict[ArithmeticOperator, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


class ComputedFloat(float):
    """A float, and the exact number to use in comparisons with decimals."""

    exact: Fraction

    def __new__(cls, value: float, exact: Fraction) -> ComputedFloat:
        number = super().__new__(cls, value)
        number.exact = exact
        return number

    def __reduce__(self) -> tuple[type[ComputedFloat], tuple[float, Fraction]]:
        return (ComputedFloat, (float(self), self.exact))


class ComputedDecimal(Decimal):
    """A decimal, rounded for display, and the exact number."""

    exact: Fraction

    def __new__(cls, exact: Fraction) -> ComputedDecimal:
        number = super().__new__(cls, Decimal(exact.numerator) / Decimal(exact.denominator))
        number.exact = exact
        return number

    def __reduce__(self) -> tuple[type[ComputedDecimal], tuple[Fraction]]:  # type: ignore[override]
        return (ComputedDecimal, (self.exact,))


def exact_number(value: Number) -> Fraction:
    """The number as written; a float is the decimal that it prints as."""
    if isinstance(value, ComputedFloat | ComputedDecimal):
        return value.exact
    return Fraction(Decimal(repr(value)) if isinstance(value, float) else value)


def computed(sign: ArithmeticOperator, left: Any, right: Any) -> Any:
    """``left SIGN right`` for numbers or lengths of time; raises Python's own errors."""
    if isinstance(left, timedelta) or isinstance(right, timedelta):
        return _COMPUTE[sign](left, right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return ComputedDecimal(_COMPUTE[sign](exact_number(left), exact_number(right)))
    value = _COMPUTE[sign](left, right)
    if isinstance(value, int):
        return value
    return ComputedFloat(value, _COMPUTE[sign](exact_number(left), exact_number(right)))


def negative(value: Any) -> Any:
    """``-value`` for a number or a length of time, exact even for long decimals, which Python would round."""
    if isinstance(value, Decimal):
        return ComputedDecimal(-exact_number(value))
    return ComputedFloat(-value, -value.exact) if isinstance(value, ComputedFloat) else -value


def float_constant(term: Expression) -> float:
    """The value of a constant term as a float; integer arithmetic is exact before the conversion."""
    try:
        value = _python_number(term)
        return float(value)
    except (ZeroDivisionError, OverflowError) as error:
        raise PredicateError(f"`{term!r}` cannot be computed: {error}") from error


def _python_number(term: Expression) -> int | float:
    match term:
        case Constant(bool() | int() | float() as value):
            return float(value) if isinstance(value, float) else int(value)
        case Negate(operand):
            return -_python_number(operand)
        case Absolute(operand):
            return abs(_python_number(operand))
        case Arithmetic(operator, left, right):
            one, other = _python_number(left), _python_number(right)
            if operator == "/":
                return one / other
            return one + other if operator == "+" else one - other if operator == "-" else one * other
    raise AssertionError(f"{term!r} is no number")
