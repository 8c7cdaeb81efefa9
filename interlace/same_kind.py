"""Makes an Arrow table a frame of the kind that a program gave."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import pyarrow as pa

from topology import FrameKind, frame_kind

_OF_POLARS = (FrameKind.POLARS, FrameKind.LAZY_POLARS)

Origins: TypeAlias = Mapping[str, tuple[Any, str]]
"""For columns of a result the frame that they come from, and their name there."""


def as_frame(given: Any, table: pa.Table, origins: Origins) -> Any:
    """Return a table as the same kind of frame as `given`; kinds without one of their own give the table itself.

    Columns get the types that they have in frames of that kind, where Arrow's would differ.
    """
    match frame_kind(given):
        case FrameKind.PANDAS:
            return _pandas(table, origins)
        case FrameKind.POLARS:
            return _polars(table, origins)
        case FrameKind.LAZY_POLARS:
            return _polars(table, origins).lazy()
        case FrameKind.PYTHON:
            return table.to_pydict() if isinstance(given, Mapping) else table.to_pylist()
    return table


def _pandas(table: pa.Table, origins: Origins) -> Any:
    pandas = import_module("pandas")
    columns = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        dtype = _pandas_dtype(pandas, *origins[name]) if name in origins else None
        columns[name] = _pandas_column(pandas, column, dtype)
    return pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows))


def _pandas_column(pandas: Any, column: pa.ChunkedArray, dtype: Any) -> Any:
    if hasattr(dtype, "__from_arrow__"):
        return pandas.Series(dtype.__from_arrow__(column))
    if column.null_count and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        # as floats or objects, large numbers would lose digits
        nullable = "boolean" if pa.types.is_boolean(column.type) else _nullable(column.type)
        return pandas.Series(pandas.api.types.pandas_dtype(nullable).__from_arrow__(column))
    series = column.to_pandas()
    if isinstance(dtype, pandas.CategoricalDtype) and series.dtype != dtype:
        return series.astype(dtype)  # with the categories that no row of the result has
    return series


def _nullable(kind: pa.DataType) -> str:
    return f"{'Int' if pa.types.is_signed_integer(kind) else 'UInt'}{kind.bit_width}"


def _pandas_dtype(pandas: Any, frame: Any, name: str) -> Any:
    """The type of a column of a pandas frame, or of a level of its index; None for other frames and plain types."""
    if frame_kind(frame) is not FrameKind.PANDAS:
        return None
    columns = {str(label): dtype for label, dtype in frame.dtypes.items()}
    levels = {str(label): level for level, label in enumerate(frame.index.names)}
    found = columns[name] if name in columns else frame.index.get_level_values(levels[name]).dtype
    return found if isinstance(found, pandas.api.extensions.ExtensionDtype) else None


def _polars(table: pa.Table, origins: Origins) -> Any:
    polars = import_module("polars")
    made = polars.from_arrow(table)
    ours = {id(frame): frame for frame, _ in origins.values() if frame_kind(frame) in _OF_POLARS}
    schemas = {number: frame.collect_schema() for number, frame in ours.items()}
    wanted = {name: schemas[id(frame)][column] for name, (frame, column) in origins.items() if id(frame) in schemas}
    differing = {name: dtype for name, dtype in wanted.items() if made.schema[name] != dtype}
    return made.cast(differing) if differing else made  # to Enum, which Arrow has not
