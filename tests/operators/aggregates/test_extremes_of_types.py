"""The least and the greatest match, of every type that has them, keep their type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin, max, min

TEXTS: tuple[pa.DataType, ...] = (
    pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
)  # fmt: skip
BYTES: tuple[pa.DataType, ...] = (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))
DECIMALS: tuple[pa.DataType, ...] = (
    pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(30, 2), pa.decimal256(50, 2),
)  # fmt: skip
NUMBERS: tuple[pa.DataType, ...] = (
    pa.int8(), pa.uint8(), pa.uint64(), pa.int64(), pa.float16(), pa.float32(), pa.float64(),
)  # fmt: skip
DAYS: tuple[pa.DataType, ...] = (pa.date32(), pa.date64())
CASES: list[tuple[pa.DataType, list[Any]]] = [
    *((kind, ["b", None, "a", "c", "b"]) for kind in TEXTS),
    *((kind, [b"b", None, b"a", b"c", b"b"]) for kind in BYTES),
    *((kind, [Decimal("2.50"), None, Decimal("1.25"), Decimal("3.75"), Decimal("2.50")]) for kind in DECIMALS),
    *((kind, [2, None, 1, 3, 2]) for kind in NUMBERS),
    *((kind, [dt.date(2024, 2, 28), None, dt.date(2024, 2, 27), dt.date(2024, 2, 29), None]) for kind in DAYS),
    (pa.bool_(), [True, None, False, True, True]),
    (pa.time32("s"), [dt.time(8), None, dt.time(7), dt.time(9), dt.time(8)]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2024, 2, day, tzinfo=dt.UTC) for day in (28, 27, 26, 29, 28)]),
    (pa.duration("ms"), [dt.timedelta(seconds=2), None, dt.timedelta(seconds=1), dt.timedelta(seconds=3), None]),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=lambda case: str(case) if isinstance(case, pa.DataType) else "")
def test_the_least_and_the_greatest_match_keep_their_type(kind: pa.DataType, values: list[Any]) -> None:
    aggregate = {"least": min("S.v"), "greatest": max("S.v")}
    join = StreamJoin("R", "S", "R.k = S.k", CountWindow(10), event_time="at", select=["R.at"], aggregate=aggregate)
    table = pa.table({"at": range(len(values)), "k": [1] * len(values), "v": pa.array(values, kind)})
    asked = pa.table({"at": [0, 2, 9], "k": [1, 1, 1]})
    found = join.collect({"S": table, "R": asked})
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    assert found.schema.field("least").type == found.schema.field("greatest").type == plain
    for name, choose in (("least", _least), ("greatest", _greatest)):
        rows = [[value for value in values[:end] if value is not None] for end in (0, 2, 5)]
        assert found[name].to_pylist() == [choose(row) if row else None for row in rows]


def _least(values: list[Any]) -> Any:
    return sorted(values)[0]


def _greatest(values: list[Any]) -> Any:
    return sorted(values)[-1]
