"""Column expressions: join conditions written in Python.

Arithmetic, comparisons, ``abs``, ``.between``, ``.isin``, ``.is_null``, ``&``, ``|`` and ``~`` build a tree that prints
as the SQL it means. `query.streams` names columns and built-in functions, `query.functions` adds the user's own. Only
the kind of a literal is checked here: `query.predicate` and `values.evaluation` decide which trees a join can run, so
Python and SQL get the same rules and the same messages.

``==`` builds a condition, so compare two expressions by their ``repr``. Expressions hash by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar
from typing import Literal as Choice

import pyarrow as pa

from operators.functions.builtins import BUILTINS
from operators.functions.type_casts import type_name
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

    def __mod__(self, other: object) -> Expression:
        return Apply("%", (self, as_expression(other)))

    def __rmod__(self, other: object) -> Expression:
        return Apply("%", (as_expression(other), self))

    def __floordiv__(self, other: object) -> Expression:
        return Apply("div", (self, as_expression(other)))

    def __rfloordiv__(self, other: object) -> Expression:
        return Apply("div", (as_expression(other), self))

    def __pow__(self, other: object) -> Expression:
        return Apply("power", (self, as_expression(other)))

    def __rpow__(self, other: object) -> Expression:
        return Apply("power", (as_expression(other), self))

    def __getitem__(self, place: str | int) -> Expression:
        """A field of a struct by its name, or an element of a list by its number, from 1."""
        if isinstance(place, str):
            return Apply("struct_field", (self, Constant(place)))
        return Apply("list_element", (self, as_expression(place)))

    __iter__: ClassVar[None] = None  # having items does not make it a sequence

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

    def is_distinct_from(self, other: object) -> Distinct:
        """``self IS DISTINCT FROM other``: null and NaN equal each other and nothing else; never unknown."""
        return Distinct(self, as_expression(other))

    def is_not_distinct_from(self, other: object) -> Not:
        """``self IS NOT DISTINCT FROM other``: equal, or both null or NaN; never unknown."""
        return Not(Distinct(self, as_expression(other)))

    def is_true(self) -> IsTruth:
        """``self IS TRUE``: a condition that is false where it would be unknown."""
        return IsTruth(self, True)

    def is_false(self) -> IsTruth:
        """``self IS FALSE``: whether the condition is known to be false."""
        return IsTruth(self, False)

    def like(self, pattern: object) -> Apply:
        """``self LIKE pattern``: % is any text, _ one character."""
        return Apply("like", (self, as_expression(pattern)))

    def ilike(self, pattern: object) -> Apply:
        """``self ILIKE pattern``: the same, in any case."""
        return Apply("ilike", (self, as_expression(pattern)))

    def cast(self, target: pa.DataType) -> Cast:
        """``CAST(self AS target)``; null where a value has no counterpart."""
        if not isinstance(target, pa.DataType):
            raise TypeError(f"cast takes an Arrow type such as pa.int64(), not {target!r}")
        return Cast(self, target)

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
    """A value written in the condition; `query.constants` lists the types. NULL is None, in SQL only."""

    value: ConstantValue | None

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
        return _COMPARE if isinstance(self.operand, IsNull | Distinct | IsTruth) else _NOT

    def __repr__(self) -> str:
        match self.operand:
            case IsNull(operand):
                return f"{_within(operand, _SUM)} IS NOT NULL"
            case Distinct(left, right):
                return f"{_within(left, _SUM)} IS NOT DISTINCT FROM {_within(right, _SUM)}"
            case IsTruth(operand, value):
                return f"{_within(operand, _SUM)} IS NOT {str(value).upper()}"
        return f"NOT {_within(self.operand, _ATOM)}"


@dataclass(frozen=True, eq=False, repr=False)
class IsNull(Expression):
    """``x IS NULL``: x is null or NaN."""

    operand: Expression
    binding: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        return f"{_within(self.operand, _SUM)} IS NULL"


@dataclass(frozen=True, eq=False, repr=False)
class Distinct(Expression):
    """``x IS DISTINCT FROM y``: not (equal, or both null or NaN). Never unknown."""

    left: Expression
    right: Expression
    binding: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        return f"{_within(self.left, _SUM)} IS DISTINCT FROM {_within(self.right, _SUM)}"


@dataclass(frozen=True, eq=False, repr=False)
class IsTruth(Expression):
    """``x IS TRUE`` or ``x IS FALSE``. Never unknown."""

    operand: Expression
    value: bool
    binding: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        return f"{_within(self.operand, _SUM)} IS {str(self.value).upper()}"


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Expression):
    """A built-in function (`functions.builtins`) of values; a condition where its result is a boolean."""

    name: str
    arguments: tuple[Expression, ...]

    @property
    def binding(self) -> int:  # type: ignore[override]
        written = BUILTINS[self.name].written
        return _ATOM if written is None or written.endswith("]") else _COMPARE

    def __repr__(self) -> str:
        if self.name == "case":
            whens, thens = self.arguments[:-1:2], self.arguments[1:-1:2]
            parts = [f"WHEN {when!r} THEN {then!r}" for when, then in zip(whens, thens, strict=True)]
            return f"CASE {' '.join(parts)} ELSE {self.arguments[-1]!r} END"
        written = BUILTINS[self.name].written
        if written is None:
            return f"{self.name}({', '.join(map(repr, self.arguments))})"
        shown = written.format(*(_within(each, _ATOM) for each in self.arguments))
        return shown if written.count("{") == len(self.arguments) else f"{shown} ESCAPE {self.arguments[-1]!r}"


@dataclass(frozen=True, eq=False, repr=False)
class Cast(Expression):
    """``CAST(x AS type)``; null where a value has no counterpart."""

    operand: Expression
    target: pa.DataType

    def __repr__(self) -> str:
        return f"CAST({self.operand!r} AS {type_name(self.target)})"


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expression):
    """A user's Python function: Arrow arrays in, one value per row out.

    returns: the type of the values; None for a condition: booleans, where null is unknown.
    """

    function: Callable[..., Any]
    arguments: tuple[Expression, ...]
    name: str
    returns: pa.DataType | None = None

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


def as_expression(value: object) -> Expression:
    """``value`` itself if it is an expression, else a constant."""
    return value if isinstance(value, Expression) else Constant(constant_value(value))


def columns_in(expression: Expression) -> Iterator[Column]:
    """Every mention of a column, in the order of the text."""
    if isinstance(expression, Column):
        yield expression
    for child in children(expression):
        yield from columns_in(child)


def children(expression: Expression) -> Iterator[Expression]:
    """The expressions that an expression is made of."""
    for each in fields(expression):
        value = getattr(expression, each.name)
        yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Expression))


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
