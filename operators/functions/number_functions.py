"""Built-in functions of numbers. Floats compute in float64; integers and decimals stay exact.

A result that does not exist (a remainder of a division by zero, a root of a negative number, an integer beyond 64
bits) is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import (
    Argument,
    ArgumentError,
    common_type,
    converted,
    numbers_of,
    of_numbers,
    require,
)
from operators.functions.builtin import Builtin, Compute, Result, by_distinct, taking
from operators.functions.decimal_numbers import decimal_array, decimal_numbers
from operators.functions.families import NUMBERS, Family

_NUMBER: tuple[str, tuple[Family, ...]] = ("a number", NUMBERS)
_WHOLE: tuple[str, tuple[Family, ...]] = ("a whole number", ("integer",))
_INT64 = (-(2**63), 2**63 - 1)


def _same(arguments: Sequence[Argument]) -> pa.DataType:
    """The type of the first argument; booleans count as integers."""
    require(arguments, (_NUMBER, _WHOLE))
    return pa.int64() if arguments[0].is_boolean else arguments[0].kind


def _rounded(mode: str) -> Compute:
    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        one = converted(columns[0], arguments[0], kind)
        digits: Any = columns[1] if len(columns) > 1 else pa.repeat(0, len(one))
        if kind == pa.null() or digits.type == pa.null():
            return pa.nulls(len(one), kind)
        return by_distinct(len(one), [digits], kind, lambda rows, values: _round(
            one.take(pa.array(rows)), int(str(values[0])), mode))  # fmt: skip

    return run


def _round(values: pa.Array, digits: int, mode: str) -> pa.Array:
    if pa.types.is_integer(values.type):
        if digits >= 0:
            return values
        numbers, valid = numbers_of(values)
        return _whole(_rounded_to(numbers.astype(object), 10**-digits, mode), valid, values.type)
    if pa.types.is_decimal(values.type):
        if digits >= values.type.scale:
            return values
        unit = 10 ** (values.type.scale - digits)
        numbers = _rounded_to(decimal_numbers(values).astype(object), unit, mode)
        return _decimals(numbers, values)
    floats, valid = numbers_of(values)
    with np.errstate(all="ignore"):
        scale = 10.0 ** abs(digits)
        moved = floats * scale if digits >= 0 else floats / scale
        whole = np.copysign(np.floor(np.abs(moved) + 0.5), moved) if mode == "nearest" else np.trunc(moved)
        # adding a half to the number below a half must not reach one
        whole = np.where((mode == "nearest") & (np.abs(moved) < 0.5), 0.0 * moved, whole)
        back = whole / scale if digits >= 0 else whole * scale
        done = np.where(np.isfinite(moved), back, floats)
    return of_numbers(done, valid)


def _rounded_to(numbers: np.ndarray, unit: int, mode: str) -> np.ndarray:
    """Exact whole numbers as multiples of a unit: the nearest, halves away from zero, or the one towards zero."""
    if not len(numbers):
        return numbers
    size = np.abs(numbers)
    found = (size + (unit // 2 if mode == "nearest" else 0)) // unit * unit
    signed: np.ndarray = np.where(numbers < 0, -found, found)
    return signed


def _decimals(numbers: np.ndarray, like: pa.Array) -> pa.Array:
    """Unscaled numbers in the type of a column; null where they need more digits."""
    kind = like.type
    valid = like.is_valid().to_numpy(zero_copy_only=False)
    if len(numbers):
        valid = valid & (np.abs(numbers) < 10**kind.precision).astype(bool)
    return decimal_array(np.where(valid, numbers, 0).astype(object), valid, kind)


def _whole(numbers: np.ndarray, valid: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """Python integers as 64-bit integers; null where they do not fit."""
    low, high = (0, 2**64 - 1) if kind == pa.uint64() else _INT64
    fits = ((numbers >= low) & (numbers <= high)).astype(np.bool_)
    known = fits if valid is None else fits & valid
    dtype = np.uint64 if kind == pa.uint64() else np.int64
    return of_numbers(np.where(known, numbers, 0).astype(dtype), known, kind)


def _to_whole(compute: Callable[[pa.Array], pa.Array]) -> Compute:
    """FLOOR and CEIL: integers are what they are."""

    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        one = converted(columns[0], arguments[0], kind)
        if pa.types.is_integer(kind) or pa.types.is_null(kind):
            return one
        if pa.types.is_decimal(kind):
            unit = 10**kind.scale
            numbers = decimal_numbers(one).astype(object)
            down = numbers // unit * unit if len(numbers) else numbers
            return _decimals(down if compute is pc.floor else -(-numbers // unit) * unit, one)
        return compute(one)

    return run


def _floats(compute: Callable[..., Any]) -> Compute:
    """A function of float64; NaN is null."""

    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        values, known = [], None
        for column in columns:
            if column.type == pa.null():
                return pa.nulls(len(column), kind)
            numbers, valid = numbers_of(column.cast(pa.float64(), safe=False))
            values.append(numbers)
            known = valid if known is None else known if valid is None else known & valid
        with np.errstate(all="ignore"):
            done = np.asarray(compute(*values), np.float64)
        missing = np.isnan(done)
        if missing.any():
            known = ~missing if known is None else known & ~missing
        return of_numbers(done, known)

    return run


def _float_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, [_NUMBER] * len(arguments))
    return pa.float64()


def _number_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, [_NUMBER] * len(arguments))
    found = common_type(arguments)
    return pa.int64() if pa.types.is_boolean(found) else found


def _remainder(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    """With the sign of the dividend, as in SQL and C."""
    one, other = (converted(column, each, kind) for column, each in zip(columns, arguments, strict=True))
    if pa.types.is_null(kind):
        return one
    if pa.types.is_decimal(kind):
        both = pc.and_(one.is_valid(), other.is_valid()).to_numpy(zero_copy_only=False)
        x, y = decimal_numbers(one).astype(object), decimal_numbers(other).astype(object)
        both = both & (y != 0).astype(bool) if len(y) else both
        y = np.where(both, y, 1)
        left = np.abs(x) % np.abs(y) if len(x) else x
        return decimal_array(np.where(both, np.where(x < 0, -left, left), 0).astype(object), both, kind)
    (x, valid), (y, valid2) = numbers_of(one), numbers_of(other)
    known = (y != 0) & (True if valid is None else valid) & (True if valid2 is None else valid2)
    with np.errstate(all="ignore"):
        if pa.types.is_floating(kind):
            done = np.fmod(x, y)
            known = known & ~np.isnan(done)
        else:
            done = np.fmod(x, np.where((y == 0) | (y == -1 if kind == pa.int64() else False), 1, y))
    return of_numbers(done, known)


def _quotient(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    """The whole part of a quotient of integers, towards zero."""
    one, other = (converted(column, each, kind) for column, each in zip(columns, arguments, strict=True))
    if pa.types.is_null(kind):
        return one
    (x, valid), (y, valid2) = numbers_of(one), numbers_of(other)
    overflows = (y == -1) & (x == _INT64[0]) if kind == pa.int64() else np.zeros(len(x), np.bool_)
    known = (y != 0) & ~overflows & (True if valid is None else valid) & (True if valid2 is None else valid2)
    safe = np.where(known, y, 1)
    size = np.where(known, x, 0)
    done = size // safe
    return of_numbers(done + ((done < 0) & (done * safe != size)), known)


def _quotient_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, (_WHOLE, _WHOLE))
    found = _number_type(arguments)
    if pa.types.is_decimal(found):
        raise ArgumentError("takes integers of one sign: CAST the uint64 column AS BIGINT")
    return found


def _bits(compute: Callable[..., Any]) -> Compute:
    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        parts = [converted(column, each, kind) for column, each in zip(columns, arguments, strict=True)]
        return parts[0] if pa.types.is_null(kind) else compute(*parts)

    return run


def _bit_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, [_WHOLE] * len(arguments))
    return _quotient_type(arguments)


def _shifted(left: bool) -> Compute:
    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        one, places = (converted(column, each, kind) for column, each in zip(columns, arguments, strict=True))
        if pa.types.is_null(kind):
            return one
        (x, valid), (n, valid2) = numbers_of(one), numbers_of(places)
        known = (n >= 0) & (n < 64) & (True if valid is None else valid) & (True if valid2 is None else valid2)
        by = np.where(known, n, 0)
        done = np.left_shift(x, by) if left else np.right_shift(x, by)
        if left:
            known = known & (np.right_shift(done, by) == x)
        return of_numbers(done, known)

    return run


def _sign(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    one = columns[0]
    if one.type == pa.null():
        return pa.nulls(len(one), kind)
    return pc.sign(one.cast(pa.int64()) if pa.types.is_boolean(one.type) else one).cast(kind)


def _power(x: np.ndarray, y: np.ndarray) -> Any:
    return np.power(x, y)


_FLOAT: Result = _float_type

NUMBER_FUNCTIONS = (
    Builtin("round", "to so many digits after the point (0), halves away from zero", 1, 2, _same, _rounded("nearest")),
    Builtin("trunc", "to so many digits, towards zero", 1, 2, _same, _rounded("towards zero"), aliases=("truncate",)),
    Builtin("floor", "the greatest whole number that is not above", 1, 1, _same, _to_whole(pc.floor)),
    Builtin("ceil", "the least whole number that is not below", 1, 1, _same, _to_whole(pc.ceil), aliases=("ceiling",)),
    Builtin("sign", "-1, 0 or 1", 1, 1, taking(pa.int64(), _NUMBER), _sign, aliases=("signum",)),
    Builtin("sqrt", "the square root", 1, 1, _FLOAT, _floats(np.sqrt)),
    Builtin("exp", "e to the power", 1, 1, _FLOAT, _floats(np.exp)),
    Builtin("ln", "the natural logarithm", 1, 1, _FLOAT, _floats(np.log)),
    Builtin("log10", "the logarithm to base 10", 1, 1, _FLOAT, _floats(np.log10), aliases=("log",)),
    Builtin("log2", "the logarithm to base 2", 1, 1, _FLOAT, _floats(np.log2)),
    Builtin("power", "the first to the power of the second; `^` and `**` in SQL", 2, 2, _FLOAT, _floats(_power),
            aliases=("pow",)),
    Builtin("%", "the remainder, with the sign of the first; null after division by zero", 2, 2, _number_type,
            _remainder, aliases=("mod",), written="{0} % {1}"),
    Builtin("div", "the whole part of the quotient of two integers", 2, 2, _quotient_type, _quotient,
            written="{0} // {1}"),
    Builtin("&", "bits in both", 2, 2, _bit_type, _bits(pc.bit_wise_and), aliases=("bitand",), written="{0} & {1}"),
    Builtin("|", "bits in either", 2, 2, _bit_type, _bits(pc.bit_wise_or), aliases=("bitor",), written="{0} | {1}"),
    Builtin("xor", "bits in one of two", 2, 2, _bit_type, _bits(pc.bit_wise_xor), aliases=("bitxor",)),
    Builtin("~", "all bits turned", 1, 1, _bit_type, _bits(pc.bit_wise_not), aliases=("bitnot",), written="~{0}"),
    Builtin("<<", "bits moved up", 2, 2, _bit_type, _shifted(left=True), written="{0} << {1}"),
    Builtin(">>", "bits moved down", 2, 2, _bit_type, _shifted(left=False), written="{0} >> {1}"),
)  # fmt: skip
