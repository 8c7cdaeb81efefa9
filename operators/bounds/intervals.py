"""From a dimension and the types of its columns to intervals of keys.

`bind` checks the types once and turns every comparison into half-lines, for probe rows of either side.
`BoundDimension.intervals` evaluates them on a batch of probe keys. The result is one closed interval per row, in the
other side's key domain, of exactly the keys that satisfy all comparisons with that row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from indexes import Interval, Keys
from operators.bounds.bound_dimension import BoundDimension
from operators.bounds.dimension_keys import value_type
from operators.bounds.float_bounds import FloatHalfLine, rounded
from operators.bounds.float_values import ADD_PROBE, MULTIPLY, FloatValue, domain_of, program_of
from operators.bounds.integer_bounds import (
    INT64_MAX,
    INT64_MIN,
    IntegerHalfLine,
    IntegerValue,
    RoundedHalfLine,
    integer_half_line,
)
from operators.bounds.lead_bounds import EveryKey, bind_leads
from operators.bounds.value_types import (
    Types,
    check_types,
    has_decimals,
    is_difference_of_dates,
    is_float,
    linear,
)
from operators.protocol.sides import LEFT, RIGHT
from operators.query.comparison_operators import Order, bounds_of, mirrored, rounds_up
from operators.query.predicate import (
    Chain,
    Combined,
    Comparison,
    ConstantValue,
    Dimension,
)

HalfLine = IntegerHalfLine | RoundedHalfLine | FloatHalfLine


@dataclass(frozen=True)
class ExactDimension(BoundDimension):
    """A dimension that keys alone decide; ``half_lines[side]`` are for probe rows of that side."""

    half_lines: tuple[tuple[HalfLine, ...], tuple[HalfLine, ...]]

    def intervals(self, probe_side: int, values: Keys) -> Interval:
        """As `BoundDimension.intervals`.

        Cost: O(rows) in NumPy. Comparisons with float arithmetic on the key search from a guess in a compiled loop;
        integers that could overflow use Python integers.
        """
        floats = self.key_type(1 - probe_side).is_float
        bottom, top = (-np.inf, np.inf) if floats else (INT64_MIN, INT64_MAX)
        edges = [half_line.edge(values.values) for half_line in self.half_lines[probe_side]]
        low = _meet([edge.bound for edge in edges if not edge.upper], np.maximum)
        high = _meet([edge.bound for edge in edges if edge.upper], np.minimum)
        if low is None or high is None:
            open_end = np.empty(len(values.values), np.float64 if floats else np.int64)
            open_end.fill(bottom if low is None else top)
            low, high = (open_end, high) if low is None else (low, open_end)
        assert low is not None, "a dimension has a comparison"
        assert high is not None, "a dimension has a comparison"
        empty = [edge.empty for edge in edges if edge.empty is not None]
        if empty:
            none = np.logical_or.reduce(empty)
            low, high = np.where(none, top, low), np.where(none, bottom, high)
        if values.valid is not None:
            nothing = (bottom, top) if self.negated else (top, bottom)
            low = np.where(values.valid, low, nothing[0])
            high = np.where(values.valid, high, nothing[1])
        return Interval(low, high, self.negated)


def _meet(bounds: list[np.ndarray], pick: Any) -> np.ndarray | None:
    """The tightest of the bounds of each row; None if there are none."""
    if not bounds:
        return None
    met = bounds[0]
    for bound in bounds[1:]:
        met = pick(met, bound)
    return met


def bind(dimension: Dimension, left_type: pa.DataType, right_type: pa.DataType) -> BoundDimension:
    """Bind a dimension to the types of its columns; raises PredicateError if they cannot be compared."""
    types = (value_type(dimension, LEFT, left_type), value_type(dimension, RIGHT, right_type))
    for comparison in dimension.comparisons:
        check_types(comparison, types)
    if any(kind.family == "null" for kind in types):
        return EveryKey(dimension, *types)
    if any(kind.is_lead for kind in types):
        return bind_leads(dimension, types)
    left, right = (
        tuple(
            _half_line(comparison, order, types, probe_side)
            for comparison in dimension.comparisons
            for order in bounds_of(comparison.operator)
        )
        for probe_side in (LEFT, RIGHT)
    )
    return ExactDimension(dimension, *types, (left, right))


def _half_line(comparison: Comparison, order: Order, types: Types, probe_side: int) -> HalfLine:
    key_term: Chain | Combined = comparison.subject
    other: Chain | ConstantValue = comparison.object
    if isinstance(key_term, Chain) and probe_side == LEFT:
        assert isinstance(other, Chain)
        key_term, other = other, key_term
        order = mirrored(order)
    if is_float(key_term, comparison, types):
        return _float_half_line(comparison, key_term, other, order, types, probe_side)
    a, b, constant = linear(key_term, types)
    key_factor, probe_factor = (b, a) if probe_side == LEFT else (a, b)
    if isinstance(other, Chain):
        if is_float(other, comparison, types):
            value = FloatValue(domain_of(types[probe_side]), program_of(other.operations))
            assert key_factor.denominator == constant.denominator == 1, "only integers compare with floats"
            return RoundedHalfLine(key_factor.numerator, constant.numerator, value, order)
        a, b, moved = linear(other, types)
        probe_factor -= a if probe_side == LEFT else b
        constant -= moved
    elif isinstance(other, float) and not has_decimals(comparison, types):
        constant -= math.ceil(other) if rounds_up(order) else math.floor(other)
    else:
        constant -= linear(other, types, in_days=is_difference_of_dates(key_term, types))[2]
    return integer_half_line(*_whole(key_factor, probe_factor, constant), order)


def _whole(*numbers: Fraction) -> tuple[int, int, int]:
    """The least integers in the same proportion."""
    scale = math.lcm(*(number.denominator for number in numbers))
    first, second, third = (number.numerator * (scale // number.denominator) for number in numbers)
    common = math.gcd(first, second, third)
    return first // common, second // common, third // common


def _float_half_line(
    comparison: Comparison,
    key_term: Chain | Combined,
    other: Chain | ConstantValue,
    order: Order,
    types: Types,
    probe_side: int,
) -> FloatHalfLine:
    probe_domain, key_domain = domain_of(types[probe_side]), domain_of(types[1 - probe_side])
    addend: FloatValue | None = None
    threshold: float | FloatValue | IntegerValue
    if isinstance(key_term, Combined):
        key_first = key_term.first.side != probe_side
        key, probe = key_term.first, key_term.second
        if not key_first:
            key, probe = probe, key
        # key - p is key + (-p); p - key is (key + (-p)) * -1.
        minus = key_term.operator == "-"
        turn = ((MULTIPLY, -1.0),) if minus else ()
        addend = FloatValue(probe_domain, program_of(probe.operations) + turn)
        after = (turn if minus and not key_first else ()) + program_of(key_term.operations)
        program = (*program_of(key.operations), (ADD_PROBE, 0.0), *after)
        assert isinstance(other, (int, float))
        # A constant beyond 2**53 need not be a double: the nearest one on the right side is.
        threshold = other if isinstance(other, float) else _scalar(other, order)
        while program[-1] == (MULTIPLY, -1.0):  # -x <= c is x >= -c
            program, threshold = program[:-1], -threshold
            order = mirrored(order)
    else:
        assert isinstance(other, Chain)
        program = program_of(key_term.operations)
        if is_float(other, comparison, types):
            threshold = FloatValue(probe_domain, program_of(other.operations))
        else:
            a, b, constant = linear(other, types)
            threshold = IntegerValue((a if probe_side == LEFT else b).numerator, constant.numerator)
    nan_passes = comparison.operator == "!="
    return FloatHalfLine(key_domain, program, order, threshold, addend, nan_passes)


def _scalar(exact: int, order: Order) -> float:
    return float(rounded([exact], up=rounds_up(order))[0])
