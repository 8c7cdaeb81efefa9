"""The normal form of a join condition: alternatives to search for by intervals, and the checks that remain.

A condition becomes a `Condition`: a disjunction of `Predicate`s (`query.predicate`). No predicate finds a pair that an
earlier one has found. Each predicate is a conjunction, and each part of it goes where it is cheapest:

- a comparison of a left with a right column, linear in each, becomes an interval of keys: a dimension;
- a condition on one stream alone is evaluated once per row: a filter;
- the rest is evaluated on the pairs that the dimensions find: the residual.

A function of one column counts as a column, whose values are computed before keys are made of them; the comparison is
evaluated again on the pairs found. NOT is pushed down to the comparisons, which is exact in three-valued logic.
``x IS NOT DISTINCT FROM y`` is ``x = y OR (x IS NULL AND y IS NULL)``: a search, and the nulls of both.

OR becomes alternatives, each with a search of its own. It stays in the residual instead if an equality or a band beside
it already finds few pairs, if some alternative has nothing to search by, or if there would be more than `MOST_BRANCHES`
alternatives.

    R.a = S.a AND (R.x < S.x OR R.y < S.y)      one search by a, and the OR on what it finds
    R.x < S.x AND (R.a = S.a OR R.b = S.b)      two: x and a; x and b, without pairs for which R.a = S.a is true
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from functools import reduce

import pyarrow as pa

from operators.protocol.sides import LEFT, RIGHT
from operators.query.comparison_operators import COMPARE, is_lower, mirrored, negated
from operators.query.constant_arithmetic import negative
from operators.query.errors import PredicateError
from operators.query.expressions import (
    Absolute,
    Alias,
    And,
    Apply,
    Between,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    Distinct,
    Expression,
    In,
    IsNull,
    IsTruth,
    Not,
    Or,
    children,
)
from operators.query.expressions import columns_in as columns_in  # noqa: PLC0414 - later rooms import it from here
from operators.query.predicate import (
    ALL_ROWS,
    Comparison,
    ComparisonReader,
    NotAnIntervalError,
    Predicate,
    dimensions_of,
)

MOST_BRANCHES = 8
"""At most this many alternatives are searched for one by one."""


@dataclass(frozen=True)
class Condition:
    """A disjunction of predicates without common pairs, and the condition that it stands for."""

    left: str
    right: str
    branches: tuple[Predicate, ...]
    written: Expression = field(compare=False)

    def columns(self, side: int) -> list[str]:
        """The columns of a side that the condition mentions, each once, in the order of the text."""
        role = (self.left, self.right)[side]
        return list(dict.fromkeys(column.name for column in columns_in(self.written) if column.stream == role))

    def among(self, filters: tuple[Expression | None, Expression | None]) -> Condition:
        """The same condition, restricted to rows of each side that satisfy a filter of their own."""
        branches = []
        for branch in self.branches:
            left, right = (
                one if other is None else other if one is None else And(one, other)
                for one, other in zip(branch.filters, filters, strict=True)
            )
            branches.append(replace(branch, filters=(left, right)))
        return replace(self, branches=tuple(branches))

    def equal_columns(self, side: int) -> tuple[str, ...]:
        """The key of a side's rows: its columns in the top-level equalities of two plain columns, as written."""
        roles, found = (self.left, self.right), []
        for part in conjuncts(self.written):
            match part:
                case Compare("=", Column() as one, Column() as other) if {one.stream, other.stream} == {*roles}:
                    found.append(one.name if one.stream == roles[side] else other.name)
        return tuple(found)

    def __str__(self) -> str:
        return " OR ".join(f"({branch})" if len(self.branches) > 1 else str(branch) for branch in self.branches)


def normalise(condition: Expression, left: str, right: str) -> Condition:
    """The normal form of ``condition`` between the streams (or roles) ``left`` and ``right``."""
    if left == right:
        raise PredicateError(
            f"both sides of the join are called {left!r}: give the roles different names, such as {left}1 and {left}2"
        )
    reader = _Reader(left, right)
    if not isinstance(condition, Expression):
        raise PredicateError(f"{condition!r} is not a condition: write {reader.comparisons.example}")
    alternatives = reader.expand(list(conjuncts(reader.without_not(condition))))
    branches: list[Predicate] = []
    for number, parts in enumerate(alternatives):
        own = {id(part) for part in parts}
        before = [[part for part in other if id(part) not in own] for other in alternatives[:number]]
        branches.append(reader.predicate(parts, tuple(conjunction(other) for other in before if other)))
    return Condition(left, right, tuple(branches), condition)


def conjunction(parts: Sequence[Expression]) -> Expression:
    """The conjunction of one or more conditions."""
    return reduce(And, parts)


def sides_of(expression: Expression, roles: tuple[str, ...]) -> set[int]:
    """The sides whose columns the expression mentions."""
    return {roles.index(column.stream) for column in columns_in(expression) if column.stream in roles}


def without_not(condition: Expression, roles: tuple[str, str]) -> Expression:
    """The condition, checked, with NOT pushed down as far as it goes: ``NOT (x < 1 OR y)`` is ``x >= 1 AND NOT y``."""
    return _Reader(*roles).without_not(condition)


def by_side(condition: Expression, roles: tuple[str, str]) -> tuple[Expression | None, Expression | None]:
    """The parts of a conjunction by side, each about one stream only; None for a side without parts.

    What names no column is about the sides that the other parts are about, or about both.
    """
    parts = [(part, sides_of(part, roles)) for part in conjuncts(without_not(condition, roles))]
    named = set().union(*(sides for _, sides in parts)) or {LEFT, RIGHT}
    found: tuple[list[Expression], list[Expression]] = ([], [])
    for part, sides in parts:
        if len(sides) == 2:
            raise PredicateError(
                f"where: `{part!r}` must use columns of one stream only: move it to the join condition (on)"
            )
        for side in sides or named:
            found[side].append(part)
    left, right = (conjunction(each) if each else None for each in found)
    return left, right


class _Reader:
    """Takes one condition apart."""

    def __init__(self, left: str, right: str) -> None:
        self.roles = (left, right)
        self.comparisons = ComparisonReader(left, right)

    def without_not(self, condition: Expression, under_not: bool = False) -> Expression:
        """The condition, checked, with NOT left only before conditions that have no opposite."""
        match condition:
            case Not(operand):
                return self.without_not(operand, not under_not)
            case In(left, right) if not under_not:
                self.without_not(left), self.without_not(right)
                return condition
            case And(left, right) | Or(left, right):
                joined = Or if isinstance(condition, And) == under_not else And
                return joined(self.without_not(left, under_not), self.without_not(right, under_not))
            case Between(operand, low, high):
                self.check_values(operand, low, high)
                if under_not:
                    return Or(Compare("<", operand, low), Compare(">", operand, high))
                try:
                    self.comparisons.read(condition)
                except NotAnIntervalError:  # one of its halves may still be an interval
                    return And(Compare(">=", operand, low), Compare("<=", operand, high))
                return condition
            case Compare(operator, left, right):
                self.check_values(left, right)
                _check_truths(left, right)
                found = Compare(negated(operator) if under_not else operator, left, right)
                return folded(self.two_ranges(found))
            case Distinct(left, right):
                self.check_values(left, right)
                return _same(left, right) if under_not else _different(left, right)
            case IsTruth(operand, value) if not under_not:  # where unknown and false come to the same
                return self.without_not(operand, not value)
            case IsTruth(operand):
                self.without_not(operand)
            case IsNull(operand):
                self.check_values(operand)
            case Call(returns=returns) if returns is not None and not pa.types.is_boolean(returns):
                raise PredicateError(f"`{condition!r}` returns {returns}, not a condition: compare it with something")
            case Call() | Apply() | Cast():
                self.check_values(*children(condition))
            case Column():  # a column of booleans
                self.check_values(condition)
                return Compare("=", condition, Constant(not under_not))
            case Constant(bool()):
                return Constant(condition.value != under_not)
            case Constant(None):  # unknown and false come to the same
                return Constant(False)
            case _:
                raise PredicateError(f"`{condition!r}` is not a condition: write {self.comparisons.example}")
        return Not(condition) if under_not else condition

    def two_ranges(self, comparison: Compare) -> Expression:
        """``abs(x) > c`` as one range or the other; other comparisons as they are."""
        operator, left, right = comparison.operator, comparison.left, comparison.right
        if isinstance(right, Absolute) and not isinstance(left, Absolute):
            operator, left, right = mirrored(operator), right, left
        if not is_lower(operator) or not isinstance(left, Absolute) or not isinstance(right, Constant):
            return comparison
        if isinstance(right.value, bool) or not isinstance(right.value, (int, float, Decimal, timedelta)):
            return comparison
        below = Constant(negative(right.value))
        return Or(Compare(operator, left.operand, right), Compare(mirrored(operator), left.operand, below))

    def check_values(self, *terms: Expression) -> None:
        """Refuse an alias, and columns of unknown streams."""
        for term in terms:
            match term:
                case Column(stream):
                    self.comparisons.side(term, stream)
                case Alias():
                    raise PredicateError(f"`{term!r}`: an alias belongs in the select list, not in a condition")
            self.check_values(*children(term))

    def expand(self, parts: list[Expression]) -> list[list[Expression]]:
        """The alternatives of a conjunction, each a conjunction; an OR left inside one goes to the residual."""
        choices = [part for part in parts if isinstance(part, Or) and len(sides_of(part, self.roles)) == 2]
        if not choices or self.is_selective(parts):
            return [parts]
        for choice in choices:
            alternatives = [list(conjuncts(each)) for each in _disjuncts(choice)]
            if not all(any(self.is_searchable(part) for part in each) for each in alternatives):
                continue
            others = [part for part in parts if part is not choice]
            found = [one for each in alternatives for one in self.expand([*others, *each])]
            if len(found) <= MOST_BRANCHES:
                return found
        return [parts]

    def is_selective(self, parts: list[Expression]) -> bool:
        """Whether one of the parts is an equality or a band between the streams."""
        comparisons: list[Comparison] = []
        for part in parts:
            with suppress(NotAnIntervalError):
                comparisons += self.comparisons.read(part)
        return any(dimension.is_bounded for dimension in dimensions_of(comparisons))

    def is_searchable(self, part: Expression) -> bool:
        """Whether the part narrows a search: by an interval, by filtering one side, or in each of its alternatives."""
        if isinstance(part, Or) and len(sides_of(part, self.roles)) == 2:
            return all(any(self.is_searchable(one) for one in conjuncts(each)) for each in _disjuncts(part))
        if len(sides_of(part, self.roles)) == 1:
            return True
        try:
            return bool(self.comparisons.read(part))
        except NotAnIntervalError:
            return False

    def predicate(self, parts: list[Expression], excluded: tuple[Expression, ...]) -> Predicate:
        comparisons: list[Comparison] = []
        alone: tuple[list[Expression], list[Expression]] = ([], [])
        rest: list[Expression] = []
        for part in parts:
            sides = sides_of(part, self.roles)
            if isinstance(part, Constant) and part.value:
                continue
            if len(sides) == 1:
                alone[sides.pop()].append(part)
                continue
            try:
                found = self.comparisons.read(part)
            except NotAnIntervalError:  # also what no column decides: it is never true, or tested like the rest
                rest.append(part)
                continue
            comparisons += found
            if any(one.is_computed for one in found):
                rest.append(part)
        left, right = (conjunction(each) if each else None for each in (alone[LEFT], alone[RIGHT]))
        return Predicate(
            *self.roles,
            dimensions_of(comparisons) or (ALL_ROWS,),
            (left, right),
            conjunction(rest) if rest else None,
            excluded,
        )


def folded(condition: Expression) -> Expression:
    """A comparison of two constants as TRUE or FALSE, where unknown and false come to the same; others as they are."""
    match condition:
        case Compare(_, Constant(None), _) | Compare(_, _, Constant(None)):
            return Constant(False)
        case Compare(operator, Constant(one), Constant(other)) if _alike(one, other):
            return Constant(bool(COMPARE[operator](one, other)))
    return condition


def _check_truths(left: Expression, right: Expression) -> None:
    """Refuse ``(R.a < S.a) < 3``, which is rarely meant; types tell the other cases."""
    conditions = (Compare, Between, And, Or, Not, IsNull, IsTruth, Distinct)
    for one, other in ((left, right), (right, left)):
        plain = isinstance(other, Constant) and not isinstance(other.value, bool) and other.value is not None
        if isinstance(one, conditions) and plain:
            raise PredicateError(f"`{one!r}` is a condition where a value is expected: join conditions with AND (&)")


def _alike(one: object, other: object) -> bool:
    """Whether Python compares two constants as the law does."""
    numbers = (bool, int, float, Decimal)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return {type(one), type(other)} <= {bool, int} or (type(one) is type(other) and not isinstance(one, float))
    return type(one) is type(other) and isinstance(one, str | bytes)


def _same(left: Expression, right: Expression) -> Expression:
    """``left IS NOT DISTINCT FROM right`` where unknown and false come to the same."""
    return Or(folded(Compare("=", left, right)), And(IsNull(left), IsNull(right)))


def _different(left: Expression, right: Expression) -> Expression:
    """``left IS DISTINCT FROM right`` where unknown and false come to the same."""
    one = And(IsNull(left), Not(IsNull(right)))
    other = And(Not(IsNull(left)), IsNull(right))
    return Or(folded(Compare("!=", left, right)), Or(one, other))


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a conjunction."""
    if isinstance(condition, And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition


def _disjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Or):
        yield from _disjuncts(condition.left)
        yield from _disjuncts(condition.right)
    else:
        yield condition
