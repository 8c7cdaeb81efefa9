"""A hash of Arrow columns that is the same in every process, on every machine and in every run.

Python's `hash()` is salted per process, so equal keys would go to different tasks. Here equal values have equal hashes
whatever the width of their type: all integers are hashed as 64-bit, all floats as float64, -0.0 as 0.0, and every NaN
as the same NaN. Null has a hash of its own. Any change here would send keys to other tasks than before, so the tests
pin known hashes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

U64 = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_ALL_BITS = 2**64 - 1
_FEW = 16
"""The bytes of fewer strings than this are hashed one by one: calls of NumPy would cost more."""


def stable_hash(columns: Sequence[pa.Array], seed: int = 0) -> U64:
    """Return one 64-bit hash per row over the values of all columns."""
    if not columns:
        raise ValueError("hash at least one column")
    result = np.full(len(columns[0]), np.uint64(seed % 2**64), dtype=np.uint64)
    for column in columns:
        if not can_hash(column.type):
            raise TypeError(f"a column of type {column.type} cannot be hashed")
        result = _mix(result * _GOLDEN + _column_hash(column))
    return result


def can_hash(kind: pa.DataType) -> bool:
    """Whether `stable_hash` takes columns of this type."""
    if pa.types.is_dictionary(kind):
        return can_hash(kind.value_type)
    return bool(
        _is_bytes(kind)
        or pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _mix(values: U64) -> U64:
    """Spread the bits (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _column_hash(column: pa.Array) -> U64:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _column_hash(column.dictionary_decode())
    if _is_bytes(kind):
        hashes = _hash_bytes(column.cast(pa.large_binary()))
    elif pa.types.is_floating(kind):
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        values = np.where(np.isnan(values), np.nan, values + 0.0)
        hashes = _mix(values.view(np.uint64))
    elif pa.types.is_unsigned_integer(kind):
        hashes = _mix(pc.fill_null(column.cast(pa.uint64()), 0).to_numpy(zero_copy_only=False))
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        values = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        hashes = _mix(values.view(np.uint64))
    elif pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _column_hash(column.cast(width))
    else:
        return _column_hash(column.cast(pa.string()))
    if column.null_count:
        hashes = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _hash_bytes(column: pa.Array) -> U64:
    if not len(column):
        return np.empty(0, dtype=np.uint64)
    buffers = column.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(buffers[2], dtype=np.uint8) if buffers[2] is not None else np.empty(0, np.uint8)
    return _mix(_fnv(offsets, data))


def _fnv(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> U64:
    """The FNV-1a hash of each string, byte by byte for all strings at once, the longest first.

    A compiled loop is several times faster. But it needs Numba, a third of a second and 60 MB in every process that
    hashes a string, and a compilation before the first. Cost: O(bytes + greatest length).
    """
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    begins, shorter = offsets[:-1][order], -lengths[order]  # `shorter` ascends, as a binary search needs
    hashes = np.full(len(order), _FNV_START)
    byte = 0
    while (longer := int(np.searchsorted(shorter, -byte, "left"))) >= _FEW:
        hashes[:longer] ^= data[begins[:longer] + byte]
        hashes[:longer] *= _FNV_PRIME
        byte += 1
    for row in range(longer):
        value = int(hashes[row])
        for each in data[begins[row] + byte : begins[row] - shorter[row]].tolist():
            value = (value ^ each) * int(_FNV_PRIME) & _ALL_BITS
        hashes[row] = value
    result = np.empty_like(hashes)
    result[order] = hashes
    return result
