"""CAST: the types that a query may name, and the conversions between them.

A value that has no counterpart in the type (a text that is not a number, a number that does not fit) becomes null: a
join must not depend on which pairs it happens to look at, and an error would. So CAST and TRY_CAST are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import Argument, ArgumentError, known, numbers_of, of_numbers, plain
from operators.functions.decimal_numbers import decimal_array, decimal_numbers
from operators.functions.families import NUMBERS, article

_NAMES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(), "BOOL": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(),
    "INTEGER": pa.int32(), "BIGINT": pa.int64(), "LONG": pa.int64(), "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(), "UINT": pa.uint32(), "UBIGINT": pa.uint64(), "HUGEINT": pa.decimal128(38, 0),
    "INT128": pa.decimal128(38, 0), "FLOAT": pa.float32(), "REAL": pa.float32(), "DOUBLE": pa.float64(),
    "DOUBLE PRECISION": pa.float64(), "VARCHAR": pa.string(), "TEXT": pa.string(), "STRING": pa.string(),
    "CHAR": pa.string(), "BPCHAR": pa.string(), "BLOB": pa.binary(), "BINARY": pa.binary(), "VARBINARY": pa.binary(),
    "BYTEA": pa.binary(), "DATE": pa.date32(), "TIME": pa.time64("us"), "TIMESTAMP": pa.timestamp("us"),
    "DATETIME": pa.timestamp("us"), "TIMESTAMPNTZ": pa.timestamp("us"), "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"), "TIMESTAMP_US": pa.timestamp("us"), "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"), "INT8": pa.int64(), "INT4": pa.int32(), "INT2": pa.int16(),
    "FLOAT8": pa.float64(), "FLOAT4": pa.float32(),
}  # fmt: skip


def named_type(written: str) -> pa.DataType:
    """The Arrow type that a query calls so; raises ArgumentError."""
    name = re.sub(r"\s+", " ", written.strip().upper())
    found = _NAMES.get(name) or _NAMES.get(re.sub(r"\s*\(\s*\d+\s*\)$", "", name))
    digits = re.fullmatch(r"(?:DECIMAL|NUMERIC|DEC)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", name)
    if digits:
        precision = int(digits[1] or 18)
        scale = int(digits[2] or (0 if digits[1] else 3))
        if not 1 <= precision <= 76 or scale > precision:
            raise ArgumentError(f"{written} has at most 76 digits, and at least those after the point")
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if found is None:
        raise ArgumentError(
            f"{written} is not a type that a value can be cast to: write one of BOOLEAN, INTEGER, BIGINT, DOUBLE, "
            "DECIMAL(p, s), VARCHAR, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMPTZ"
        )
    return found


def type_name(kind: pa.DataType) -> str:
    """The name of a type in a query."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    names = ("TIMESTAMP", "BIGINT", "VARCHAR", "DOUBLE", "BOOLEAN", "TIMESTAMPTZ", *_NAMES)
    return next((name for name in names if _NAMES[name] == kind), str(kind))


def cast_type(argument: Argument, target: pa.DataType) -> pa.DataType:
    """The target; raises ArgumentError if values of the argument's family have no counterpart in it at all."""
    if argument.family != "null" and argument.kind != target and _conversion(argument, target) is None:
        raise ArgumentError(f"{article(argument.family)} cannot be cast to {type_name(target)}")
    return target


def cast(column: pa.Array, argument: Argument, target: pa.DataType) -> pa.Array:
    """The values in another type; null where they have no counterpart. ``column`` is in its own type."""
    if argument.family == "null":
        return pa.nulls(len(column), target)
    if plain(column.type) == target or column.type == target:
        return column.cast(target)
    convert = _conversion(argument, target)
    assert convert is not None, "the types have been checked"
    if pa.types.is_floating(column.type) and pa.types.is_string(target):
        return _text_of_floats(column)
    return convert(known(column), target)


def _conversion(argument: Argument, target: pa.DataType) -> Callable[[pa.Array, pa.DataType], pa.Array] | None:
    types, family = pa.types, argument.family
    number = family in NUMBERS
    if types.is_string(target):
        if family == "float" or family in ("list", "struct", "interval", "duration", "binary"):
            return _to_text if family == "float" else None
        return _to_text
    if types.is_boolean(target):
        return _to_boolean if number else _from_text if family == "string" else None
    if types.is_integer(target):
        return _to_integer if number else _from_text if family == "string" else None
    if types.is_floating(target):
        return _to_float if number else _from_text if family == "string" else None
    if types.is_decimal(target):
        return _to_decimal if number else _from_text if family == "string" else None
    if types.is_binary(target):
        return _plainly if family == "string" else None
    if types.is_date(target):
        return _from_text if family == "string" else _to_date if family in _INSTANTS else None
    if types.is_timestamp(target):
        return _from_text if family == "string" else _to_timestamp if family in _INSTANTS else None
    if types.is_time(target):
        clocks = ("timestamp", "zoned timestamp", "time of day")
        return _from_text if family == "string" else _to_clock if family in clocks else None
    return None


_INSTANTS = ("date", "timestamp", "zoned timestamp")


def _plainly(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column.cast(target)


def _to_boolean(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(column.type):
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return pa.array((decimal_numbers(column) != 0).astype(bool), mask=~valid)
    return pc.not_equal(column, pa.scalar(0, column.type))


def _to_integer(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Floats go to the nearest integer, halves to the even one; decimals too, halves away from zero."""
    if pa.types.is_decimal(column.type):
        numbers, valid = _rescaled(column, 0)
    else:
        numbers, valid = numbers_of(column)
        if pa.types.is_floating(column.type):
            numbers = np.rint(numbers)
    bits, signed = target.bit_width, pa.types.is_signed_integer(target)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if numbers.dtype == np.float64:  # float(2**63 - 1) is 2**63: the end itself is out
        fits = (numbers >= float(low)) & (numbers < float(high + 1))
    else:
        fits = ((numbers >= low) & (numbers <= high)).astype(np.bool_)
    fits = fits if valid is None else fits & valid
    stored = np.where(fits, numbers, 0).astype(f"{'i' if signed else 'u'}{bits // 8}")
    return of_numbers(stored, fits, target)


def _to_float(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).cast(target)


def _to_decimal(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(column.type):
        numbers, valid = _rescaled(column, target.scale)
    else:
        numbers, valid = numbers_of(column)
        if pa.types.is_floating(column.type):
            with np.errstate(all="ignore"):
                moved = numbers * 10.0**target.scale
            finite = np.isfinite(moved)
            valid = finite if valid is None else valid & finite
            rounded = np.copysign(np.floor(np.abs(np.where(finite, moved, 0.0)) + 0.5), moved)
            small = not len(rounded) or np.abs(rounded).max() < 2.0**62
            numbers = rounded.astype(np.int64) if small else np.array([int(each) for each in rounded], object)
        else:
            numbers = numbers.astype(object) * 10**target.scale
    numbers = numbers.astype(object)
    fits = ((numbers < 10**target.precision) & (numbers > -(10**target.precision))).astype(np.bool_)
    fits = fits if valid is None else fits & valid
    return decimal_array(np.where(fits, numbers, 0).astype(object), fits, target)


def _rescaled(column: pa.Array, scale: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Decimals as whole numbers of another scale, halves away from zero."""
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    numbers = decimal_numbers(column).astype(object)
    digits = scale - column.type.scale
    if digits >= 0 or not len(numbers):
        return numbers * 10 ** max(digits, 0), valid
    unit = 10**-digits
    size = (np.abs(numbers) + unit // 2) // unit
    return np.where(numbers < 0, -size, size), valid


def _to_date(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        if column.type.tz is not None:
            column = pc.local_timestamp(column)
        return pc.floor_temporal(column, unit="day").cast(pa.timestamp("s")).cast(target)
    return column.cast(target)


def _to_timestamp(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if column.type.tz is not None and target.tz is None:
        column = pc.local_timestamp(column)
    elif column.type.tz is None and target.tz is not None:
        column = pc.assume_timezone(column, target.tz)
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    own, wanted = ticks[column.type.unit], ticks[target.unit]
    numbers, valid = numbers_of(column.cast(pa.int64()))
    if own >= wanted:
        moved = numbers // (own // wanted)
    else:
        factor = wanted // own
        limit = (2**63 - 1) // factor
        fits = (numbers <= limit) & (numbers >= -limit)
        valid = fits if valid is None else valid & fits
        moved = np.where(fits, numbers, 0) * factor
    return of_numbers(moved, valid).cast(target)


def _to_clock(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = pc.local_timestamp(column)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = pc.floor_temporal(column, unit="microsecond")
    return column.cast(pa.time64("us"), safe=False).cast(target)


def _to_text(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        text = pc.local_timestamp(column.cast(pa.timestamp(column.type.unit, "UTC"))).cast(target)
        return pc.binary_join_element_wise(_short(text), "+00", "")
    text = column.cast(target)
    timed = pa.types.is_timestamp(column.type) or pa.types.is_time(column.type)
    return _short(text) if timed else text


def _short(text: pa.Array) -> pa.Array:
    """Times without zeros at the end of their fraction."""
    return pc.replace_substring_regex(text, r"\.?0+$", "") if _has_fraction(text) else text


def _has_fraction(text: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(text, ".")).as_py())


def _text_of_floats(column: pa.Array) -> pa.Array:
    """The shortest text that means the number."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    numbers = column.fill_null(0.0).to_numpy(zero_copy_only=False)
    valid = valid & ~np.isnan(numbers)
    return pa.array(np.where(valid, numbers, 0).astype(np.str_), pa.string(), mask=~valid)


_INTEGER = r"[+-]?[0-9]+"
_FLOAT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def _from_text(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Arrow reads numbers that fit the type; otherwise each distinct text is read once."""
    number = _INTEGER if pa.types.is_integer(target) else _FLOAT if pa.types.is_floating(target) else None
    if number is not None:
        trimmed = pc.utf8_trim_whitespace(column)
        if pc.all(pc.match_substring_regex(trimmed, rf"\A{number}\z")).as_py():
            try:
                return pc.replace_substring_regex(trimmed, r"\A\+", "").cast(target)
            except pa.ArrowInvalid:  # one of them is beyond the type
                pass
    encoded = column.dictionary_encode()
    found = [_read(text, target) for text in encoded.dictionary.to_pylist()]
    return pa.array(found, target).take(encoded.indices)


def _read(text: str, target: pa.DataType) -> Any:
    types, written = pa.types, text.strip()
    try:
        if types.is_boolean(target):
            return {"true": True, "t": True, "1": True, "yes": True, "y": True,
                    "false": False, "f": False, "0": False, "no": False, "n": False}.get(written.lower())  # fmt: skip
        if types.is_integer(target):
            return _within(int(written), target) if re.fullmatch(_INTEGER, written) else None
        if types.is_floating(target):
            number = rf"{_FLOAT}|[+-]?inf(inity)?"
            return float(written) if re.fullmatch(number, written, re.IGNORECASE) else None
        if types.is_decimal(target):
            if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", written):
                return None
            exact = pa.decimal256(76, min(len(written.partition(".")[2]), 38))
            found = pa.array([Decimal(written)], exact)
            return cast(found, Argument("decimal", exact), target)[0].as_py()
        if types.is_date(target):
            return date.fromisoformat(written[:10]) if re.match(r"\d{4}-\d\d-\d\d($|[ T]\d)", written) else None
        if types.is_time(target):
            return time.fromisoformat(written)
        moment = datetime.fromisoformat(written)
        if target.tz is not None:
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, pa.ArrowException):
        return None


def _within(number: int, target: pa.DataType) -> int | None:
    bits, signed = target.bit_width, pa.types.is_signed_integer(target)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return number if low <= number <= high else None
