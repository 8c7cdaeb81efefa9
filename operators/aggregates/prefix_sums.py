"""Exact sums of ranges of sorted values, by subtracting two running sums.

A value is a row of digits of 32 bits, each in an int64, so that running sums of digits do not overflow with fewer than
2^31 rows. Integers and decimals have two digits for each word. Floats are the integers that they are, in units of
2^-1074 (see `exact_sums`); only the digits that some value of the block uses are held. Prices have two or three.

    values by rank       5  null   2
    sums         0 0  1 5  1 5  2 7       number of values, low digit (the high digit is 0)
    ranks [1, 3)                          2 - 1 values, 7 - 5 = 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes import Live, frozen, kernel
from operators.aggregates.exact_sums import LOW, rounded
from operators.aggregates.number_column import Numbers
from operators.protocol.columns import Int64

Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Ranks = tuple[np.ndarray, np.ndarray]
"""For each probe row the ranks [a, b) of a block that it meets."""

MOST_DIGITS = 12
"""Floats of a block that need more digits, for 350 bits from the greatest to the least, have no running sums."""


@dataclass(frozen=True)
class PrefixSums:
    """For each rank the number of values before it, and the sums of their digits.

    base: the limb of the first digit.
    """

    base: int
    sums: Int64

    @property
    def end(self) -> int:
        """The limb after the last digit."""
        return self.base + self.sums.shape[1] - 1

    @property
    def nbytes(self) -> int:
        return int(self.sums.nbytes)

    @classmethod
    def of_words(cls, words: Sequence[Numbers], valid: Bool | None, order: np.ndarray, *, signed: bool) -> PrefixSums:
        """Of words of 64 bits by row, the lowest first; `signed`: the highest has a sign. Cost: O(rows)."""
        sums = _terms(valid, order, 2 * len(words))
        for number, word in enumerate(words):
            ranked = word.view(np.int64)[order]
            sums[1:, 1 + 2 * number] = ranked & LOW
            high = ranked >> 32
            sums[1:, 2 + 2 * number] = high if signed and number == len(words) - 1 else high & LOW
        return cls(0, frozen(np.cumsum(sums, axis=0)))

    @classmethod
    def of_floats(cls, values: Float64, valid: Bool | None, order: np.ndarray) -> PrefixSums | None:
        """Of floats by row; None if one is infinite, or if they need more than MOST_DIGITS. Cost: O(rows)."""
        bits = frozen(values.view(np.int64)[order])
        least, end = _span(bits)
        if end - least > MOST_DIGITS:
            return None
        sums = _terms(valid, order, end - least)
        _digits(bits, least, sums)
        return cls(least, frozen(np.cumsum(sums, axis=0)))

    def merged(self, other: PrefixSums, source: np.ndarray) -> PrefixSums | None:
        """The sums of two blocks in a new order; `source`: ranks of both, those of the second after the others."""
        parts = [each for each in (self, other) if each.end > each.base] or [self]
        base, end = min(each.base for each in parts), max(each.end for each in parts)
        if end - base > MOST_DIGITS:
            return None
        sums = np.zeros((len(source) + 1, 1 + end - base), np.int64)
        _merge(self.sums, self.base, other.sums, other.base, base, source, sums)
        return PrefixSums(base, frozen(sums))

    def add(self, order: np.ndarray, first: int, rows: int, met: Ranks, live: Live, base: int, totals: Int64) -> None:
        """Add to `totals` what each probe row meets: ranks of `order`, whose rows begin at position `first`.

        base: the limb of the first digit in `totals`. Cost: O(digits) for a probe row that may meet all positions of
        the block, else O(ranks).
        """
        _add(self.sums, order, first, rows, *met, live.start, live.end, self.base - base, totals)


def rounded_sums(totals: Int64, base: int) -> Float64:
    """The sums of floats from the sums of their digits, rounded once. Cost: O(rows)."""
    mantissas, exponents = np.zeros(len(totals), np.int64), np.zeros(len(totals), np.int64)
    _round(totals, base, mantissas, exponents)
    with np.errstate(over="ignore"):
        sums: Float64 = np.ldexp(mantissas.astype(np.float64), exponents)
    return sums


def _terms(valid: Bool | None, order: np.ndarray, digits: int) -> Int64:
    """Room for the values of a block, one row of zeros before them; those that are there count 1."""
    sums = np.zeros((len(order) + 1, 1 + digits), np.int64)
    sums[1:, 0] = 1 if valid is None else valid[order]
    return sums


@kernel
def _span(bits: Int64) -> tuple[int, int]:
    """The limbs [least, end) that the floats use; too many of them if one is infinite."""
    least, end = 99, 0
    for at in range(bits.size):
        word = bits[at]
        exponent = (word >> 52) & 0x7FF
        mantissa = word & 0xFFFFFFFFFFFFF
        if exponent == 0x7FF:
            return 0, 99
        if exponent != 0:
            mantissa |= 1 << 52
            exponent -= 1
        if mantissa == 0:
            continue
        limb, shift = exponent >> 5, exponent & 31
        lower = (mantissa & 0xFFFFFFFF) << shift
        upper = (lower >> 32) + ((mantissa >> 32) << shift)
        if lower & 0xFFFFFFFF:
            least = min(least, limb)
        elif upper & 0xFFFFFFFF:
            least = min(least, limb + 1)
        else:
            least = min(least, limb + 2)
        if upper >> 32:
            end = max(end, limb + 3)
        elif upper:
            end = max(end, limb + 2)
        else:
            end = max(end, limb + 1)
    return (least, end) if end else (0, 0)


@kernel
def _digits(bits: Int64, base: int, sums: Int64) -> None:
    for at in range(bits.size):
        word = bits[at]
        exponent = (word >> 52) & 0x7FF
        mantissa = word & 0xFFFFFFFFFFFFF
        if exponent != 0:
            mantissa |= 1 << 52
            exponent -= 1
        if mantissa == 0:
            continue
        column, shift = (exponent >> 5) - base + 1, exponent & 31
        lower = (mantissa & 0xFFFFFFFF) << shift
        upper = (lower >> 32) + ((mantissa >> 32) << shift)
        for digit in (lower & 0xFFFFFFFF, upper & 0xFFFFFFFF, upper >> 32):
            if digit:
                sums[at + 1, column] = -digit if word < 0 else digit
            column += 1


@kernel
def _merge(
    left: Int64, left_base: int, right: Int64, right_base: int, base: int, source: np.ndarray, sums: Int64
) -> None:
    lefts = left.shape[0] - 1
    for rank in range(source.size):
        for column in range(sums.shape[1]):
            sums[rank + 1, column] = sums[rank, column]
        at = source[rank]
        if at < lefts:
            sums[rank + 1, 0] += left[at + 1, 0] - left[at, 0]
            for column in range(1, left.shape[1]):
                sums[rank + 1, left_base - base + column] += left[at + 1, column] - left[at, column]
        else:
            at -= lefts
            sums[rank + 1, 0] += right[at + 1, 0] - right[at, 0]
            for column in range(1, right.shape[1]):
                sums[rank + 1, right_base - base + column] += right[at + 1, column] - right[at, column]


@kernel
def _add(
    sums: Int64,
    order: np.ndarray,
    first: int,
    rows: int,
    begins: np.ndarray,
    ends: np.ndarray,
    starts: Int64,
    stops: Int64,
    shift: int,
    totals: Int64,
) -> None:
    width = sums.shape[1]
    for probe in range(begins.size):
        begin, end = begins[probe], ends[probe]
        start, stop = starts[probe] - first, stops[probe] - first
        if begin >= end or start >= rows or stop <= 0:
            continue
        if start <= 0 and stop >= rows:
            totals[probe, 0] += sums[end, 0] - sums[begin, 0]
            for column in range(1, width):
                totals[probe, shift + column] += sums[end, column] - sums[begin, column]
            continue
        for rank in range(begin, end):
            if start <= order[rank] < stop:
                totals[probe, 0] += sums[rank + 1, 0] - sums[rank, 0]
                for column in range(1, width):
                    totals[probe, shift + column] += sums[rank + 1, column] - sums[rank, column]


@kernel
def _round(totals: Int64, base: int, mantissas: Int64, exponents: Int64) -> None:
    digits = totals.shape[1] - 1
    limbs = np.zeros(digits + 3, np.int64)
    for row in range(mantissas.size):
        limbs[:] = 0
        for column in range(digits):
            limbs[column] = totals[row, column + 1]
        mantissa, exponent = rounded(limbs, 0, digits + 3)
        mantissas[row] = mantissa
        exponents[row] = exponent + 32 * base
