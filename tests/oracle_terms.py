"""Conditions of the law (docs/semantics.md, Conditions) on Python values, pair by pair.

A row is a mapping of column to value as `values_of` gives it: integers and booleans are int, floats float, decimals
Fraction, dates and times integers of nanoseconds, strings str, binary bytes, null None. These compare and compute
exactly in Python itself: integers have no end, and an integer against a float is compared by value.

A value node is evaluated by `evaluate`, a condition answers `truth(left row, right row)`: True, False, or None where
it is unknown.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal

import pyarrow as pa

from tests.oracle_functions import FUNCTIONS

Number = int | float
Op = Literal["<", "<=", ">", ">=", "=", "!="]
Row = Mapping[str, Any]
Truth = bool | None

LEFT, RIGHT = 0, 1
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


# --- values ---------------------------------------------------------------------------------------


class Single(float):
    """A value of a column of float32."""

    code = "f"


class Half(Single):
    """A value of a column of float16."""

    code = "e"


def nearest(number: float, code: str) -> float:
    """The value of a narrower type that is nearest to a number; the number itself if that is beyond its range."""
    try:
        found: float = struct.unpack(code, struct.pack(code, number))[0]
    except OverflowError:
        return number
    return found


def values_of(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """A column as the values that the law computes with."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return values_of(column.cast(kind.value_type))
    if pa.types.is_boolean(kind):
        return [None if v is None else int(v) for v in column.to_pylist()]
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        narrow = Half if pa.types.is_float16(kind) else Single
        return [None if v is None else narrow(v) for v in column.to_pylist()]
    if pa.types.is_floating(kind):
        return [None if v is None else float(v) for v in column.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if v is None else Fraction(v) for v in column.to_pylist()]
    if pa.types.is_date32(kind):
        return [None if v is None else v * _DAY for v in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_date64(kind):
        return [None if v is None else v * 10**6 for v in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        tick = _NANOSECONDS[kind.unit]
        return [None if v is None else v * tick for v in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_time32(kind):
        tick = _NANOSECONDS[kind.unit]
        return [None if v is None else v * tick for v in column.cast(pa.int32()).to_pylist()]
    result: list[Any] = column.to_pylist()
    return result


def constant(value: Any) -> Any:
    """A value written in a condition, as `values_of` would give it."""
    match value:
        case bool():
            return int(value)
        case Decimal():
            return Fraction(value)
        case timedelta():
            return value // timedelta(microseconds=1) * 1000
        case datetime():
            if value.tzinfo is not None:
                value = value.astimezone(UTC).replace(tzinfo=None)
            return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000
        case date():
            return (value - date(1970, 1, 1)).days * _DAY
        case time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return (seconds * 10**6 + value.microsecond) * 1000
    return value


def is_absent(value: Any) -> bool:
    """Null, or NaN."""
    return value is None or value != value


def evaluate(operand: Value, left: Row, right: Row, decimals: bool) -> Any:
    """The value of an operand of a comparison.

    Beside decimals, on either side of the sign, all is exact, and a number that is written is the decimal that is
    written. Else an operand in which a float or a division takes part is float64, operation by operation: its integers
    become the nearest float64 first. Anything else is exact.
    """
    leaves = operand.leaves(left, right)
    if None in leaves:
        return None
    if decimals:
        return operand.value(left, right, lambda leaf: Fraction(repr(leaf) if isinstance(leaf, float) else leaf))
    if operand.divides or any(isinstance(leaf, float) for leaf in leaves):
        return operand.value(left, right, float)
    return operand.value(left, right, lambda leaf: leaf)


def has_decimals(left: Row, right: Row, *operands: Value) -> bool:
    """Whether a decimal takes part."""
    return any(isinstance(leaf, Fraction) for operand in operands for leaf in operand.leaves(left, right))


def met(one: Value, other: Value, left: Row, right: Row) -> Value:
    """An operand of a comparison; a number that is written beside a column of float32 is the nearest float32."""
    if isinstance(one, Negative):
        return Negative(met(one.operand, other, left, right))
    column = signless(other)
    if isinstance(one, Constant) and isinstance(one.written, float) and isinstance(column, Column):
        value = column.leaves(left, right)[0]
        if isinstance(value, Single):
            return Constant(nearest(one.written, value.code))
    return one


def signless(value: Value) -> Value:
    """What is left of a value without changes of its sign."""
    match value:
        case Negative(operand) | Absolute(operand) | Arithmetic("-", Constant(0), operand):
            return signless(operand)
        case Arithmetic("*", Constant(1 | -1), operand) | Arithmetic("*", operand, Constant(1 | -1)):
            return signless(operand)
    return value


def compared(one: Value, other: Value, left: Row, right: Row) -> tuple[Any, Any]:
    """The values that a comparison compares."""
    one, other = met(one, other, left, right), met(other, one, left, right)
    decimals = has_decimals(left, right, one, other)
    return evaluate(one, left, right, decimals), evaluate(other, left, right, decimals)


def compare(op: Op, one: Value, other: Value, left: Row, right: Row) -> Truth:
    """`one op other` for one pair of rows; unknown where an operand is null or NaN."""
    x, y = compared(one, other, left, right)
    return None if is_absent(x) or is_absent(y) else bool(COMPARISONS[op](x, y))


# --- three-valued logic ---------------------------------------------------------------------------


def conjunction(truths: Sequence[Truth]) -> Truth:
    """False if any is false, else unknown if any is unknown, else true."""
    if any(truth is False for truth in truths):
        return False
    return None if any(truth is None for truth in truths) else True


def disjunction(truths: Sequence[Truth]) -> Truth:
    """True if any is true, else unknown if any is unknown, else false."""
    if any(truth is True for truth in truths):
        return True
    return None if any(truth is None for truth in truths) else False


# --- value nodes ----------------------------------------------------------------------------------
# `leaves` are the values of its columns and constants, `value` is computed from them, each made a number first.


@dataclass(frozen=True)
class Column:
    """A column of the left or of the right row."""

    side: int
    name: str
    divides: ClassVar[bool] = False

    def leaves(self, left: Row, right: Row) -> list[Any]:
        return [(left, right)[self.side][self.name]]

    def value(self, left: Row, right: Row, number: Callable[[Any], Any]) -> Any:
        return number((left, right)[self.side][self.name])


@dataclass(frozen=True)
class Constant:
    """A value as the user writes it."""

    written: Any
    divides: ClassVar[bool] = False

    def leaves(self, left: Row, right: Row) -> list[Any]:
        return [constant(self.written)]

    def value(self, left: Row, right: Row, number: Callable[[Any], Any]) -> Any:
        return number(constant(self.written))


@dataclass(frozen=True)
class Arithmetic:
    """`one sign other`."""

    sign: Literal["+", "-", "*", "/"]
    one: Value
    other: Value

    @property
    def divides(self) -> bool:
        return self.sign == "/" or self.one.divides or self.other.divides

    def leaves(self, left: Row, right: Row) -> list[Any]:
        return self.one.leaves(left, right) + self.other.leaves(left, right)

    def value(self, left: Row, right: Row, number: Callable[[Any], Any]) -> Any:
        return _ARITHMETIC[self.sign](self.one.value(left, right, number), self.other.value(left, right, number))


@dataclass(frozen=True)
class Negative:
    """`-operand`."""

    operand: Value

    @property
    def divides(self) -> bool:
        return self.operand.divides

    def leaves(self, left: Row, right: Row) -> list[Any]:
        return self.operand.leaves(left, right)

    def value(self, left: Row, right: Row, number: Callable[[Any], Any]) -> Any:
        return -self.operand.value(left, right, number)


@dataclass(frozen=True)
class Absolute:
    """`abs(operand)`."""

    operand: Value

    @property
    def divides(self) -> bool:
        return self.operand.divides

    def leaves(self, left: Row, right: Row) -> list[Any]:
        return self.operand.leaves(left, right)

    def value(self, left: Row, right: Row, number: Callable[[Any], Any]) -> Any:
        return abs(self.operand.value(left, right, number))


@dataclass(frozen=True)
class Apply:
    """A built-in function; to the operand around it, it is a value like a column's. NaN is null to it."""

    name: str
    arguments: tuple[Value, ...]
    divides: ClassVar[bool] = False

    def leaves(self, left: Row, right: Row) -> list[Any]:
        given = [evaluate(each, left, right, has_decimals(left, right, each)) for each in self.arguments]
        return [FUNCTIONS[self.name](*[None if is_absent(value) else value for value in given])]

    def value(self, left: Row, right: Row, number: Callable[[Any], Any]) -> Any:
        return number(self.leaves(left, right)[0])


Value = Column | Constant | Arithmetic | Negative | Absolute | Apply


# --- conditions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compare:
    """`one op other`."""

    op: Op
    one: Value
    other: Value

    def truth(self, left: Row, right: Row) -> Truth:
        return compare(self.op, self.one, self.other, left, right)


@dataclass(frozen=True)
class Between:
    """`operand BETWEEN low AND high`: two comparisons and an AND."""

    operand: Value
    low: Value
    high: Value

    def truth(self, left: Row, right: Row) -> Truth:
        above = compare(">=", self.operand, self.low, left, right)
        return conjunction([above, compare("<=", self.operand, self.high, left, right)])


@dataclass(frozen=True)
class Overlaps:
    """`(start, end) OVERLAPS (start, end)`: neither is empty, and each starts before the other ends."""

    one: tuple[Value, Value]
    other: tuple[Value, Value]

    @property
    def comparisons(self) -> list[tuple[Op, Value, Value]]:
        (s, e), (t, f) = self.one, self.other
        return [("<", s, f), ("<", t, e), ("<", s, e), ("<", t, f)]

    def truth(self, left: Row, right: Row) -> Truth:
        return conjunction([compare(op, x, y, left, right) for op, x, y in self.comparisons])


@dataclass(frozen=True)
class Contains:
    """An interval contains another, which is not empty, or a value."""

    interval: tuple[Value, Value]
    inner: tuple[Value, Value] | Value

    @property
    def comparisons(self) -> list[tuple[Op, Value, Value]]:
        start, end = self.interval
        if not isinstance(self.inner, tuple):
            return [("<=", start, self.inner), ("<", self.inner, end)]
        return [("<=", start, self.inner[0]), ("<=", self.inner[1], end), ("<", *self.inner)]

    def truth(self, left: Row, right: Row) -> Truth:
        return conjunction([compare(op, x, y, left, right) for op, x, y in self.comparisons])


@dataclass(frozen=True)
class In:
    """`operand IN (choices)`: an OR of equalities."""

    operand: Value
    choices: tuple[Value, ...]

    def truth(self, left: Row, right: Row) -> Truth:
        return disjunction([compare("=", self.operand, choice, left, right) for choice in self.choices])


@dataclass(frozen=True)
class IsNull:
    """True for null and for NaN, else false."""

    operand: Value

    def truth(self, left: Row, right: Row) -> Truth:
        return is_absent(evaluate(self.operand, left, right, has_decimals(left, right, self.operand)))


@dataclass(frozen=True)
class Distinct:
    """`one IS DISTINCT FROM other`: null and NaN are equal to each other and to nothing else."""

    one: Value
    other: Value

    def truth(self, left: Row, right: Row) -> Truth:
        x, y = compared(self.one, self.other, left, right)
        if is_absent(x) or is_absent(y):
            return not (is_absent(x) and is_absent(y))
        return bool(x != y)


@dataclass(frozen=True)
class IsTruth:
    """`part IS TRUE` or `part IS FALSE`: never unknown."""

    part: Condition
    value: bool

    def truth(self, left: Row, right: Row) -> Truth:
        return self.part.truth(left, right) is self.value


@dataclass(frozen=True)
class Function:
    """A function of Python values, which answers True, False or None."""

    function: Callable[..., Truth]
    arguments: tuple[Column | Constant, ...]

    def truth(self, left: Row, right: Row) -> Truth:
        return self.function(*[argument.leaves(left, right)[0] for argument in self.arguments])


@dataclass(frozen=True)
class And:
    """All of the parts."""

    parts: tuple[Condition, ...]

    def truth(self, left: Row, right: Row) -> Truth:
        return conjunction([part.truth(left, right) for part in self.parts])


@dataclass(frozen=True)
class Or:
    """Any of the parts."""

    parts: tuple[Condition, ...]

    def truth(self, left: Row, right: Row) -> Truth:
        return disjunction([part.truth(left, right) for part in self.parts])


@dataclass(frozen=True)
class Not:
    """The opposite; unknown stays unknown."""

    part: Condition

    def truth(self, left: Row, right: Row) -> Truth:
        truth = self.part.truth(left, right)
        return None if truth is None else not truth


# --- short forms ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """`scale * column + offset`, evaluated in this order; None leaves the step out."""

    column: str
    scale: Number | None = None
    offset: Number | None = None

    def of(self, side: int) -> Value:
        """The same as a tree, for a column of one side."""
        value: Value = Column(side, self.column)
        if self.scale is not None:
            value = Arithmetic("*", value, Constant(self.scale))
        return value if self.offset is None else Arithmetic("+", value, Constant(self.offset))


@dataclass(frozen=True)
class Comparison:
    """`left op right`: left is of the left role's row, right of the right role's."""

    left: Linear
    op: Op
    right: Linear

    def truth(self, left: Row, right: Row) -> Truth:
        return compare(self.op, self.left.of(LEFT), self.right.of(RIGHT), left, right)


@dataclass(frozen=True)
class Band:
    """`abs(left - right) op width`, in the arithmetic of the operands."""

    left: Linear
    right: Linear
    width: Number
    op: Op = "<="

    def truth(self, left: Row, right: Row) -> Truth:
        difference = Arithmetic("-", self.left.of(LEFT), self.right.of(RIGHT))
        return compare(self.op, Absolute(difference), Constant(self.width), left, right)


Term = Comparison | Band
Condition = (
    Compare | Between | Overlaps | Contains | In | IsNull | Distinct | IsTruth | Function | And | Or | Not | Term
)


def key_columns(condition: Condition) -> tuple[list[str], list[str]]:
    """The columns of each side in the top-level equalities between plain columns."""
    sides: tuple[list[str], list[str]] = ([], [])
    match condition:
        case And(parts):
            for part in parts:
                for mine, found in zip(sides, key_columns(part), strict=True):
                    mine += found
        case Comparison(Linear(x, None, None), "=", Linear(y, None, None)):
            return [x], [y]
        case Compare("=", Column(one, x), Column(other, y)) if one != other:
            return ([x], [y]) if one == LEFT else ([y], [x])
    return sides
