"""Intervals of decimal, string and binary keys: exact up to 18 digits, never missing a match beyond."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.kernels.columns import Keys
from operators.bounds.bound_dimension import BoundDimension
from operators.bounds.intervals import bind
from operators.query.condition import normalise
from operators.query.errors import PredicateError
from operators.query.expressions import Absolute, Arithmetic, Column, Compare, Constant, Expression, Negate
from operators.query.predicate import Dimension
from operators.query.streams import stream
from operators.values.key_types import to_keys
from operators.values.text_keys import text_hashes

R, S = stream("R"), stream("S")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


def dimension_of(condition: Expression) -> Dimension:
    (dimension,) = normalise(condition, "R", "S").branches[0].dimensions
    return dimension


def value(term: Expression, row: dict[str, Any]) -> Any:
    match term:
        case Column(owner, _):
            return row[str(owner)]
        case Constant(number):
            return Fraction(Decimal(repr(number)) if isinstance(number, float) else number)  # type: ignore[arg-type]
        case Negate(operand):
            return -value(operand, row)
        case Absolute(operand):
            return abs(value(operand, row))
        case Arithmetic(sign, left, right):
            compute: dict[str, Callable[[Any, Any], Any]] = {
                "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
            }  # fmt: skip
            return compute[sign](value(left, row), value(right, row))
    raise AssertionError(term)


def holds(condition: Compare, left: Any, right: Any) -> bool:
    row = {"R": left, "S": right}
    return COMPARE[condition.operator](value(condition.left, row), value(condition.right, row))


def found(bound: BoundDimension, probe_side: int, arrays: tuple[pa.Array, pa.Array]) -> list[list[bool]]:
    """For each row of the probe side, and each of the other, whether its key lies where the row asks for it."""
    bound = pickle.loads(pickle.dumps(bound))
    probe, other = (bound.keys(side, arrays[side]) for side in (probe_side, 1 - probe_side))
    interval = bound.intervals(probe_side, probe)
    assert interval.low.dtype == interval.high.dtype == other.values.dtype
    assert interval.negated == bound.negated
    stored = other.mask()
    return [
        [
            bool(stored[k]) and bool(interval.low[p] <= other.values[k] <= interval.high[p]) != bound.negated
            for k in range(len(other))
        ]
        for p in range(len(probe))
    ]


def check(condition: Compare, arrays: tuple[pa.Array, pa.Array], values: tuple[list[Any], list[Any]]) -> None:
    bound = bind(dimension_of(condition), arrays[0].type, arrays[1].type)
    for probe_side in (0, 1):
        answers = found(bound, probe_side, arrays)
        for p, asked in enumerate(values[probe_side]):
            for k, stored in enumerate(values[1 - probe_side]):
                pair = (asked, stored) if probe_side == 0 else (stored, asked)
                expected = None not in pair and holds(condition, *pair)
                if expected or not bound.settles or None in pair:
                    assert answers[p][k] == expected, (condition, probe_side, pair)


DECIMALS = [(32, 4, 2), (64, 18, 0), (64, 18, 18), (128, 18, 4), (128, 10, 3)]
LONG = [(128, 38, 0), (128, 38, 10), (128, 20, 19), (256, 76, 5), (256, 40, 2)]
D38 = pa.decimal128(38, 2)
CONSTANTS: st.SearchStrategy[Any] = st.sampled_from(
    [1, 2, 3, -7, 0.1, 0.5, -0.25, 10**19, 1e-9, Decimal("0.01"), Decimal("-1e30"), Decimal(3)]
)


WRITTEN = st.sampled_from(
    [
        Constant(0.1) + 0.2,
        Constant(1) / 3,
        Constant(Decimal("1e30")) + Decimal("1e-9"),
        -Constant(Decimal("1234567890123456789012345678901.5")),
        -(Constant(0.1) * 3),
        Constant(Decimal(1)) / 7 - 0.1,
    ]
)


@st.composite
def decimal_column(draw: Any, shapes: list[tuple[int, int, int]]) -> tuple[pa.Array, list[Any]]:
    width, precision, scale = draw(st.sampled_from(shapes))
    top = 10**precision - 1
    near = st.integers(max(-top, -300), min(top, 300))
    edges = st.sampled_from([top, -top, top - 1, 10 ** (precision - 1), 1, 0])
    numbers = draw(st.lists(st.none() | near | st.integers(-top, top) | edges, max_size=6))
    cells = [None if n is None else Decimal(f"{n}e{-scale}") for n in numbers]
    array = pa.array(cells, getattr(pa, f"decimal{width}")(precision, scale))
    return array, [None if n is None else Fraction(n) / 10**scale for n in numbers]


@st.composite
def integer_column(draw: Any) -> tuple[pa.Array, list[Any]]:
    kind, low, high = draw(st.sampled_from([(pa.int64(), -(2**63), 2**63 - 1), (pa.uint64(), 0, 2**64 - 1)]))
    cells = draw(st.lists(st.none() | st.integers(max(low, -9), 9) | st.integers(low, high), max_size=6))
    return pa.array(cells, kind), [None if n is None else Fraction(n) for n in cells]


@st.composite
def linear(draw: Any, term: Expression) -> Expression:
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        constant = draw(CONSTANTS | WRITTEN)
        shape = draw(st.sampled_from(["+", "-", "from", "*", "/", "negate"]))
        term = {
            "+": lambda t, c: t + c, "-": lambda t, c: t - c, "from": lambda t, c: c - t,
            "*": lambda t, c: t * c, "/": lambda t, c: t / c, "negate": lambda t, _: -t,
        }[shape](term, constant)  # fmt: skip
    return term


@st.composite
def conditions(draw: Any) -> Compare:
    sign = draw(st.sampled_from(list(COMPARE)))
    left, right = draw(linear(R.k)), draw(linear(S.k))
    match draw(st.sampled_from(["plain", "plain", "bare", "difference", "band"])):
        case "bare":
            return Compare(sign, R.k, S.k)
        case "difference":
            return Compare(sign, left - right, draw(CONSTANTS.map(Constant) | WRITTEN))
        case "band":
            return Compare(draw(st.sampled_from(["<", "<="])), abs(left - right), Constant(abs(draw(CONSTANTS))))
    return Compare(sign, left, right)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditions(), st.data())
def test_decimals_of_up_to_18_digits_have_exact_intervals(condition: Compare, data: st.DataObject) -> None:
    columns = [data.draw(decimal_column(DECIMALS)), data.draw(decimal_column(DECIMALS) | integer_column())]
    if data.draw(st.booleans()):
        columns.reverse()
    (left, lefts), (right, rights) = columns
    check(condition, (left, right), (lefts, rights))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditions(), st.data())
def test_longer_decimals_never_miss_a_match(condition: Compare, data: st.DataObject) -> None:
    columns = [data.draw(decimal_column(LONG)), data.draw(decimal_column(DECIMALS + LONG))]
    if data.draw(st.booleans()):
        columns.reverse()
    (left, lefts), (right, rights) = columns
    check(condition, (left, right), (lefts, rights))


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditions(), st.data())
def test_very_many_intervals_of_decimals(condition: Compare, data: st.DataObject) -> None:
    columns = [data.draw(decimal_column(DECIMALS + LONG)) for _ in range(2)]
    (left, lefts), (right, rights) = columns
    check(condition, (left, right), (lefts, rights))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(10**30), 10**30), min_size=1, max_size=5),
    st.sampled_from([1, 3, 7, -1, 10, Decimal("0.1"), Decimal("-0.3")]),
    st.sampled_from([0, 1, Decimal("0.1"), 10**25 + 1]),
    st.sampled_from(["=", "<=", ">="]),
)
def test_equal_long_decimals_meet_whatever_stands_between_them(
    numbers: list[int], factor: Any, shift: Any, sign: Any
) -> None:
    lefts = [Fraction(n, 100) for n in numbers]
    rights = [left * Fraction(factor) + Fraction(shift) for left in lefts]
    arrays = (
        pa.array([Decimal(f"{n}e-2") for n in numbers], D38),
        pa.array([Decimal(f"{int(right * 10**4)}e-4") for right in rights], pa.decimal256(60, 4)),
    )
    check(Compare(sign, R.k * factor + shift, S.k), arrays, (lefts, rights))


@given(decimal_column(LONG))
def test_leads_of_decimals_never_fall_as_values_rise(column: tuple[pa.Array, list[Any]]) -> None:
    array, values = column
    pairs = zip(values, to_keys("k", array).values.tolist(), strict=True)
    leads = [lead for _, lead in sorted(pair for pair in pairs if pair[0] is not None)]
    assert leads == sorted(leads)


def test_leads_of_decimals_are_close() -> None:
    numbers = [0, 1, -1, 2**53 + 1, -(2**64), 2**64 - 1, 10**30, 3 * 10**37, -(10**38) + 1]
    array = pa.array([Decimal(n) for n in numbers], pa.decimal128(38, 0))
    for number, lead in zip(numbers, to_keys("k", array).values.tolist(), strict=True):
        assert abs(int(lead)) <= abs(number)
        assert abs(int(lead) - number) * 2**52 <= abs(number)


TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.string())]
BINARY_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)]
WORDS = st.text("aé\x00😀", max_size=3) | st.sampled_from(["abcdefgh", "abcdefghi", "abcdefghj", "abcdefg"])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(COMPARE)), st.data())
def test_strings_and_binary_never_miss_a_match(sign: Any, data: st.DataObject) -> None:
    kinds, words = data.draw(st.sampled_from([(TEXT_TYPES, WORDS), (BINARY_TYPES, st.binary(max_size=9))]))
    cells, arrays = [], []
    for _ in range(2):
        kind = data.draw(st.sampled_from(kinds))
        fixed = pa.types.is_fixed_size_binary(kind)
        own = data.draw(st.lists(st.none() | (st.binary(min_size=3, max_size=3) if fixed else words), max_size=6))
        cells.append(own)
        arrays.append(pa.array(own, kind))
    check(Compare(sign, R.k, S.k), (arrays[0], arrays[1]), (cells[0], cells[1]))


def test_equality_alone_finds_hardly_anything_but_equals() -> None:
    words = pa.array([f"the same first bytes {n}" for n in range(1000)])
    bound = bind(dimension_of(R.k == S.k), pa.string(), pa.string())
    keys = bound.keys(0, words)
    assert len(set(keys.values.tolist())) == 1000
    assert (bound.intervals(0, keys).low == keys.values).all()


def test_hashes_are_the_same_in_every_process_and_type() -> None:
    words = ["", "a", "abcdefgh", "abcdefghi", "é"]
    hashes = text_hashes(pa.array(words)).tolist()
    assert hashes[:3] == [0, 2686451282391454249, 10544560904441908]
    for kind in (pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()):
        assert text_hashes(pa.array(words).cast(kind)).tolist() == hashes


def test_keys_do_not_depend_on_the_other_column() -> None:
    array = pa.array([Decimal(1), None], pa.decimal128(38, 0))
    bounds = [bind(dimension_of(R.k < S.k), array.type, other) for other in (pa.decimal128(9, 2), pa.decimal256(70, 1))]
    first, second = (bound.keys(0, array) for bound in bounds)
    assert (first.values == second.values).all()
    assert isinstance(first, Keys)
    assert np.array_equal(first.mask(), [True, False])


@pytest.mark.parametrize(
    ("condition", "left", "right", "message"),
    [
        (R.k < S.k, pa.string(), pa.int64(), r'a string cannot .*int64.*table\["k"\].cast\("int64"\)'),
        (R.k < S.k, pa.string(), pa.binary(), r'a string cannot .*binary.*table\["k"\].cast\("binary"\)'),
        (R.k < S.k, pa.string(), pa.date32(), r'a string cannot be compared with a date .*\.cast\("date32\[day\]"\)'),
        (R.k < S.k, D38, pa.float64(), r'decimal cannot be compared with a float .*table\["k"\]\.cast\("float64"\)'),
        (R.k < S.k, D38, pa.float64(), r"to stay exact: table\[\"k\"\]\.cast\(pa\.decimal128\(38, 2\)\)"),
        (R.k < S.k, D38, pa.int64(), r'an integer cannot be indexed .*table\["k"\]\.cast\(pa\.decimal128\(38, 2\)\)'),
        (R.k < S.k, D38, pa.timestamp("us"), r'decimal cannot be compared with a timestamp .*\.cast\("int64"\)'),
        (R.k + 1 < S.k, pa.string(), pa.string(), "a string \\+ an integer has no meaning"),
        (R.k + S.k < 1, pa.string(), pa.string(), "a string \\+ a string has no meaning"),
        (abs(R.k - S.k) < 1, pa.binary(), pa.binary(), "a binary - a binary has no meaning"),
        (-R.k < S.k, pa.string(), pa.string(), "a string cannot be negated"),
        (R.k * 2 < S.k, pa.string(), pa.string(), "a string \\* an integer has no meaning"),
        (R.k * Decimal(2) < S.k, pa.float64(), pa.float64(), "a float \\* a decimal has no meaning .*as a float"),
        (R.k < S.k, pa.list_(pa.int64()), pa.int64(), "a list cannot be compared with an integer .*an element"),
        (R.k < S.k, pa.uuid(), pa.uuid(), r'cast it to what it is stored as: table\["k"\]\.cast'),
    ],
)  # fmt: skip
def test_mixed_types_are_refused_with_both_types_and_the_cast(
    condition: Expression, left: pa.DataType, right: pa.DataType, message: str
) -> None:
    with pytest.raises(PredicateError, match=message) as caught:
        bind(dimension_of(condition), left, right)
    if "column k" not in message:
        assert str(left) in str(caught.value) or "negated" in message
