"""Half-lines of integer keys, computed without overflow.

Rows whose results provably fit use NumPy's int64; that is nearly always the whole batch, as its minimum and maximum
show. The other rows use Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from operators.bounds.float_values import FloatValue
from operators.query.comparison_operators import Order, is_upper, mirrored, rounds_up, strict_shift

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Edge:
    """A closed bound per probe row; ``empty`` marks probe rows that no key satisfies."""

    upper: bool
    bound: np.ndarray
    empty: np.ndarray | None = None


@dataclass(frozen=True)
class IntegerValue:
    """``factor * key + constant`` in exact integers."""

    factor: int
    constant: int

    def of(self, keys: np.ndarray) -> np.ndarray | list[int]:
        """As int64 where every row provably fits, else as Python integers."""
        return self.wrapped(keys) if self.fits(keys) is None else self.exact(keys)

    def fits(self, keys: np.ndarray) -> np.ndarray | None:
        """Which rows fit in int64; None when all do."""
        ends = (INT64_MIN - self.constant, INT64_MAX - self.constant)
        first, last = ends if self.factor > 0 else ends[::-1]
        first, last = -(-first // self.factor), last // self.factor
        if len(keys) == 0 or (first <= int(keys.min()) and int(keys.max()) <= last):
            return None
        if first > INT64_MAX or last < INT64_MIN:
            return np.zeros(len(keys), dtype=bool)
        fitting: np.ndarray = (keys >= max(first, INT64_MIN)) & (keys <= min(last, INT64_MAX))
        return fitting

    def wrapped(self, keys: np.ndarray) -> np.ndarray:
        """Modulo 2**64: correct wherever the result fits, even if an intermediate value overflowed."""
        values = keys if self.factor == 1 else keys * _wrapped(self.factor)
        return values + _wrapped(self.constant) if self.constant else values

    def exact(self, keys: np.ndarray) -> list[int]:
        return [self.factor * key + self.constant for key in keys.tolist()]


def _wrapped(number: int) -> np.int64:
    return np.int64((number + 2**63) % 2**64 - 2**63)


@dataclass(frozen=True)
class IntegerHalfLine:
    """Keys with ``key_factor * key <= limit`` (or >=, if not ``upper``), ``limit`` exact in the probe's key."""

    key_factor: int
    limit: IntegerValue
    upper: bool

    def edge(self, probe: np.ndarray) -> Edge:
        edge = _divided(self.key_factor, self.limit.wrapped(probe), self.upper)
        fits = self.limit.fits(probe)
        if fits is None:
            return edge
        # Few rows are at the ends of int64: redo only those.
        rows = np.flatnonzero(~fits)
        redone = _divided(self.key_factor, self.limit.exact(probe[rows]), self.upper)
        bound, empty = edge.bound.copy(), np.zeros(len(probe), dtype=bool)
        bound[rows] = redone.bound
        empty[rows] = redone.empty
        return Edge(edge.upper, bound, empty)


def integer_half_line(key_factor: int, probe_factor: int, constant: int, order: Order) -> IntegerHalfLine:
    """The half-line ``key_factor * key + probe_factor * probe + constant ORDER 0``."""
    # Over integers a strict comparison is a closed one with the limit moved by one. A negative
    # key factor mirrors the comparison, so that `key >= probe` stays free of arithmetic.
    if key_factor < 0:
        key_factor, probe_factor, constant = -key_factor, -probe_factor, -constant
        order = mirrored(order)
    limit = IntegerValue(-probe_factor, -constant + strict_shift(order))
    return IntegerHalfLine(key_factor, limit, is_upper(order))


@dataclass(frozen=True)
class RoundedHalfLine:
    """Keys with ``key_factor * key + constant ORDER value``, value float64 in the probe's key."""

    key_factor: int
    constant: int
    value: FloatValue
    order: Order

    def edge(self, probe: np.ndarray) -> Edge:
        # An integer is at most v when at most floor(v), below v when below ceil(v), and so on.
        value = self.value.of(probe)
        with np.errstate(invalid="ignore"):
            whole = np.ceil(value) if rounds_up(self.order) else np.floor(value)
        shift, upper = strict_shift(self.order), is_upper(self.order)
        if self.key_factor == 1 and self.constant == 0:
            return _saturated(whole, shift, upper)
        # Infinities become numbers far beyond any key, NaN (an invalid row) anything.
        finite = np.nan_to_num(whole)
        limits = [int(limit) + shift - self.constant for limit in finite.tolist()]
        return _divided(self.key_factor, limits, upper)


def _saturated(whole: np.ndarray, shift: int, upper: bool) -> Edge:
    """Whole float64 numbers, plus ``shift``, as int64 bounds that stop at the ends of int64."""
    beyond_top = whole >= 2.0**63
    beyond_bottom = whole < -(2.0**63) if shift >= 0 else whole <= -(2.0**63)
    inside = np.where(beyond_top | beyond_bottom | np.isnan(whole), 0.0, whole)
    bound = inside.astype(np.int64) + shift
    bound[beyond_top if upper else beyond_bottom] = INT64_MAX if upper else INT64_MIN
    return Edge(upper, bound, beyond_bottom if upper else beyond_top)


def _divided(factor: int, limit: np.ndarray | list[int], below: bool) -> Edge:
    """Bounds of ``factor * key <= limit`` (or >=, if not ``below``): floor division for <=, ceiling for >=."""
    upper = below == (factor > 0)
    size = abs(factor)
    if isinstance(limit, np.ndarray):
        if factor == 1:
            return Edge(upper, limit)
        limit = limit.tolist() if size > INT64_MAX or limit.min(initial=0) == INT64_MIN else limit
    if isinstance(limit, np.ndarray):
        signed = limit if factor > 0 else -limit
        return Edge(upper, signed // size if upper else -(-signed // size))
    signs = limit if factor > 0 else [-one for one in limit]
    bounds = [one // size for one in signs] if upper else [-(-one // size) for one in signs]
    clamped = [min(max(one, INT64_MIN), INT64_MAX) for one in bounds]
    outside = [one < INT64_MIN if upper else one > INT64_MAX for one in bounds]
    return Edge(upper, np.array(clamped, dtype=np.int64), np.array(outside, dtype=bool))
