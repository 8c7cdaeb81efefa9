"""Keys of any range as 16-bit codes that never fall as the key rises, so that one instruction compares many.

A frame is a linear map of a block's usual keys: code = (key - low) * scale + 1, clipped at both ends. Each operation of
it is monotone, rounding included, so a key inside an interval has a code between the codes of the interval's ends. The
converse does not hold: codes find candidates, and the caller then compares the keys.

    keys 10 20 .. 90      low 10, scale 65531 / 80      10 -> 1    50 -> 32766    90 -> 65532
                                                         9 -> 0    91 -> 65533   -inf -> 0
"""

from __future__ import annotations

import numpy as np

from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import ordered_floats

TOP = 65533
"""The code of all keys above the frame; keys below it have code 0."""

NOWHERE, INVALID = 65534, 65535
"""A code that no row has, and the code of invalid rows."""

SAMPLE = 256
"""Rows of a block from which its frame is made."""

TAIL, MARGIN = 1 / 32, 1 / 8
"""The share of a sample's rows at either end that is left out of the frame, and by how much the frame is widened."""

_LEAST_SCALE, _GREATEST_SCALE = 1e-300, 1e300
"""Within these, a product with infinity is infinite and one with zero is zero, so no code comes from NaN."""


def numbers_of(keys: np.ndarray, floats: bool) -> np.ndarray:
    """The float64 nearest to each ordered integer or, if it stands for a float, that float. Cost: O(n)."""
    if not floats:
        return keys.astype(np.float64)
    return ordered_floats(keys)


def frame_of(numbers: np.ndarray) -> tuple[float, float]:
    """The low end and scale of a frame for these keys. Any frame is correct; this one separates keys. Cost: O(n)."""
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return 0.0, 1.0
    sample = np.sort(finite[:: max(1, len(finite) // SAMPLE)])
    tail = int(len(sample) * TAIL)
    inner, outer = sample[tail], sample[-1 - tail]
    with np.errstate(over="ignore"):
        margin = (outer - inner) * MARGIN
        low, high = max(finite.min(), inner - margin), min(finite.max(), outer + margin)
        width = high - low
    scale = (TOP - 2) / width if width > (TOP - 2) / _GREATEST_SCALE else _GREATEST_SCALE
    return float(low), max(float(scale), _LEAST_SCALE)


@kernel
def code_of(number: float, low: float, scale: float) -> np.uint16:
    """The code of one key."""
    return np.uint16(np.int32(min(max((number - low) * scale + 1.0, 0.0), np.float64(TOP))))


@kernel
def encode_rows(numbers: np.ndarray, valid: np.ndarray, low: float, scale: float, codes: np.ndarray) -> None:
    """The codes of rows. Cost: O(n)."""
    for row in range(numbers.size):
        code = code_of(numbers[row] if valid[row] else low, low, scale)
        codes[row] = code if valid[row] else np.uint16(INVALID)


@kernel
def encode_bounds(
    lows: np.ndarray,
    highs: np.ndarray,
    negated: bool,
    low: float,
    scale: float,
    starts: np.ndarray,
    widths: np.ndarray,
) -> None:
    """Per probe row the codes start, start + 1, ..., start + width, modulo 2^16, that a match may have. Cost: O(n).

    The codes outside an interval go from that of its high end upwards, wrap around from 65535 to 0, and end at that of
    its low end: modulo 2^16 this is a range, too.
    """
    for i in range(lows.size):
        a = code_of(lows[i], low, scale)
        b = code_of(highs[i], low, scale)
        if negated:
            everything = b <= a
            starts[i] = np.uint16(0) if everything else b
            widths[i] = np.uint16(65535) if everything else np.uint16(a - b)
        else:
            nothing = lows[i] > highs[i]
            starts[i] = np.uint16(NOWHERE) if nothing else a
            widths[i] = np.uint16(0) if nothing else np.uint16(b - a)
