"""The normal form of a join condition: what flows from an expression tree to `operators.bounds`.

A `Predicate` is a conjunction of `Dimension`s. A dimension pairs one left column with one right
column; for a row of either side it stands for one interval of the other side's keys. That works
because every comparison admitted here is monotone in each column: a column occurs once, passes
through additions and multiplications by constants, each of which rounds monotonically, and so the
keys that satisfy a comparison with a given row are a half-line. Everything that would break this
(OR, products of columns, ``abs(..) > c``) is refused here, naming the piece.

The order of the written operations is kept step by step, since float arithmetic is "as written":
``(R.a + 0.1) + 0.2`` is not ``R.a + 0.3``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from typing import Literal as Choice

from operators.errors import PredicateError
from operators.expressions import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Column,
    Compare,
    ComparisonOperator,
    Constant,
    Expression,
    Negate,
    Not,
    Or,
)

LEFT, RIGHT = 0, 1

ConstantValue = int | float | timedelta

MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!=",
}  # fmt: skip
_NEGATED: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "=",
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One written operation on a running value x.

    ``x + c``, ``x - c``, ``c - x`` ("from"), ``x * c``, ``x / c`` or ``-x`` ("negate", whose
    constant is unused).
    """

    operator: Choice["+", "-", "from", "*", "/", "negate"]
    constant: ConstantValue = 0


@dataclass(frozen=True)
class Chain:
    """A column of one side followed by the operations written on it, innermost first."""

    side: int
    column: str
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Combined:
    """``first + second`` or ``first - second``, chains of the two sides, then further steps."""

    operator: Choice["+", "-"]
    first: Chain
    second: Chain
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """``chain of the left column OP chain of the right column``, or ``combined OP constant``."""

    operator: ComparisonOperator
    subject: Chain | Combined
    object: Chain | ConstantValue
    written: str


@dataclass(frozen=True)
class Dimension:
    """All comparisons between one left and one right column (or a single ``!=``: negated)."""

    left: str
    right: str
    comparisons: tuple[Comparison, ...]
    negated: bool = False

    def column(self, side: int) -> str:
        return self.right if side == RIGHT else self.left

    def __str__(self) -> str:
        return " AND ".join(dict.fromkeys(one.written for one in self.comparisons))


@dataclass(frozen=True)
class Predicate:
    """A conjunction of dimensions between the roles ``left`` and ``right``."""

    left: str
    right: str
    dimensions: tuple[Dimension, ...]

    def __str__(self) -> str:
        return " AND ".join(str(dimension) for dimension in self.dimensions)


def normalise(condition: Expression, left: str, right: str) -> Predicate:
    """The normal form of ``condition`` between the streams (or roles) ``left`` and ``right``."""
    if left == right:
        raise PredicateError(
            f"both sides of the join are called {left!r}: give the roles different names, "
            f"such as {left}1 and {left}2"
        )
    reader = _Reader(left, right)
    if not isinstance(condition, Expression):
        raise PredicateError(f"{condition!r} is not a condition: write {reader.example}")
    return Predicate(left, right, _dimensions(reader.comparisons(condition)))


def _dimensions(comparisons: list[Comparison]) -> tuple[Dimension, ...]:
    grouped: dict[object, list[Comparison]] = {}
    for number, comparison in enumerate(comparisons):
        alone = number if comparison.operator == "!=" else None
        grouped.setdefault((*_columns(comparison), alone), []).append(comparison)
    return tuple(
        Dimension(*_columns(group[0]), tuple(group), group[0].operator == "!=")
        for group in grouped.values()
    )


def _columns(comparison: Comparison) -> tuple[str, str]:
    subject, other = comparison.subject, comparison.object
    chains = [subject.first, subject.second] if isinstance(subject, Combined) else [subject, other]
    named = {chain.side: chain.column for chain in chains if isinstance(chain, Chain)}
    return named[LEFT], named[RIGHT]


class _Reader:
    """Walks one condition, with the two role names at hand for sides and messages."""

    def __init__(self, left: str, right: str) -> None:
        self.roles = (left, right)
        self.example = f"a comparison such as {left}.a < {right}.b"

    def comparisons(self, condition: Expression) -> list[Comparison]:
        match condition:
            case And(left, right):
                return self.comparisons(left) + self.comparisons(right)
            case Compare(operator, left, right):
                return self.compare(operator, left, right, repr(condition))
            case Between(operand, low, high):
                written = repr(condition)
                return [
                    *self.compare(">=", operand, low, written),
                    *self.compare("<=", operand, high, written),
                ]
            case Not(Compare(operator, left, right)):
                return self.compare(_NEGATED[operator], left, right, repr(condition))
            case Not(Not(operand)):
                return self.comparisons(operand)
            case Not():
                raise PredicateError(
                    f"`{condition!r}` is not supported yet: NOT may stand before a single "
                    "comparison only; write the comparisons that remain"
                )
            case Or():
                raise PredicateError(
                    f"OR is not supported yet, in `{condition!r}`: run one join per alternative, "
                    "or write a conjunction (AND) of comparisons"
                )
        raise PredicateError(f"`{condition!r}` is not a condition: write {self.example}")

    def compare(
        self, operator: ComparisonOperator, left: Expression, right: Expression, written: str
    ) -> list[Comparison]:
        if isinstance(right, Absolute):
            operator, left, right = MIRRORED[operator], right, left
        if isinstance(left, Absolute):
            return self.band(operator, left, right, written)
        subject, other = self.linear(left), self.linear(right)
        if _columns_in(subject) < _columns_in(other):
            operator, subject, other = MIRRORED[operator], other, subject
        match subject, other:
            case Chain(), Chain():
                if subject.side == other.side:
                    raise self.twice(subject, other, written)
                if subject.side == RIGHT:
                    operator, subject, other = MIRRORED[operator], other, subject
                return [Comparison(operator, subject, other, written)]
            case Combined(), Chain() | Combined():
                chains = [subject.first, subject.second]
                again = other.first if isinstance(other, Combined) else other
                raise self.twice(next(c for c in chains if c.side == again.side), again, written)
            case Combined(), int() | float() | timedelta():
                return [Comparison(operator, subject, other, written)]
            case Chain(side), _:
                raise PredicateError(
                    f"`{written}` concerns {self.roles[side]} alone: filter "
                    f"{self.roles[side]} before the join, and compare it with a column of "
                    f"{self.roles[1 - side]} here"
                )
        raise PredicateError(f"`{written}` names no column: write {self.example}")

    def band(
        self, operator: ComparisonOperator, left: Absolute, right: Expression, written: str
    ) -> list[Comparison]:
        if isinstance(right, Absolute):
            raise PredicateError(f"`{written}`: abs(..) may be compared with a constant only")
        if operator not in ("<", "<="):
            raise PredicateError(
                f"`{written}` is not supported yet: its matches lie in two separate ranges; "
                "only abs(..) < c and abs(..) <= c are; write one side of it, "
                f"such as {left.operand!r} {'>' if operator == '!=' else operator} c"
            )
        subject, bound = self.linear(left.operand), self.linear(right)
        left_role, right_role = self.roles
        if not isinstance(subject, Combined):
            raise PredicateError(
                f"`{left!r}` in `{written}` needs one column of each stream: "
                f"write abs({left_role}.a - {right_role}.b)"
            )
        if isinstance(bound, (Chain, Combined)):
            raise PredicateError(
                f"`{written}`: abs(..) may be compared with a constant only, not with `{right!r}`"
            )
        return [
            Comparison(operator, subject, bound, written),
            Comparison(MIRRORED[operator], subject, -bound, written),
        ]

    def linear(self, term: Expression) -> Chain | Combined | ConstantValue:
        match term:
            case Constant(value):
                return value
            case Column(stream, name):
                return Chain(self.side(term, stream), name)
            case Negate(operand):
                negated = self.linear(operand)
                if isinstance(negated, (Chain, Combined)):
                    return _then(negated, Step("negate"))
                return -negated
            case Arithmetic():
                return self.arithmetic(term)
            case Absolute():
                raise PredicateError(
                    f"`{term!r}` must stand alone on one side of < or <=: "
                    f"write abs({self.roles[0]}.a - {self.roles[1]}.b) <= c"
                )
        raise PredicateError(
            f"`{term!r}` is a condition where a value is expected: join conditions with AND (&)"
        )

    def arithmetic(self, term: Arithmetic) -> Chain | Combined | ConstantValue:
        left, right = self.linear(term.left), self.linear(term.right)
        operator = term.operator
        if isinstance(left, (Chain, Combined)) and isinstance(right, (Chain, Combined)):
            if operator in ("*", "/"):
                raise PredicateError(
                    f"`{term!r}` is not linear: multiply or divide a column by a constant only; "
                    "for a product of columns, add it as a column before the join"
                )
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
            return _then(left, Step(operator, right))
        if isinstance(right, (Chain, Combined)):
            if operator == "/":
                raise PredicateError(
                    f"`{term!r}` is not linear: it divides by a column; multiply both sides"
                )
            self.check_factor(term, operator, left)
            return _then(right, Step("from" if operator == "-" else operator, left))
        return self.fold(term, left, right)

    def fold(self, term: Arithmetic, left: Any, right: Any) -> ConstantValue:
        try:
            value = {
                "+": lambda: left + right,
                "-": lambda: left - right,
                "*": lambda: left * right,
                "/": lambda: left / right,
            }[term.operator]()
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
        left, right = self.roles
        if stream is None:
            raise PredicateError(
                f"`{column!r}` does not say which stream it belongs to: "
                f"write {left}.{column.name} or {right}.{column.name}"
            )
        if stream not in self.roles:
            raise PredicateError(
                f"`{column!r}`: there is no stream {stream!r} in this join; "
                f"its sides are {left!r} and {right!r}"
            )
        return RIGHT if stream == right else LEFT

    def twice(self, first: Chain, second: Chain, written: str) -> PredicateError:
        role, other = self.roles[first.side], self.roles[1 - first.side]
        if first.column == second.column:
            what = f"uses {role}.{first.column} twice"
        else:
            what = f"uses two columns of {role}, {first.column} and {second.column}"
        return PredicateError(
            f"`{written}` {what}: a comparison takes one column of {role} and one of {other}; "
            f"add what you need as a column of {role} before the join"
        )


def _columns_in(value: Chain | Combined | ConstantValue) -> int:
    return 2 if isinstance(value, Combined) else int(isinstance(value, Chain))


def _then(value: Chain | Combined, step: Step) -> Chain | Combined:
    if isinstance(value, Chain):
        return Chain(value.side, value.column, (*value.steps, step))
    return Combined(value.operator, value.first, value.second, (*value.steps, step))
