import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.ordered_integers import ordered_floats, ordered_integers
from tests.indexes.generated import without_deadline

finite_or_not = st.floats(allow_nan=False, width=64)


@without_deadline
@given(finite_or_not, finite_or_not)
def test_integers_compare_as_the_floats_do(one: float, other: float) -> None:
    a, b = ordered_integers(np.array([one, other])).tolist()
    assert (a < b) == (one < other)
    assert (a == b) == (one == other)


@without_deadline
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_neighbouring_floats_are_neighbouring_integers(value: float) -> None:
    here, above = ordered_integers(np.array([value, math.nextafter(value, math.inf)])).tolist()
    assert above == here + 1


def test_zeros_are_one_and_integers_stay() -> None:
    assert len(set(ordered_integers(np.array([0.0, -0.0])).tolist())) == 1
    integers = np.array([-(2**63), 7, 2**63 - 1])
    assert ordered_integers(integers) is integers


def test_around_zero_too() -> None:
    around = np.array([-5e-324, -0.0, 0.0, 5e-324])
    assert ordered_integers(around).tolist() == [-1, 0, 0, 1]


@without_deadline
@given(finite_or_not)
def test_floats_come_back(value: float) -> None:
    assert ordered_floats(ordered_integers(np.array([value]))).tolist() == [value]
