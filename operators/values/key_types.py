"""The Arrow types that can be join keys, and the conversion of their columns to int64 or float64 keys.

Indexes only know int64 and float64. Most types map to one of them without loss and in the same order: unsigned 64-bit
integers flip their top bit (`KeyType.offset` undoes it), narrower numbers widen, dates and times keep their ticks
(`KeyType.tick` is the length of one), decimals of up to 18 digits drop their point. The bounds undo these maps exactly
when two columns of different types are compared. Strings, binary, longer decimals, lists and structs do not fit 64
bits. They have a *lead*: a key that never falls as the value rises. Leads narrow a search; the values settle it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Keys
from operators.functions.arguments import ArgumentError
from operators.functions.composed_values import encoded, shape
from operators.functions.decimal_numbers import DIGITS_IN_64_BITS, decimal_leads, small_decimals
from operators.functions.families import COMPOSED, TEXTS, TIMES, Family
from operators.query.errors import PredicateError
from operators.values.text_keys import text_leads

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INT64_MIN = np.iinfo(np.int64).min


@dataclass(frozen=True)
class KeyType:
    """The meaning of one column's keys: ``value = (key + offset) * unit``."""

    column: str
    arrow: pa.DataType
    family: Family
    tick: int = 1  # nanoseconds for dates and times, 1 for numbers
    offset: int = 0  # 2**63 for uint64, whose keys have the top bit flipped
    scale: int = 0  # digits after a decimal's point
    role: str | None = None  # the column's stream, if known

    @property
    def is_float(self) -> bool:
        return self.family == "float"

    @property
    def is_lead(self) -> bool:
        """Whether keys are leads: two values may share one."""
        plain = plain_type(self.arrow)
        return self.family in (*TEXTS, *COMPOSED) or (self.family == "decimal" and plain.precision > DIGITS_IN_64_BITS)

    @cached_property
    def stored(self) -> np.dtype[np.int64] | np.dtype[np.float64] | None:
        """The type of keys that are the column's own buffer; None if they have to be converted."""
        plain = plain_type(self.arrow) == self.arrow
        if not plain or self.offset or self.family in (*TEXTS, *COMPOSED, "decimal") or pa.types.is_boolean(self.arrow):
            return None
        return self.dtype if self.arrow.bit_width == 64 else None

    @property
    def is_temporal(self) -> bool:
        return self.family in TIMES

    @property
    def unit(self) -> Fraction:
        """The value of one key unit, in nanoseconds or as a number."""
        return self.tick / Fraction(10) ** self.scale

    @property
    def dtype(self) -> np.dtype[np.int64] | np.dtype[np.float64]:
        floats = self.is_float or (self.family == "decimal" and self.is_lead)
        return np.dtype(np.float64) if floats else np.dtype(np.int64)

    def __str__(self) -> str:
        return f"{self.column} ({self.arrow})"


def key_type(column: str, arrow: pa.DataType) -> KeyType:
    """The key type of ``column``; raises PredicateError, with a remedy, for a type whose values do not compare.

    Dictionary and run-length encodings have the type of their values.
    """
    types = pa.types
    plain = plain_type(arrow)
    if types.is_integer(plain):
        return KeyType(column, arrow, "integer", offset=2**63 if types.is_uint64(plain) else 0)
    if types.is_boolean(plain):
        return KeyType(column, arrow, "integer")
    if types.is_floating(plain):
        return KeyType(column, arrow, "float")
    if types.is_decimal(plain):
        return KeyType(column, arrow, "decimal", scale=plain.scale)
    if types.is_timestamp(plain):
        family: Family = "timestamp" if plain.tz is None else "zoned timestamp"
        return KeyType(column, arrow, family, tick=_NANOSECONDS[plain.unit])
    if types.is_date32(plain):
        return KeyType(column, arrow, "date", tick=86_400 * _NANOSECONDS["s"])
    if types.is_date64(plain):
        return KeyType(column, arrow, "date", tick=_NANOSECONDS["ms"])
    if types.is_time(plain):
        return KeyType(column, arrow, "time of day", tick=_NANOSECONDS[plain.unit])
    if types.is_duration(plain):
        return KeyType(column, arrow, "duration", tick=_NANOSECONDS[plain.unit])
    if types.is_string(plain) or types.is_large_string(plain) or types.is_string_view(plain):
        return KeyType(column, arrow, "string")
    if (
        types.is_binary(plain)
        or types.is_large_binary(plain)
        or types.is_binary_view(plain)
        or types.is_fixed_size_binary(plain)
    ):
        return KeyType(column, arrow, "binary")
    family_of: list[tuple[bool, Family]] = [
        (types.is_list(plain) or types.is_large_list(plain) or types.is_fixed_size_list(plain), "list"),
        (types.is_struct(plain), "struct"),
        (types.is_interval(plain), "interval"),
    ]
    for found, composed in family_of:
        if found and _has_shape(plain):
            return KeyType(column, arrow, composed)
    raise PredicateError(f"column {column} of type {arrow} cannot be compared: {_remedy(column, arrow)}")


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """The type of a column after `decoded`."""
    while pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        arrow = arrow.value_type
    return arrow


def decoded(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array without dictionary and run-length encoding. No copy unless there is something to undo."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(
            array.chunks or [pa.array([], array.type)]
        )  # fmt: skip
    while plain_type(array.type) != array.type:
        array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else pc.run_end_decode(array)
    return array


def _remedy(column: str, arrow: pa.DataType) -> str:
    types = pa.types
    cell = f'table["{column}"]'
    if types.is_null(arrow):
        return f'it holds nulls alone; give it a type: {cell}.cast("int64")'
    if isinstance(arrow, pa.BaseExtensionType):
        return f'cast it to what it is stored as: {cell}.cast("{arrow.storage_type}")'
    return "use a column of numbers, booleans, strings, binary, times, or lists or structs of these"


def _has_shape(arrow: pa.DataType) -> bool:
    try:
        shape(arrow)
    except ArgumentError:
        return False
    return True


def to_keys(column: str, array: pa.Array | pa.ChunkedArray) -> Keys:
    """The keys of ``array``: null and NaN become invalid, -0.0 becomes 0.0.

    Zero-copy for 64-bit signed types and float64 without negative zeros; one pass otherwise. The
    value of an invalid row is arbitrary.
    """
    return keys_of_type(key_type(column, array.type), array)


def keys_of_type(kind: KeyType, array: pa.Array | pa.ChunkedArray) -> Keys:
    """As `to_keys`, for a column whose key type is known."""
    if kind.stored is not None and isinstance(array, pa.Array) and len(array) and not array.null_count:
        values = np.frombuffer(array.buffers()[1], kind.stored, count=len(array), offset=8 * array.offset)
        return _float_keys(values, None) if kind.is_float else Keys(values)
    array = decoded(array)
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False) if array.null_count else None
    if kind.family in TEXTS:
        return Keys(text_leads(array), valid)
    if kind.family in COMPOSED:
        return Keys(text_leads(encoded(array)), valid)
    if kind.family == "decimal":
        return Keys(decimal_leads(array) if kind.is_lead else small_decimals(array), valid)
    if kind.is_float:
        return _float_keys(stored_values(array).astype(np.float64, copy=False), valid)
    values = stored_values(array)
    if kind.offset:
        values = values.view(np.int64) ^ np.int64(_INT64_MIN)
    return Keys(values.astype(np.int64, copy=False), valid)


def _float_keys(values: np.ndarray, valid: np.ndarray | None) -> Keys:
    nan = np.isnan(values)
    if np.count_nonzero(nan):
        valid = ~nan if valid is None else valid & ~nan
    if np.count_nonzero(values.view(np.int64) == _INT64_MIN):  # the bits of -0.0
        values = values + 0.0
    return Keys(values, valid)


def stored_values(array: pa.Array) -> np.ndarray:
    """The values of a column of fixed width as stored, ignoring nulls: a view of Arrow's own buffer."""
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
