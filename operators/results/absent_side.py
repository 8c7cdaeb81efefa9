"""Computed columns of unmatched rows while the other stream has sent nothing, so that its types are unknown.

All columns of that stream are null, whatever their type. Every value computed from them is null, comparisons with them
are unknown, and only IS NULL, AND, OR and NOT can still have a known result.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from operators.query.condition import columns_in
from operators.query.expressions import And, Between, Call, Column, Compare, Expression, IsNull, Not, Or
from operators.values.evaluation import evaluate


def evaluate_beside_nothing(
    expression: Expression, column: Callable[[Column], pa.Array], absent: str, rows: int
) -> pa.Array:
    """`evaluate` where all columns of the stream (or role) `absent` are null, of no type."""

    def values(part: Expression) -> pa.Array:
        return evaluate_beside_nothing(part, column, absent, rows)

    if all(each.stream != absent for each in columns_in(expression)):
        return evaluate(expression, column, rows)
    match expression:
        case And(left, right):
            return pc.and_kleene(values(left), values(right))
        case Or(left, right):
            return pc.or_kleene(values(left), values(right))
        case Not(operand):
            return pc.invert(values(operand))
        case Between(operand, low, high):
            return values(And(Compare(">=", operand, low), Compare("<=", operand, high)))
        case IsNull():
            return pa.repeat(True, rows)
        case Call():
            return evaluate(expression, column, rows)
        case Compare():
            return pa.nulls(rows, pa.bool_())
    return pa.nulls(rows)
