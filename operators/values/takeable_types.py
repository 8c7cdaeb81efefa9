"""Replacements for types that Arrow's `take` does not support: string views and run-length encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def takeable_type(kind: pa.DataType) -> pa.DataType:
    """The type itself, or one with the same values that `take` supports."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_run_end_encoded(kind):
        return takeable_type(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([_field(kind.field(i)) for i in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    if types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(_field(kind.value_field))
    return kind


def to_takeable(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column as its takeable type."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    return array if array.type == kind else array.cast(kind)


def from_takeable(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column back in its own type."""
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(array.cast(kind.value_type), run_end_type=kind.run_end_type)
    return array if array.type == kind else array.cast(kind)


def take_rows(rows: pa.RecordBatch, places: npt.NDArray[np.integer[Any]]) -> pa.RecordBatch:
    """The rows at these places, for columns of any type. Cost: one copy; two for types without `take`."""
    kinds = [takeable_type(field.type) for field in rows.schema]
    index = pa.array(places)
    if kinds == rows.schema.types:
        return rows.take(index)
    columns = [
        from_takeable(to_takeable(column, kind).take(index), column.type)
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    return pa.record_batch(columns, schema=rows.schema)


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(takeable_type(field.type))
