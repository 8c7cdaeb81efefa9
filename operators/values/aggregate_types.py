"""The types of aggregates, given the types of their arguments."""

from __future__ import annotations

import pyarrow as pa

from operators.query.errors import PredicateError
from operators.query.select_items import AggregateFunction, AggregateItem

MOST_DIGITS = 38
"""The digits of a sum of decimals."""


def aggregate_type(item: AggregateItem, kind: pa.DataType) -> pa.DataType:
    """The type of an aggregate of values of a type; raises PredicateError for types that it does not take.

    A column without values, of type null, stays one.
    """
    kind, types = plain_type(kind), pa.types
    function = item.function
    if function is AggregateFunction.COUNT:
        return pa.int64()
    if function in (AggregateFunction.MIN, AggregateFunction.MAX):
        if is_number(kind) or has_ticks(kind) or types.is_decimal(kind) or types.is_null(kind) or _is_bytes(kind):
            return kind
    elif types.is_null(kind):
        return pa.float64() if function is AggregateFunction.AVG else kind
    elif is_number(kind):
        if function is AggregateFunction.AVG or types.is_floating(kind):
            return pa.float64()
        return pa.decimal128(MOST_DIGITS, kind.scale) if types.is_decimal(kind) else pa.int64()
    elif types.is_duration(kind) and function is AggregateFunction.SUM:
        return kind
    raise PredicateError(f"`{item!r}`: {function} takes {function.summary}, not {kind}: cast it, or compute from it")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary; other types as they are."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_number(kind: pa.DataType) -> bool:
    """Whether it is a type of numbers that can be added exactly; booleans are 0 and 1."""
    types = pa.types
    if types.is_decimal(kind):
        return bool(kind.precision <= MOST_DIGITS)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def has_ticks(kind: pa.DataType) -> bool:
    """Whether it is a date, a time or a length of time, held as one integer."""
    types = pa.types
    return bool(types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(
        texts
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )
