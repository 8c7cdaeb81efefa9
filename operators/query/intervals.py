"""Conditions on intervals: a start and an end, which is not part of it (docs/semantics.md, Intervals).

They stand for comparisons, so they are searched by keys as these are: two intervals overlap where each starts before
the other ends, which is two dimensions. That an interval is not empty concerns one stream alone, and is tested once per
row.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from operators.query.errors import PredicateError
from operators.query.expressions import And, Compare, Expression, as_expression

Interval = tuple[Any, Any]
"""The start and the end of an interval: columns, expressions or values."""


def overlaps(one: Interval, other: Interval) -> Expression:
    """``(one) OVERLAPS (other)``: some value is in both. ``overlaps((R.start, R.end), (S.start, S.end))``."""
    start, end = _ends("overlaps", one)
    other_start, other_end = _ends("overlaps", other)
    return _all(
        Compare("<", start, other_end),
        Compare("<", other_start, end),
        Compare("<", start, end),
        Compare("<", other_start, other_end),
    )


def contains(interval: Interval, inner: Any) -> Expression:
    """An interval contains another, or a value: ``contains((R.start, R.end), S.ts)``."""
    start, end = _ends("contains", interval)
    if not isinstance(inner, tuple):
        value = as_expression(inner)
        return _all(Compare("<=", start, value), Compare("<", value, end))
    inner_start, inner_end = _ends("contains", inner)
    return _all(
        Compare("<=", start, inner_start), Compare("<=", inner_end, end), Compare("<", inner_start, inner_end)
    )


def _ends(name: str, interval: object) -> tuple[Expression, Expression]:
    if not isinstance(interval, tuple) or len(interval) != 2:
        raise PredicateError(
            f"{name} takes an interval as its start and its end, such as (stream('R').start, stream('R').end), not "
            f"{interval!r}"
        )
    start, end = interval
    return as_expression(start), as_expression(end)


def _all(*parts: Expression) -> Expression:
    return reduce(And, parts)
