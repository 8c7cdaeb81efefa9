"""Every type of Spark SQL: through a join and back as payload, compared as a key, or refused with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from operators import CountWindow, StreamJoin
from spark_bridge import connect_spark, feed
from spark_bridge.schemas import arrow_schema, fitted
from tests.topology.waiting import LONG
from topology import LocalRuntime, SchemaError


@dataclass(frozen=True)
class Kind:
    """A type of Spark and three of its values, as SQL, in ascending order.

    ordered: it can be compared with < in a condition; otherwise only with =.
    """

    sql: str
    values: tuple[str, str, str]
    ordered: bool = True


KINDS = {
    "boolean": Kind("BOOLEAN", ("false", "true", "true")),
    "tinyint": Kind("TINYINT", ("-128", "0", "127")),
    "smallint": Kind("SMALLINT", ("-32768", "0", "32767")),
    "int": Kind("INT", ("-2147483648", "0", "2147483647")),
    "bigint": Kind("BIGINT", ("-9223372036854775807", "9007199254740992", "9007199254740993")),
    "float": Kind("FLOAT", ("-0.1", "0.1", "float('inf')")),
    "double": Kind("DOUBLE", ("-1e300", "0.1", "0.30000000000000004")),
    "decimal": Kind("DECIMAL(5,2)", ("-999.99", "0.01", "999.99")),
    "long_decimal": Kind("DECIMAL(38,10)", ("-1", "1234567890123456789.0000000001", "1234567890123456789.0000000002")),
    "string": Kind("STRING", ("''", "'Zürich'", "'a'")),
    "varchar": Kind("VARCHAR(3)", ("'a'", "'ab'", "'b'")),
    "char": Kind("CHAR(3)", ("'a'", "'ab'", "'b'")),
    "time": Kind("TIME", ("'00:00:00'", "'12:30:00.000001'", "'23:59:59.999999'")),
    "binary": Kind("BINARY", ("X'00'", "X'7f'", "X'ff00'")),
    "date": Kind("DATE", ("'0001-01-01'", "'1970-01-01'", "'9999-12-31'")),
    # the second and the third are one hour of the wall clock in New York, before and after the clocks go back
    "timestamp": Kind(
        "TIMESTAMP",
        ("'1969-12-31T23:59:59.999999Z'", "'2024-11-03T05:30:00Z'", "'2024-11-03T06:30:00.000001Z'"),
    ),
    "timestamp_ntz": Kind("TIMESTAMP_NTZ", ("'1969-12-31 23:59:59'", "'2024-03-10 02:30:00'", "'2024-11-03 01:30:00'")),
    "day_time": Kind("INTERVAL DAY TO SECOND", ("'-1 0:0:0'", "'0 0:0:0.000001'", "'30 0:0:0'")),
    "array": Kind("ARRAY<INT>", ("array(1)", "array(1, 2)", "array(2, null)"), ordered=False),
    "struct": Kind(
        "STRUCT<a: INT, b: STRING>",
        ("named_struct('a', 1, 'b', 'x')", "named_struct('a', 1, 'b', 'y')", "named_struct('a', 2, 'b', null)"),
        ordered=False,
    ),
}
PAYLOAD_ONLY = {
    "map": Kind("MAP<STRING, INT>", ("map('a', 1)", "map()", "map('b', null)")),
    "void": Kind("VOID", ("NULL", "NULL", "NULL")),
}
REFUSED = {
    "parse_json('1')": "a VARIANT, .* CAST(v AS STRING)",
    "array(parse_json('1'))": "a VARIANT",
    "INTERVAL '1' MONTH": "an interval of months, .* CAST(v AS INT)",
    "make_interval(1, 2, 3)": "a calendar interval, .* CAST(v AS STRING)",
    "'a' COLLATE UTF8_LCASE": "a text with the collation UTF8_LCASE, .* lower(v) COLLATE UTF8_BINARY",
    "map('a' COLLATE UNICODE, 1)": "a text with the collation UNICODE",
    "ST_GeomFromWKB(X'0101000000000000000000F03F0000000000000040')": "a GEOMETRY, .* ST_AsBinary(v)",
}
ZONES = ("America/New_York", "Asia/Kolkata", "UTC")
"""Of sessions; values are exact in each."""


def frame(spark: SparkSession, kinds: dict[str, Kind]) -> DataFrame:
    """A row for each of the three values and one of nulls; one column for each kind, in one partition."""
    rows = []
    for number in range(4):
        columns = [
            f"CAST({'NULL' if number == 3 else kind.values[number]} AS {kind.sql}) AS {name}"
            for name, kind in kinds.items()
        ]
        rows.append(f"SELECT CAST({number} AS BIGINT) AS id, {', '.join(columns)}")
    return spark.sql(" UNION ALL ".join(rows)).coalesce(1)


@pytest.fixture(scope="module")
def keys(spark: SparkSession) -> pa.Table:
    """The values of all kinds as executors send them."""
    values = frame(spark, KINDS)
    schema = arrow_schema(values, "R")
    return pa.Table.from_batches([fitted(rows, schema) for rows in values.toArrow().combine_chunks().to_batches()])


def test_every_type_goes_through_a_join_and_comes_back(spark: SparkSession) -> None:
    values = frame(spark, KINDS | PAYLOAD_ONLY)
    join = StreamJoin("R", "S", "R.id = S.id", CountWindow(100))
    with join.launch(LocalRuntime()) as running:
        for stream in "RS":
            feed(values, running, stream=stream, progress=False)
        running.finish()
        connect_spark(spark, running)
        options = {"endpoint": running.endpoint("results").uri, "sink": "results"}
        found = spark.read.format("interlace").options(**options).load()
        expected = values.orderBy("id").collect()
        for side in "RS":
            own = found.select(*(found[f"{side}_{name}"].alias(name) for name in values.columns)).orderBy("id")
            assert dict(own.dtypes) == dict(values.dtypes)
            assert own.collect() == expected


@pytest.mark.parametrize("zone", ZONES)
def test_every_type_goes_through_streams_in_each_zone(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    kinds = (KINDS | PAYLOAD_ONLY) if zone == ZONES[0] else {name: KINDS[name] for name in KINDS if "time" in name}
    kinds = {name: kind for name, kind in kinds.items() if name != "void"}  # files have none
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        values = frame(spark, kinds)
        values.write.parquet(str(tmp_path / "values"))
        streaming = spark.readStream.schema(values.schema).parquet(str(tmp_path / "values"))
        join = StreamJoin("R", "S", "R.id = S.id", CountWindow(100), select=["R.*"])
        with join.launch(LocalRuntime()) as running:
            fed = feed(streaming, running, "R", checkpoint=tmp_path / "c", trigger={"availableNow": True})
            fed.awaitTermination(LONG)
            running.send("S", {"id": list(range(4))})
            running.finish()
            connect_spark(spark, running)
            options = {"endpoint": running.endpoint("results").uri, "sink": "results"}
            found = spark.readStream.format("interlace").options(**options).load()
            writer = found.toDF(*values.columns).writeStream.format("memory").queryName("values")
            assert writer.trigger(availableNow=True).start().awaitTermination(LONG)
        table = spark.table("values")
        assert table.dtypes == values.dtypes
        assert table.orderBy("id").collect() == values.orderBy("id").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("name", KINDS)
def test_a_type_is_compared_as_spark_orders_it(keys: pa.Table, name: str) -> None:
    rows = keys.select(["id", name])
    operator = "<" if KINDS[name].ordered else "="
    join = StreamJoin("R", "S", f"R.{name} {operator} S.{name}", CountWindow(100), select=["R.id", "S.id"])
    found = {tuple(row.values()) for row in join.collect({"R": rows, "S": rows}).to_pylist()}
    if not KINDS[name].ordered:
        assert found == {(0, 0), (1, 1), (2, 2)}
    elif name == "boolean":
        assert found == {(0, 1), (0, 2)}
    else:
        assert found == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("sql", REFUSED)
def test_a_type_that_arrow_or_a_join_cannot_carry_is_refused_with_the_remedy(spark: SparkSession, sql: str) -> None:
    values = spark.sql(f"SELECT {sql} AS v")
    said = REFUSED[sql].replace("(", r"\(").replace(")", r"\)")
    join = StreamJoin("R", "S", "R.v = S.v", CountWindow(100))
    with join.launch(LocalRuntime()) as running:
        with pytest.raises(SchemaError, match=f"stream 'R': column 'v' is or holds {said}"):
            feed(values, running, stream="R", progress=False)
        assert running.schema("R") is None, "nothing has changed"


def test_another_schema_is_refused_and_the_difference_shown(spark: SparkSession) -> None:
    join = StreamJoin("R", "S", "R.a = S.a", CountWindow(100))
    with join.launch(LocalRuntime()) as running:
        feed(spark.sql("SELECT 1 AS a, 'x' AS b"), running, stream="R", progress=False)
        feed(spark.sql("SELECT 'y' AS b, 2 AS a"), running, stream="R", progress=False)
        with pytest.raises(SchemaError, match=r"(?s)'a'.*double.*int32|'a'.*int32.*double"):
            feed(spark.sql("SELECT CAST(1 AS DOUBLE) AS a, 'x' AS b"), running, stream="R", progress=False)
        with pytest.raises(SchemaError, match="c"):
            feed(spark.sql("SELECT 1 AS a, 'x' AS b, 3 AS c"), running, stream="R", progress=False)
