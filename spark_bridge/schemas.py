"""Converts between Spark's types and Arrow's.

The batches that Spark passes to an executor's function differ from the schema of the DataFrame: the optimiser may know
that a column has no nulls, and timestamps carry the session's time zone. So the driver chooses one Arrow schema, and
executors convert every batch to it. For equal types that costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from topology import InputError, SchemaError

MESSAGE_BYTES = 1024 * 1024
"""How large batches become before they are sent."""

_WATERMARK = "spark.watermarkDelayMs"
"""Where Spark notes the watermark of a column, in milliseconds."""

_BYTES = "UTF8_BINARY"
"""The collation of texts that are compared byte by byte, Spark's default."""

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}
"""Types that Spark lacks, and the narrowest Spark type that holds all their values."""


def arrow_schema(df: DataFrame, stream: str, declared: pa.Schema | None = None) -> pa.Schema:
    """Return the Arrow schema in which a DataFrame is fed: as `df.toArrow()`, with times in UTC, all columns nullable.

    declared: the declared schema of the stream; a column that it and the DataFrame both declare without nulls is not
              nullable.
    """
    large = df.sparkSession.conf.get(_LARGE_TYPES, "false") == "true"
    return stream_schema(df.schema, stream, declared, large)


def stream_schema(
    columns: StructType, stream: str, declared: pa.Schema | None = None, large: bool = False
) -> pa.Schema:
    """As `arrow_schema`, for columns of Spark; `large`: texts and bytes have 64-bit offsets."""
    repeated = sorted({name for name in columns.names if columns.names.count(name) > 1})
    if repeated:
        raise SchemaError(f"stream '{stream}': column '{repeated[0]}' appears more than once: rename it")
    for field in columns:
        reason = _why_refused(field.dataType, field.name)
        if reason is not None:
            raise SchemaError(f"stream '{stream}': column '{field.name}' is or holds {reason}")
    try:
        schema = _to_arrow_schema(columns, large)
    except (PySparkException, AssertionError, TypeError) as error:
        raise SchemaError(f"stream '{stream}': the DataFrame has a column that Arrow cannot carry: {error}") from None
    fields = []
    for field in schema:
        expected = declared.field(field.name) if declared is not None and field.name in declared.names else None
        strict = expected is not None and not expected.nullable and not field.nullable
        fields.append(pa.field(field.name, field.type, nullable=not strict))
    return pa.schema(fields)


def needed_names(names: Sequence[str], needed: Collection[str] | None, known: pa.Schema | None) -> list[str]:
    """Return which of these columns must be sent: those that are read, and those that the stream has already.

    needed: `Endpoint.needed`. Names that Spark cannot tell apart are left to the check of the schema. One column at
            least is sent, because rows have to be counted.
    """
    if needed is None or len({name.lower() for name in names}) < len(names):
        return list(names)
    wanted = {*needed, *(known.names if known is not None else ())}
    return [name for name in names if name in wanted] or list(names[:1])


def watermark_delays(columns: StructType) -> dict[str, int]:
    """Return the columns of timestamps on which a query has a watermark, each with its delay in microseconds."""
    times = [field for field in columns.fields if isinstance(field.dataType, TimestampType | TimestampNTZType)]
    return {
        field.name: 1000 * int(field.metadata[_WATERMARK])
        for field in times
        if field.metadata and _WATERMARK in field.metadata
    }


def reordered(schema: pa.Schema, known: pa.Schema) -> pa.Schema:
    """Put columns in the order of a schema that has the same names; a field of the same type becomes the one there."""
    if sorted(schema.names) != sorted(known.names):
        return schema
    pairs = [(schema.field(theirs.name), theirs) for theirs in known]
    return pa.schema([theirs if theirs.type.equals(mine.type) else mine for mine, theirs in pairs])


def fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert rows to a schema; copies nothing if it differs only in nullability, time zone or metadata."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches of one schema into larger ones: Spark's are small, and each message costs more than its rows."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for rows in batches:
        waiting.append(rows)
        size += rows.nbytes
        if size >= MESSAGE_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def completed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert rows to a schema, column by column of the same name; columns that the rows lack are null.

    A join may have emitted rows of one side before it knew the columns of the other.
    """
    if rows.schema.names != schema.names:
        lacking = [field for field in schema if field.name not in rows.schema.names]
        for field in lacking:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        rows = rows.select(schema.names)
    return fitted(rows, schema)


def spark_ready(schema: pa.Schema) -> pa.Schema:
    """Return a schema of types that Spark has, to which rows of the given schema can be cast without loss.

    Spark's times are in microseconds: reading a timestamp that is not a whole number of microseconds fails.
    """
    return pa.schema([pa.field(field.name, _spark_ready_type(field.type)) for field in schema])


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema of Arrow rows; every column is nullable, as in everything that Spark reads."""
    fields = []
    for field in schema:
        try:
            fields.append(StructField(field.name, from_arrow_type(field.type), True))
        except PySparkException:
            raise SchemaError(f"result column '{field.name}' is {field.type}, which Spark does not have") from None
    return StructType(fields)


def separated(schema: pa.Schema, separator: str) -> list[str]:
    """Return the names of columns with `separator` in place of each dot; refuses one that makes two names the same."""
    if not isinstance(separator, str):
        raise InputError(f"separator must be text such as '_', not {separator!r}")
    names = [name.replace(".", separator) for name in schema.names]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(
            f"with {separator!r} in place of dots two columns would be called '{twice}': give one another name with "
            f".alias(..) in select="
        )
    return names


def _why_refused(kind: DataType, name: str) -> str | None:
    """Why a type, or one inside it, cannot travel or would be compared otherwise than Spark does, and what to do."""
    inside: list[DataType] = []
    match kind:
        case ArrayType():
            inside = [kind.elementType]
        case MapType():
            inside = [kind.keyType, kind.valueType]
        case StructType():
            inside = [field.dataType for field in kind]
        case StringType() if kind.collation != _BYTES:
            return (
                f"a text with the collation {kind.collation}, and a join compares texts byte by byte: write "
                f"{name} COLLATE {_BYTES}, or lower({name}) COLLATE {_BYTES} where case does not count"
            )
        case VariantType():
            return (
                f"a VARIANT, of which only Spark knows the values: give it a type, such as "
                f"variant_get({name}, '$.price', 'double') or CAST({name} AS STRING)"
            )
        case YearMonthIntervalType():
            return f"an interval of months, which Arrow does not carry: write them as a number, CAST({name} AS INT)"
        case CalendarIntervalType():
            return f"a calendar interval, which has no order: write CAST({name} AS STRING), or a day-time interval"
    if kind.typeName() in ("geometry", "geography"):
        return f"a {kind.typeName().upper()}, whose bytes say nothing about equality: write ST_AsBinary({name})"
    return next((reason for each in inside if (reason := _why_refused(each, name)) is not None), None)


def _to_arrow_schema(schema: StructType, large: bool) -> Any:
    try:
        return to_arrow_schema(schema, timezone="UTC", prefers_large_types=large)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        return to_arrow_schema(schema, prefers_large_types=large)  # earlier versions use UTC by default


def _spark_ready_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _spark_ready_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_time(kind):
        return pa.time64("ns")
    return _WIDER.get(kind, kind)
