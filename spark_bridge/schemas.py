"""Spark's types and Arrow's, both ways.

What Spark hands to an executor's function differs from the schema of the DataFrame: the optimiser may know that a
column has no nulls, and timestamps carry the session's time zone. So the driver decides on one Arrow schema, and the
executors fit every batch to it; for equal types that costs nothing.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from topology import SchemaError

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
"""Types that Spark does not have, and the narrowest of its own that hold all their values."""


def arrow_schema(df: DataFrame, stream: str, declared: pa.Schema | None = None) -> pa.Schema:
    """The Arrow schema under which a DataFrame is fed: that of `df.toArrow()`, with times in UTC, all columns nullable.

    declared: the schema that the stream was declared with; its word on which columns have no nulls is followed where
              the DataFrame's agrees.
    """
    repeated = sorted({name for name in df.columns if df.columns.count(name) > 1})
    if repeated:
        raise SchemaError(f"stream '{stream}': column '{repeated[0]}' appears more than once: rename it")
    large = df.sparkSession.conf.get(_LARGE_TYPES, "false") == "true"
    try:
        schema = _to_arrow_schema(df.schema, large)
    except (PySparkException, AssertionError, TypeError) as error:
        raise SchemaError(f"stream '{stream}': the DataFrame has a column that Arrow cannot carry: {error}") from None
    fields = []
    for field in schema:
        expected = declared.field(field.name) if declared is not None and field.name in declared.names else None
        strict = expected is not None and not expected.nullable and not field.nullable
        fields.append(pa.field(field.name, field.type, nullable=not strict))
    return pa.schema(fields)


def fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows under a schema that differs in nullability, time zone or metadata only; copies nothing then."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def spark_ready(schema: pa.Schema) -> pa.Schema:
    """The schema whose types Spark has, and into which rows of the given one can be cast without loss.

    Spark's times are in microseconds: a nanosecond timestamp that is no whole number of them fails when it is read.
    """
    return pa.schema([pa.field(field.name, _spark_ready_type(field.type)) for field in schema])


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of Arrow rows; every column nullable, as in all that Spark reads from outside."""
    fields = []
    for field in schema:
        try:
            fields.append(StructField(field.name, from_arrow_type(field.type), True))
        except PySparkException:
            raise SchemaError(f"result column '{field.name}' is {field.type}, which Spark does not have") from None
    return StructType(fields)


def _to_arrow_schema(schema: StructType, large: bool) -> Any:
    try:
        return to_arrow_schema(schema, timezone="UTC", prefers_large_types=large)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        return to_arrow_schema(schema, prefers_large_types=large)  # earlier versions: in UTC unless told otherwise


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
