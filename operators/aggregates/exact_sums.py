"""Exact sums of the values at the matches of each row.

A sum is a function of the values alone, in whatever order and by however many elements the matches were found.

Integers are added in halves: the low and the high 32 bits of each apart, so that nothing overflows with fewer than 2^31
matches. Wider numbers are several words of 64 bits, each added by itself.

Floats are added as the integers that they are, in units of 2^-1074, the least float: a float has 53 bits somewhere
among 2098. The sum is held in limbs of 32 bits, each in an int64, whose upper half takes the carries:

    1.5 + 2^40    limb 33: 2^18 + 2^17    1.5 is 2^1074 + 2^1073 units, and 1074 = 33 * 32 + 18
                  limb 34: 2^26           2^40 is 2^1114 units, and 1114 = 34 * 32 + 26

At the end carries are passed on once, and the highest 53 bits are rounded, halves to the even one. Kulisch describes
accumulators that hold every float ("Computer Arithmetic and Validity", 2008, section 8).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from indexes import Matches, frozen, kernel
from operators.protocol.columns import Int64

Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]

LOW = 0xFFFFFFFF
_LIMBS = 72
_UNIT = -1074
_SPECIAL = 0x7FF
_PLUS, _MINUS = 1, 2


class Halves(NamedTuple):
    """For each row the sums of the low and of the high halves of its matches' words, and the number of words."""

    low: Int64
    high: Int64
    terms: Int64


def sum_words(matches: Matches, words: Int64, valid: Bool, base: int, *, signed: bool) -> Halves:
    """Add the words at the matches of each row; `valid` is empty if all are. Cost: O(rows + matches)."""
    found = Halves(*(np.empty(len(matches), np.int64) for _ in range(3)))
    mask = -1 if signed else LOW
    _sum_words(frozen(matches.offsets), frozen(matches.positions), base, words, valid, mask, *found)
    return found


def sum_floats(matches: Matches, values: Float64, valid: Bool, base: int) -> tuple[Float64, Int64]:
    """The sum of the floats at the matches of each row, rounded once, and how many are neither null nor NaN.

    A sum beyond the floats is infinite; a sum of both infinities is NaN. Cost: O(rows + matches).
    """
    rows = len(matches)
    mantissas, exponents, special, counts = (np.zeros(rows, np.int64) for _ in range(4))
    _sum_floats(
        frozen(matches.offsets), frozen(matches.positions), base, values.view(np.int64), valid,
        np.zeros(_LIMBS, np.int64), mantissas, exponents, special, counts,
    )  # fmt: skip
    with np.errstate(over="ignore"):
        sums: Float64 = np.ldexp(mantissas.astype(np.float64), exponents)
    for flags, value in ((_PLUS, np.inf), (_MINUS, -np.inf), (_PLUS | _MINUS, np.nan)):
        sums[special == flags] = value
    return sums, counts


def count_valid(matches: Matches, valid: Bool, base: int) -> Int64:
    """How many matches of each row are valid. Cost: O(rows + matches)."""
    counts = np.empty(len(matches), np.int64)
    _count_valid(frozen(matches.offsets), frozen(matches.positions), base, valid, counts)
    return counts


@kernel
def _count_valid(offsets: Int64, positions: Int64, base: int, valid: Bool, counts: Int64) -> None:
    for row in range(counts.size):
        found = 0
        for at in range(offsets[row], offsets[row + 1]):
            if valid[positions[at] - base]:
                found += 1
        counts[row] = found


@kernel
def _sum_words(
    offsets: Int64,
    positions: Int64,
    base: int,
    words: Int64,
    valid: Bool,
    mask: int,
    low: Int64,
    high: Int64,
    counts: Int64,
) -> None:
    for row in range(counts.size):
        lows = highs = found = 0
        for at in range(offsets[row], offsets[row + 1]):
            place = positions[at] - base
            if valid.size == 0 or valid[place]:
                word = words[place]
                lows += word & 0xFFFFFFFF
                highs += (word >> 32) & mask
                found += 1
        low[row], high[row], counts[row] = lows, highs, found


@kernel
def _sum_floats(
    offsets: Int64,
    positions: Int64,
    base: int,
    bits: Int64,
    valid: Bool,
    limbs: Int64,
    mantissas: Int64,
    exponents: Int64,
    special: Int64,
    counts: Int64,
) -> None:
    """Leave the sum of each row as mantissa * 2^exponent; `limbs` are zeros, before and after."""
    for row in range(counts.size):
        least, most, found, infinite = 70, -1, 0, 0
        for at in range(offsets[row], offsets[row + 1]):
            place = positions[at] - base
            if valid.size != 0 and not valid[place]:
                continue
            word = bits[place]
            exponent = (word >> 52) & 0x7FF
            mantissa = word & 0xFFFFFFFFFFFFF
            if exponent == 0x7FF:
                if mantissa == 0:
                    infinite |= 2 if word < 0 else 1
                    found += 1
                continue
            found += 1
            if exponent != 0:
                mantissa |= 1 << 52
                exponent -= 1
            limb, shift = exponent >> 5, exponent & 31
            lower = (mantissa & 0xFFFFFFFF) << shift
            upper = (mantissa >> 32) << shift
            one = lower & 0xFFFFFFFF
            two = (lower >> 32) + (upper & 0xFFFFFFFF)
            three = upper >> 32
            if word < 0:
                one, two, three = -one, -two, -three
            limbs[limb] += one
            limbs[limb + 1] += two
            limbs[limb + 2] += three
            least = min(least, limb)
            most = max(most, limb)
        counts[row], special[row] = found, infinite
        if most < 0:
            continue
        mantissas[row], exponents[row] = rounded(limbs, least, most + 5)
        for limb in range(least, most + 5):
            limbs[limb] = 0


@kernel
def rounded(limbs: Int64, least: int, end: int) -> tuple[int, int]:
    """The sum that is held in limbs [least, end), as mantissa * 2^exponent with 53 bits. It changes the limbs.

    The last limbs must have room for the carries of those before them.
    """
    carry = 0
    for limb in range(least, end):
        total = limbs[limb] + carry
        limbs[limb] = total & 0xFFFFFFFF
        carry = total >> 32
    negative = carry < 0
    if negative:
        carry = 1
        for limb in range(least, end):
            total = (limbs[limb] ^ 0xFFFFFFFF) + carry
            limbs[limb] = total & 0xFFFFFFFF
            carry = total >> 32
    top = end - 1
    while top > least and limbs[top] == 0:
        top -= 1
    size = 0
    while limbs[top] >> size:
        size += 1
    lacking = 54 - size  # 53 bits, and one that says how to round
    second = limbs[top - 1] if top > least else 0
    third = limbs[top - 2] if top > least + 1 else 0
    if lacking <= 32:
        window = limbs[top] << lacking | second >> (32 - lacking)
        rest = (second & ((1 << (32 - lacking)) - 1)) | third
    else:
        lacking -= 32
        window = (limbs[top] << 32 | second) << lacking | third >> (32 - lacking)
        rest = third & ((1 << (32 - lacking)) - 1)
    for limb in range(least, top - 2):
        rest |= limbs[limb]
    mantissa = window >> 1
    if window & 1 and (rest or mantissa & 1):
        mantissa += 1
    return -mantissa if negative else mantissa, 32 * top + size - 53 - 1074
