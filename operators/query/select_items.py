"""The items of a select list: columns of either side, values computed from them, the number of matches."""

from __future__ import annotations

from dataclasses import dataclass

from operators.query.expressions import Expression

MATCHES = "matches"
"""What results call the number of matches unless the query gives another name."""


@dataclass(frozen=True)
class SelectItem:
    """A column of one role, ``*`` for all of them.

    ``alternative`` is the whole dotted name when a qualifier was dropped that is no role: the
    stream may have a column named so. ``name`` is what ``AS`` calls the column in the result.
    """

    role: str
    column: str
    alternative: str | None = None
    name: str | None = None


@dataclass(frozen=True, eq=False)
class ComputedItem:
    """A value computed from columns of either role, and what the results call it."""

    expression: Expression
    name: str


@dataclass(frozen=True)
class CountItem:
    """The number of matches of a row, and what the results call it."""

    name: str = MATCHES


Item = SelectItem | ComputedItem | CountItem
