"""Computed columns of unmatched rows while the other stream has sent nothing, so that its types are unknown.

All columns of that stream are null, whatever their type. So each is replaced by a NULL that is written: arithmetic with
it is null, comparisons are unknown, and IS NULL, IS DISTINCT FROM, COALESCE and CASE have their results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from operators.query.expressions import Column, Constant, Expression
from operators.values.evaluation import evaluate


def evaluate_beside_nothing(
    expression: Expression, column: Callable[[Column], pa.Array], absent: str, rows: int
) -> pa.Array:
    """`evaluate` where all columns of the stream (or role) `absent` are null, of no type."""
    return evaluate(_without(expression, absent), column, rows)


def _without(part: Any, absent: str) -> Any:
    """The expression with NULL for each column of the absent stream."""
    if isinstance(part, tuple):
        return tuple(_without(each, absent) for each in part)
    if isinstance(part, Column) and part.stream == absent:
        return Constant(None)
    if not isinstance(part, Expression) or isinstance(part, Column | Constant):
        return part
    return replace(part, **{each.name: _without(getattr(part, each.name), absent) for each in fields(part)})
