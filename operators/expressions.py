"""Column expressions: how a join condition is written in Python.

``R = stream("R"); S = stream("S")`` give columns as ``R.power`` or ``R["power"]``; arithmetic,
comparisons, ``abs``, ``.between`` and ``&`` build a tree that prints like the query it stands
for. Nothing is checked here beyond the kind of a literal: `operators.predicate` decides which
trees a join can run, so Python and SQL texts meet the same rules and the same messages.

``==`` builds a condition, so two expressions are compared by their ``repr``; expressions hash by
identity.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar
from typing import Literal as Choice

import numpy as np

from operators.errors import PredicateError

ArithmeticOperator = Choice["+", "-", "*", "/"]
ComparisonOperator = Choice["<", "<=", ">", ">=", "=", "!="]

# How tightly each node binds when printed; a child that binds less than its place is bracketed.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _ATOM = range(7)

_UNITS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000),
          ("SECOND", 1_000_000), ("MILLISECOND", 1_000), ("MICROSECOND", 1))  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """Any node of a condition; carries the operators, so every node can be built upon."""

    __array_ufunc__: ClassVar[None] = None  # so that NumPy scalars on the left defer to us
    binding: ClassVar[int] = _ATOM

    def __add__(self, other: object) -> Expression:
        return Arithmetic("+", self, as_expression(other))

    def __radd__(self, other: object) -> Expression:
        return Arithmetic("+", as_expression(other), self)

    def __sub__(self, other: object) -> Expression:
        return Arithmetic("-", self, as_expression(other))

    def __rsub__(self, other: object) -> Expression:
        return Arithmetic("-", as_expression(other), self)

    def __mul__(self, other: object) -> Expression:
        return Arithmetic("*", self, as_expression(other))

    def __rmul__(self, other: object) -> Expression:
        return Arithmetic("*", as_expression(other), self)

    def __truediv__(self, other: object) -> Expression:
        return Arithmetic("/", self, as_expression(other))

    def __rtruediv__(self, other: object) -> Expression:
        return Arithmetic("/", as_expression(other), self)

    def __neg__(self) -> Expression:
        return Negate(self)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return Absolute(self)

    def __lt__(self, other: object) -> Compare:
        return Compare("<", self, as_expression(other))

    def __le__(self, other: object) -> Compare:
        return Compare("<=", self, as_expression(other))

    def __gt__(self, other: object) -> Compare:
        return Compare(">", self, as_expression(other))

    def __ge__(self, other: object) -> Compare:
        return Compare(">=", self, as_expression(other))

    def __eq__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare("=", self, as_expression(other))

    def __ne__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare("!=", self, as_expression(other))

    __hash__ = object.__hash__

    def between(self, low: object, high: object) -> Between:
        """``self >= low AND self <= high``, both ends included as in SQL."""
        return Between(self, as_expression(low), as_expression(high))

    def __and__(self, other: object) -> And:
        return And(self, as_expression(other))

    def __rand__(self, other: object) -> And:
        return And(as_expression(other), self)

    def __or__(self, other: object) -> Or:
        return Or(self, as_expression(other))

    def __ror__(self, other: object) -> Or:
        return Or(as_expression(other), self)

    def __invert__(self) -> Not:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"the condition `{self!r}` has no truth value before rows are joined: combine "
            "conditions with `&`, each in brackets, not with `and`, `or`, `not`; "
            "write a < b < c as b.between(a, c) or (a < b) & (b < c)"
        )


def _within(child: Expression, binding: int) -> str:
    return repr(child) if child.binding >= binding else f"({child!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expression):
    """A column of a stream (or of a role, in a self-join)."""

    stream: str | None
    name: str

    def __repr__(self) -> str:
        parts = [self.name] if self.stream is None else [self.stream, self.name]
        return ".".join(_identifier(part) for part in parts)


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Expression):
    """A number or a length of time written in the condition."""

    value: int | float | timedelta

    @property
    def binding(self) -> int:  # type: ignore[override]
        # A negative number prints as a signed term, so `-(3)` and `2 - (-1)` keep their brackets.
        return _PRODUCT if repr(self).startswith("-") else _ATOM

    def __repr__(self) -> str:
        return _interval(self.value) if isinstance(self.value, timedelta) else repr(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Negate(Expression):
    """``-x``."""

    operand: Expression
    binding: ClassVar[int] = _PRODUCT

    def __repr__(self) -> str:
        return f"-{_within(self.operand, _ATOM)}"


@dataclass(frozen=True, eq=False, repr=False)
class Arithmetic(Expression):
    """``x + y``, ``x - y``, ``x * y`` or ``x / y``."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression

    @property
    def binding(self) -> int:  # type: ignore[override]
        return _SUM if self.operator in "+-" else _PRODUCT

    def __repr__(self) -> str:
        right = _within(self.right, self.binding + 1)
        return f"{_within(self.left, self.binding)} {self.operator} {right}"


@dataclass(frozen=True, eq=False, repr=False)
class Absolute(Expression):
    """``abs(x)``."""

    operand: Expression

    def __repr__(self) -> str:
        return f"abs({self.operand!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Compare(Expression):
    """``x < y`` and its kin: a condition."""

    operator: ComparisonOperator
    left: Expression
    right: Expression
    binding: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        return f"{_within(self.left, _SUM)} {self.operator} {_within(self.right, _SUM)}"


@dataclass(frozen=True, eq=False, repr=False)
class Between(Expression):
    """``x BETWEEN low AND high``, both ends included."""

    operand: Expression
    low: Expression
    high: Expression
    binding: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        low, high = _within(self.low, _SUM), _within(self.high, _SUM)
        return f"{_within(self.operand, _SUM)} BETWEEN {low} AND {high}"


@dataclass(frozen=True, eq=False, repr=False)
class And(Expression):
    """Both conditions hold."""

    left: Expression
    right: Expression
    binding: ClassVar[int] = _AND

    def __repr__(self) -> str:
        return f"{_within(self.left, _AND)} AND {_within(self.right, _NOT)}"


@dataclass(frozen=True, eq=False, repr=False)
class Or(Expression):
    """Either condition holds; no join runs it yet, so that it can be named in a message."""

    left: Expression
    right: Expression
    binding: ClassVar[int] = _OR

    def __repr__(self) -> str:
        return f"{_within(self.left, _OR)} OR {_within(self.right, _AND)}"


@dataclass(frozen=True, eq=False, repr=False)
class Not(Expression):
    """The condition does not hold; NULL and NaN match neither way."""

    operand: Expression
    binding: ClassVar[int] = _NOT

    def __repr__(self) -> str:
        return f"NOT {_within(self.operand, _ATOM)}"


@dataclass(frozen=True)
class Stream:
    """A stream (or a role of one) whose attributes and items are its columns."""

    # Named so that no likely column hides behind it.
    _stream_name: str

    def __getattr__(self, column: str) -> Column:
        if column.startswith("_"):  # protocols of pickle, copy and notebooks look such names up
            raise AttributeError(f"{column!r}: a column named so is written stream[{column!r}]")
        return Column(self._stream_name, column)

    def __getitem__(self, column: str) -> Column:
        if not isinstance(column, str) or not column:
            raise TypeError(f"a column is named by a non-empty string, not {column!r}")
        return Column(self._stream_name, column)

    def __repr__(self) -> str:
        return f"stream({self._stream_name!r})"


def stream(name: str) -> Stream:
    """The stream (or role) called ``name``, whose attributes are its columns."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a stream is named by a non-empty string, not {name!r}")
    return Stream(name)


def col(name: str) -> Column:
    """A column by its full name: ``col("R.power")``; the stream ends at the first dot."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a column is named by a non-empty string, not {name!r}")
    owner, dot, column = name.partition(".")
    if dot and not (owner and column):
        raise PredicateError(f"col({name!r}) names no column: write col('stream.column')")
    return Column(owner, column) if dot else Column(None, name)


def as_expression(value: object) -> Expression:
    """``value`` itself if it is an expression, else the constant it stands for."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, (bool, str, bytes)) or value is None:
        remedy = "NULL never matches" if value is None else "compare columns of numbers or times"
        raise PredicateError(
            f"{value!r} ({type(value).__name__}) cannot stand in a join condition: {remedy}"
        )
    if isinstance(value, timedelta):
        if getattr(value, "nanoseconds", 0):  # pandas.Timedelta is a finer timedelta
            raise PredicateError(f"{value!r} is finer than a microsecond, which is not supported")
        return Constant(timedelta(value.days, value.seconds, value.microseconds))
    number: Any = value
    try:
        return Constant(operator.index(number))
    except TypeError:
        pass
    # float() would accept any width (Decimal, float32); a Decimal would silently lose digits.
    if isinstance(number, float) or _is_numpy_float(number):
        if math.isfinite(number):
            return Constant(float(number))
        raise PredicateError(f"{number} cannot stand in a join condition: write a finite number")
    raise PredicateError(
        f"{value!r} ({type(value).__name__}) cannot stand in a join condition: "
        "write an int, a float or a datetime.timedelta"
    )


def _is_numpy_float(value: Any) -> bool:
    return isinstance(value, np.floating)


def _identifier(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'


def _interval(length: timedelta) -> str:
    total = length // timedelta(microseconds=1)
    unit, size = next((unit, size) for unit, size in _UNITS if total % size == 0)
    return f"INTERVAL '{total // size}' {unit}"
