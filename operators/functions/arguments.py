"""Arguments of a built-in function: what is known of them before any row, and the types that they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.families import NUMBERS, TIMES, Family, article

_TICKS = ("s", "ms", "us", "ns")


class ArgumentError(ValueError):
    """Arguments of the wrong family; the text says what the function takes."""


@dataclass(frozen=True)
class Argument:
    """One argument: its family, the type of its column (see `plain`), and its value if it is a constant."""

    family: Family
    kind: pa.DataType
    is_constant: bool = False
    value: Any = None

    @property
    def is_boolean(self) -> bool:
        return bool(pa.types.is_boolean(self.kind))


def plain(kind: pa.DataType) -> pa.DataType:
    """The type in which functions get a column: one width per family, so that each is written once."""
    types = pa.types
    if types.is_integer(kind) and not types.is_uint64(kind):
        return pa.int64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_date64(kind):
        return pa.timestamp("ms")
    if types.is_time32(kind):
        return pa.time64("us")
    if types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field)
    if types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def known(array: pa.Array) -> pa.Array:
    """A column in its plain type, with null for NaN: to functions, as to comparisons, NaN is no value."""
    kind = plain(array.type)
    if kind != array.type:
        array = array.cast(kind)
    if pa.types.is_floating(kind):
        missing = pc.is_nan(array)
        if pc.any(missing).as_py():
            array = pc.if_else(pc.fill_null(missing, False), pa.scalar(None, kind), array)
    return array


def require(arguments: Sequence[Argument], families: Sequence[tuple[str, tuple[Family, ...]]]) -> None:
    """Check each argument against (what it is called, the families that it may have); null is always allowed."""
    for number, (argument, (called, allowed)) in enumerate(zip(arguments, families, strict=False)):
        if argument.family not in (*allowed, "null"):
            place = f"argument {number + 1} " if len(arguments) > 1 else "its argument "
            raise ArgumentError(f"{place}must be {called}, not {article(argument.family)}")


def constant_text(argument: Argument, what: str, choices: Sequence[str] = ()) -> str:
    """The text of an argument that must be written in the query."""
    if not argument.is_constant or not isinstance(argument.value, str):
        raise ArgumentError(f"{what} must be written as text, such as '{choices[0] if choices else 'a'}'")
    return argument.value


def common_type(arguments: Sequence[Argument]) -> pa.DataType:
    """The type that holds the values of all arguments, for functions that choose one of them."""
    given = [each for each in arguments if each.family != "null"]
    if not given:
        return pa.null()
    families = {each.family for each in given}
    if families <= {*NUMBERS}:
        return _common_number(given)
    timed = [each for each in given if each.family in TIMES]
    if timed and len(timed) < len(given):  # text that is written is read as a time
        if any(each.family != "string" or not each.is_constant for each in given if each not in timed):
            raise ArgumentError(f"the values must be of one kind, not {_listed(families)}")
        return common_type(timed)
    if families == {"timestamp", "date"} or families == {"timestamp"} or families == {"duration"}:
        units = ["s" if pa.types.is_date(each.kind) else each.kind.unit for each in given]
        finest = max(units, key=_TICKS.index)
        return pa.duration(finest) if families == {"duration"} else pa.timestamp(finest)
    if families == {"zoned timestamp"}:
        finest = max((each.kind.unit for each in given), key=_TICKS.index)
        return pa.timestamp(finest, given[0].kind.tz)
    if len(families) > 1:
        raise ArgumentError(f"the values must be of one kind, not {_listed(families)}")
    columns = {each.kind for each in given if not each.is_constant} or {given[0].kind}
    if len(columns) > 1:
        columns -= {pa.list_(pa.null())}  # a list of nulls is one of any type
    if len(columns) > 1:
        raise ArgumentError(f"the values must be of one type, not {' and '.join(sorted(map(str, columns)))}")
    return columns.pop()


def converted(array: pa.Array, argument: Argument, target: pa.DataType) -> pa.Array:
    """An argument's column in the common type."""
    if array.type == target:
        return array
    if argument.family == "null":
        return pa.nulls(len(array), target)
    if argument.is_constant:
        return pa.repeat(pa.scalar(_constant(argument.value, target), target), len(array))
    if pa.types.is_boolean(array.type) and not pa.types.is_boolean(target):
        array = array.cast(pa.int64())
    if pa.types.is_decimal(target) and pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20 if pa.types.is_uint64(array.type) else 19, 0))
    if pa.types.is_timestamp(target) or pa.types.is_duration(target):
        return _in_unit(array, target)
    return array.cast(target, safe=not pa.types.is_floating(target))  # an integer becomes the nearest float


def _in_unit(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Times in a finer unit; null where they do not fit it."""
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s"))
    factor = 1000 ** (_TICKS.index(target.unit) - _TICKS.index(array.type.unit))
    numbers, valid = numbers_of(array.cast(pa.int64()))
    limit = (2**63 - 1) // factor
    fits = (numbers <= limit) & (numbers >= -limit)
    kept = fits if valid is None else fits & valid
    return of_numbers(np.where(fits, numbers, 0) * factor, kept).cast(target)


def _constant(value: Any, target: pa.DataType) -> Any:
    if isinstance(value, str) and not pa.types.is_string(target):
        return read_time(value, target)
    if pa.types.is_decimal(target):
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        return exact.quantize(Decimal(1).scaleb(-target.scale))
    if pa.types.is_floating(target):
        return float(value)
    if pa.types.is_timestamp(target) and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return int(value) if pa.types.is_integer(target) else value


def _common_number(given: Sequence[Argument]) -> pa.DataType:
    if all(each.is_boolean for each in given):
        return pa.bool_()
    exact = any(each.family == "decimal" for each in given)
    if any(each.family == "float" and not (exact and each.is_constant) for each in given):
        if exact:
            raise ArgumentError("decimals and a column of floats do not mix: CAST one of them")
        return pa.float64()
    unsigned = [pa.types.is_uint64(each.kind) or (each.is_constant and each.value >= 0) for each in given]
    if not exact and all(unsigned) and any(pa.types.is_uint64(each.kind) for each in given):
        return pa.uint64()
    if not exact and not any(pa.types.is_uint64(each.kind) for each in given):
        return pa.int64()
    sizes = [_digits(each) for each in given]
    scale = max(after for _, after in sizes)
    digits = max(before for before, _ in sizes) + scale
    return pa.decimal128(max(digits, 1), scale) if digits <= 38 else pa.decimal256(min(digits, 76), scale)


def _digits(argument: Argument) -> tuple[int, int]:
    """Digits before and after the point."""
    if argument.is_constant:
        written = Decimal(repr(argument.value)) if isinstance(argument.value, float) else Decimal(argument.value)
        _, digits, exponent = written.as_tuple()
        assert isinstance(exponent, int)
        return max(len(digits) + exponent, 1), max(-exponent, 0)
    if pa.types.is_decimal(argument.kind):
        return argument.kind.precision - argument.kind.scale, argument.kind.scale
    return 20, 0


def read_time(text: str, target: pa.DataType) -> date | datetime | time | timedelta:
    """Text as a value of a type of times; raises ArgumentError."""
    types = pa.types
    try:
        if types.is_date(target):
            return date.fromisoformat(text.strip())
        if types.is_time(target):
            return time.fromisoformat(text.strip())
        if types.is_timestamp(target):
            moment = datetime.fromisoformat(text.strip())
            if (moment.tzinfo is None) == (target.tz is None):
                return moment
    except ValueError:
        pass
    example = {True: "'2024-02-29 08:30:00'"}.get(types.is_timestamp(target), "'2024-02-29'")
    if types.is_timestamp(target) and target.tz is not None:
        example = "'2024-02-29 08:30:00+00:00'"
    elif types.is_time(target):
        example = "'08:30:00'"
    raise ArgumentError(f"'{text}' cannot be read as {target}: write {example}")


def numbers_of(array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """Integers, booleans or floats as NumPy values, and which are valid (None: all); 0 under a null."""
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int64())
    filled = array if valid is None else pc.fill_null(array, pa.scalar(0, array.type))
    return filled.to_numpy(zero_copy_only=False), valid


def of_numbers(values: np.ndarray, valid: np.ndarray | None, kind: pa.DataType | None = None) -> pa.Array:
    """The column of NumPy values."""
    return pa.array(values, kind, mask=None if valid is None else ~valid)


def _listed(families: set[Family]) -> str:
    return " and ".join(sorted(article(family) for family in families))
