"""The checked types and parts of an expression, cached because they are the same for every batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from operators.query.expressions import Column, Expression, children, columns_in
from operators.values.expression_types import ExpressionTypes


class Identity:
    """An expression as a cache key: compared by identity, since ``==`` of expressions builds a condition."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def __hash__(self) -> int:
        return id(self.expression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.expression is other.expression


@dataclass(frozen=True)
class Parts:
    """The columns of an expression, and the ids of its nodes without columns."""

    columns: dict[tuple[str | None, str], Column]
    constants: frozenset[int]


@lru_cache(maxsize=1024)
def parts_of(identity: Identity) -> Parts:
    """The parts of an expression. Cost: O(nodes * depth), once per expression."""
    expression = identity.expression
    columns = {column_name(each): each for each in columns_in(expression)}
    nodes, waiting = [], [expression]
    while waiting:
        nodes.append(waiting.pop())
        waiting.extend(children(nodes[-1]))
    return Parts(columns, frozenset(id(node) for node in nodes if next(columns_in(node), None) is None))


def checked_types(identity: Identity, kinds: tuple[pa.DataType, ...]) -> ExpressionTypes:
    """The types of an expression, given those of its columns; raises PredicateError if they do not fit."""
    try:
        return _checked(identity, kinds)
    except TypeError:  # an extension type without a hash
        return _check(identity, kinds)


@lru_cache(maxsize=1024)
def _checked(identity: Identity, kinds: tuple[pa.DataType, ...]) -> ExpressionTypes:
    return _check(identity, kinds)


def _check(identity: Identity, kinds: tuple[pa.DataType, ...]) -> ExpressionTypes:
    by_name = dict(zip(parts_of(identity).columns, kinds, strict=True))
    types = ExpressionTypes(lambda each: by_name[column_name(each)])
    types.result(identity.expression)
    return types


def column_name(column: Column) -> tuple[str | None, str]:
    """Identifies a column."""
    return column.stream, column.name
