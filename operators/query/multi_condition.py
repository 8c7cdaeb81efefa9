"""Takes the condition of a join of several streams apart.

Each part of a conjunction goes where it is cheapest, as in a join of two (`query.condition`): a condition on one stream
is a filter, a comparison between two an interval of keys (a link), and the rest is evaluated on combinations as soon as
all its streams are among them.

    a.k = b.k AND b.x < c.x AND c.y > 3 AND a.v + b.v < c.v
      links: a-b by k, b-c by x    filter of c: y > 3    on combinations of a, b and c: a.v + b.v < c.v
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from operators.query.condition import conjunction, conjuncts, folded, normalise
from operators.query.errors import PredicateError
from operators.query.expressions import And, Column, Compare, Constant, Distinct, Expression, Not, Or, columns_in
from operators.query.predicate import Dimension, Predicate

Roles = frozenset[int]
"""Some of a join's roles, by number in the order of the FROM clause."""


@dataclass(frozen=True)
class Link:
    """Comparisons between two roles that an interval of keys answers; `roles` are the dimension's left and right.

    null_safe: rows that have no key meet each other, too. They are searched by a key that other rows may have as well,
               so a residual decides.
    """

    roles: tuple[int, int]
    dimension: Dimension
    null_safe: bool = False

    def side(self, role: int) -> int:
        """The side of the dimension that a role is."""
        return self.roles.index(role)

    def other(self, role: int) -> int:
        """The role at the other end."""
        return self.roles[1 - self.side(role)]


@dataclass(frozen=True, eq=False)
class Residual:
    """A condition that is evaluated on combinations that have all of `roles`."""

    roles: Roles
    expression: Expression


@dataclass(frozen=True, eq=False)
class MultiCondition:
    """A condition between several roles.

    filters: for each role the condition on its rows alone, or None.
    """

    roles: tuple[str, ...]
    filters: tuple[Expression | None, ...]
    links: tuple[Link, ...]
    residuals: tuple[Residual, ...]
    written: Expression

    def columns(self, role: int) -> list[str]:
        """The columns of a role that the condition mentions, each once."""
        named = [column.name for column in columns_in(self.written) if column.stream == self.roles[role]]
        return list(dict.fromkeys(named))


def take_apart(condition: Expression, roles: tuple[str, ...]) -> MultiCondition:
    """Find where each part of a condition is decided; raises PredicateError for what has no meaning."""
    if not isinstance(condition, Expression):
        raise PredicateError(f"on must be SQL text or a column expression, not {condition!r}")
    check_columns(condition, roles)
    by_roles: dict[Roles, list[Expression]] = {}
    for part in conjuncts(_pushed(condition)):
        constant = folded(part)
        if isinstance(constant, Constant) and constant.value is True:
            continue
        mentioned = frozenset(roles.index(column.stream or "") for column in columns_in(part))
        if not mentioned:  # never true, or decided by no column: tested as if it were about the first two
            mentioned = frozenset({0, 1})
        by_roles.setdefault(mentioned, []).append(part)
    filters: list[Expression | None] = []
    for role in range(len(roles)):
        alone = by_roles.pop(frozenset({role}), [])
        for part in alone:
            normalise(part, roles[role], roles[role - 1])  # raises what is wrong with it
        filters.append(conjunction(alone) if alone else None)
    links: list[Link] = []
    residuals: list[Residual] = []
    for pair in combinations(range(len(roles)), 2):
        parts = by_roles.pop(frozenset(pair), [])
        if parts:
            found, rest = _searched(parts, (roles[pair[0]], roles[pair[1]]))
            links += [Link(pair, dimension) for dimension in found]
            for part in parts:
                if isinstance(part, Not) and isinstance(alike := part.operand, Distinct):
                    links += _null_safe(pair, alike, (roles[pair[0]], roles[pair[1]]))
            residuals += [Residual(frozenset(pair), each) for each in rest]
    residuals += [Residual(mentioned, part) for mentioned, parts in by_roles.items() for part in parts]
    return MultiCondition(roles, tuple(filters), tuple(links), tuple(residuals), condition)


def check_columns(expression: Expression, roles: tuple[str, ...]) -> None:
    """Refuse columns that do not say which role they belong to."""
    for column in columns_in(expression):
        if column.stream not in roles:
            written = " or ".join(f"{role}.{column.name}" for role in roles)
            raise PredicateError(f"`{column!r}` is not a column of this join: write {written}")


def _pushed(condition: Expression, under_not: bool = False) -> Expression:
    """The condition with NOT pushed below AND and OR, so that more of its parts stand alone."""
    match condition:
        case Not(operand):
            return _pushed(operand, not under_not)
        case And(left, right) | Or(left, right):
            joined = Or if isinstance(condition, And) == under_not else And
            return joined(_pushed(left, under_not), _pushed(right, under_not))
    return Not(condition) if under_not else condition


def _searched(parts: list[Expression], roles: tuple[str, str]) -> tuple[list[Dimension], list[Expression]]:
    """The dimensions that keys answer, and what is left to evaluate; alternatives are evaluated."""
    conditions = [normalise(part, *roles) for part in parts]
    single = [part for part, condition in zip(parts, conditions, strict=True) if len(condition.branches) == 1]
    rest = [part for part, condition in zip(parts, conditions, strict=True) if len(condition.branches) > 1]
    if not single:
        return [], rest
    (predicate,) = normalise(conjunction(single), *roles).branches
    return [each for each in predicate.dimensions if not each.made], [*_unsearched(predicate), *rest]


def _null_safe(pair: tuple[int, int], alike: Distinct, roles: tuple[str, str]) -> list[Link]:
    """The link of ``left IS NOT DISTINCT FROM right`` for two columns, where a missing value is found by one key."""
    if not (isinstance(alike.left, Column) and isinstance(alike.right, Column)):
        return []
    found, _ = _searched([Compare("=", alike.left, alike.right)], roles)
    return [Link(pair, dimension, null_safe=True) for dimension in found]


def _unsearched(predicate: Predicate) -> Iterator[Expression]:
    """The parts of a predicate that its dimensions do not answer; a constant filters both sides."""
    for each in (predicate.residual, *predicate.filters):
        if each is not None:
            yield each


def column_of(column: Column, roles: tuple[str, ...]) -> tuple[int, str]:
    """The role and the name of a column."""
    return roles.index(column.stream or ""), column.name
