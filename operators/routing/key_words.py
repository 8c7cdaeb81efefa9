"""Values of any comparable type as two 64-bit words, equal if and only if the values are equal in a condition.

A value's words do not depend on the type of the other column, so each side of an equality is converted separately. A
whole number has the same words as an integer of any width, a float, a decimal of any scale or a boolean; an instant has
the same words in every unit. The type check has already refused families that do not compare.

    3, 3.0, decimal 3.00, uint64 3     (3, WHOLE)          2**63 and 2.0**63     (-2**63, BEYOND_INT64)
    2.5                                (its bits, FLOAT)   decimal 2.50          (25, DECIMAL + 1)
    1969-12-31 23:59:58.5 in any unit  (-2, 500_000_000)   "abc"                 (its number in a dictionary, 0)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indexes import kernel
from operators.functions.composed_values import encoded
from operators.functions.families import COMPOSED, TEXTS
from operators.query.errors import PredicateError
from operators.routing.key_dictionary import ByteDictionary
from operators.values.key_types import decoded, key_type, stored_values

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

WORDS = 2
"""The number of words of a value."""

WHOLE = 0
BEYOND_INT64 = 1
"""A whole number from 2**63 to 2**64 - 1: the first word has its bits."""

FLOAT = 2
DECIMAL = 16
"""Plus the digits after the point, which do not end with a zero: the first word is the number without the point."""

WIDE_DECIMAL = 1024
"""The same where 64 bits do not hold it: the first word is the number of its bytes in a dictionary."""

NEGATIVE = 2048
"""Added to `WIDE_DECIMAL`: the bytes hold no sign."""

_SECOND = 1_000_000_000


def key_words(column: str, array: pa.Array | pa.ChunkedArray, dictionary: ByteDictionary) -> tuple[Int64, Bool]:
    """The words of each value, as rows x 2, and which values are neither null nor NaN.

    dictionary: numbers strings, binary, wide decimals, lists, structs and intervals; the same for all columns that are
                to be compared.
    """
    kind = key_type(column, array.type)
    array = decoded(array)
    words = np.zeros((len(array), WORDS), np.int64)
    valid = np.ones(len(array), np.bool_)
    if array.null_count:
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    if kind.family in (*TEXTS, *COMPOSED):
        written = encoded(array) if kind.family in COMPOSED else array
        words[:, 0] = _byte_numbers(written, dictionary, valid)
    elif kind.family == "decimal":
        _decimal_words(column, array, dictionary, valid, words)
    elif kind.family == "float":
        values = stored_values(array).astype(np.float64) + 0.0  # -0.0 is 0.0
        valid = valid & ~np.isnan(values)
        _float_words(values, words)
    elif kind.is_temporal:
        per_second = max(1, _SECOND // kind.tick)
        seconds, ticks = np.divmod(stored_values(array).astype(np.int64, copy=False), per_second)
        words[:, 0] = seconds * max(1, kind.tick // _SECOND)  # dates have ticks of more than a second, and 32 bits
        words[:, 1] = ticks * kind.tick
    elif pa.types.is_uint64(array.type):
        words[:, 0] = stored_values(array).view(np.int64)
        words[:, 1] = np.where(words[:, 0] < 0, BEYOND_INT64, WHOLE)
    else:
        words[:, 0] = stored_values(array)
    return words, valid


def whole_numbers(array: pa.Array | pa.ChunkedArray) -> Int64 | None:
    """The values of a column of integers without nulls: the first of their words; the second is `WHOLE`. Else None."""
    if isinstance(array, pa.ChunkedArray) or not pa.types.is_integer(array.type) or pa.types.is_uint64(array.type):
        return None
    return None if array.null_count else stored_values(array).astype(np.int64, copy=False)


def _byte_numbers(array: pa.Array, dictionary: ByteDictionary, valid: Bool) -> Int64:
    array = array.cast(pa.large_binary())
    if not len(array):
        return np.empty(0, np.int64)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64, count=len(array) + 1, offset=8 * array.offset)
    return dictionary.numbers(np.frombuffer(data or b"", np.uint8), bounds, valid)


def _float_words(values: npt.NDArray[np.float64], words: Int64) -> None:
    words[:, 0] = values.view(np.int64)
    words[:, 1] = FLOAT
    whole = np.floor(values) == values
    within = whole & (values >= -(2.0**63)) & (values < 2.0**63)
    words[within, 0] = values[within].astype(np.int64)
    words[within, 1] = WHOLE
    beyond = whole & (values >= 2.0**63) & (values < 2.0**64)
    words[beyond, 0] = values[beyond].astype(np.uint64).view(np.int64)
    words[beyond, 1] = BEYOND_INT64


def _decimal_words(column: str, array: pa.Array, dictionary: ByteDictionary, valid: Bool, words: Int64) -> None:
    kind = array.type
    if kind.scale < 0 and kind.precision - kind.scale > 76:
        raise PredicateError(
            f"column {column} of type {kind} holds numbers of more than 76 digits: cast it to one of scale 0 or more"
        )
    whole = pa.decimal256(max(kind.precision, kind.precision - kind.scale), max(kind.scale, 0))
    if kind.byte_width not in (16, 32) or kind.scale < 0:
        array = array.cast(whole)
    width = array.type.byte_width // 4
    limbs = np.zeros((len(array), width), np.uint32)
    if len(array):
        stored = np.frombuffer(array.buffers()[1], np.uint32, count=len(array) * width, offset=array.offset * 4 * width)
        limbs[:] = stored.reshape(-1, width)
    limbs[~valid] = 0
    _normalise_decimals(limbs, array.type.scale, words)
    wide = words[:, 1] >= WIDE_DECIMAL
    if wide.any():
        spread = np.zeros((int(wide.sum()), 8), np.uint32)  # as wide for 128 as for 256 bits
        spread[:, :width] = limbs[wide]
        ends = np.arange(len(spread) + 1, dtype=np.int64) * 32
        words[wide, 0] = dictionary.numbers(spread.view(np.uint8).reshape(-1), ends, np.ones(len(spread), np.bool_))


@kernel
def _normalise_decimals(limbs: np.ndarray, scale: int, words: np.ndarray) -> None:
    """Write the words of numbers in two's complement, low limbs first; `limbs` become their shortest magnitudes."""
    width = limbs.shape[1]
    ten, half = np.uint64(10), np.uint64(32)
    for row in range(limbs.shape[0]):
        negative = (limbs[row, width - 1] >> np.uint32(31)) != 0
        if negative:
            carry = np.uint64(1)
            for limb in range(width):
                flipped = np.uint64(~limbs[row, limb] & np.uint32(0xFFFFFFFF)) + carry
                limbs[row, limb] = np.uint32(flipped & np.uint64(0xFFFFFFFF))
                carry = flipped >> half
        used = width
        while used > 0 and limbs[row, used - 1] == 0:
            used -= 1
        digits = scale if used else 0
        while digits > 0:
            rest = np.uint64(0)
            for limb in range(used - 1, -1, -1):
                rest = ((rest << half) | np.uint64(limbs[row, limb])) % ten
            if rest != 0:
                break
            for limb in range(used - 1, -1, -1):
                part = (rest << half) | np.uint64(limbs[row, limb])
                limbs[row, limb] = np.uint32(part // ten)
                rest = part % ten
            while limbs[row, used - 1] == 0:
                used -= 1
            digits -= 1
        low = np.uint64(limbs[row, 0]) | (np.uint64(limbs[row, 1]) << half)
        fits = used <= 2 and (low < np.uint64(1 << 63) or (negative and low == np.uint64(1 << 63)))
        if fits:
            words[row, 0] = -np.int64(low) if negative else np.int64(low)
            words[row, 1] = DECIMAL + digits if digits else WHOLE
        elif used <= 2 and digits == 0 and not negative:
            words[row, 0] = np.int64(low)
            words[row, 1] = BEYOND_INT64
        else:
            words[row, 1] = WIDE_DECIMAL + digits + (NEGATIVE if negative else 0)
