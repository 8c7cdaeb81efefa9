"""Each entry of the table of comparison operators, checked on numbers."""

from __future__ import annotations

import math
from itertools import product

import pytest

from operators.query.comparison_operators import (
    COMPARE,
    ComparisonOperator,
    Order,
    bounds_of,
    is_lower,
    is_upper,
    mirrored,
    negated,
    rounds_up,
    strict_shift,
)
from tests.oracle_terms import COMPARISONS

PAIRS = list(product((-1, 0, 1), repeat=2))
ORDERS: list[Order] = ["<", "<=", ">", ">="]


def holds(operator: ComparisonOperator, one: float, other: float) -> bool:
    return bool(COMPARISONS[operator](one, other))  # the oracle's own table


def test_the_table_has_the_six_operators() -> None:
    assert list(COMPARE) == list(COMPARISONS)


@pytest.mark.parametrize("operator", COMPARE)
@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_facts_about_an_operator_hold_for_numbers(operator: ComparisonOperator, x: int, y: int) -> None:
    truth = holds(operator, x, y)
    assert COMPARE[operator](x, y) == truth
    assert holds(mirrored(operator), y, x) == truth
    assert holds(negated(operator), x, y) == (not truth)
    enclosed = all(holds(each, x, y) for each in bounds_of(operator))
    assert enclosed == (truth if operator != "!=" else not truth)


@pytest.mark.parametrize("operator", COMPARE)
def test_an_upper_bound_accepts_all_lesser_numbers_and_no_greater_one(operator: ComparisonOperator) -> None:
    assert is_upper(operator) == (holds(operator, -1, 0) and not holds(operator, 1, 0))
    assert is_lower(operator) == (holds(operator, 1, 0) and not holds(operator, -1, 0))


@pytest.mark.parametrize("operator", ORDERS)
@pytest.mark.parametrize("number", range(-3, 4))
def test_bounds_over_integers(operator: Order, number: int) -> None:
    closed: Order = "<=" if is_upper(operator) else ">="
    assert holds(operator, number, 0) == holds(closed, number, strict_shift(operator))
    for limit in (-1.5, -1.0, 0.5, 2.0):
        whole = math.ceil(limit) if rounds_up(operator) else math.floor(limit)
        assert holds(operator, number, limit) == holds(operator, number, whole)
