"""Floats as integers of the same order, so that indexes handle one type of key."""

from __future__ import annotations

import numpy as np

from indexes.kernels.columns import frozen

LEAST = np.iinfo(np.int64).min
GREATEST = np.iinfo(np.int64).max


def ordered_integers(values: np.ndarray) -> np.ndarray:
    """int64 unchanged; float64 as integers that compare as the floats do, with -0.0 equal to 0.0.

    A float's bits are a sign and a magnitude; a negative float becomes minus its magnitude. Neighbouring floats
    become neighbouring integers, so "the next float above" is "+ 1". NaN has no place in the order: rows that
    hold it are invalid and their integer is arbitrary. Cost: O(n), nothing for int64.

            -inf      -1.0   -5e-324   -0.0   0.0   5e-324   1.0      inf      ascend as
        -2^63+2^52     ..      -1        0     0      1       ..   2^63-2^52
    """
    if values.dtype == np.int64:
        return values
    assert values.dtype == np.float64, "keys are int64 or float64"
    bits = np.ascontiguousarray(values).view(np.int64)
    return frozen(np.where(bits < 0, LEAST - bits, bits))


def ordered_floats(integers: np.ndarray) -> np.ndarray:
    """The inverse of `ordered_integers`; either zero becomes 0.0. Cost: O(n)."""
    return np.where(integers < 0, LEAST - integers, integers).view(np.float64)
