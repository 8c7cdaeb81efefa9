"""Every function over every Arrow type: it answers one row per row, or says that the type does not fit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators import PredicateError, case, func, stream
from operators.query.expressions import Apply, Constant, Expression
from operators.values.evaluation import evaluate, type_of

NAN = float("nan")
MOMENT = datetime(2024, 1, 31, 5)
COLUMNS: list[pa.Array] = [
    *[pa.array([1, 0, None], kind) for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64())],
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([np.float16(0.5), None, np.float16(NAN)], pa.float16()),
    *[pa.array([0.1, None, NAN, float("inf")], kind) for kind in (pa.float32(), pa.float64())],
    *[pa.array([Decimal("1.50"), None], kind)
      for kind in (pa.decimal32(5, 2), pa.decimal128(38, 2), pa.decimal256(60, 2))],
    *[pa.array(["aB", None, ""], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())],
    pa.array(["aB", None, "aB"]).dictionary_encode(),
    pc.run_end_encode(pa.array(["a", "a", None])),
    *[pa.array([b"ab", None], kind) for kind in (pa.binary(), pa.binary(2), pa.binary_view(), pa.large_binary())],
    *[pa.array([date(2024, 1, 31), None], kind) for kind in (pa.date32(), pa.date64())],
    *[pa.array([MOMENT, None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")],
    pa.array([MOMENT.replace(tzinfo=UTC), None], pa.timestamp("ms", "Asia/Tokyo")),
    *[pa.array([time(5), None], kind) for kind in (pa.time32("s"), pa.time64("ns"))],
    pa.array([timedelta(seconds=1), None], pa.duration("ms")),
    pa.array([True, None, False]),
    *[pa.array([[1, 2], None], kind)
      for kind in (pa.list_(pa.int8()), pa.large_list(pa.int64()), pa.list_(pa.int8(), 2))],
    pa.array([{"a": 1}, None, {"a": None}]),
    pa.array([pa.MonthDayNano([1, 2, 3]), None]),
    pa.nulls(3),
]  # fmt: skip
TARGETS = [pa.string(), pa.int32(), pa.float32(), pa.bool_(), pa.decimal128(10, 2), pa.date32(), pa.timestamp("us"),
           pa.timestamp("us", "UTC"), pa.time64("us"), pa.binary()]  # fmt: skip
UNARY = ["lower", "length", "octet_length", "reverse", "trim", "round", "trunc", "floor", "ceil", "sign", "sqrt", "exp",
         "ln", "year", "hour", "week", "epoch", "bitnot", "coalesce", "greatest", "least", "list_value",
         "concat"]  # fmt: skip
C = stream("R").c
EXPRESSIONS: dict[str, Callable[[], Any]] = {
    **{name: partial(getattr(func, name), C) for name in UNARY},
    **{f"cast to {kind}": partial(C.cast, kind) for kind in TARGETS},
    "coalesce twice": lambda: func.coalesce(C, C),
    "case": lambda: case((C.is_null(), C), default=C),
    "distinct": lambda: C.is_distinct_from(C),
    "equal": lambda: C == C,
    "less": lambda: func.coalesce(C, C) < C,
    "is null": lambda: func.coalesce(C, C).is_null(),
    "date_trunc": lambda: func.date_trunc("month", C),
    "date_diff": lambda: func.date_diff("day", C, C),
    "add_months": lambda: func.add_months(C, 1),
    "remainder": lambda: C % 2,
    "power": lambda: C**2,
    "quotient": lambda: C // 2,
    "and": lambda: func.bitand(C, 3),
    "shift": lambda: Apply("<<", (C, Constant(1))),
    "contains": lambda: func.list_contains(C, 1),
    "element": lambda: C[1],
    "field": lambda: C["a"],
    "substring": lambda: func.substring(C, 1, 1),
    "like": lambda: C.like("a%"),
    "joined": lambda: Apply("||", (C, C)),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_function_answers_every_row_or_refuses_the_type(name: str) -> None:
    expression: Expression = EXPRESSIONS[name]()
    fitted = 0
    for column in COLUMNS:
        for rows in (column, column[1:], column[:0]):
            try:
                kind = type_of(expression, lambda _, rows=rows: rows.type)  # type: ignore[misc]
            except PredicateError:
                continue
            found = evaluate(expression, lambda _, rows=rows: rows)  # type: ignore[misc]
            found.validate(full=True)
            assert len(found) == len(rows)
            assert found.type == kind
            fitted += 1
    assert fitted, "it fits no type at all"
