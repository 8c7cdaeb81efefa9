"""Checks a condition against the schemas of two streams, before any row is accepted."""

from __future__ import annotations

import pyarrow as pa

from operators.bounds.intervals import bind
from operators.query.condition import Condition
from operators.query.errors import PredicateError
from operators.query.expressions import Column, Expression
from operators.values.evaluation import type_of


def check_condition(
    condition: Condition, wheres: tuple[Expression | None, Expression | None], schemas: tuple[pa.Schema, pa.Schema]
) -> None:
    """Raise PredicateError, with the types and the remedy, if something in the condition cannot be compared."""
    roles = (condition.left, condition.right)

    def column_type(column: Column) -> pa.DataType:
        return schemas[roles.index(column.stream or "")].field(column.name).type

    for expression in (condition.written, *wheres):
        if expression is not None:
            found = type_of(expression, column_type)
            if not (pa.types.is_boolean(found) or pa.types.is_null(found)):
                raise PredicateError(
                    f"`{expression!r}` is {found}, not a condition: compare it with something, "
                    "or use a column of booleans"
                )
    for branch in condition.branches:
        for dimension in branch.dimensions:
            if not dimension.made:
                left, right = (schemas[side].field(dimension.column(side)).type for side in (0, 1))
                bind(dimension, left, right)
