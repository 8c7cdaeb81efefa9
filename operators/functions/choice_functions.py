"""Built-in functions that choose among their arguments. Numbers of different types are made one type first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import Argument, ArgumentError, common_type, converted
from operators.functions.builtin import Builtin, Compute


def _coalesce(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind):
        return columns[0]
    return pc.coalesce(*(converted(column, each, kind) for column, each in zip(columns, arguments, strict=True)))


def _extreme(pick: Callable[..., Any]) -> Compute:
    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        if pa.types.is_null(kind):
            return columns[0]
        parts = [converted(column, each, kind) for column, each in zip(columns, arguments, strict=True)]
        if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
            parts = [part.cast(pa.int64()) for part in parts]
        return pick(*parts, skip_nulls=True).cast(kind)

    return run


def _extreme_type(arguments: Sequence[Argument]) -> pa.DataType:
    found = common_type(arguments)
    if pa.types.is_nested(found) or pa.types.is_interval(found):
        raise ArgumentError(f"values of {found} have no greatest: choose among numbers, text or times")
    return found


def case_values(arguments: Sequence[Any]) -> Sequence[Any]:
    """The values of CASE, which come after their conditions; the last is that of ELSE."""
    return [*arguments[1:-1:2], arguments[-1]]


def _case_type(arguments: Sequence[Argument]) -> pa.DataType:
    for condition in arguments[:-1:2]:
        if not condition.is_boolean and condition.family != "null":
            raise ArgumentError("WHEN takes a condition")
    return common_type(case_values(arguments))


def _case(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    """The value of the first condition that is true."""
    if pa.types.is_null(kind):
        return columns[-1]
    values = [
        converted(column, each, kind) for column, each in zip(case_values(columns), case_values(arguments), strict=True)
    ]
    found = values[-1]
    for condition, value in zip(reversed(columns[:-1:2]), reversed(values[:-1]), strict=True):
        if not pa.types.is_null(condition.type):
            found = pc.if_else(pc.fill_null(condition, False), value, found)
    return found


CHOICE_FUNCTIONS = (
    Builtin("coalesce", "the first that is not null", 1, None, common_type, _coalesce, keeps_null=False,
            aliases=("ifnull", "nvl")),
    Builtin("greatest", "the greatest that is not null", 1, None, _extreme_type, _extreme(pc.max_element_wise),
            keeps_null=False),
    Builtin("least", "the least that is not null", 1, None, _extreme_type, _extreme(pc.min_element_wise),
            keeps_null=False),
    Builtin("case", "the value of the first condition that is true", 3, None, _case_type, _case, keeps_null=False),
)  # fmt: skip
