"""Intervals of leads, the keys of strings, binary and long decimals. They never miss a match.

Values settle the candidates, so the intervals need not be tight: a strict comparison has the interval of the closed
one, and `!=` excludes nothing. Two leads of strings that differ are in the order of the strings.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from indexes import Interval, Keys
from operators.bounds.bound_dimension import BoundDimension
from operators.bounds.integer_bounds import INT64_MAX, INT64_MIN
from operators.bounds.value_types import Types, linear
from operators.functions.families import COMPOSED, TEXTS
from operators.protocol.sides import LEFT
from operators.query.comparison_operators import Order, bounds_of, is_upper, mirrored
from operators.query.errors import PredicateError
from operators.query.predicate import Chain, Comparison, Dimension
from operators.values.key_types import KeyType, plain_type

_SLACK = 2.0**-48
"""Relative to the summands: more than the error of two products and a sum in doubles."""

_LEAST_SLACK = 1e-200
"""More than any loss to underflow."""


@dataclass(frozen=True)
class TextBounds(BoundDimension):
    """Columns of strings, binary, lists, structs or intervals, without arithmetic."""

    def intervals(self, probe_side: int, values: Keys) -> Interval:
        """As `BoundDimension.intervals`. Cost: O(rows)."""
        low: np.ndarray = np.full(len(values), INT64_MIN)
        high: np.ndarray = np.full(len(values), INT64_MAX)
        for comparison in self.dimension.comparisons:
            for order in bounds_of(comparison.operator):
                if is_upper(mirrored(order) if probe_side == LEFT else order):
                    high = values.values
                else:
                    low = values.values
        return _of_valid(low, high, values, self.negated)


@dataclass(frozen=True)
class EveryKey(BoundDimension):
    """Functions whose values have no common keys: every pair is a candidate, and the residual settles it."""

    def intervals(self, probe_side: int, values: Keys) -> Interval:
        """As `BoundDimension.intervals`. Cost: O(rows)."""
        floats = self.key_type(1 - probe_side).dtype == np.float64
        low = np.full(len(values), -np.inf if floats else INT64_MIN)
        return _of_valid(low, np.full(len(values), np.inf if floats else INT64_MAX), values, self.negated)


@dataclass(frozen=True)
class _LeadLine:
    """Keys with ``key ORDER slope * probe + shift``."""

    order: Order
    slope: float
    shift: float

    def around(self, probe: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Doubles that enclose the right side, whatever digits the probe's lead leaves out."""
        with np.errstate(all="ignore"):
            product = self.slope * probe
            slack = (np.abs(product) + abs(self.shift)) * _SLACK + _LEAST_SLACK
            low, high = product + self.shift - slack, product + self.shift + slack
        known = np.isfinite(low) & np.isfinite(high)
        return np.where(known, low, -np.inf), np.where(known, high, np.inf)


@dataclass(frozen=True)
class DecimalBounds(BoundDimension):
    """Decimals with more than 18 digits on at least one side; ``lines[side]`` are for probe rows of that side."""

    lines: tuple[tuple[_LeadLine, ...], tuple[_LeadLine, ...]]

    @property
    def _is_plain_equality(self) -> bool:
        alike = self.left.scale == self.right.scale and self.left.is_lead and self.right.is_lead
        chains = [chain for one in self.dimension.comparisons for chain in (one.subject, one.object)]
        return alike and self.dimension.is_point and all(isinstance(c, Chain) and not c.operations for c in chains)

    def intervals(self, probe_side: int, values: Keys) -> Interval:
        """As `BoundDimension.intervals`. Cost: O(rows)."""
        if self._is_plain_equality:  # of one scale, so equal values have equal leads
            return _of_valid(values.values, values.values, values, self.negated)
        probe = values.values.astype(np.float64, copy=False)
        low: np.ndarray = np.full(len(values), -np.inf)
        high: np.ndarray = np.full(len(values), np.inf)
        for line in self.lines[probe_side]:
            least, greatest = line.around(probe)
            if is_upper(line.order):
                high = np.minimum(high, greatest)
            else:
                low = np.maximum(low, least)
        if self.key_type(1 - probe_side).dtype == np.int64:
            low, high = _whole(np.ceil(low)), _whole(np.floor(high))
        return _of_valid(low, high, values, self.negated)


def bind_leads(dimension: Dimension, types: Types) -> BoundDimension:
    """Bind a dimension with leads on at least one side; its types have been checked."""
    if types[0].family in (*TEXTS, *COMPOSED):
        return TextBounds(dimension, *types)
    for kind, other in (types, types[::-1]):
        if kind.family != "decimal" and dimension.is_computed:
            return EveryKey(dimension, *types)
        if kind.family != "decimal":
            raise _integer_beside_long_decimal(dimension, kind, other)
    left, right = (
        tuple(
            _line(comparison, order, types, probe_side)
            for comparison in dimension.comparisons
            for order in bounds_of(comparison.operator)
        )
        for probe_side in (0, 1)
    )
    return DecimalBounds(dimension, *types, (left, right))


def _line(comparison: Comparison, order: Order, types: Types, probe_side: int) -> _LeadLine:
    a, b, constant = linear(comparison.subject, types)
    c, d, moved = linear(comparison.object, types)
    factors = (a - c, b - d)
    key, probe = factors[1 - probe_side], factors[probe_side]
    if key < 0:
        order = mirrored(order)
    return _LeadLine(order, _double(-probe / key), _double((moved - constant) / key))


def _double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def _whole(bounds: np.ndarray) -> np.ndarray:
    """Clipped to int64; keys of 18 digits are far within."""
    return np.clip(bounds, -(2.0**62), 2.0**62).astype(np.int64)


def _of_valid(low: np.ndarray, high: np.ndarray, values: Keys, negated: bool) -> Interval:
    ends = (-np.inf, np.inf) if low.dtype == np.float64 else (INT64_MIN, INT64_MAX)
    if negated:
        low, high = np.full_like(low, ends[1]), np.full_like(high, ends[0])
    if values.valid is not None:
        nothing = ends if negated else ends[::-1]
        low, high = np.where(values.valid, low, nothing[0]), np.where(values.valid, high, nothing[1])
    return Interval(low, high, negated)


def _integer_beside_long_decimal(dimension: Dimension, integer: KeyType, decimal: KeyType) -> PredicateError:
    scale = plain_type(decimal.arrow).scale
    target = f"pa.decimal128(38, {scale})" if scale <= 19 else f"pa.decimal256(76, {scale})"
    return PredicateError(
        f"`{dimension}`: an integer cannot be indexed with a decimal of more than 18 digits ({integer.column} is "
        f'{integer.arrow}, {decimal.column} is {decimal.arrow}); cast it: table["{integer.column}"].cast({target})'
    )
