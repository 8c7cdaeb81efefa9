"""Whole queries from SQL text.

`parse_condition` reads a bare condition, `parse_query` a SELECT over two streams, or over one
stream joined with itself.

A query over one stream without aliases is in the dialect of the inequality-join papers: a column
in WHERE ends in 1 or 2, for the first or the second row of the pair, and an item of the SELECT
list stands for that column of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from operators.errors import QueryError, at_place
from operators.expressions import And, Column, Expression
from operators.selection import SelectItem
from operators.sql_expressions import (
    ConditionReader,
    match_role,
    parse_text,
    place_of,
    qualifier_of,
)
from operators.sql_window import ParameterValue, WindowClause, cut_window


@dataclass(frozen=True, eq=False)
class ParsedQuery:
    """What a query asks for. A role is how the query calls a side, a stream where it comes from."""

    left: str
    right: str
    left_stream: str
    right_stream: str
    condition: Expression
    select: tuple[SelectItem, ...] | None  # None for *
    window: WindowClause | None


def parse_condition(text: str, left: str, right: str) -> Expression:
    """The condition in ``text`` between the streams (or roles) ``left`` and ``right``."""
    tree = parse_text(text, text, "a condition")
    return ConditionReader(text, left, right).condition(tree)


def parse_query(
    text: str, parameters: Mapping[str, ParameterValue] | None = None, *, read_window: bool = True
) -> ParsedQuery:
    """The query in ``text``; ``parameters`` fill the names in its WINDOW clause.

    ``read_window=False`` leaves that clause unread: something else takes its place.
    """
    body, window = cut_window(text, parameters or {}, read_window)
    tree = parse_text(body, text, "a SELECT")
    if not isinstance(tree, exp.Select):
        raise at_place("a query starts with SELECT", text, place_of(tree))
    return _Query(text, tree).read(window)


class _Query:
    """Reads one SELECT statement."""

    def __init__(self, text: str, tree: exp.Select) -> None:
        self.text = text
        self.tree = tree

    def error(self, node: exp.Expression, message: str) -> QueryError:
        return at_place(message, self.text, place_of(node))

    def read(self, window: WindowClause | None) -> ParsedQuery:
        self.check_clauses()
        source, joins = self.tree.args.get("from_"), self.tree.args.get("joins") or []
        if source is None:
            raise self.error(self.tree, "the query has no FROM: write FROM R, S")
        tables = [self.table(source.this), *(self.table(join.this) for join in joins)]
        conditions = [self.join_condition(join) for join in joins]
        where = self.tree.args.get("where")
        conditions.append(where.this if where is not None else None)
        alone = len(tables) == 1
        if alone:
            role, stream = tables[0]
            if source.this.alias:
                raise self.error(
                    source.this,
                    f"a join of {stream} with itself needs two roles: "
                    f"write FROM {stream} AS {role}, {stream} AS {role}_other",
                )
            tables = [(f"{role}1", stream), (f"{role}2", stream)]
        if len(tables) != 2:
            raise self.error(self.tree, f"a join takes two streams, not {len(tables)}")
        (left, left_stream), (right, right_stream) = tables
        if left == right:
            raise self.error(
                joins[0],
                f"both streams are called {left}: give them roles, as in "
                f"FROM {left_stream} AS a, {right_stream} AS b",
            )
        selection = _Selection(self.text, left, right, role if alone else None)
        reader = ConditionReader(self.text, left, right, selection.column if alone else None)
        parts = [reader.condition(node) for node in conditions if node is not None]
        if not parts:
            raise self.error(
                self.tree, f"the query has no condition: write WHERE {left}.a < {right}.b"
            )
        condition = parts[0] if len(parts) == 1 else And(*parts)
        select = selection.items(self.tree.expressions)
        return ParsedQuery(left, right, left_stream, right_stream, condition, select, window)

    def check_clauses(self) -> None:
        known = {"expressions", "from_", "joins", "where", "kind", "hint", "operation_modifiers"}
        for name, value in self.tree.args.items():
            if value and name not in known:
                node = value[0] if isinstance(value, list) else value
                clause = {"with_": "WITH", "windows": "WINDOW"}.get(name, name.upper())
                raise self.error(
                    node if isinstance(node, exp.Expression) else self.tree,
                    f"{clause} is not supported: a query is SELECT .. FROM .. WHERE .. WINDOW ..",
                )

    def table(self, node: exp.Expression) -> tuple[str, str]:
        """(role, stream) of one entry of FROM."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.error(node, f"`{node.sql()}` is not a stream: FROM takes names of streams")
        extra = [name for name in node.args if name not in ("this", "db", "catalog", "alias")]
        if any(node.args[name] for name in extra):
            raise self.error(node, f"`{node.sql()}`: a stream in FROM takes a name and a role only")
        return node.alias or node.name, ".".join(part.name for part in node.parts)

    def join_condition(self, join: exp.Join) -> exp.Expression | None:
        for name in ("side", "method", "using"):
            word = join.args.get(name)
            if word:
                shown = "USING" if name == "using" else f"{word} JOIN"
                raise self.error(
                    join,
                    f"{shown} is not read from a query's text: write FROM R JOIN S ON R.a = S.a, "
                    "and ask for another kind of join where the query is run",
                )
        if str(join.args.get("kind") or "").upper() not in ("", "INNER", "CROSS"):
            raise self.error(
                join, f"{join.args['kind']} JOIN is not supported: write JOIN .. ON .."
            )
        condition: exp.Expression | None = join.args.get("on")
        return condition


class _Selection:
    """What column names stand for in a query; ``stream`` is set in the papers' dialect only."""

    def __init__(self, text: str, left: str, right: str, stream: str | None) -> None:
        self.text = text
        self.roles = (left, right)
        self.stream = stream

    def error(self, node: exp.Expression, message: str) -> QueryError:
        return at_place(message, self.text, place_of(node))

    def column(self, node: exp.Column) -> Column:
        """A column of WHERE in the papers' dialect."""
        assert self.stream is not None
        qualifier = qualifier_of(node)
        if qualifier is not None:
            role = match_role(qualifier, self.roles)
            if role is not None:
                return Column(role, node.name)
            if match_role(qualifier, (self.stream,)) is None:
                raise self.error(node, f"there is no stream {qualifier} here, only {self.stream}")
        if len(node.name) < 2 or node.name[-1] not in "12":
            raise self.error(
                node,
                f"{node.name} does not say which row of the pair it belongs to: write "
                f"{node.name}1 or {node.name}2, or name two roles, FROM {self.stream} AS a, "
                f"{self.stream} AS b",
            )
        return Column(self.roles[int(node.name[-1]) - 1], node.name[:-1])

    def items(self, nodes: list[exp.Expression]) -> tuple[SelectItem, ...] | None:
        if len(nodes) == 1 and isinstance(nodes[0], exp.Star):
            return None
        if not nodes:
            raise QueryError("the query selects nothing: write SELECT * or name columns")
        return tuple(item for node in nodes for item in self.item(node))

    def item(self, node: exp.Expression) -> list[SelectItem]:
        name = node.alias or None if isinstance(node, exp.Alias) else None
        column = node.this if isinstance(node, exp.Alias) else node
        if not isinstance(column, exp.Column):
            raise self.error(
                node, f"`{node.sql()}` cannot be selected: SELECT takes names of columns"
            )
        qualifier = qualifier_of(column)
        named = "*" if isinstance(column.this, exp.Star) else column.name
        role = match_role(qualifier, self.roles) if qualifier else None
        if role is not None:
            return [SelectItem(role, named, name=name)]
        if self.stream is None:
            left, right = self.roles
            if qualifier is None:
                message = f"{named} does not say which stream it belongs to: write " + (
                    f"{left}.{named} or {right}.{named}"
                )
            else:
                message = f"there is no stream {qualifier} in this join, only {left} and {right}"
            raise self.error(node, message)
        if name is not None:
            raise self.error(
                node,
                f"{named} stands for a column of both rows, which cannot both be called {name}: "
                f"write {self.roles[0]}.{named} AS {name}",
            )
        own = qualifier is None or match_role(qualifier, (self.stream,)) is not None
        alternative = None if own else f"{qualifier}.{named}"
        return [SelectItem(each, named, alternative) for each in self.roles]
