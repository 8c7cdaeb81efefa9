"""Sums of floats and integers against Python's fractions: every exponent, halves, infinities, sums beyond the type."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Matches
from operators.aggregates.exact_sums import sum_floats, sum_words
from operators.aggregates.number_column import ALL_VALID

GREATEST = 1.7976931348623157e308
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([GREATEST, -GREATEST, 5e-324, -5e-324, 2.0**53, 1.0, 2.0**-53, 0.1, -0.0, 2.2250738585072014e-308]),
)


def summed(rows: list[list[float]]) -> list[float]:
    values = np.array([value for row in rows for value in row], np.float64)
    offsets = np.cumsum([0, *map(len, rows)])
    matches = Matches(offsets, np.arange(len(values)) + 7)
    return sum_floats(matches, values, ALL_VALID, 7)[0].tolist()


def nearest(row: list[float]) -> float:
    exact = sum(map(Fraction, row), Fraction(0))
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@settings(max_examples=300)
@given(st.lists(st.lists(floats, max_size=8), min_size=1, max_size=4))
def test_a_sum_of_floats_is_rounded_once(rows: list[list[float]]) -> None:
    found = summed(rows)
    assert found == [nearest(row) for row in rows]
    assert found == summed([row[::-1] for row in rows])
    assert all(math.copysign(1, value) == 1 for value in found if value == 0)


def test_halves_go_to_the_even_float_at_every_exponent() -> None:
    rows = []
    for exponent in range(-1074, 1024):
        one, half = math.ldexp(1.0, exponent), math.ldexp(1.0, max(exponent - 53, -1074))
        rows += [[one, half], [one, half, half], [one, -half], [one, half, 5e-324], [-one, half, -5e-324]]
    assert summed(rows) == [nearest(row) for row in rows]


def test_infinities() -> None:
    found = summed([[math.inf, 1.0], [-math.inf, math.inf], [-math.inf, 5.0], [GREATEST, GREATEST, -GREATEST], [1.0]])
    assert found[0] == math.inf
    assert math.isnan(found[1])
    assert found[2:] == [-math.inf, GREATEST, 1.0]


@settings(max_examples=100)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12), st.booleans())
def test_halves_of_integers_add_up(values: list[int], signed: bool) -> None:
    stored = [value if signed else value + 2**63 for value in values]
    words = np.array(stored, np.int64 if signed else np.uint64).view(np.int64)
    matches = Matches(np.array([0, len(values)]), np.arange(len(values)))
    low, high, count = sum_words(matches, words, ALL_VALID, 0, signed=signed)
    assert (int(high[0]) << 32) + int(low[0]) == sum(stored)
    assert count.tolist() == [len(values)]
