"""One alternative of a join condition, ready for the bounds room.

A `Predicate` is a conjunction. Each of its `Dimension`s pairs one left column with one right column, and gives a row of
either side one interval of the other side's keys. This works because every comparison in a dimension is monotone in
each column: the column occurs once and passes through additions and multiplications by constants, which round
monotonically. So the keys that satisfy a comparison with a given row form a half-line. Comparisons that would break
this (products of columns, two columns of one stream, functions) raise `NotAnIntervalError`; `query.condition` then
leaves them to be evaluated on the pairs that the dimensions find.

The order of the written operations is kept, since float arithmetic is "as written":
``(R.a + 0.1) + 0.2`` is not ``R.a + 0.3``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from typing import Literal as Choice

from operators.protocol.sides import LEFT, RIGHT
from operators.query.comparison_operators import ComparisonOperator, bounds_of, is_lower, is_upper, mirrored
from operators.query.constant_arithmetic import computed, negative
from operators.query.errors import PredicateError
from operators.query.expressions import (
    Absolute,
    Apply,
    Arithmetic,
    Between,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    Expression,
    Negate,
    children,
    columns_in,
)

ConstantValue = int | float | timedelta | Decimal


class NotAnIntervalError(PredicateError):
    """A valid comparison whose matches are not an interval of one column."""


@dataclass(frozen=True)
class Operation:
    """One written operation on a running value x.

    ``x + c``, ``x - c``, ``c - x`` ("from"), ``x * c``, ``x / c`` or ``-x`` ("negate", whose
    constant is unused).
    """

    operator: Choice["+", "-", "from", "*", "/", "negate"]
    constant: ConstantValue = 0


@dataclass(frozen=True)
class Chain:
    """A column of one side followed by the operations written on it, innermost first.

    computed: a function of the column that stands for it: its values have the keys.
    """

    side: int
    column: str
    operations: tuple[Operation, ...] = ()
    computed: Expression | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Combined:
    """``first + second`` or ``first - second``, chains of the two sides, then further operations."""

    operator: Choice["+", "-"]
    first: Chain
    second: Chain
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """``chain of the left column OP chain of the right column``, or ``combined OP constant``.

    expression: the expression it was read from, to be evaluated where keys alone do not decide.
    """

    operator: ComparisonOperator
    subject: Chain | Combined
    object: Chain | ConstantValue
    written: str
    expression: Expression | None = field(default=None, compare=False, repr=False)

    @property
    def is_computed(self) -> bool:
        """Whether a key is computed from its column by a function; then its values settle every pair."""
        return any(chain.computed is not None for chain in _chains(self))


Made = Choice["", "constant", "ordinal"]
"""How a dimension's keys are made: from columns (""), one constant, or a row's number among the rows of its key."""


@dataclass(frozen=True)
class Dimension:
    """All comparisons between one left and one right column, or a single ``!=`` (negated), or keys that are `made`.

    computed: for each side the function of its column whose values have the keys, or None for the column itself.
    """

    left: str
    right: str
    comparisons: tuple[Comparison, ...]
    negated: bool = False
    made: Made = ""
    computed: tuple[Expression | None, Expression | None] = field(default=(None, None), compare=False)

    def column(self, side: int) -> str:
        return self.right if side == RIGHT else self.left

    @property
    def expressions(self) -> list[Expression]:
        """The expressions its comparisons were read from, each once."""
        read = {id(one.expression): one.expression for one in self.comparisons}
        return [expression for expression in read.values() if expression is not None]

    @property
    def is_computed(self) -> bool:
        """Whether a function computes the values of one side."""
        return any(one is not None for one in self.computed)

    @property
    def is_point(self) -> bool:
        """Whether each row asks for a single value of the other side's key."""
        return self.made != "ordinal" and all(one.operator == "=" for one in self.comparisons)

    @property
    def is_bounded(self) -> bool:
        """Whether the other side's key is bounded from below and above: an equality or a band."""
        bounds = {bound for one in self.comparisons if one.operator != "!=" for bound in bounds_of(one.operator)}
        return not self.made and any(map(is_upper, bounds)) and any(map(is_lower, bounds))

    def __str__(self) -> str:
        if self.made:
            return {"constant": "all rows", "ordinal": "the last rows of each key"}[self.made]
        return " AND ".join(dict.fromkeys(one.written for one in self.comparisons))


ALL_ROWS = Dimension("", "", (), made="constant")
LAST_OF_EACH_KEY = Dimension("", "", (), made="ordinal")


@dataclass(frozen=True)
class Predicate:
    """A conjunction between the roles ``left`` and ``right``.

    dimensions: the intervals that elements search by; at least one.
    filters:    for each side the condition on its rows alone, or None.
    residual:   the condition to evaluate on each pair found, or None.
    excluded:   conditions of earlier alternatives; a pair for which one is true has been found already.
    """

    left: str
    right: str
    dimensions: tuple[Dimension, ...]
    filters: tuple[Expression | None, Expression | None] = field(default=(None, None), compare=False)
    residual: Expression | None = field(default=None, compare=False)
    excluded: tuple[Expression, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        parts: list[object] = [dimension for dimension in self.dimensions if not dimension.made]
        parts += [one for one in (*self.filters, self.residual) if one is not None]
        return " AND ".join(str(part) for part in parts) or "TRUE"


def dimensions_of(comparisons: list[Comparison]) -> tuple[Dimension, ...]:
    """One dimension per pair of columns; each ``!=`` gets its own."""
    grouped: dict[object, list[Comparison]] = {}
    for number, comparison in enumerate(comparisons):
        alone = number if comparison.operator == "!=" else None
        made = tuple(_identity(one) for one in _computed(comparison))
        grouped.setdefault((*_columns(comparison), *made, alone), []).append(comparison)
    return tuple(
        Dimension(*_columns(group[0]), tuple(group), group[0].operator == "!=", computed=_computed(group[0]))
        for group in grouped.values()
    )


def _chains(comparison: Comparison) -> list[Chain]:
    subject, other = comparison.subject, comparison.object
    chains = [subject.first, subject.second] if isinstance(subject, Combined) else [subject, other]
    return [chain for chain in chains if isinstance(chain, Chain)]


def _columns(comparison: Comparison) -> tuple[str, str]:
    named = {chain.side: chain.column for chain in _chains(comparison)}
    return named[LEFT], named[RIGHT]


def _computed(comparison: Comparison) -> tuple[Expression | None, Expression | None]:
    found = {chain.side: chain.computed for chain in _chains(comparison)}
    return found[LEFT], found[RIGHT]


def _identity(term: Expression | None) -> object:
    """Tells functions of a column apart; two functions of the user may have one name."""
    if term is None:
        return None
    calls, waiting = [], [term]
    while waiting:
        one = waiting.pop()
        calls += [id(one.function)] if isinstance(one, Call) else []
        waiting += children(one)
    return repr(term), tuple(calls)


class ComparisonReader:
    """Reads comparisons between two roles."""

    def __init__(self, left: str, right: str) -> None:
        self.roles = (left, right)
        self.example = f"a comparison such as {left}.a < {right}.b"

    def read(self, part: Expression) -> list[Comparison]:
        """The half-lines of a comparison; raises `NotAnIntervalError` if it has none."""
        match part:
            case Compare(operator, left, right):
                found = self.compare(operator, left, right, repr(part))
            case Between(operand, low, high):
                found = self.compare(">=", operand, low, repr(part)) + self.compare("<=", operand, high, repr(part))
            case _:
                raise NotAnIntervalError(f"`{part!r}` is not a comparison")
        return [replace(one, expression=part) for one in found]

    def compare(
        self, operator: ComparisonOperator, left: Expression, right: Expression, written: str
    ) -> list[Comparison]:
        if isinstance(right, Absolute):
            operator, left, right = mirrored(operator), right, left
        if isinstance(left, Absolute):
            return self.band(operator, left, right, written)
        subject, other = self.linear(left), self.linear(right)
        if _columns_in(subject) < _columns_in(other):
            operator, subject, other = mirrored(operator), other, subject
        match subject, other:
            case Chain(), Chain():
                if subject.side == other.side:
                    raise self.twice(subject, other, written)
                if subject.side == RIGHT:
                    operator, subject, other = mirrored(operator), other, subject
                return [Comparison(operator, subject, other, written)]
            case Combined(), Chain() | Combined():
                chains = [subject.first, subject.second]
                again = other.first if isinstance(other, Combined) else other
                raise self.twice(next(c for c in chains if c.side == again.side), again, written)
            case Combined(), int() | float() | timedelta() | Decimal():
                return [Comparison(operator, subject, other, written)]
        raise NotAnIntervalError(f"`{written}` does not compare a column of each stream: write {self.example}")

    def band(self, operator: ComparisonOperator, left: Absolute, right: Expression, written: str) -> list[Comparison]:
        if not is_upper(operator):
            raise NotAnIntervalError(f"`{written}`: its matches lie in two separate ranges")
        subject, bound = self.linear(left.operand), self.linear(right)
        if not isinstance(subject, Combined) or isinstance(bound, (Chain, Combined)):
            left_role, right_role = self.roles
            raise NotAnIntervalError(f"`{written}` is not a band: write abs({left_role}.a - {right_role}.b) <= c")
        return [
            Comparison(operator, subject, bound, written),
            Comparison(mirrored(operator), subject, negative(bound), written),
        ]

    def linear(self, term: Expression) -> Chain | Combined | ConstantValue:
        match term:
            case Constant(value):
                if not isinstance(value, (int, float, timedelta, Decimal)):
                    raise NotAnIntervalError(f"`{term!r}` is not a number")
                return value
            case Column(stream, name):
                return Chain(self.side(term, stream), name)
            case Negate(operand):
                negated = self.linear(operand)
                if isinstance(negated, (Chain, Combined)):
                    return _then(negated, Operation("negate"))
                constant: ConstantValue = negative(negated)
                return constant
            case Arithmetic():
                return self.arithmetic(term)
            case Apply() | Cast() | Call():
                return self.computed(term)
        raise NotAnIntervalError(f"`{term!r}` is not linear")

    def computed(self, term: Expression) -> Chain:
        """A function of one column, as a column."""
        columns = {(column.stream, column.name): column for column in columns_in(term)}
        if len(columns) != 1:
            raise NotAnIntervalError(f"`{term!r}` is not a function of one column")
        (column,) = columns.values()
        return Chain(self.side(column, column.stream), column.name, computed=term)

    def arithmetic(self, term: Arithmetic) -> Chain | Combined | ConstantValue:
        left, right = self.linear(term.left), self.linear(term.right)
        operator = term.operator
        if isinstance(left, (Chain, Combined)) and isinstance(right, (Chain, Combined)):
            if operator in ("*", "/"):
                raise NotAnIntervalError(f"`{term!r}` is not linear")
            if isinstance(left, Chain) and isinstance(right, Chain) and left.side != right.side:
                return Combined("+" if operator == "+" else "-", left, right)
            first = left.first if isinstance(left, Combined) else left
            for again in [right.first, right.second] if isinstance(right, Combined) else [right]:
                if again.side == first.side:
                    raise self.twice(first, again, repr(term))
            assert isinstance(left, Combined)
            raise self.twice(left.second, again, repr(term))
        if isinstance(left, (Chain, Combined)):
            assert not isinstance(right, (Chain, Combined))
            self.check_factor(term, operator, right)
            return _then(left, Operation(operator, right))
        if isinstance(right, (Chain, Combined)):
            if operator == "/":
                raise NotAnIntervalError(f"`{term!r}` is not linear: it divides by a column")
            self.check_factor(term, operator, left)
            return _then(right, Operation("from" if operator == "-" else operator, left))
        return self.fold(term, left, right)

    def fold(self, term: Arithmetic, left: Any, right: Any) -> ConstantValue:
        try:
            value: ConstantValue = computed(term.operator, left, right)
        except (TypeError, ZeroDivisionError, OverflowError) as error:
            raise PredicateError(f"`{term!r}` cannot be computed: {error}") from error
        if not isinstance(value, timedelta) and not math.isfinite(value):
            raise PredicateError(f"`{term!r}` is not a finite number")
        return value

    def check_factor(self, term: Arithmetic, operator: str, constant: ConstantValue) -> None:
        if operator == "*" and isinstance(constant, timedelta):
            raise PredicateError(f"`{term!r}` multiplies a column by a length of time")
        if operator in ("*", "/") and not constant:
            reason = "its column has no effect" if operator == "*" else "it divides by zero"
            raise PredicateError(f"`{term!r}`: {reason}; write a factor other than 0")

    def side(self, column: Column, stream: str | None) -> int:
        """The side of a column; raises PredicateError if its stream is neither side."""
        left, right = self.roles
        if stream is None:
            raise PredicateError(
                f"`{column!r}` does not say which stream it belongs to: "
                f"write {left}.{column.name} or {right}.{column.name}"
            )
        if stream not in self.roles:
            raise PredicateError(
                f"`{column!r}`: there is no stream {stream!r} in this join; its sides are {left!r} and {right!r}"
            )
        return RIGHT if stream == right else LEFT

    def twice(self, first: Chain, second: Chain, written: str) -> NotAnIntervalError:
        return NotAnIntervalError(f"`{written}` uses two columns of {self.roles[first.side]}")


def _columns_in(value: Chain | Combined | ConstantValue) -> int:
    return 2 if isinstance(value, Combined) else int(isinstance(value, Chain))


def _then(value: Chain | Combined, operation: Operation) -> Chain | Combined:
    return replace(value, operations=(*value.operations, operation))
