"""Families of column types whose values compare with each other, with few values each, so that ties happen.

A family knows its Arrow types, its values (as the law computes with them, `tests/oracle_terms.py`), the constants that
a user would write beside it, and the lengths of bands and shifts. Extremes are the ends of each type and the
neighbours of 2^53; they are mixed in where a case is hostile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from tests.oracle_terms import constant

Algebra = Literal["numbers", "decimals", "instants", "durations", "times", "none"]
"""What may be computed with a column: times of day have differences only, strings nothing."""

_TICKS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_UNITS = ("s", "ms", "us", "ns")
_NAN = float("nan")


@dataclass(frozen=True)
class Family:
    """Types that compare, and the values to fill columns with."""

    name: str
    algebra: Algebra
    types: tuple[pa.DataType, ...]
    values: tuple[Any, ...]
    constants: tuple[Any, ...]
    shifts: tuple[Any, ...] = ()
    extremes: tuple[Any, ...] = ()

    def pool(self, kind: pa.DataType, hostile: bool) -> list[Any]:
        """The values that a column of this type can hold."""
        values = self.values + (self.extremes + ends_of(kind) if hostile else ())
        return [value for value in values if fits(value, kind)]


def ends_of(kind: pa.DataType) -> tuple[Any, ...]:
    """The smallest and the greatest value of a type, and their neighbours."""
    if pa.types.is_integer(kind):
        size = 2**kind.bit_width
        low, high = (0, size - 1) if pa.types.is_unsigned_integer(kind) else (-size // 2, size // 2 - 1)
        return low, low + 1, high - 1, high
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        tick = _TICKS[kind.unit]
        return -(2**63) * tick, (-(2**63) + 1) * tick, (2**63 - 1) * tick
    if pa.types.is_decimal(kind):
        top = Fraction(10**kind.precision - 1, 10**kind.scale)
        return -top, top
    return ()


def fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a column of this type can hold the value exactly (a float at all)."""
    if pa.types.is_boolean(kind):
        return value in (0, 1) and not isinstance(value, float)
    if pa.types.is_integer(kind):
        low, _, _, high = ends_of(kind)
        return isinstance(value, int) and low <= value <= high
    if pa.types.is_floating(kind):
        most = {16: 1e4, 32: 1e38, 64: float("inf")}[kind.bit_width]
        return isinstance(value, float) and not most < abs(value) < float("inf")
    if pa.types.is_decimal(kind):
        scaled = Fraction(value) * 10**kind.scale
        return scaled.denominator == 1 and abs(scaled) < 10**kind.precision
    if pa.types.is_fixed_size_binary(kind):
        return len(value) == kind.byte_width
    if pa.types.is_temporal(kind):
        stored = Fraction(value, tick_of(kind))
        width = 31 if kind.bit_width == 32 else 63
        return stored.denominator == 1 and -(2**width) <= stored < 2**width
    return True


def tick_of(kind: pa.DataType) -> int:
    """Nanoseconds of one stored unit."""
    if pa.types.is_date32(kind):
        return 86_400 * 10**9
    return 10**6 if pa.types.is_date64(kind) else _TICKS[kind.unit]


def column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of a type from values as the law computes with them."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    if pa.types.is_boolean(kind):
        return pa.array([None if v is None else bool(v) for v in values], kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if v is None else _decimal(v) for v in values], kind)
    if pa.types.is_temporal(kind):
        stored = [None if v is None else v // tick_of(kind) for v in values]
        return pa.array(stored, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.array(values, kind)


def _decimal(value: Fraction | int) -> Decimal:
    exact = Fraction(value)
    shift = 0
    while exact.denominator != 1:
        exact, shift = exact * 10, shift + 1
    digits = tuple(int(digit) for digit in str(abs(exact.numerator)))
    return Decimal((int(exact < 0), digits, -shift))


def _values(*written: Any) -> tuple[Any, ...]:
    return tuple(constant(value) for value in written)


_DAY = datetime(2024, 2, 29)  # a leap day, without a zone
_INSTANTS = (
    _DAY, datetime(2024, 2, 28, 23, 59, 59, 999_999), datetime(2024, 2, 29, 0, 0, 1), datetime(2024, 3, 1),
    datetime(1969, 12, 31), datetime(2024, 2, 29, 0, 0, 0, 1), datetime(2024, 2, 28),
)  # fmt: skip
_LENGTHS = (timedelta(0), timedelta(seconds=1), timedelta(days=1), timedelta(microseconds=1), timedelta(seconds=-1))
_TEXTS = (
    "", "a", "A", "ab", "b", "aaaaaaaa", "aaaaaaaab", "aaaaaaaaa", "a\x00", "a\x00\x00", "Z", "é", "\uffff",
    "\U0001f600", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2", "it's",
)  # fmt: skip

INTEGERS = Family(
    "integers", "numbers",
    (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.bool_()),
    (-2, -1, 0, 1, 2, 3), (-1, 0, 1, 2, 0.5), (-3, -1, 1, 2),
    (2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1),
)  # fmt: skip
NUMBERS = Family(
    "numbers", "numbers",
    (pa.float64(), pa.float64(), pa.float32(), pa.float16(), pa.int64(), pa.int32(), pa.uint64(), pa.bool_()),
    (-1.5, -0.5, 0.0, -0.0, 0.1, 0.2, 0.3, 1.0, 2.0, _NAN, -1, 0, 1, 2),
    (-1, 0, 1, 0.1, 0.5), (-3, 1, 2, 0.1, -0.5, 1.5),
    (float("inf"), float("-inf"), 5e-324, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 1.7976931348623157e308,
     2**53 + 1, 2**63 - 1),
)  # fmt: skip
DECIMALS = Family(
    "decimals", "decimals",
    (pa.decimal128(5, 2), pa.decimal128(10, 1), pa.decimal128(18, 4), pa.decimal128(9, 0), pa.decimal256(12, 2),
     pa.decimal32(6, 2), pa.decimal64(12, 3), pa.int32(), pa.int64()),
    (*_values(*map(Decimal, ("-1.5", "-0.01", "0", "0.1", "0.25", "1.5", "1.0001", "2"))), 0, 1, 2),
    (Decimal("0.1"), Decimal("1.50"), 1, 0, 0.25), (Decimal("0.1"), 1, -2, Decimal("0.05")),
)  # fmt: skip
WIDE_DECIMALS = Family(
    "wide decimals", "none",
    (pa.decimal128(38, 3), pa.decimal128(25, 3), pa.decimal256(60, 3)),
    _values(*map(Decimal, ("-1.5", "0", "0.001", "12345678901234567890.001", "12345678901234567890.002",
                           "-12345678901234567890.001"))),
    (Decimal("0.001"), Decimal("12345678901234567890.001"), 0),
)  # fmt: skip
INSTANTS = Family(
    "instants", "instants",
    (*(pa.timestamp(unit) for unit in _UNITS), pa.date32(), pa.date64()),
    _values(*_INSTANTS), (_DAY, date(2024, 2, 28), datetime(2024, 2, 29, 0, 0, 1)), _LENGTHS,
)  # fmt: skip
ZONED = Family(
    "zoned instants", "instants",
    tuple(pa.timestamp(unit, zone) for unit in _UNITS for zone in ("UTC", "Asia/Tokyo")),
    _values(*_INSTANTS), (_DAY.replace(tzinfo=UTC), datetime(2024, 2, 29, 0, 0, 1, tzinfo=UTC)), _LENGTHS,
)  # fmt: skip
DURATIONS = Family(
    "durations", "durations", tuple(pa.duration(unit) for unit in _UNITS), _values(*_LENGTHS, timedelta(seconds=2)),
    (timedelta(0), timedelta(seconds=1)), _LENGTHS,
)  # fmt: skip
TIMES = Family(
    "times of day", "times", (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    _values(time(0), time(0, 0, 1), time(12), time(12, 0, 0, 1), time(23, 59, 59, 999_999)), (time(12), time(0, 0, 1)),
    (timedelta(0), timedelta(seconds=1), timedelta(hours=12)),
)  # fmt: skip
STRINGS = Family(
    "strings", "none", (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())),
    _TEXTS, ("a", "aaaaaaaa", "", "é", "it's"),
)  # fmt: skip
BINARIES = Family(
    "binaries", "none", (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(8)),
    (*(text.encode() for text in _TEXTS), b"\xff" * 9, b"\xff" * 8, b"\x80"), (b"a", b"", b"aaaaaaaa", b"\xff" * 8),
)  # fmt: skip

FAMILIES = (
    INTEGERS, NUMBERS, DECIMALS, WIDE_DECIMALS, INSTANTS, ZONED, DURATIONS, TIMES, STRINGS, BINARIES,
)  # fmt: skip
