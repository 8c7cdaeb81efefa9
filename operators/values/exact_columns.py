"""Columns of exact numbers: whole numbers of any size times a unit.

The unit is one rational number for the whole column: 1 for integers, a tick in nanoseconds for dates and times, a power
of ten for decimals. So sums, products and comparisons are integer arithmetic on the numbers. They use NumPy's int64
where the least and the greatest number prove that no result can overflow, which is nearly always, and arrays of Python
integers otherwise.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from operators.query.comparison_operators import COMPARE, ComparisonOperator

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Numbers = np.ndarray | int


@dataclass(frozen=True)
class ExactColumn:
    """``numbers * unit``. A constant has one Python integer. Numbers under a null are arbitrary."""

    numbers: Numbers
    unit: Fraction
    valid: np.ndarray | None = None

    def __neg__(self) -> ExactColumn:
        low, high = _ends(self.numbers)
        return self._with(_computed(operator.sub, 0, self.numbers, -high, -low))

    def __abs__(self) -> ExactColumn:
        if isinstance(self.numbers, int):
            return self._with(abs(self.numbers))
        fits = self.numbers.dtype != np.int64 or _ends(self.numbers)[0] > INT64_MIN
        return self._with(np.abs(self.numbers if fits else self.numbers.astype(object)))

    def __add__(self, other: ExactColumn) -> ExactColumn:
        return self._sum(operator.add, other)

    def __sub__(self, other: ExactColumn) -> ExactColumn:
        return self._sum(operator.sub, other)

    def __mul__(self, other: ExactColumn) -> ExactColumn:
        numbers = _times(self.numbers, other.numbers)
        return ExactColumn(numbers, self.unit * other.unit, both(self.valid, other.valid))

    def divided_by(self, divisor: Fraction) -> ExactColumn:
        """Exactly; only the unit changes."""
        turned = self if divisor > 0 else -self
        return ExactColumn(turned.numbers, self.unit / abs(divisor), self.valid)

    def in_units(self, unit: Fraction) -> Numbers:
        """The numbers in another unit, which divides this one."""
        factor = self.unit / unit
        assert factor.denominator == 1, "a unit that divides the column's"
        return _times(self.numbers, factor.numerator)

    def compare(self, sign: ComparisonOperator, other: ExactColumn) -> np.ndarray | bool:
        """By value, whatever the units."""
        unit = common_unit(self.unit, other.unit)
        found: np.ndarray | bool = COMPARE[sign](self.in_units(unit), other.in_units(unit))
        return found

    def compare_with_floats(self, sign: ComparisonOperator, floats: np.ndarray | float) -> np.ndarray | bool:
        """By value, without rounding. The unit is 1."""
        assert self.unit == 1, "only integers compare with floats"
        compare = COMPARE[sign]
        if isinstance(self.numbers, int):
            nearest = nearest_float(self.numbers)
            # Where the nearest double equals the float, the number itself lies on one side of both.
            beyond = (self.numbers > nearest) - (self.numbers < nearest)
            found: np.ndarray | bool = np.where(floats == nearest, compare(beyond, 0), compare(nearest, floats))
            return found
        doubles = self.numbers.astype(np.float64)
        answer: np.ndarray = compare(doubles, floats)
        # Rounding never reverses an order; beyond 2**53 it can make different numbers look equal.
        tied = np.flatnonzero((doubles == floats) & (np.abs(doubles) >= 2.0**53))
        if len(tied):
            others = np.broadcast_to(np.asarray(floats), answer.shape)[tied]
            answer[tied] = compare(self.numbers[tied].astype(object), others.astype(object)).astype(bool)
        return answer

    def to_floats(self) -> np.ndarray | float:
        """The nearest doubles of integers."""
        assert self.unit == 1, "only integers become floats"
        return nearest_float(self.numbers) if isinstance(self.numbers, int) else self.numbers.astype(np.float64)

    def _sum(self, operation: Any, other: ExactColumn) -> ExactColumn:
        unit = common_unit(self.unit, other.unit)
        one, two = self.in_units(unit), other.in_units(unit)
        (low, high), (low2, high2) = _ends(one), _ends(two)
        ends = (low + low2, high + high2) if operation is operator.add else (low - high2, high - low2)
        return ExactColumn(_computed(operation, one, two, *ends), unit, both(self.valid, other.valid))

    def _with(self, numbers: Numbers) -> ExactColumn:
        return ExactColumn(numbers, self.unit, self.valid)


def both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """The rows that are valid in both columns; None if all are."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def common_unit(one: Fraction, other: Fraction) -> Fraction:
    """The greatest unit that divides both."""
    if one == other:
        return one
    numerator = math.gcd(one.numerator * other.denominator, other.numerator * one.denominator)
    return Fraction(numerator, one.denominator * other.denominator)


def nearest_float(number: int) -> float:
    """The double nearest to an integer; infinite beyond the range of doubles."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _ends(numbers: Numbers) -> tuple[int, int]:
    if isinstance(numbers, int):
        return numbers, numbers
    return (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)


def _times(one: Numbers, other: Numbers) -> Numbers:
    if isinstance(other, int) and other == 1:
        return one
    products = [x * y for x in _ends(one) for y in _ends(other)]
    return _computed(operator.mul, one, other, min(products), max(products))


def _computed(operation: Callable[[Any, Any], Any], one: Numbers, other: Numbers, low: int, high: int) -> Numbers:
    """``operation(one, other)``, whose results lie between ``low`` and ``high``."""
    if isinstance(one, int) and isinstance(other, int):
        return int(operation(one, other))
    if low >= INT64_MIN and high <= INT64_MAX:
        parts = [_as_int64(one), _as_int64(other)]
        if all(part is not None for part in parts):
            done: np.ndarray = operation(*parts)
            return done
    wide: np.ndarray = operation(_as_objects(one), _as_objects(other))
    return wide


def _as_int64(numbers: Numbers) -> np.ndarray | np.int64 | None:
    if isinstance(numbers, int):
        return np.int64(numbers) if INT64_MIN <= numbers <= INT64_MAX else None
    if numbers.dtype == np.uint64 and _ends(numbers)[1] <= INT64_MAX:
        return numbers.view(np.int64)
    return numbers if numbers.dtype == np.int64 else None


def _as_objects(numbers: Numbers) -> Any:
    return numbers if isinstance(numbers, int) else numbers.astype(object)
