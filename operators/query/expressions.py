"""Column expressions: join conditions written in Python.

After ``R = stream("R")``, its columns are ``R.power`` or ``R["power"]``. Arithmetic, comparisons, ``abs``,
``.between``, ``.isin``, ``.is_null``, ``&``, ``|`` and ``~`` build a tree that prints as the SQL it means.
`query.functions` adds the user's own conditions. Only the kind of a literal is checked here: `query.predicate` and
`values.evaluation` decide which trees a join can run, so Python and SQL get the same rules and the same messages.

``==`` builds a condition, so compare two expressions by their ``repr``. Expressions hash by identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from typing import Literal as Choice

from operators.query.comparison_operators import ComparisonOperator
from operators.query.constants import ConstantValue, constant_value, identifier, written_constant
from operators.query.errors import PredicateError

ArithmeticOperator = Choice["+", "-", "*", "/"]

# How tightly each node binds when printed; a child that binds less than its place is bracketed.
_ALIAS, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _ATOM = range(8)


@dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """Any node of a condition. It defines the operators, so larger expressions can be built from every node."""

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

    def isin(self, *values: object) -> Expression:
        """Equal to one of the values, as in SQL's IN: ``R.kind.isin("a", "b")``, or one list of them."""
        if len(values) == 1 and isinstance(values[0], set | frozenset):
            values = tuple(sorted(values[0], key=repr))  # a set has no order of its own, a query has
        listed = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
        return one_of(self, tuple(as_expression(value) for value in listed))

    def is_null(self) -> IsNull:
        """``self IS NULL``: true for null and for NaN, and never unknown."""
        return IsNull(self)

    def is_not_null(self) -> Not:
        """``self IS NOT NULL``: false for null and for NaN, and never unknown."""
        return Not(IsNull(self))

    def alias(self, name: str) -> Alias:
        """``self AS name``: its name in the results; only valid in a select list."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"an alias is a non-empty string, not {name!r}")
        return Alias(self, name)

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
            "conditions with `&`, `|` and `~`, each in brackets, not with `and`, `or`, `not`; "
            "write a < b < c as b.between(a, c) or (a < b) & (b < c), and a in [..] as a.isin(..)"
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
        return ".".join(identifier(part) for part in parts)


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Expression):
    """A value written in the condition; `query.constants` lists the types."""

    value: ConstantValue

    @property
    def binding(self) -> int:  # type: ignore[override]
        # A negative number prints as a signed term, so `-(3)` and `2 - (-1)` keep their brackets.
        return _PRODUCT if repr(self).startswith("-") else _ATOM

    def __repr__(self) -> str:
        return written_constant(self.value)


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
    """``x < y``, or another of the six comparisons."""

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
    """Either condition holds."""

    left: Expression
    right: Expression
    binding: ClassVar[int] = _OR

    def __repr__(self) -> str:
        return f"{_within(self.left, _OR)} OR {_within(self.right, _AND)}"


@dataclass(frozen=True, eq=False, repr=False)
class In(Or):
    """``operand IN (values)``: an Or of equalities that prints as it was written."""

    operand: Expression
    values: tuple[Expression, ...]
    binding: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        return f"{_within(self.operand, _SUM)} IN ({', '.join(map(repr, self.values))})"


@dataclass(frozen=True, eq=False, repr=False)
class Not(Expression):
    """The opposite of a condition; unknown stays unknown."""

    operand: Expression

    @property
    def binding(self) -> int:  # type: ignore[override]
        return _COMPARE if isinstance(self.operand, IsNull) else _NOT

    def __repr__(self) -> str:
        if isinstance(self.operand, IsNull):
            return f"{_within(self.operand.operand, _SUM)} IS NOT NULL"
        return f"NOT {_within(self.operand, _ATOM)}"


@dataclass(frozen=True, eq=False, repr=False)
class IsNull(Expression):
    """``x IS NULL``: x is null or NaN."""

    operand: Expression
    binding: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        return f"{_within(self.operand, _SUM)} IS NULL"


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expression):
    """A condition computed by a Python function: Arrow arrays in, one boolean per row out; null is unknown."""

    function: Callable[..., Any]
    arguments: tuple[Expression, ...]
    name: str

    def __repr__(self) -> str:
        return f"{identifier(self.name)}({', '.join(map(repr, self.arguments))})"


@dataclass(frozen=True, eq=False, repr=False)
class Alias(Expression):
    """``x AS name``, in a select list."""

    operand: Expression
    name: str
    binding: ClassVar[int] = _ALIAS

    def __repr__(self) -> str:
        return f"{_within(self.operand, _OR)} AS {identifier(self.name)}"


@dataclass(frozen=True)
class Stream:
    """A stream (or a role of one) whose attributes and items are its columns."""

    # An unlikely name for a column: this attribute would hide it.
    _stream_name: str

    def __getattr__(self, column: str) -> Column:
        if column.startswith("_"):  # protocols of pickle, copy and notebooks look such names up
            raise AttributeError(f"{column!r}: write such a column as stream[{column!r}]")
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
    """``value`` itself if it is an expression, else a constant."""
    return value if isinstance(value, Expression) else Constant(constant_value(value))


def one_of(operand: Expression, values: tuple[Expression, ...]) -> Expression:
    """``operand IN (values)``, as an Or of equalities."""
    if not values:
        raise PredicateError(f"`{operand!r} IN ()` lists no value, so nothing would match: name at least one")
    equal: list[Expression] = [Compare("=", operand, value) for value in values]
    if len(equal) == 1:
        return equal[0]
    middle = len(equal) // 2
    return In(_either(equal[:middle]), _either(equal[middle:]), operand, values)


def _either(conditions: list[Expression]) -> Expression:
    # a balanced tree: a list of thousands must not be thousands of nodes deep
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return Or(_either(conditions[:middle]), _either(conditions[middle:]))
