"""The items of a select list: columns of either side, computed values, the number of matches, and aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from operators.query.aggregates import AggregateFunction
from operators.query.expressions import Expression, identifier

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
