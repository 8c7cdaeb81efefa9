"""The SELECT list of a query."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from operators.protocol.sides import RIGHT
from operators.query.condition import sides_of
from operators.query.errors import QueryError
from operators.query.expressions import Column, Expression
from operators.query.kinds import Kind
from operators.query.select_items import MATCHES, ComputedItem, CountItem, Item, SelectItem
from operators.sql.text import error_at, match_name, qualifier_of


def counts_matches(nodes: list[exp.Expression]) -> bool:
    """Whether COUNT(*) is selected: the query then asks for the number of matches of each row."""
    return any(isinstance(_unaliased(node), exp.Count) for node in nodes)


class SelectReader:
    """Reads the items of one SELECT list; ``value`` reads an expression.

    ``stream`` is set only in the papers' dialect, where an item means that column of both rows.
    """

    def __init__(
        self,
        text: str,
        roles: tuple[str, ...],
        kind: Kind,
        stream: str | None,
        value: Callable[[exp.Expression], Expression],
    ) -> None:
        self.text = text
        self.roles = roles
        self.kind = kind
        self.stream = stream
        self.value = value

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
        match value:
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
        if self.kind.shows_right or isinstance(item, CountItem):
            return
        left, right = self.roles  # only joins of two leave out a side
        used = Column(item.role, item.column) if isinstance(item, SelectItem) else item.expression
        if RIGHT in sides_of(used, self.roles):
            raise self.error(
                node,
                f"`{used!r}` belongs to {right}, whose rows {self.kind.upper()} JOIN does not return: "
                f"select columns of {left}" + (", or write JOIN" if self.kind == Kind.SEMI else ""),
            )


def _unaliased(node: exp.Expression) -> exp.Expression:
    found: exp.Expression = node.this if isinstance(node, exp.Alias) else node
    return found.unnest()
