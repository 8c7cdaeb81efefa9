"""Interval joins: a condition that bounds the difference of the event times determines the windows.

    R.ts BETWEEN S.ts - INTERVAL '5' MINUTE AND S.ts + INTERVAL '1' MINUTE

Here an R row may come up to five minutes before its S row, and an S row up to one minute before its R row. Those are
the windows. The condition is still evaluated, so a bound written with < keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

from operators.query.comparison_operators import is_lower, is_upper, mirrored
from operators.query.condition import without_not
from operators.query.expressions import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Column,
    Compare,
    Constant,
    Expression,
    Negate,
)
from operators.query.windows import TimeWindow

Amount = Fraction | timedelta


@dataclass(frozen=True)
class _Difference:
    """``left * left.ts + right * right.ts + shift``; a zero shift is both a number and a length of time."""

    left: int
    right: int
    shift: Amount = Fraction(0)

    def __neg__(self) -> _Difference:
        return _Difference(-self.left, -self.right, -self.shift)

    def __add__(self, other: _Difference) -> _Difference:
        return _Difference(self.left + other.left, self.right + other.right, _sum(self.shift, other.shift))


class _UnrelatedError(Exception):
    """The comparison does not bound the difference of the event times."""


def interval_windows(
    condition: Expression, left: tuple[str, str], right: tuple[str, str]
) -> tuple[TimeWindow, TimeWindow] | None:
    """The windows of the left and the right side that ``condition`` implies; None if it does not bound both.

    left, right: the role and the event-time column of each side.
    """
    lows: list[Amount] = []
    highs: list[Amount] = []
    for comparison in _comparisons(without_not(condition, (left[0], right[0]))):
        try:
            low, high = _bounds(comparison, left, right)
            lows += [] if low is None else [low]
            highs += [] if high is None else [high]
        except _UnrelatedError:
            continue
    bounds = [*lows, *highs]
    if any(isinstance(bound, timedelta) for bound in bounds):
        if any(isinstance(bound, Fraction) and bound for bound in bounds):
            return None
        lows, highs = ([bound or timedelta(0) for bound in each] for each in (lows, highs))
    if not lows or not highs:
        return None
    return _window(-max(lows)), _window(min(highs))


def _window(size: Amount) -> TimeWindow:
    if isinstance(size, timedelta):
        return TimeWindow(max(size, timedelta(0)))
    positive = max(size, Fraction(0))
    return TimeWindow(int(positive) if positive.denominator == 1 else float(positive))


def _comparisons(condition: Expression) -> Iterator[Compare]:
    match condition:
        case And(left, right):
            yield from _comparisons(left)
            yield from _comparisons(right)
        case Between(operand, low, high):
            yield Compare(">=", operand, low)
            yield Compare("<=", operand, high)
        case Compare():
            yield condition


def _bounds(comparison: Compare, left: tuple[str, str], right: tuple[str, str]) -> tuple[Amount | None, Amount | None]:
    """The least and the greatest left.ts - right.ts that the comparison admits; None where it sets no bound."""
    operator, subject, other = comparison.operator, comparison.left, comparison.right
    if isinstance(other, Absolute):
        operator, subject, other = mirrored(operator), other, subject
    if isinstance(subject, Absolute):
        inner, size = _difference(subject.operand, left, right), _difference(other, left, right)
        if not (is_upper(operator) or operator == "=") or size.left or size.right or not _is_difference(inner):
            raise _UnrelatedError
        inner = inner if inner.left == 1 else -inner
        return _sum(-size.shift, -inner.shift), _sum(size.shift, -inner.shift)
    difference = _difference(subject, left, right) + -_difference(other, left, right)
    if not _is_difference(difference):
        raise _UnrelatedError
    if difference.left == -1:
        operator, difference = mirrored(operator), -difference
    bound = -difference.shift
    if operator == "=":
        return bound, bound
    return (bound if is_lower(operator) else None), (bound if is_upper(operator) else None)


def _is_difference(term: _Difference) -> bool:
    return abs(term.left) == 1 and term.right == -term.left


def _difference(term: Expression, left: tuple[str, str], right: tuple[str, str]) -> _Difference:
    match term:
        case Column(stream, name):
            if (stream, name) in (left, right):
                return _Difference(int((stream, name) == left), int((stream, name) == right))
        case Constant(bool()):
            pass
        case Constant(int() | float() as number):
            return _Difference(0, 0, Fraction(number))
        case Constant(timedelta() as length):
            return _Difference(0, 0, length)
        case Negate(operand):
            return -_difference(operand, left, right)
        case Arithmetic("+", first, second):
            return _difference(first, left, right) + _difference(second, left, right)
        case Arithmetic("-", first, second):
            return _difference(first, left, right) + -_difference(second, left, right)
    raise _UnrelatedError


def _sum(one: Any, other: Any) -> Amount:
    if not one or not other:
        return other or one
    if isinstance(one, timedelta) != isinstance(other, timedelta):
        raise _UnrelatedError
    return one + other
