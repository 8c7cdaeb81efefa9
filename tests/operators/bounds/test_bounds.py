"""Intervals against the written predicate, evaluated pair by pair in Python numbers."""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from indexes.kernels.columns import Keys
from operators.bounds.bound_dimension import BoundDimension
from operators.bounds.intervals import bind
from operators.query.condition import normalise
from operators.query.errors import PredicateError
from operators.query.expressions import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Column,
    Compare,
    Constant,
    Expression,
    Negate,
)
from operators.query.streams import stream
from operators.values.key_types import KeyType, key_type, to_keys

R, S = stream("R"), stream("S")
I64, U64, F64, F32 = pa.int64(), pa.uint64(), pa.float64(), pa.float32()
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


# The reference: the expression tree itself, on Python ints (exact) and floats (IEEE doubles).


def holds(condition: Expression, row: dict[str, Any]) -> bool:
    match condition:
        case And(left, right):
            return holds(left, row) and holds(right, row)
        case Between(operand, low, high):
            return holds(operand >= low, row) and holds(operand <= high, row)
        case Compare(sign, left, right):
            one, other = side_value(left, row), side_value(right, row)
            if any(isinstance(x, float) and math.isnan(x) for x in (one, other)):
                return False
            return COMPARE[sign](one, other)
    raise AssertionError(condition)


def side_value(term: Expression, row: dict[str, Any]) -> Any:
    return compute(term, row, as_float=has_float(term, row))


def has_float(term: Expression, row: dict[str, Any]) -> bool:
    match term:
        case Column(owner, _):
            return isinstance(row[str(owner)], float)
        case Constant(value):
            return isinstance(value, float)
        case Negate(operand) | Absolute(operand):
            return has_float(operand, row)
        case Arithmetic(sign, left, right):
            return sign == "/" or has_float(left, row) or has_float(right, row)
    raise AssertionError(term)


def compute(term: Expression, row: dict[str, Any], as_float: bool) -> Any:
    match term:
        case Column(owner, _):
            return float(row[str(owner)]) if as_float else row[str(owner)]
        case Constant(value):
            if isinstance(value, timedelta):
                return value // timedelta(microseconds=1) * 1000
            return float(value) if as_float else value  # type: ignore[arg-type]
        case Negate(operand):
            return -compute(operand, row, as_float)
        case Absolute(operand):
            return abs(compute(operand, row, as_float))
        case Arithmetic(sign, left, right):
            one, other = compute(left, row, as_float), compute(right, row, as_float)
            apply: Callable[[Any, Any], Any] = {
                "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
            }[sign]  # fmt: skip
            return apply(one, other)
    raise AssertionError(term)


def value_of(key: Any, kind: KeyType) -> Any:
    return float(key) if kind.is_float else (int(key) + kind.offset) * kind.tick


def neighbours(key: Any, kind: KeyType) -> list[Any]:
    if kind.is_float:
        return [float(key), math.nextafter(key, -math.inf), math.nextafter(key, math.inf)]
    low, high = -(2**63), 2**63 - 1
    return [near for near in (int(key), int(key) - 1, int(key) + 1) if low <= near <= high]


def matches(bound: BoundDimension, low: Any, high: Any, key: Any) -> bool:
    return bool(low <= key <= high) != bound.negated


def check(condition: Expression, arrays: tuple[pa.Array, pa.Array]) -> None:
    """Every pair of the two columns, and every key at an interval's edges, is as written."""
    predicate = normalise(condition, "R", "S")
    (dimension,) = predicate.branches[0].dimensions
    bound = pickle.loads(pickle.dumps(bind(dimension, arrays[0].type, arrays[1].type)))
    columns = [to_keys("k", array) for array in arrays]
    for probe_side in (0, 1):
        probe, other = columns[probe_side], columns[1 - probe_side]
        probe_kind, key_kind = bound.key_type(probe_side), bound.key_type(1 - probe_side)
        interval = bound.intervals(probe_side, probe)
        assert interval.negated == dimension.negated
        assert interval.low.dtype == interval.high.dtype == key_kind.dtype
        assert len(interval.low) == len(interval.high) == len(probe.values)
        assert not np.isnan(interval.low).any()
        assert not np.isnan(interval.high).any()
        stored = [k for i, k in enumerate(other.values) if other.valid is None or other.valid[i]]
        for row, key in enumerate(probe.values):
            low, high = interval.low[row], interval.high[row]
            valid = probe.valid is None or probe.valid[row]
            edges = neighbours(low, key_kind) + neighbours(high, key_kind)
            for candidate in [*stored, *edges]:
                if not valid:
                    assert not matches(bound, low, high, candidate)
                    continue
                pair = [value_of(key, probe_kind), value_of(candidate, key_kind)]
                left, right = pair if probe_side == 0 else pair[::-1]
                expected = holds(condition, {"R": left, "S": right})
                found = matches(bound, low, high, candidate)
                assert found == expected, (condition, probe_side, left, right, low, high)


def edges_of_floats(bits: int) -> list[float]:
    tiny, huge = (5e-324, 1.7976931348623157e308) if bits == 64 else (1.4e-45, 3.4028234e38)
    near = [0.0, -0.0, tiny, 2.2250738585072014e-308, 0.03, 0.1, 0.3, 1.0, 2.0, 10.0, 73.95]
    wide = [2.0**52, 2.0**53, 2.0**53 + 2, 2.0**63, 2.0**63 - 1024, 2.0**64, huge / 1e8, huge]
    values = near + wide + [math.inf, math.nan, 10.0 + 2**-49, 73.98, 0.06]
    return [sign * value for value in values for sign in (1, -1)]


def edges_of_integers(low: int, high: int) -> list[int]:
    middles = [0, 1, 2, 3, 10, 30, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1]
    middles += [2**63, 2**63 + 1, 2**63 - 1024, 2**63 - 513, 2**64 - 1]
    return [x for m in middles for x in (m, -m, -m - 1) if low <= x <= high] + [low, high, high - 1]


def column(kind: pa.DataType) -> st.SearchStrategy[pa.Array]:
    if pa.types.is_floating(kind):
        values: Any = st.sampled_from(edges_of_floats(kind.bit_width)) | st.floats(-100, 100)
        if kind.bit_width < 64:
            values = st.sampled_from(edges_of_floats(32)) | st.floats(width=32)
    elif pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        top = 2 ** (kind.bit_width - signed)
        low = -top if signed else 0
        values = st.sampled_from(edges_of_integers(low, top - 1)) | st.integers(low, top - 1)
        values = values | st.integers(max(low, -12), 12)
    else:
        width = kind.bit_width
        top = 2 ** (width - 1) - 1
        spread = st.integers(-400, 400) | st.sampled_from([top, -top - 1])
        return st.lists(st.none() | spread, max_size=8).map(
            lambda xs: pa.array(xs, pa.int64() if width == 64 else pa.int32()).view(kind)
        )
    return st.lists(st.none() | values, max_size=8).map(lambda xs: pa.array(xs, kind))


NUMBERS = st.sampled_from([I64, I64, U64, F64, F64, F32, pa.int8(), pa.uint32(), pa.int32()])
INTEGER_CONSTANTS = st.sampled_from([1, 2, 3, 7, 10, 2**53 + 1, 2**62, 2**63, 2**64, 10**30])
FLOAT_CONSTANTS = st.sampled_from([0.03, 0.1, 0.5, 1.0, 3.0, 10.0, 1e-300, 5e-324, 1e300, 2.0**53, 2.0**63, 1.7e308])
CONSTANTS = st.one_of(INTEGER_CONSTANTS, FLOAT_CONSTANTS, st.integers(1, 40)).flatmap(
    lambda c: st.sampled_from([c, -c])
)


@st.composite
def linear(draw: Any, term: Expression) -> Expression:
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        constant = draw(CONSTANTS)
        shape = draw(st.sampled_from(["+", "-", "from", "*", "*", "/", "negate"]))
        term = {
            "+": lambda t, c: t + c, "-": lambda t, c: t - c, "from": lambda t, c: c - t,
            "*": lambda t, c: c * t, "/": lambda t, c: t / c, "negate": lambda t, _: -t,
        }[shape](term, constant)  # fmt: skip
    return term


@st.composite
def conditions(draw: Any) -> Expression:
    left, right = draw(linear(R.k)), draw(linear(S.k))
    if draw(st.booleans()):
        left, right = right, left
    sign = draw(st.sampled_from(list(COMPARE)))
    match draw(st.sampled_from(["plain", "plain", "difference", "band", "between", "and"])):
        case "difference":
            joined = left - right if draw(st.booleans()) else left + right
            return Compare(sign, draw(linear(joined)), Constant(draw(CONSTANTS)))
        case "band":
            return Compare(draw(st.sampled_from(["<", "<="])), abs(left - right),
                           Constant(draw(CONSTANTS)))  # fmt: skip
        case "between":
            return left.between(right - draw(CONSTANTS), right + draw(CONSTANTS))
        case "and":
            signs = [s for s in COMPARE if s != "!="]
            first = Compare(draw(st.sampled_from(signs)), left, right)
            return first & Compare(draw(st.sampled_from(signs)), R.k, S.k + draw(CONSTANTS))
    return Compare(sign, left, right)


@st.composite
def number_cases(draw: Any) -> tuple[Expression, tuple[pa.Array, pa.Array]]:
    return draw(conditions()), (draw(NUMBERS.flatmap(column)), draw(NUMBERS.flatmap(column)))


@st.composite
def bare_cases(draw: Any) -> tuple[Expression, tuple[pa.Array, pa.Array]]:
    """Columns without arithmetic of their own: the common conditions, which have short cuts."""
    sign = draw(st.sampled_from(list(COMPARE)))
    constant = draw(CONSTANTS | st.sampled_from([0, 0.5, -0.5, 2.5]))
    condition = draw(
        st.sampled_from(
            [
                Compare(sign, R.k, S.k),
                Compare(sign, R.k - S.k, Constant(constant)),
                Compare(sign, Constant(constant), S.k + R.k),
                abs(S.k - R.k) <= constant,
            ]
        )
    )
    return condition, (draw(NUMBERS.flatmap(column)), draw(NUMBERS.flatmap(column)))


FLOATS = pa.array([73.95, -73.95, 10.0, 0.0, math.inf, -math.inf, math.nan, None], F64)
EXTREMES = pa.array([-(2**63), -(2**63) + 1, 2**53 + 1, 0, 2**63 - 2, 2**63 - 1, None], I64)
WIDE = pa.array([-(2.0**63), 2.0**63, -(2.0**64), 2.0**53, 0.5, -0.5], F64)
UNSIGNED = pa.array([0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, None], U64)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(number_cases())
@example((abs(R.k - S.k) <= 0.03, (FLOATS, FLOATS)))
@example((abs(S.k - R.k) < 10, (FLOATS, FLOATS)))
@example((R.k - S.k != 0.5, (FLOATS, FLOATS)))
@example((R.k < S.k, (EXTREMES, EXTREMES)))
@example((R.k < S.k, (EXTREMES, FLOATS)))
@example((R.k < S.k, (UNSIGNED, EXTREMES)))
@example((R.k >= S.k, (UNSIGNED, FLOATS)))
@example((R.k * 0.5 > S.k, (UNSIGNED, EXTREMES)))
@example((abs(R.k - S.k) <= 2**64, (EXTREMES, UNSIGNED)))
def test_intervals_are_exactly_the_written_predicate(
    case: tuple[Expression, tuple[pa.Array, pa.Array]],
) -> None:
    check(*case)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bare_cases())
@example((R.k < S.k, (FLOATS, FLOATS)))
@example((R.k > S.k, (FLOATS, FLOATS)))
@example((R.k != S.k, (FLOATS, FLOATS)))
@example((R.k < S.k, (EXTREMES, WIDE)))
@example((R.k > S.k, (EXTREMES, WIDE)))
@example((R.k <= S.k, (EXTREMES, WIDE)))
@example((R.k - S.k < 0.5, (EXTREMES, EXTREMES)))
@example((R.k - S.k >= 0.5, (EXTREMES, EXTREMES)))
@example((R.k - S.k == 0.5, (EXTREMES, EXTREMES)))
def test_bare_columns_compare_exactly(
    case: tuple[Expression, tuple[pa.Array, pa.Array]],
) -> None:
    check(*case)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(number_cases() | bare_cases())
def test_very_many_intervals_are_exactly_the_written_predicate(
    case: tuple[Expression, tuple[pa.Array, pa.Array]],
) -> None:
    check(*case)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
    st.sampled_from(range(6)),
    st.sampled_from([0, 1, 999, 1000, 86_400_000_000, 300_000_000]),
    st.data(),
)
def test_times_of_different_units_compare_exactly(sign: Any, shape: int, micros: int, data: st.DataObject) -> None:
    length = timedelta(microseconds=micros)
    stamps = [pa.timestamp(u) for u in ("s", "ms", "us", "ns")] + [pa.date32()]
    spans = [pa.duration(u) for u in ("s", "ms", "us", "ns")]
    left, right, condition = [
        (stamps, stamps, Compare(sign, R.k, S.k)),
        (stamps, stamps, Compare(sign, R.k + length, S.k - length)),
        (stamps, stamps, abs(R.k - S.k) <= length),
        (stamps, stamps, Compare(sign, R.k - S.k, Constant(length))),
        (spans, spans, Compare(sign, 3 * R.k - length, -S.k)),
        (stamps, spans, Compare(sign, R.k - S.k, Constant(length))),
    ][shape]
    if shape == 5:  # an instant less a duration is an instant, which no constant is
        with pytest.raises(PredicateError, match="cannot be compared with"):
            bind(normalise(condition, "R", "S").branches[0].dimensions[0], left[0], right[0])
        return
    arrays = [data.draw(st.sampled_from(kinds).flatmap(column)) for kinds in (left, right)]
    check(condition, (arrays[0], arrays[1]))


@pytest.mark.parametrize("side", [0, 1])
def test_a_band_around_an_infinite_probe_holds_nothing(side: int) -> None:
    (dimension,) = normalise(abs(R.k - S.k) <= 1.0, "R", "S").branches[0].dimensions
    interval = bind(dimension, F64, F64).intervals(side, Keys(np.array([np.inf, -np.inf])))
    assert (interval.low > interval.high).all()


def test_an_edge_far_from_the_guess_is_found() -> None:
    # Keys down to half a step below zero still round to a distance of 10.
    (dimension,) = normalise(abs(R.k - S.k) <= 10.0, "R", "S").branches[0].dimensions
    interval = bind(dimension, F64, F64).intervals(0, Keys(np.array([10.0])))
    assert interval.low[0] == -8.881784197001252e-16
    assert 10.0 - interval.low[0] <= 10.0 < 10.0 - np.nextafter(interval.low[0], -1.0)


def test_a_large_batch_agrees_with_the_same_rows_one_by_one() -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(-73.95, 0.05, 3000), rng.normal(size=1000), [np.inf]])
    (dimension,) = normalise(abs(R.k - S.k) < 0.03, "R", "S").branches[0].dimensions
    bound = bind(dimension, F64, F64)
    whole = bound.intervals(0, Keys(values))
    inside = np.abs(values[:, None] - values[None, :500]) < 0.03
    found = (whole.low[:, None] <= values[:500]) & (values[:500] <= whole.high[:, None])
    assert (inside == found).all()
    single = bound.intervals(0, Keys(values[7:8]))
    assert (single.low[0], single.high[0]) == (whole.low[7], whole.high[7])


@pytest.mark.parametrize("condition", [R.k != S.k, R.k < S.k, abs(R.k - S.k) <= 1])
@pytest.mark.parametrize("kind", [I64, F64, U64])
def test_an_empty_batch_gives_empty_arrays(condition: Expression, kind: pa.DataType) -> None:
    check(condition, (pa.array([], kind), pa.array([1], kind)))


TZ = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("condition", "left", "right", "message"),
    [
        (R.k < S.k, pa.timestamp("us"), TZ, r'pc\.assume_timezone\(table\["k"\], "UTC"\)'),
        (R.k < S.k, pa.timestamp("us"), I64, r'table\["k"\]\.cast\("int64"\)'),
        (R.k < S.k, pa.date32(), F64, r'cast\("int32"\)'),
        (R.k < S.k, pa.timestamp("us"), I64, r"timestamp\[us\].*int64"),
        (abs(R.k - S.k) <= 10, pa.timestamp("us"), pa.timestamp("s"), "INTERVAL '5' MINUTE"),
        (abs(R.k - S.k) <= timedelta(1), I64, I64, "plain number"),
        (R.k + S.k < 3, pa.timestamp("s"), pa.timestamp("s"), "has no meaning"),
        (2 * R.k < S.k, pa.timestamp("s"), pa.timestamp("s"), "cannot be scaled"),
        (0.5 * R.k < S.k, pa.duration("s"), pa.duration("s"), "only by a whole number"),
        (-R.k < S.k, pa.timestamp("s"), pa.timestamp("s"), "cannot be negated"),
        (R.k + timedelta(1) < S.k, pa.time64("us"), pa.time64("us"), "difference"),
        (R.k < S.k, pa.time32("s"), pa.timestamp("s"), "time of day cannot be compared with"),
        (R.k < S.k, pa.string(), I64, r'a string cannot be compared with an integer .*table\["k"\]\.cast\("int64"\)'),
        (R.k < S.k + 0.5 + 10**400, F64, F64, "too large"),
    ],
)
def test_types_that_do_not_fit_are_refused_with_a_remedy(
    condition: Expression, left: pa.DataType, right: pa.DataType, message: str
) -> None:
    (dimension,) = normalise(condition, "R", "S").branches[0].dimensions
    with pytest.raises(PredicateError, match=message):
        bind(dimension, left, right)


def test_a_key_type_says_what_its_keys_mean() -> None:
    assert key_type("k", U64).offset == 2**63
    assert key_type("k", pa.date32()).tick == 86_400 * 10**9
