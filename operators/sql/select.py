"""The SELECT list of a query."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlglot import exp

from operators.protocol.sides import RIGHT
from operators.query.condition import sides_of
from operators.query.errors import QueryError
from operators.query.expressions import Column, Expression
from operators.query.kinds import Kind
from operators.query.select_items import (
    AGGREGATES,
    MATCHES,
    AggregateFunction,
    AggregateItem,
    ComputedItem,
    CountItem,
    Item,
    SelectItem,
)
from operators.sql.text import error_at, match_name, qualifier_of


def aggregate_of(node: exp.Expression, functions: Collection[str]) -> AggregateFunction | None:
    """The aggregate that an item of the SELECT list is; None if it is none. `functions` are the user's own."""
    value = _unaliased(node)
    if isinstance(value, exp.Count):
        return AggregateFunction.COUNT
    called = isinstance(value, exp.Anonymous) and value.name not in functions
    return AGGREGATES.get(value.name.lower()) if called else None


def counts_matches(nodes: list[exp.Expression]) -> bool:
    """Whether COUNT(*) is selected: the query then asks for the number of matches of each row."""
    return any(isinstance(_unaliased(node), exp.Count) for node in nodes)


class SelectReader:
    """Reads the items of one SELECT list; ``value`` reads an expression.

    ``stream`` is set only in the papers' dialect, where an item means that column of both rows.
    ``grouped`` is the role of GROUP BY, whose rows come out with aggregates over their matches.
    """

    def __init__(
        self,
        text: str,
        roles: tuple[str, ...],
        kind: Kind,
        stream: str | None,
        value: Callable[[exp.Expression], Expression],
        grouped: str | None = None,
        functions: Collection[str] = (),
    ) -> None:
        self.text = text
        self.roles = roles
        self.kind = kind
        self.stream = stream
        self.value = value
        self.grouped = grouped
        self.functions = functions

    def error(self, node: exp.Expression, message: str) -> QueryError:
        return error_at(self.text, node, message)

    def items(self, nodes: list[exp.Expression]) -> tuple[Item, ...] | None:
        if not nodes:
            raise QueryError("the query selects nothing: write SELECT * or name columns")
        if len(nodes) == 1 and isinstance(nodes[0], exp.Star) and not any(nodes[0].args.values()):
            return None
        items: list[Item] = []
        for node in nodes:
            for item in self.item(node):
                self.check_side(node, item)
                items.append(item)
        return tuple(items)

    def item(self, node: exp.Expression) -> list[Item]:
        value = _unaliased(node)
        name = (node.alias or None) if isinstance(node, exp.Alias) else None
        star = value.this if isinstance(value, exp.Column) else value
        if isinstance(star, exp.Star) and any(star.args.values()):
            raise self.error(node, f"`{node.sql()}` is not supported: name the columns to show")
        function = aggregate_of(node, self.functions)
        if function is not None and self.grouped is not None:
            return [self.aggregate(node, value, function, name)]
        if isinstance(value, exp.Anonymous) and function is not None:
            named = [match_name(qualifier_of(column) or "", self.roles) for column in value.find_all(exp.Column)]
            own, other = self.roles[0], self.roles[-1]
            if own in named:
                own, other = other, own
            raise self.error(
                node,
                f"`{node.sql()}` is an aggregate over the matches of each row: write GROUP BY {own} for the rows of "
                f"{own}, and aggregate columns of {other}",
            )
        match value:
            case exp.Star() if self.grouped is not None:
                return [SelectItem(self.grouped, "*")]
            case exp.Star():
                return [SelectItem(role, "*") for role in (self.roles if self.kind.shows_right else self.roles[:1])]
            case exp.Count():
                if not isinstance(value.this, exp.Star):
                    raise self.error(node, f"`{value.sql()}` is not supported: write COUNT(*), the number of matches")
                return [CountItem(name or MATCHES)]
            case exp.Column() if not self.is_field(value):
                return list(self.columns(node, value, name))
        expression = self.value(value)
        if not sides_of(expression, self.roles):
            raise self.error(node, f"`{expression!r}` names no column: select a value that depends on a row")
        return [ComputedItem(expression, name or repr(expression))]

    def aggregate(
        self, node: exp.Expression, value: exp.Expression, function: AggregateFunction, name: str | None
    ) -> AggregateItem:
        arguments = [value.this] if isinstance(value, exp.Count) else list(value.expressions)
        if isinstance(value, exp.Count) and value.expressions:
            arguments += value.expressions
        if len(arguments) != 1 or isinstance(arguments[0], exp.Distinct):
            raise self.error(node, f"`{value.sql()}` is not supported: an aggregate takes one value of each match")
        if isinstance(arguments[0], exp.Star):
            if function is not AggregateFunction.COUNT:
                raise self.error(node, f"`{value.sql()}`: {function} takes a value, such as {function}(S.x)")
            return AggregateItem(function, None, name or MATCHES, self.grouped)
        argument = self.value(arguments[0])
        roles = {self.roles[side] for side in sides_of(argument, self.roles)}
        if roles != {*self.roles} - {self.grouped}:
            others = " or ".join(role for role in self.roles if role != self.grouped)
            message = f"`{value.sql()}` must name columns of {others}: each result is a row of {self.grouped}"
            raise self.error(node, message)
        return AggregateItem(function, argument, name or f"{function}({argument!r})", self.grouped)

    def is_field(self, column: exp.Column) -> bool:
        """Whether it names a field of a struct: ``R.column.field``."""
        qualifier = qualifier_of(column) or ""
        return match_name(qualifier, self.roles) is None and match_name(column.parts[0].name, self.roles) is not None

    def columns(self, node: exp.Expression, column: exp.Column, name: str | None) -> list[SelectItem]:
        qualifier = qualifier_of(column)
        named = "*" if isinstance(column.this, exp.Star) else column.name
        role = match_name(qualifier, self.roles) if qualifier else None
        if role is not None:
            if named == "*" and name is not None:
                raise self.error(node, f"{role}.* means several columns, which cannot all be called {name}")
            return [SelectItem(role, named, name=name)]
        if self.stream is None:
            if qualifier is None:
                message = f"{named} does not say which stream it belongs to: write " + (
                    " or ".join(f"{each}.{named}" for each in self.roles)
                )
            else:
                message = f"there is no stream {qualifier} in this join: its sides are {' and '.join(self.roles)}"
            raise self.error(node, message)
        if name is not None:
            raise self.error(
                node,
                f"{named} means a column of both rows, which cannot both be called {name}: "
                f"write {self.roles[0]}.{named} AS {name}",
            )
        own = qualifier is None or match_name(qualifier, (self.stream,)) is not None
        alternative = None if own else f"{qualifier}.{named}"
        return [SelectItem(each, named, alternative) for each in self.roles]

    def check_side(self, node: exp.Expression, item: Item) -> None:
        if isinstance(item, CountItem | AggregateItem) or (self.kind.shows_right and self.grouped is None):
            return
        left, right = self.roles  # only joins of two leave out a side
        used = Column(item.role, item.column) if isinstance(item, SelectItem) else item.expression
        if self.grouped is not None:
            if sides_of(used, self.roles) - {self.roles.index(self.grouped)}:
                raise self.error(
                    node,
                    f"`{used!r}` has many values for one row of {self.grouped}: select columns of {self.grouped}, or "
                    f"an aggregate such as max({used!r})",
                )
            return
        if RIGHT in sides_of(used, self.roles):
            raise self.error(
                node,
                f"`{used!r}` belongs to {right}, whose rows {self.kind.upper()} JOIN does not return: "
                f"select columns of {left}" + (", or write JOIN" if self.kind == Kind.SEMI else ""),
            )


def _unaliased(node: exp.Expression) -> exp.Expression:
    found: exp.Expression = node.this if isinstance(node, exp.Alias) else node
    return found.unnest()
