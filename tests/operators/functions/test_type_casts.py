"""CAST: what each value becomes, and that one without a counterpart becomes null."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from operators.functions.arguments import ArgumentError
from operators.functions.type_casts import named_type, type_name
from operators.query.expressions import Cast, Column
from operators.values.evaluation import evaluate, type_of

BIG = 2**63 - 1
CASES: list[tuple[pa.DataType, pa.DataType, list[Any], list[Any]]] = [
    (pa.int64(), pa.int8(), [127, 128, -128, -129, None], [127, None, -128, None, None]),
    (pa.int64(), pa.uint64(), [0, -1, BIG], [0, None, BIG]),
    (pa.uint64(), pa.int64(), [BIG, 2**64 - 1], [BIG, None]),
    (pa.float64(), pa.int64(), [2.5, 3.5, -2.5, 0.49999999999999994, 2.0**63, -(2.0**63), math.nan, math.inf],
     [2, 4, -2, 0, None, -(2**63), None, None]),
    (pa.decimal128(5, 2), pa.int32(), [*map(Decimal, ("2.50", "-2.50", "2.49"))], [3, -3, 2]),
    (pa.bool_(), pa.int64(), [True, False, None], [1, 0, None]),
    (pa.int64(), pa.bool_(), [0, 5, None], [False, True, None]),
    (pa.int64(), pa.float64(), [2**53 + 1, 3], [2.0**53, 3.0]),
    (pa.int64(), pa.decimal128(4, 2), [12, 99, 100], [Decimal("12.00"), Decimal("99.00"), None]),
    (pa.float64(), pa.decimal128(5, 2), [0.285, 2.5, 1e9, math.nan], [Decimal("0.28"), Decimal("2.50"), None, None]),
    (pa.decimal128(6, 3), pa.decimal128(4, 1), [Decimal("1.250"), Decimal("-1.250"), Decimal("999.990")],
     [Decimal("1.3"), Decimal("-1.3"), None]),
    (pa.string(), pa.int64(), [" 12 ", "-5", "x", "1.5", "", "0x1F", str(2**63), None],
     [12, -5, None, None, None, None, None, None]),
    (pa.string(), pa.int64(), ["+7", "007", "-0", " 5\t", str(BIG), str(-(2**63))], [7, 7, 0, 5, BIG, -(2**63)]),
    (pa.string(), pa.float64(), ["+1.5", "5.", ".5", "1E-3", "0.1", "1e400"], [1.5, 5.0, 0.5, 0.001, 0.1, math.inf]),
    (pa.string(), pa.float64(), ["1.5", "1e3", ".5", "inf", "nan", "x", "1_0"],
     [1.5, 1000.0, 0.5, math.inf, None, None, None]),
    (pa.string(), pa.decimal128(5, 2), ["1.255", "-1.255", "1000", "x"],
     [Decimal("1.26"), Decimal("-1.26"), None, None]),
    (pa.string(), pa.bool_(), ["true", "F", "maybe"], [True, False, None]),
    (pa.string(), pa.date32(), ["2024-02-29", "2023-02-29", "2024-02-29 10:00:00"],
     [date(2024, 2, 29), None, date(2024, 2, 29)]),
    (pa.string(), pa.timestamp("us"), ["2024-02-29 10:00:00.5", "nonsense"],
     [datetime(2024, 2, 29, 10, 0, 0, 500_000), None]),
    (pa.string(), pa.time64("us"), ["10:30:00", "25:00:00"], [time(10, 30), None]),
    (pa.int64(), pa.string(), [12, -3, None], ["12", "-3", None]),
    (pa.bool_(), pa.string(), [True, False], ["true", "false"]),
    (pa.float64(), pa.string(), [1.0, 0.1, 1e20, -0.0, math.nan], ["1.0", "0.1", "1e+20", "-0.0", None]),
    (pa.float32(), pa.string(), [0.1], ["0.1"]),
    (pa.decimal128(5, 2), pa.string(), [Decimal("1.50")], ["1.50"]),
    (pa.date32(), pa.string(), [date(2024, 2, 29)], ["2024-02-29"]),
    (pa.timestamp("us"), pa.string(), [datetime(2024, 2, 29, 10), datetime(2024, 2, 29, 10, 0, 0, 120_000)],
     ["2024-02-29 10:00:00", "2024-02-29 10:00:00.12"]),
    (pa.timestamp("us"), pa.date32(), [datetime(2024, 2, 29, 23), datetime(1969, 12, 31, 1)],
     [date(2024, 2, 29), date(1969, 12, 31)]),
    (pa.date32(), pa.timestamp("us"), [date(2024, 2, 29)], [datetime(2024, 2, 29)]),
    (pa.timestamp("us"), pa.timestamp("s"), [datetime(1969, 12, 31, 23, 59, 59, 500_000)],
     [datetime(1969, 12, 31, 23, 59, 59)]),
    (pa.timestamp("s"), pa.timestamp("ns"), [datetime(2024, 1, 1), datetime(9999, 1, 1)], [datetime(2024, 1, 1), None]),
    (pa.timestamp("us", "UTC"), pa.timestamp("us"), [datetime(2024, 1, 1, tzinfo=UTC)], [datetime(2024, 1, 1)]),
    (pa.timestamp("us"), pa.time64("us"), [datetime(2024, 1, 1, 10, 30)], [time(10, 30)]),
    (pa.string(), pa.binary(), ["ä"], ["ä".encode()]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "target", "values", "expected"), CASES, ids=[f"{a} to {b}" for a, b, _, _ in CASES])
def test_a_value_becomes_its_counterpart_or_null(
    kind: pa.DataType, target: pa.DataType, values: list[Any], expected: list[Any]
) -> None:
    for rows in ([*values], [*values, None], values[:1], []):  # what one row becomes does not depend on the others
        found = evaluate(Cast(Column("R", "x"), target), lambda column, r=rows: pa.array(r, kind))  # type: ignore[misc]
        assert found.type == target
        got = found.to_pylist()
        if pa.types.is_timestamp(target) and target.unit == "ns":
            got = [None if each is None else each.to_pydatetime() for each in got]
        assert got == [*expected, None][: len(rows)]


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (pa.float64(), pa.date32()),
        (pa.date32(), pa.int64()),
        (pa.binary(), pa.string()),
        (pa.list_(pa.int8()), pa.string()),
    ],
)
def test_families_without_counterparts_are_refused(kind: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(Exception, match="cannot be cast to"):
        type_of(Cast(Column("R", "x"), target), lambda column: kind)


def test_names_of_types_are_read_and_written() -> None:
    for name in ("BIGINT", "DOUBLE", "VARCHAR", "DECIMAL(10, 2)", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "BOOLEAN"):
        assert type_name(named_type(name)) == name
    assert named_type("numeric") == pa.decimal128(18, 3)
    assert named_type("double   precision") == pa.float64()
    assert named_type("varchar(10)") == pa.string()
    with pytest.raises(ArgumentError, match="UUID is not a type that a value can be cast to: write one of BOOLEAN"):
        named_type("UUID")
