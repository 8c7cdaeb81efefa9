"""Row values, ``(R.a, R.b) < (S.a, S.b)``: compared part by part, as SQL's standard says."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from operators.query.comparison_operators import ComparisonOperator, strict
from operators.query.expressions import And, Compare, Expression, Or


def parts_of_row(node: exp.Expression) -> list[exp.Expression] | None:
    """The parts of a row value; None for other nodes."""
    inner = node.unnest()
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else None


def compare_rows(operator: ComparisonOperator, left: list[Expression], right: list[Expression]) -> Expression:
    """``=`` asks for all parts, ``!=`` for any, an order for the first part that differs."""
    pairs = list(zip(left, right, strict=True))
    if operator in ("=", "!="):
        parts: list[Expression] = [Compare(operator, one, other) for one, other in pairs]
        return reduce(And if operator == "=" else Or, parts)
    (one, other), *rest = pairs
    if not rest:
        return Compare(operator, one, other)
    later = compare_rows(operator, [each for each, _ in rest], [each for _, each in rest])
    return Or(Compare(strict(operator), one, other), And(Compare("=", one, other), later))


def one_of_rows(row: list[Expression], listed: list[list[Expression]]) -> Expression:
    """``row IN (listed)``."""
    return reduce(Or, [compare_rows("=", row, each) for each in listed])
