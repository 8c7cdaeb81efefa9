"""Columnar evaluation against Python's own numbers, row by row."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operators.query.errors import PredicateError
from operators.query.expressions import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Call,
    Column,
    Compare,
    Constant,
    Expression,
    IsNull,
    Negate,
    Not,
    Or,
)
from operators.query.streams import stream
from operators.values.evaluation import evaluate, type_of

R = stream("R")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip

# The reference. Exact values are Fractions (times in nanoseconds), float64 values are Python floats, unknown is None.


def holds(condition: Expression, row: dict[str, Any]) -> bool | None:
    match condition:
        case Compare(sign, left, right):
            decimals = has(Decimal, left, row) or has(Decimal, right, row)
            one, other = (side_value(each, row, decimals) for each in (left, right))
            if one is None or other is None or one != one or other != other:
                return None
            return COMPARE[sign](one, other)
        case Between(operand, low, high):
            return holds((operand >= low) & (operand <= high), row)
        case And(left, right):
            both = [holds(left, row), holds(right, row)]
            return False if False in both else None if None in both else True
        case Or(left, right):
            both = [holds(left, row), holds(right, row)]
            return True if True in both else None if None in both else False
        case Not(operand):
            inner = holds(operand, row)
            return None if inner is None else not inner
        case IsNull(operand):
            value = side_value(operand, row, has(Decimal, operand, row))
            return value is None or value != value
    raise AssertionError(condition)


def parts(term: Expression) -> list[Expression]:
    match term:
        case Negate(operand) | Absolute(operand):
            return parts(operand)
        case Arithmetic(_, left, right):
            return [term, *parts(left), *parts(right)]
    return [term]


def has(kind: type, term: Expression, row: dict[str, Any]) -> bool:
    for part in parts(term):
        if isinstance(part, Column) and KINDS[row["#" + part.name]].python is kind:
            return True
        if isinstance(part, Constant) and isinstance(part.value, kind):
            return True
    return False


def side_value(term: Expression, row: dict[str, Any], decimals: bool) -> Any:
    divides = any(isinstance(part, Arithmetic) and part.operator == "/" for part in parts(term))
    if not decimals and (divides or has(float, term, row)):
        return compute(term, row, as_float)
    return compute(term, row, exactly)


def compute(term: Expression, row: dict[str, Any], number: Callable[[Any], Any]) -> Any:
    match term:
        case Column(_, name):
            return None if row[name] is None else number(row[name])
        case Constant(value):
            return number(value)
        case Negate(operand) | Absolute(operand):
            inner = compute(operand, row, number)
            return None if inner is None else -inner if isinstance(term, Negate) else abs(inner)
        case Arithmetic(sign, left, right):
            one, other = compute(left, row, number), compute(right, row, number)
            return None if one is None or other is None else divide(one, other) if sign == "/" else COMPUTE[sign](
                one, other
            )  # fmt: skip
    raise AssertionError(term)


def divide(one: Any, other: Any) -> Any:
    if isinstance(one, float) and other == 0:
        with np.errstate(all="ignore"):
            return float(np.float64(one) / np.float64(other))
    return one / other


def as_float(value: Any) -> float:
    return float(value)


def exactly(value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, float):
        return value if math.isnan(value) else Fraction(Decimal(repr(value)))
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return exactly(moment - datetime(1970, 1, 1))
    if isinstance(value, date):
        return exactly(datetime(value.year, value.month, value.day))
    if isinstance(value, time):
        return exactly(datetime.combine(date(1970, 1, 1), value))
    if isinstance(value, timedelta):
        return Fraction(value // timedelta(microseconds=1) * 1000)
    return Fraction(value)


# Columns: Arrow types, the Python type that stands for them above, and values small and extreme.


class Kind:
    def __init__(self, arrow: pa.DataType, python: type, values: st.SearchStrategy[Any]) -> None:
        self.arrow, self.python, self.values = arrow, python, values


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = [n for m in (0, 1, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1) for n in (m, -m)]
    return st.integers(max(low, -3), 3) | st.integers(low, high) | st.sampled_from(
        [low, high, *(n for n in edges if low <= n <= high)]
    )  # fmt: skip


FLOATS = st.integers(-3, 3).map(float) | st.sampled_from(
    [0.1, 0.3, -0.0, 2.0**53, 2.0**63, -(2.0**63), 2.0**64, 1.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
)


def scaled(number: int, scale: int) -> Decimal:
    return Decimal(f"{number}e{-scale}")


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    numbers = st.integers(-30, 30) | st.integers(-top, top) | st.sampled_from([top, -top])
    return numbers.map(lambda n: scaled(n, scale))


MOMENTS = st.integers(-3, 3).map(lambda n: datetime(1970, 1, 1) + timedelta(hours=12 * n)) | st.datetimes(
    datetime(1700, 1, 1), datetime(2200, 1, 1)
)
NUMBERS = {
    **{f"int{b}": Kind(pa.type_for_alias(f"int{b}"), int, integers(b, True)) for b in (8, 16, 32, 64)},
    **{f"uint{b}": Kind(pa.type_for_alias(f"uint{b}"), int, integers(b, False)) for b in (8, 16, 32, 64)},
    "bool": Kind(pa.bool_(), int, st.booleans()),
    "float16": Kind(pa.float16(), float, st.sampled_from([0.5, 1.0, 2.0, -0.0, 65504.0, math.inf, math.nan])),
    "float32": Kind(pa.float32(), float, FLOATS.map(lambda x: float(np.float32(np.clip(x, -3e38, 3e38))))),
    "float64": Kind(pa.float64(), float, FLOATS),
}
DECIMALS = {
    f"decimal{width}({p}, {s})": Kind(getattr(pa, f"decimal{width}")(p, s), Decimal, decimals(p, s))
    for width, p, s in [(32, 5, 1), (64, 18, 2), (128, 18, 0), (128, 38, 2), (128, 20, 10), (256, 60, 3), (128, 9, -2)]
}
TEXTS = {
    "string": Kind(pa.string(), str, st.text("aé😀\x00", max_size=4)),
    "large_string": Kind(pa.large_string(), str, st.text("aé😀\x00", max_size=4)),
    "string_view": Kind(pa.string_view(), str, st.text("aé😀", max_size=20)),
    "dictionary": Kind(pa.dictionary(pa.int8(), pa.string()), str, st.text("aé", max_size=3)),
}
BINARIES = {
    "binary": Kind(pa.binary(), bytes, st.binary(max_size=3)),
    "large_binary": Kind(pa.large_binary(), bytes, st.binary(max_size=3)),
    "binary_view": Kind(pa.binary_view(), bytes, st.binary(max_size=3)),
    "binary(2)": Kind(pa.binary(2), bytes, st.binary(min_size=2, max_size=2)),
    "binary(3)": Kind(pa.binary(3), bytes, st.binary(min_size=3, max_size=3)),
}
KEEP = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}


def coarse(value: Any, unit: str) -> Any:
    zero = timedelta(0) if isinstance(value, timedelta) else datetime(1970, 1, 1)
    if isinstance(value, time):
        return (datetime.min + coarse(datetime.combine(date.min, value) - datetime.min, unit)).time()
    return zero + (value - zero) // timedelta(microseconds=KEEP[unit]) * timedelta(microseconds=KEEP[unit])


def units(make: Callable[[str], pa.DataType], python: type, values: Any, names: str = "s ms us ns") -> dict[str, Kind]:
    return {str(make(u)): Kind(make(u), python, values.map(lambda v, u=u: coarse(v, u))) for u in names.split()}


SPANS = st.integers(-3, 3).map(lambda n: timedelta(hours=n)) | st.timedeltas(timedelta(-9999), timedelta(9999))
INSTANTS = {
    **units(pa.timestamp, datetime, MOMENTS),
    "date32": Kind(pa.date32(), date, MOMENTS.map(lambda m: m.date())),
    "date64": Kind(pa.date64(), date, MOMENTS.map(lambda m: m.date())),
}


def zoned(unit: str) -> st.SearchStrategy[datetime]:
    return MOMENTS.map(lambda moment: coarse(moment, unit).replace(tzinfo=UTC))


ZONED = {
    f"{unit} {zone}": Kind(pa.timestamp(unit, zone), datetime, zoned(unit))
    for unit, zone in [("s", "UTC"), ("us", "Europe/Paris"), ("ns", "+03:00")]
}
DURATIONS = units(pa.duration, timedelta, SPANS)
CLOCKS = {
    **units(pa.time32, time, st.times(), "s ms"),
    **units(pa.time64, time, st.times(), "us ns"),
}
KINDS = {**NUMBERS, **DECIMALS, **TEXTS, **BINARIES, **INSTANTS, **ZONED, **DURATIONS, **CLOCKS}
GROUPS: dict[str, list[str]] = {
    "numbers": list(NUMBERS),
    "decimals": [*DECIMALS, *DECIMALS, *(name for name, kind in NUMBERS.items() if kind.python is int)],
    "texts": list(TEXTS),
    "binaries": list(BINARIES),
    "instants": list(INSTANTS),
    "zoned": list(ZONED),
    "durations": list(DURATIONS),
    "clocks": list(CLOCKS),
}
CONSTANTS: dict[str, st.SearchStrategy[Any]] = {
    "numbers": st.sampled_from([0, 1, 2, -3, True, 0.5, 0.1, 2**53 + 1, 2**63, -(2**64), 10**30, 1e300, 2.0**63]),
    "decimals": st.sampled_from([0, 1, -3, 0.1, 0.5, 10**30, Decimal("0.01"), Decimal("-1e40"), Decimal("1234.901")]),
    "texts": TEXTS["string"].values,
    "binaries": BINARIES["binary"].values,
    "instants": MOMENTS | MOMENTS.map(lambda m: m.date()),
    "zoned": MOMENTS.map(lambda m: m.replace(tzinfo=UTC)),
    "durations": SPANS,
    "clocks": st.times(),
}


@st.composite
def values(draw: Any, group: str, depth: int) -> Expression:
    """An expression whose values belong to a group."""
    leaf = st.sampled_from([R.a, R.b]) | CONSTANTS[group].map(Constant)
    if depth == 0 or group in ("texts", "binaries", "clocks") or draw(st.booleans()):
        return draw(leaf)
    if group in ("numbers", "decimals"):
        one = draw(values(group, depth - 1))
        match draw(st.sampled_from(["+", "-", "*", "/", "negate", "abs"])):
            case "negate":
                return -one
            case "abs":
                return abs(one)
            case "/":
                divisors = [2, -3, 0.5, 7] if group == "numbers" else [2, -3, 0.5, Decimal("0.07")]
                return one / draw(st.sampled_from(divisors))
            case sign:
                return Arithmetic(sign, one, draw(values(group, depth - 1)))
    if group == "durations":
        one = draw(values(group, depth - 1))
        other = draw(values(group, depth - 1))
        return draw(st.sampled_from([one + other, one - other, -one, abs(one), one * 3]))
    one = draw(leaf)
    span = Constant(draw(SPANS))
    return draw(st.sampled_from([one + span, one - span, span + one]))


@st.composite
def conditions(draw: Any, group: str, depth: int) -> Expression:
    if depth and draw(st.booleans()):
        one, other = draw(conditions(group, depth - 1)), draw(conditions(group, depth - 1))
        return draw(st.sampled_from([one & other, one | other, ~one]))
    one, other = draw(values(group, 2)), draw(values(group, 2))
    choice = draw(st.integers(0, 9))
    if choice == 1:
        return R.a.isin(*draw(st.lists(CONSTANTS[group], min_size=1, max_size=4)))
    if choice == 0:
        return draw(st.sampled_from([R.a.is_null(), one.between(other, draw(values(group, 1)))]))
    return Compare(draw(st.sampled_from(list(COMPARE))), one, other)


def rows_of(draw: Any, names: dict[str, str], most: int = 6) -> list[dict[str, Any]]:
    rows = []
    for _ in range(draw(st.integers(0, most))):
        row: dict[str, Any] = {}
        for column, name in names.items():
            row |= {column: draw(st.none() | KINDS[name].values), "#" + column: name}
        rows.append(row)
    return rows


def arrays_of(draw: Any, rows: list[dict[str, Any]], names: dict[str, str]) -> dict[str, pa.Array]:
    arrays = {}
    for column, name in names.items():
        cells = [row[column] for row in rows]
        kind = KINDS[name].arrow
        if pa.types.is_dictionary(kind):
            array = pa.array(cells, kind.value_type).dictionary_encode().cast(kind)
        elif pa.types.is_decimal(kind) and kind.scale < 0:
            numbers = pa.array([None if c is None else int(c.scaleb(kind.scale)) for c in cells], pa.int64())
            unscaled = numbers.cast(pa.decimal128(kind.precision + 10, 0))
            array = pa.Array.from_buffers(kind, len(cells), unscaled.buffers())
        else:
            array = pa.array(cells, kind)
        if draw(st.booleans()):  # a slice of something longer
            array = pa.concat_arrays([array, array]).slice(len(array))
        arrays[column] = array
    return arrays


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(list(GROUPS)))
def test_conditions_hold_where_python_says_so(data: st.DataObject, group: str) -> None:
    check_condition(data, group)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(list(GROUPS)))
def test_very_many_conditions_hold_where_python_says_so(data: st.DataObject, group: str) -> None:
    check_condition(data, group)


def check_condition(data: st.DataObject, group: str) -> None:
    names = {column: data.draw(st.sampled_from(GROUPS[group])) for column in ("a", "b")}
    condition = data.draw(conditions(group, 2))
    rows = rows_of(data.draw, names)
    arrays = arrays_of(data.draw, rows, names)
    try:
        expected = [holds(condition, row) for row in rows]
    except OverflowError:  # 10**400 as a float, in the reference
        return
    except ZeroDivisionError:
        with pytest.raises(PredicateError, match=r"cannot be computed|divides by zero"):
            evaluate(condition, lambda column: arrays[column.name], rows=len(rows))
        return
    answer = evaluate(condition, lambda column: arrays[column.name], rows=len(rows))
    assert answer.type == pa.bool_()
    assert answer.to_pylist() == expected, (condition, rows)


EDGES = [0, 1, -1, 2, 3, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 513, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]
FLOAT_EDGES = [0.0, -0.0, 0.5, 1.0, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63, -(2.0**63), 2.0**64, math.inf, math.nan]
SHAPES = [
    (R.a, R.b), (R.a + R.b, R.a), (R.a - R.b, R.b), (R.a * R.b, R.b), (R.a * R.b, R.a * 3 + R.b), (-R.a, R.b),
    (abs(R.a - R.b), Constant(2**63)), (abs(R.a), R.b), (R.a + 1, R.b + 1), (R.a * 10**20, R.b),
    (R.a, Constant(2**64)), (R.a, Constant(10**30)), (Constant(-(2**63)), R.a), (R.a + R.b, Constant(0.5)),
    (R.a * 2, R.b + 0.5), (R.a / 2, R.b), (R.a, R.b * 1.0), (abs(-R.a), abs(R.b)), (R.a, Constant(2**53 + 1)),
]  # fmt: skip


def cross(names: dict[str, str]) -> tuple[list[dict[str, Any]], dict[str, pa.Array]]:
    """Every edge of one column beside every edge of the other."""
    edges: dict[str, list[Any]] = {}
    for column, name in names.items():
        kind = KINDS[name]
        candidates: list[Any] = FLOAT_EDGES if kind.python is float else EDGES
        if kind.python is Decimal:
            top, scale = 10**kind.arrow.precision, kind.arrow.scale
            numbers = (0, 1, -1, 10**scale, top - 1, 1 - top, 2**63, 2**64)
            candidates = [scaled(n, scale) for n in numbers if abs(n) < top]
        edges[column] = [None]
        for value in candidates:
            try:
                pa.array([value], kind.arrow)
                edges[column].append(value)
            except (pa.ArrowInvalid, OverflowError):
                pass
    tags = {"#" + column: name for column, name in names.items()}
    rows = [{"a": a, "b": b, **tags} for a in edges["a"] for b in edges["b"]]
    return rows, {column: pa.array([row[column] for row in rows], KINDS[name].arrow) for column, name in names.items()}


@pytest.mark.parametrize("left", ["int64", "uint64", "int8", "float64", "bool"])
@pytest.mark.parametrize("right", ["int64", "uint64", "uint32", "float64"])
def test_numbers_at_the_ends_of_their_types_compare_exactly(left: str, right: str) -> None:
    names = {"a": left, "b": right}
    rows, arrays = cross(names)
    if left == "bool":
        rows = [row | {"a": None if row["a"] is None else bool(row["a"])} for row in rows]
    for number, (one, other) in enumerate(SHAPES):
        for sign in list(COMPARE)[number % 2 :: 2]:
            condition = Compare(sign, one, other)  # type: ignore[arg-type]
            expected = [holds(condition, row) for row in rows]
            found = evaluate(condition, lambda column: arrays[column.name]).to_pylist()
            wrong = [(row, f, e) for row, f, e in zip(rows, found, expected, strict=True) if f != e]
            assert not wrong, (condition, wrong[:3])


@pytest.mark.parametrize("left", ["decimal64(18, 2)", "decimal128(38, 2)", "decimal256(60, 3)", "decimal128(20, 10)"])
@pytest.mark.parametrize("right", ["decimal128(38, 2)", "decimal32(5, 1)", "int64", "uint64"])
def test_decimals_at_the_ends_of_their_types_compare_exactly(left: str, right: str) -> None:
    names = {"a": left, "b": right}
    rows, arrays = cross(names)
    for number, (one, other) in enumerate(SHAPES):
        for sign in list(COMPARE)[number % 2 :: 2]:
            condition = Compare(sign, one, other)  # type: ignore[arg-type]
            expected = [holds(condition, row) for row in rows]
            assert evaluate(condition, lambda column: arrays[column.name]).to_pylist() == expected, condition


@pytest.mark.parametrize("kind", ["int8", "int64", "uint64", "bool", "float64", "decimal128(38, 2)"])
def test_a_list_of_integers_is_searched_by_value(kind: str) -> None:
    rows, arrays = cross({"a": kind, "b": "bool"})
    for listed in ([1, 2**63, -1], [0, 2**64, 10**30], [2**53 + 1, 2**53], [-(2**63), 2**64 - 1]):
        condition = R.a.isin(*listed)
        expected = [holds(condition, row) for row in rows]
        assert evaluate(condition, lambda column: arrays[column.name]).to_pylist() == expected


# Selected expressions.

D = Decimal


@pytest.mark.parametrize(
    ("expression", "kind", "cells"),
    [
        (R.i + 1, pa.int64(), [2, None, 4]),
        (R.i * R.u, pa.int64(), [1, None, 9]),
        (R.i - 0.5, pa.float64(), [0.5, None, 2.5]),
        (R.i / 2, pa.float64(), [0.5, None, 1.5]),
        (R.f32, pa.float32(), [0.5, None, 2.5]),
        (R.f32 * 2, pa.float64(), [1.0, None, 5.0]),
        (R.d + 1, pa.decimal128(5, 2), [D("1.10"), None, D("4.00")]),
        (R.d * R.i, pa.decimal128(23, 2), [D("0.10"), None, D("9.00")]),
        (R.d * 0.5, pa.decimal128(5, 3), [D("0.050"), None, D("1.500")]),
        (R.d / 4, pa.decimal128(6, 4), [D("0.025"), None, D("0.75")]),
        (R.ts + timedelta(days=1), pa.timestamp("ms"), [datetime(2026, 1, 2), None, datetime(2026, 1, 3)]),
        (R.ts + timedelta(microseconds=1), pa.timestamp("us"),
         [datetime(2026, 1, 1, 0, 0, 0, 1), None, datetime(2026, 1, 2, 0, 0, 0, 1)]),
        (R.ts - R.day, pa.duration("ms"), [timedelta(0), None, timedelta(0)]),
        (R.day - timedelta(hours=1), pa.timestamp("s"), [datetime(2025, 12, 31, 23), None, datetime(2026, 1, 1, 23)]),
        (R.z + timedelta(hours=1), pa.timestamp("ns", "Europe/Paris"), None),
        (-(R.ts - R.ts) * 3, pa.duration("ms"), [timedelta(0), None, timedelta(0)]),
        (R.s, pa.string(), ["x", None, "y"]),
        ((R.s == "x").alias("x"), pa.bool_(), [True, None, False]),
        (R.list, pa.list_(pa.int64()), [[1], None, []]),
        (R.list.is_null(), pa.bool_(), [False, True, False]),
        (Constant(7), pa.int64(), [7, 7, 7]),
        (Constant("a"), pa.string(), ["a", "a", "a"]),
        (Constant(D("1.50")), pa.decimal128(3, 2), [D("1.50")] * 3),
        (Constant(date(2026, 1, 1)), pa.date32(), [date(2026, 1, 1)] * 3),
    ],
)  # fmt: skip
def test_a_selected_expression_has_the_type_that_was_announced(
    expression: Expression, kind: pa.DataType, cells: list[Any] | None
) -> None:
    days = [date(2026, 1, 1), None, date(2026, 1, 2)]
    table = {
        "i": pa.array([1, None, 3]),
        "u": pa.array([1, None, 3], pa.uint64()),
        "f32": pa.array([0.5, None, 2.5], pa.float32()),
        "d": pa.array([D("0.10"), None, D("3.00")], pa.decimal128(4, 2)),
        "ts": pa.array(days).cast(pa.timestamp("ms")),
        "z": pa.array(days).cast(pa.timestamp("ns")).cast(pa.timestamp("ns", "Europe/Paris")),
        "day": pa.array(days),
        "s": pa.array(["x", None, "y"]),
        "list": pa.array([[1], None, []], pa.list_(pa.int64())),
    }
    assert type_of(expression, lambda column: table[column.name].type) == kind
    found = evaluate(expression, lambda column: table[column.name], rows=3)
    found.validate(full=True)
    assert found.type == kind
    if cells is not None:
        assert found.to_pylist() == cells


@pytest.mark.parametrize(
    ("expression", "array"),
    [
        (R.a + 1, pa.array([1, 2**63 - 1])),
        (R.a + 1, pa.array([2**64 - 1], pa.uint64())),
        (R.a + timedelta(days=1), pa.array([2**63 - 1]).view(pa.timestamp("ns"))),
    ],
)
def test_a_result_that_its_type_cannot_hold_is_an_error(expression: Expression, array: pa.Array) -> None:
    with pytest.raises(PredicateError, match=r"has a value beyond what .* holds; cast"):
        evaluate(expression, lambda _: array)


def test_a_null_never_overflows() -> None:
    array = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 2**63 - 1]))])
    assert evaluate(R.a + 1, lambda _: array).to_pylist() == [2, None]


def test_columns_may_come_in_chunks_and_are_asked_for_once() -> None:
    asked = []

    def column(each: Column) -> pa.ChunkedArray:
        asked.append(each.name)
        return pa.chunked_array([[1, 2], [3]])

    assert evaluate((R.a < 3) & (R.a > 1) & (R.a + R.b == 4), column).to_pylist() == [False, True, False]
    assert asked == ["a", "b"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("us")])
def test_plain_comparisons_read_columns_in_place(kind: pa.DataType) -> None:
    array = pa.array(np.arange(100_000)).cast(kind)
    before = pa.total_allocated_bytes()
    answer = evaluate(R.a < R.b, lambda _: array)
    assert pa.total_allocated_bytes() - before <= answer.nbytes + 64


# Functions.


def call(function: Callable[..., Any]) -> Call:
    return Call(function, (R.a, R.a + 1), function.__name__)


def close(one: pa.Array, other: pa.Array) -> Any:
    return pc.equal(one, pc.subtract(other, 1))


def test_a_function_gets_arrow_arrays_and_null_is_unknown() -> None:
    array = pa.array([1, None, 3])
    assert evaluate(call(close), lambda _: array).to_pylist() == [True, None, True]
    assert evaluate(~call(close) | (R.a > 1), lambda _: array).to_pylist() == [False, None, True]
    chunks = evaluate(call(lambda a, _: pa.chunked_array([pc.is_valid(a)])), lambda _: array)
    assert chunks.to_pylist() == [True, False, True]


def broken(one: pa.Array, _: pa.Array) -> Any:
    raise KeyError("nothing here")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: a, "must return an Arrow array of booleans, not int64"),
        (lambda a, b: None, "not NoneType"),
        (lambda a, b: True, "not bool"),
        (lambda a, b: pa.array([True]), "it got 3 rows and returned 1"),
        (broken, r"`broken\(R.a, R.a \+ 1\)`: the function raised KeyError"),
    ],
)
def test_what_a_function_returns_is_checked(function: Any, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        evaluate(call(function), lambda _: pa.array([1, 2, 3]))
