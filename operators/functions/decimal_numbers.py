"""The unscaled numbers of decimal columns: as integers, as 64-bit keys, as leads, and back to decimals."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from indexes import frozen, kernel

DIGITS_IN_64_BITS = 18


def decimal_numbers(array: pa.Array) -> np.ndarray:
    """The unscaled numbers: int64 where they all fit, else Python integers."""
    if array.type.byte_width <= 8:
        return small_decimals(array)
    words = decimal_words(array)
    lowest = np.ascontiguousarray(words[:, 0]).view(np.int64)
    if (words[:, 1:].view(np.int64) == (lowest >> 63)[:, None]).all():
        return lowest
    numbers = words[:, -1].view(np.int64).astype(object)
    for word in range(words.shape[1] - 2, -1, -1):
        numbers = numbers * 2**64 + words[:, word].astype(object)
    return numbers


def small_decimals(array: pa.Array) -> np.ndarray:
    """The unscaled numbers of a type of at most 18 digits, as int64."""
    width = array.type.byte_width
    if width > 8:
        return np.ascontiguousarray(decimal_words(array)[:, 0]).view(np.int64)
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, np.int64)
    stored = np.frombuffer(data, f"i{width}", count=len(array), offset=array.offset * width)
    return stored.astype(np.int64, copy=False)


def decimal_leads(array: pa.Array) -> np.ndarray:
    """The unscaled numbers of a type of more than 18 digits, truncated to 53 bits.

    Truncation never reverses the order of two numbers; rounding twice could.
    """
    leads = np.empty(len(array), np.float64)
    _cut(frozen(decimal_words(array)), leads)
    return leads


def decimal_array(numbers: np.ndarray, valid: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """A 128- or 256-bit decimal column of unscaled numbers, all of which fit the type."""
    count = kind.byte_width // 8
    words = np.empty((len(numbers), count), np.uint64)
    for word in range(count):
        if numbers.dtype == object:
            words[:, word] = (numbers >> (64 * word)) & (2**64 - 1)
        else:
            words[:, word] = (numbers if word == 0 else numbers >> 63).view(np.uint64)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [bits, pa.py_buffer(words)])


def decimal_words(array: pa.Array) -> np.ndarray:
    """Each number in two's complement, lowest word first."""
    width = array.type.byte_width
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty((0, width // 8), np.uint64)
    flat = np.frombuffer(data, np.uint64, count=len(array) * width // 8, offset=array.offset * width)
    return flat.reshape(len(array), width // 8)


@kernel
def _cut(words: np.ndarray, leads: np.ndarray) -> None:
    for row in range(leads.size):
        count = words.shape[1]
        negative = (words[row, count - 1] >> np.uint64(63)) != 0
        carry = True
        top = below = before = np.uint64(0)
        place = 0
        for w in range(count):
            word = words[row, w]
            if negative:
                word = ~word + np.uint64(carry)
                carry = carry and word == 0
            if word != 0:
                top, below, place = word, before, w
            before = word
        bits = 0
        while bits < 64 and (top >> np.uint64(bits)) != 0:
            bits += 1
        digits = top
        if bits < 64:
            digits = (top << np.uint64(64 - bits)) | (below >> np.uint64(bits)) if bits > 0 else np.uint64(0)
        size = math.ldexp(float(digits >> np.uint64(11)), int(64 * place + bits - 53))
        leads[row] = -size if negative else size
