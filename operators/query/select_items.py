"""The items of a select list: columns of either side, computed values, the number of matches, and aggregates.

Users write aggregates over the matches of a row as ``count()``, ``sum("S.size")`` or ``max(S.price * 2)``;
`StreamJoin(aggregate={"volume": sum("S.size")})` names each one. Their meaning is in docs/semantics.md, Aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from operators.query.constants import identifier
from operators.query.errors import PredicateError
from operators.query.expressions import Expression

MATCHES = "matches"
"""The default name of the number of matches in results."""


@dataclass(frozen=True)
class SelectItem:
    """A column of one role, ``*`` for all of them.

    alternative: the whole dotted name, if its first part is not a role: the stream may have a column of that name.
    name:        the column's name in the result, given by ``AS``.
    """

    role: str
    column: str
    alternative: str | None = None
    name: str | None = None


@dataclass(frozen=True, eq=False)
class ComputedItem:
    """A value computed from columns of either role, and its name in the result."""

    expression: Expression
    name: str


@dataclass(frozen=True)
class CountItem:
    """The number of matches of a row, and its name in the result."""

    name: str = MATCHES


class AggregateFunction(StrEnum):
    """A function of many values. It equals its name."""

    COUNT = "count"  # how many; without an argument: how many matches
    SUM = "sum"  # exact; of floats rounded once
    MIN = "min"  # the least
    MAX = "max"  # the greatest
    AVG = "avg"  # the sum as float64, divided by the count

    @property
    def summary(self) -> str:
        """What it takes, for messages."""
        return {
            AggregateFunction.COUNT: "anything",
            AggregateFunction.SUM: "integers, floats, decimals and durations",
            AggregateFunction.AVG: "integers, floats and decimals",
        }.get(self, "numbers, text, binary, booleans, dates and times")


AGGREGATES = {**{each.value: each for each in AggregateFunction}, "mean": AggregateFunction.AVG}
"""The functions by the names that they have in SQL."""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """A function of the values that an argument has in the matches of a row.

    argument: a column such as "S.size", or an expression; None: the matches themselves, which can only be counted.
    """

    function: AggregateFunction
    argument: str | Expression | None = None

    def __post_init__(self) -> None:
        if self.argument is None and self.function is not AggregateFunction.COUNT:
            raise PredicateError(f"{self.function} needs an argument, such as {self.function}('S.size')")
        named = isinstance(self.argument, str) and bool(self.argument)
        if not (self.argument is None or named or isinstance(self.argument, Expression)):
            raise PredicateError(
                f"{self.function} takes a column such as 'S.size', or an expression such as stream('S').size * 2, "
                f"not {self.argument!r}"
            )


@dataclass(frozen=True, eq=False)
class AggregateItem:
    """An aggregate over the matches of a row, and its name in the result.

    argument: a value of each match; None: the matches themselves, which can only be counted.
    rows:     the role whose rows have it; None: the side that the argument does not name.
    """

    function: AggregateFunction
    argument: Expression | None
    name: str
    rows: str | None = None

    def __repr__(self) -> str:
        shown = "*" if self.argument is None else repr(self.argument)
        return f"{self.function}({shown}) AS {identifier(self.name)}"


Item = SelectItem | ComputedItem | CountItem | AggregateItem


def count(argument: str | Expression | None = None) -> Aggregate:
    """The number of matches, or of those in which the argument is neither null nor NaN."""
    return Aggregate(AggregateFunction.COUNT, argument)


def sum(argument: str | Expression) -> Aggregate:
    """The exact sum: int64 of integers, float64 of floats, decimal(38) of decimals; durations keep their type."""
    return Aggregate(AggregateFunction.SUM, argument)


def min(argument: str | Expression) -> Aggregate:
    """The least value."""
    return Aggregate(AggregateFunction.MIN, argument)


def max(argument: str | Expression) -> Aggregate:
    """The greatest value."""
    return Aggregate(AggregateFunction.MAX, argument)


def avg(argument: str | Expression) -> Aggregate:
    """The mean, float64: the exact sum as float64, divided by the count."""
    return Aggregate(AggregateFunction.AVG, argument)


def mean(argument: str | Expression) -> Aggregate:
    """As `avg`."""
    return avg(argument)
