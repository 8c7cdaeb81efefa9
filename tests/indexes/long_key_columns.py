"""Arrow columns that an index takes as `LongKeys`: strings, binary, decimals of more than 18 digits.

Strings compare by their UTF-8 bytes, which is the order of their code points. A decimal becomes its
unscaled number: 64 bits hold up to 18 digits, so those are plain keys; wider ones become 16 or 32 bytes,
highest first, with the sign flipped so that they compare as numbers do. Two decimal columns must have
the same scale.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexes.kernels.columns import Keys
from indexes.kernels.compiled import kernel
from indexes.kernels.long_keys import LongKeys
from operators.values.decimal_numbers import DIGITS_IN_64_BITS, small_decimals


def is_long(arrow: pa.DataType) -> bool:
    """Whether columns of a type are compared by `to_long_keys`; all other key types by `to_keys`."""
    types = pa.types
    strings = types.is_string(arrow) or types.is_large_string(arrow)
    binary = types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow)
    return bool(strings or binary or types.is_decimal(arrow))


def to_long_keys(array: pa.Array) -> Keys | LongKeys:
    """The keys of a string, binary or decimal column; null becomes invalid. Cost: O(bytes)."""
    assert is_long(array.type), "other types have keys of 64 bits"
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False) if array.null_count else None
    if pa.types.is_decimal(array.type):
        return _decimal_keys(array, valid)
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    dtype = np.dtype(np.int64 if wide else np.int32)
    offsets = np.zeros(1, np.int64)
    if offset_buffer is not None and len(array):
        offsets = np.frombuffer(offset_buffer, dtype, count=len(array) + 1, offset=array.offset * dtype.itemsize)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return LongKeys.of_bytes(data, offsets, valid)


def _decimal_keys(array: pa.Array, valid: np.ndarray | None) -> Keys | LongKeys:
    if array.type.precision <= DIGITS_IN_64_BITS:
        return Keys(small_decimals(array), valid)
    width = array.type.byte_width
    words = np.empty((0, width // 8), np.uint64)
    if len(array):
        words = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, width // 8)
        words = words[array.offset : array.offset + len(array)]
    # Highest word first, the sign bit flipped: unsigned bytes in the order of the numbers.
    ordered = np.ascontiguousarray(words[:, ::-1])
    ordered[:, 0] ^= np.uint64(1 << 63)
    lead = np.empty(len(array), np.int64)
    _magnitudes(ordered, lead)
    data = ordered.astype(">u8").view(np.uint8).reshape(-1)
    return LongKeys(lead, data, np.arange(len(array) + 1, dtype=np.int64) * width, valid)


@kernel
def _magnitudes(words: np.ndarray, lead: np.ndarray) -> None:
    """Leads that tell small numbers apart too: how many bits the number has, and the first 54 of them.

    Cutting the rest off never turns the order of two numbers round, as rounding could.
    """
    one = np.uint64(1)
    top = one << np.uint64(63)
    for row in range(lead.size):
        negative = words[row, 0] < top
        count = words.shape[1]
        length = 0
        digits = np.uint64(0)
        for w in range(count):
            word = words[row, w] ^ top if w == 0 else words[row, w]
            if negative:
                word = ~word
            if length == 0 and word != 0:
                bits = 0
                while bits < 64 and (word >> np.uint64(bits)) != 0:
                    bits += 1
                length = 64 * (count - 1 - w) + bits
                digits = word << np.uint64(64 - bits) if bits < 64 else word
                if bits < 64 and w + 1 < count:
                    following = ~words[row, w + 1] if negative else words[row, w + 1]
                    digits |= following >> np.uint64(bits)
        size = (np.int64(length) << 54) | np.int64(digits >> np.uint64(10))
        lead[row] = ~size if negative else size
