"""Which Arrow types can be a join key, and how a column of one becomes int64 or float64 keys.

Below this file only int64 and float64 exist. Every type maps to one of them in an order-preserving
way that loses nothing: unsigned 64-bit integers flip their top bit (`KeyType.offset` undoes it),
narrower numbers widen, dates and times keep their ticks (`KeyType.tick` says how long one is). The
bounds undo these maps exactly when two columns of different types meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexes.columns import Keys
from operators.errors import PredicateError

# What a key measures. Keys of one family compare with each other (integers also with floats, dates
# also with timestamps that carry no time zone); anything else needs a cast the user writes.
Family = Choice[
    "integer", "float", "timestamp", "zoned timestamp", "date", "time of day", "duration"
]

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INT64_MIN = np.iinfo(np.int64).min


@dataclass(frozen=True)
class KeyType:
    """How keys of one column relate to its values: ``value = (key + offset) * tick``."""

    column: str
    arrow: pa.DataType
    family: Family
    tick: int = 1  # nanoseconds for dates and times, 1 for numbers
    offset: int = 0  # 2**63 for uint64, whose keys have the top bit flipped

    @property
    def is_float(self) -> bool:
        return self.family == "float"

    @property
    def is_temporal(self) -> bool:
        return self.family not in ("integer", "float")

    @property
    def dtype(self) -> np.dtype[np.int64] | np.dtype[np.float64]:
        return np.dtype(np.float64) if self.is_float else np.dtype(np.int64)

    def __str__(self) -> str:
        return f"{self.column} ({self.arrow})"


def key_type(column: str, arrow: pa.DataType) -> KeyType:
    """The key type of ``column``; a type that cannot be a key is an error with a remedy."""
    types = pa.types
    if types.is_integer(arrow):
        return KeyType(column, arrow, "integer", offset=2**63 if types.is_uint64(arrow) else 0)
    if types.is_boolean(arrow):
        return KeyType(column, arrow, "integer")
    if types.is_floating(arrow):
        return KeyType(column, arrow, "float")
    if types.is_timestamp(arrow):
        family: Family = "timestamp" if arrow.tz is None else "zoned timestamp"
        return KeyType(column, arrow, family, tick=_NANOSECONDS[arrow.unit])
    if types.is_date32(arrow):
        return KeyType(column, arrow, "date", tick=86_400 * _NANOSECONDS["s"])
    if types.is_date64(arrow):
        return KeyType(column, arrow, "date", tick=_NANOSECONDS["ms"])
    if types.is_time(arrow):
        return KeyType(column, arrow, "time of day", tick=_NANOSECONDS[arrow.unit])
    if types.is_duration(arrow):
        return KeyType(column, arrow, "duration", tick=_NANOSECONDS[arrow.unit])
    raise PredicateError(
        f"column {column} of type {arrow} cannot be a join key: {_remedy(column, arrow)}"
    )


def _remedy(column: str, arrow: pa.DataType) -> str:
    types = pa.types
    cell = f'table["{column}"]'
    if types.is_decimal(arrow):
        return (
            f'cast it, {cell}.cast("float64"), or multiply it by {10 ** max(arrow.scale, 0)} and '
            'cast to "int64" to stay exact'
        )
    if types.is_dictionary(arrow):
        return f'decode it first: {cell}.cast("{arrow.value_type}")'
    if any(word in str(arrow) for word in ("string", "binary")):
        return (
            "string keys are not supported yet; give the strings numbers that keep their order, "
            'for instance pc.rank(..), or cast digits with .cast("int64")'
        )
    return "use a column of integers, floats, booleans, timestamps, dates, times or durations"


def to_keys(column: str, array: pa.Array | pa.ChunkedArray) -> Keys:
    """The keys of ``array``: null and NaN become invalid, -0.0 becomes 0.0.

    Zero-copy for 64-bit signed types and float64 without negative zeros; one pass otherwise. The
    value of an invalid row is arbitrary.
    """
    kind = key_type(column, array.type)
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(
            array.chunks or [pa.array([], array.type)]
        )  # fmt: skip
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False) if array.null_count else None
    if kind.is_float:
        return _float_keys(_storage(array).astype(np.float64, copy=False), valid)
    values = _storage(array)
    if kind.offset:
        values = values.view(np.int64) ^ np.int64(_INT64_MIN)
    return Keys(values.astype(np.int64, copy=False), valid)


def _float_keys(values: np.ndarray, valid: np.ndarray | None) -> Keys:
    nan = np.isnan(values)
    if nan.any():
        valid = ~nan if valid is None else valid & ~nan
    if (values.view(np.int64) == _INT64_MIN).any():  # the bits of -0.0
        values = values + 0.0
    return Keys(values, valid)


def _storage(array: pa.Array) -> np.ndarray:
    """The values as stored, ignoring nulls: a view of Arrow's own buffer."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    width = array.type.bit_width // 8
    code = "f" if pa.types.is_floating(array.type) else "i"
    if pa.types.is_unsigned_integer(array.type):
        code = "u"
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.empty(0, f"{code}{width}")
    return np.frombuffer(data, f"{code}{width}", count=len(array), offset=array.offset * width)
