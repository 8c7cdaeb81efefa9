"""Rows as programs have them at hand, and how they become Arrow tables.

Frames of pandas, Polars, DuckDB and Spark are recognised by their classes: none of these libraries is imported here,
and none needs to be installed. Whatever else speaks Arrow's C interface (`__arrow_c_stream__`, `__arrow_c_array__`) is
read through it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from topology.graph.errors import InputError, SchemaError

Rows: TypeAlias = Any
"""Rows that `arrow_table` understands."""

TAKES = (
    "an Arrow table, record batch or reader, a pandas or Polars frame, a DuckDB relation, a dict of columns, a list of "
    "dicts, or another object with __arrow_c_stream__ or __arrow_c_array__"
)


class FrameKind(enum.Enum):
    """What a frame is, so that a result can come back as the same."""

    ARROW = "Arrow"
    PANDAS = "pandas"
    POLARS = "Polars"
    LAZY_POLARS = "lazy Polars"
    DUCKDB = "DuckDB"
    SPARK = "Spark"
    PYTHON = "Python"
    """A dict of columns, or a list of dicts."""


_CLASSES = {
    ("pandas", "DataFrame"): FrameKind.PANDAS,
    ("polars", "DataFrame"): FrameKind.POLARS,
    ("polars", "LazyFrame"): FrameKind.LAZY_POLARS,
    ("duckdb", "DuckDBPyRelation"): FrameKind.DUCKDB,
    ("_duckdb", "DuckDBPyRelation"): FrameKind.DUCKDB,
    ("pyspark", "DataFrame"): FrameKind.SPARK,
}
_COLUMNS = {("pandas", "Series"), ("pandas", "Index"), ("polars", "Series")}


def frame_kind(rows: object) -> FrameKind | None:
    """Tell what rows are; None if they are not rows. A list is judged by its first item."""
    for name in _class_names(rows):
        if name in _CLASSES:
            return _CLASSES[name]
        if name in _COLUMNS:
            return None
    if isinstance(rows, pa.Array | pa.ChunkedArray):
        return FrameKind.ARROW if pa.types.is_struct(rows.type) else None
    if isinstance(rows, Mapping):
        return FrameKind.PYTHON
    if isinstance(rows, list | tuple):
        if rows and isinstance(rows[0], pa.RecordBatch | pa.Table):
            return FrameKind.ARROW
        return FrameKind.PYTHON if not rows or isinstance(rows[0], Mapping) else None
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return FrameKind.ARROW
    return None


def is_of_spark(value: object) -> bool:
    """Whether an object is one of Spark's: a DataFrame, a Column, a session."""
    return any(library == "pyspark" for library, _ in _class_names(value))


def is_columns(rows: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds columns of values, and not the rows of several sources.

    A list of dicts or of record batches is taken for the rows of a source, and so is an empty list.
    """
    return any(map(_is_column, rows.values())) and not any(map(_holds_rows, rows.values()))


def arrow_table(where: str, rows: Rows, schema: pa.Schema | None = None) -> pa.Table:
    """Return rows as a table; raises an `InputError` that begins with `where`, such as "stream 'R'".

    schema: that of the rows before these, if known. Python values and pandas columns take its types, because theirs
            follow from the values: a batch of whole numbers fits a column of floats, one of nulls any column.

    A named pandas index becomes the first column, an unnamed one is dropped; pandas writes null as NaN, so NaN becomes
    null. A column of Python objects without any value is taken for strings. Lazy frames are computed now, and readers
    are read to their end.
    """
    if isinstance(rows, pa.Table):
        return rows
    kind = frame_kind(rows)
    match kind:
        case FrameKind.PANDAS:
            return _from_columns(where, _pandas_columns(rows), schema)
        case FrameKind.PYTHON:
            return _from_columns(where, _python_columns(where, rows), schema)
        case FrameKind.SPARK:
            raise InputError(
                f"{where} takes rows of this process, but those of a Spark DataFrame are with its executors: feed it "
                "to a running topology with il.feed(df, running, stream), or join two DataFrames with il.join"
            )
        case None:
            raise InputError(f"{where} takes {TAKES}, not {_described(rows)}")
    try:
        return _from_arrow(where, kind, rows)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{where}: {_described(rows)} is not read as Arrow rows with named columns: {error}") from None


def _from_arrow(where: str, kind: FrameKind, rows: Any) -> pa.Table:
    match kind:
        case FrameKind.POLARS | FrameKind.LAZY_POLARS:
            computed = rows.collect() if kind is FrameKind.LAZY_POLARS else rows
            for name, dtype in computed.schema.items():
                if str(dtype) == "Object":  # Polars would give the addresses of the objects
                    raise SchemaError(f"{where}: column '{name}' holds Python objects, which Arrow has not: cast it")
            return computed.to_arrow()  # with strings that all of Arrow's functions know
        case FrameKind.DUCKDB:
            return rows.to_arrow_table() if hasattr(rows, "to_arrow_table") else rows.fetch_arrow_table()
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, list | tuple):
        return pa.concat_tables(pa.table(each) for each in rows)
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows).read_all()
    return pa.Table.from_batches([pa.record_batch(rows)])


def _pandas_columns(frame: Any) -> Iterator[tuple[str, Any]]:
    for level, name in enumerate(frame.index.names):
        if name is not None:
            yield str(name), frame.index.get_level_values(level).to_series()
    for number, name in enumerate(frame.columns):
        yield str(name), frame.iloc[:, number]


def _python_columns(where: str, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    if isinstance(rows, Mapping):
        for name, column in rows.items():
            if not _is_column(column) and not isinstance(column, list | tuple):
                raise InputError(f"{where}: column {name!r} must be a list or an array, not {_described(column)}")
            yield str(name), column
        return
    odd = next((row for row in rows if not isinstance(row, Mapping)), None)
    if odd is not None:
        raise InputError(f"{where} takes a list of dicts, but it holds {_described(odd)}, too")
    for name in dict.fromkeys(name for row in rows for name in row):  # a row need not have every column
        yield str(name), [row.get(name) for row in rows]


def _from_columns(where: str, columns: Iterator[tuple[str, Any]], schema: pa.Schema | None) -> pa.Table:
    made: list[tuple[str, pa.Array | pa.ChunkedArray]] = []
    for name, values in columns:
        known = schema is not None and schema.names.count(name) == 1
        try:
            made.append((name, _column(values, schema.field(name).type if schema is not None and known else None)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            text = error.args[0] if error.args else error
            raise SchemaError(f"{where}: column '{name}' does not become an Arrow column: {text}") from None
    if not made:
        if schema is None:
            raise InputError(f"{where}: neither rows nor columns are given: give columns, which may be empty")
        return schema.empty_table()
    names = [name for name, _ in made]
    if schema is not None and sorted(names) == sorted(schema.names) and len(set(names)) == len(names):
        by_name = dict(made)
        made = [(name, by_name[name]) for name in schema.names]
    lengths = {len(column) for _, column in made}
    if len(lengths) > 1:
        shown = ", ".join(f"'{name}' has {len(column)}" for name, column in made)
        raise InputError(f"{where}: columns of different lengths: {shown}")
    return pa.table([column for _, column in made], names=[name for name, _ in made])


def _column(values: Any, kind: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values if kind is None else values.cast(kind)
    if hasattr(values, "to_arrow"):  # a column of Polars
        column = values.to_arrow()
        return column if kind is None else column.cast(kind)
    column = pa.array(values.sparse.to_dense() if hasattr(values, "sparse") else values, type=kind)
    if kind is None and pa.types.is_null(column.type) and getattr(values, "dtype", None) == np.dtype(object):
        return column.cast(pa.string())  # so does pandas hold strings
    return column


def _is_column(value: object) -> bool:
    """Whether something is a column of values, and cannot be rows."""
    if isinstance(value, np.ndarray | pa.Array | pa.ChunkedArray | range):
        return True
    if not _COLUMNS.isdisjoint(_class_names(value)):
        return True
    return isinstance(value, list | tuple) and len(value) > 0 and not _holds_rows(value)


def _holds_rows(value: object) -> bool:
    """Whether something is the rows of a source: a frame, or a list of frames or of dicts."""
    if isinstance(value, list | tuple):
        return bool(value) and frame_kind(value[0]) is not None and not isinstance(value[0], list | tuple)
    return not _is_column(value) and (frame_kind(value) is not None or isinstance(value, Iterator))


def _class_names(value: object) -> list[tuple[str, str]]:
    """The library and the name of each class of an object."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__]


def _described(value: object) -> str:
    """The type of an object, in words."""
    name = type(value).__name__
    if isinstance(value, list | tuple):
        return f"a {name} of {type(value[0]).__name__}" if value else f"an empty {name}"
    return name
