"""Values of several parts as bytes that keep their order: lists, structs, and intervals of months, days, nanoseconds.

Two encoded values compare as the values do, so everything that works for binary columns (keys, hashes, comparisons)
works for them. Parts compare from the first on; a list that is the start of another is less. Inside, null and NaN are
values: NaN is above all numbers, null above everything, each equal to itself. In an interval a month has 30 days.

    [1, null]   01 <1> 02 00        01: a value follows, 02: null, 00: the end of the list
    [1]         01 <1> 00           less, since 00 < 02
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import ArgumentError
from operators.functions.decimal_numbers import decimal_words

_DAY = 86_400_000_000_000
_BYTES = pa.large_binary()


def shape(kind: pa.DataType) -> str:
    """What two types must have in common for their values to compare; raises ArgumentError for others."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return shape(kind.value_type)
    if types.is_integer(kind) or types.is_boolean(kind):
        return "integer"
    if types.is_floating(kind):
        return "float"
    if types.is_decimal(kind):
        return f"decimal of {kind.scale} digits, {kind.bit_width} bits"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return "binary"
    if types.is_temporal(kind):
        return str(kind)
    if _is_list(kind):
        return f"list of {shape(kind.value_type)}"
    if types.is_struct(kind):
        return "struct of " + ", ".join(f"{field.name}: {shape(field.type)}" for field in kind.fields)
    if types.is_null(kind):
        return "null"
    raise ArgumentError(f"values of {kind} do not compare")


def alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of two types compare; nulls of no type, as in a list of them, are like anything."""
    types = pa.types
    if types.is_null(one) or types.is_null(other):
        return True
    if _is_list(one) and _is_list(other):
        return alike(one.value_type, other.value_type)
    if types.is_struct(one) and types.is_struct(other) and one.num_fields == other.num_fields:
        pairs = zip(one.fields, other.fields, strict=True)
        return all(left.name == right.name and alike(left.type, right.type) for left, right in pairs)
    return shape(one) == shape(other)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def encoded(array: pa.Array) -> pa.Array:
    """The bytes of each value; null for null. Cost: O(bytes), a few passes."""
    payload = _payload(array)
    return payload if not array.null_count else pc.if_else(array.is_valid(), payload, pa.scalar(None, _BYTES))


def _part(array: pa.Array) -> pa.Array:
    """A value inside another, with a byte before it that says whether it is null."""
    marked = pc.binary_join_element_wise(_constant(b"\x01"), _payload(array), _constant(b""))
    return pc.if_else(array.is_valid(), marked, _constant(b"\x02")) if array.null_count else marked


def _constant(value: bytes) -> pa.Scalar:
    return pa.scalar(value, _BYTES)


def _payload(array: pa.Array) -> pa.Array:
    """The bytes of each value; what stands under a null is arbitrary, but not null."""
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        return _payload(array.dictionary_decode())
    if types.is_run_end_encoded(kind):
        return _payload(pc.run_end_decode(array))
    if types.is_null(kind):
        return pa.repeat(_constant(b""), len(array))
    if types.is_interval(kind):
        return _intervals(array)
    if types.is_boolean(kind):
        array = array.cast(pa.int64())
    if types.is_integer(array.type):
        wide = array if types.is_uint64(kind) else array.cast(pa.int64())
        return _integers(wide.fill_null(0).to_numpy(zero_copy_only=False))
    if types.is_floating(kind):
        return _floats(array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    if types.is_decimal(kind):
        return _decimals(array)
    if types.is_temporal(kind):
        ticks = array.cast(pa.int32()) if kind.bit_width == 32 else array
        return _integers(ticks.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
    if types.is_struct(kind):
        return _struct(array)
    if _is_list(kind):
        return _list(array)
    return _text(array)


def _fixed(rows: np.ndarray) -> pa.Array:
    """One value per row of a matrix of bytes."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int64) * width
    data = np.ascontiguousarray(rows)
    return pa.Array.from_buffers(_BYTES, count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _integers(numbers: np.ndarray) -> pa.Array:
    """A byte that says whether the number is negative, then its bits from the top: signed and unsigned alike."""
    rows = np.empty((len(numbers), 9), np.uint8)
    rows[:, 0] = numbers >= 0
    rows[:, 1:] = numbers.astype(numbers.dtype, copy=False).view(np.uint64).astype(">u8").view(np.uint8).reshape(-1, 8)
    return _fixed(rows)


def _floats(numbers: np.ndarray) -> pa.Array:
    """The bits from the top, turned where the number is negative, else with the sign bit set."""
    numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # one NaN, one zero
    bits = np.ascontiguousarray(numbers).view(np.uint64)
    top = np.uint64(1) << np.uint64(63)
    ordered = np.where(bits & top, ~bits, bits | top)
    return _fixed(ordered.astype(">u8").view(np.uint8).reshape(-1, 8))


def _decimals(array: pa.Array) -> pa.Array:
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    words = decimal_words(array)
    words = words[:, ::-1].copy()
    words[:, 0] ^= np.uint64(1) << np.uint64(63)
    return _fixed(words.astype(">u8").view(np.uint8).reshape(len(words), -1))


def _intervals(array: pa.Array) -> pa.Array:
    stored = np.dtype([("months", np.int32), ("days", np.int32), ("nanoseconds", np.int64)])
    data = array.buffers()[1]
    if data is None or not len(array):
        return pa.array([], _BYTES)
    parts = np.frombuffer(data, stored, count=len(array), offset=array.offset * stored.itemsize)
    nanoseconds = parts["nanoseconds"]
    days = parts["months"].astype(np.int64) * 30 + parts["days"] + nanoseconds // _DAY
    return pc.binary_join_element_wise(_integers(days), _integers(nanoseconds % _DAY), _constant(b""))


def _text(array: pa.Array) -> pa.Array:
    """Bytes with 00 written as 00 FF, then 00 00: so that the end is less than any further byte."""
    plain = array.cast(_BYTES).fill_null(b"")
    escaped = pc.replace_substring(plain, pattern=b"\x00", replacement=b"\x00\xff")
    return pc.binary_join_element_wise(escaped, _constant(b"\x00\x00"), _constant(b""))


def _struct(array: pa.Array) -> pa.Array:
    fields = [_part(pc.struct_field(array, number)) for number in range(array.type.num_fields)]
    if not fields:
        return pa.repeat(_constant(b""), len(array))
    return pc.binary_join_element_wise(*fields, _constant(b""))


def _list(array: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    elements = _part(array.flatten())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), elements), _constant(b""))
    return pc.binary_join_element_wise(joined, _constant(b"\x00"), _constant(b""))
