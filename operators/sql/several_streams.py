"""Queries over more than two streams: SELECT .. FROM a, b, c WHERE .. WINDOW .., inner joins only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from operators.query.condition import conjunction, normalise, sides_of
from operators.query.expressions import Constant, Expression
from operators.query.kinds import Kind
from operators.query.multi_condition import check_columns
from operators.query.select_items import Item
from operators.query.windows import Window
from operators.sql.expressions import ConditionReader, Functions
from operators.sql.parse import Query, select_of, using
from operators.sql.select import SelectReader, counts_matches
from operators.sql.text import parse_text
from operators.sql.window import ParameterValue, windows_of


@dataclass(frozen=True, eq=False)
class ParsedMultiQuery:
    """A parsed query over several streams; `streams` gives the stream of each role, `select` is None for ``*``."""

    streams: Mapping[str, str]
    condition: Expression
    select: tuple[Item, ...] | None
    windows: tuple[Window, ...] | None


class ManyRoles(ConditionReader):
    """Reads conditions between any number of roles."""

    front = "MultiJoin"

    def __init__(self, text: str, roles: tuple[str, ...], functions: Functions | None = None) -> None:
        super().__init__(text, roles[0], roles[1], functions)
        self.roles = roles

    def check(self, condition: Expression) -> None:
        check_columns(condition, self.roles)
        mentioned = sorted(sides_of(condition, self.roles))
        if len(mentioned) <= 2:
            left, right = [*mentioned, *(each for each in range(len(self.roles)) if each not in mentioned)][:2]
            normalise(condition, self.roles[left], self.roles[right])


def parse_multi_condition(text: str, roles: tuple[str, ...]) -> Expression:
    """The condition in ``text`` between several roles."""
    return ManyRoles(text, roles).condition(parse_text(text, text, f"a condition such as {roles[0]}.a < {roles[1]}.b"))


def parse_multi_query(
    text: str,
    parameters: Mapping[str, ParameterValue] | None = None,
    functions: Functions | None = None,
    *,
    read_window: bool = True,
) -> ParsedMultiQuery:
    """The query in ``text``; arguments as for `parse_query`."""
    tree, written = select_of(text, parameters, read_window)
    query = Query(text, tree, functions)
    query.check_clauses()
    source, joins = tree.args.get("from_"), tree.args.get("joins") or []
    if source is None:
        raise query.error(tree, "the query has no FROM: write FROM a, b, c")
    tables = [query.table(source.this), *(query.table(join.this) for join in joins)]
    if len(tables) < 2:
        raise query.error(source, "a join takes two streams or more: write FROM a, b, c")
    roles = tuple(role for role, _ in tables)
    for number, join in enumerate(joins):
        if roles[number + 1] in roles[: number + 1]:
            raise query.error(join, f"two streams are called {roles[number + 1]}: give them roles, as in FROM t AS a")
        if query.join_kind(join, roles[number], roles[number + 1]) != Kind.INNER:
            raise query.error(join, "a join of more than two streams is an inner join: write JOIN, or a comma")
    if tree.args.get("group") is not None:
        raise query.error(tree.args["group"], "GROUP BY is for joins of two streams: aggregate the results in a bolt")
    if counts_matches(tree.expressions):
        raise query.error(tree.expressions[0], "COUNT(*) counts the matches of joins of two streams: select columns")
    reader = ManyRoles(text, roles, functions)
    nodes = [node for join in joins if (node := join.args.get("on")) is not None]
    nodes += [tree.args["where"].this] if tree.args.get("where") else []
    parts = [*_using(query, roles, joins), *(reader.condition(node) for node in nodes)]
    if not parts and not all(str(join.args.get("kind") or "").upper() == "CROSS" for join in joins):
        message = f"the query has no condition: write WHERE {roles[0]}.a < {roles[1]}.b, or CROSS JOIN"
        raise query.error(tree, message)
    select = SelectReader(text, roles, Kind.INNER, None, reader.expression).items(tree.expressions)
    condition = conjunction(parts) if parts else Constant(True)
    return ParsedMultiQuery(dict(tables), condition, select, windows_of(written, text, roles))


def _using(query: Query, roles: tuple[str, ...], joins: list[exp.Join]) -> Iterator[Expression]:
    """The equalities of all USING clauses: with the only stream before, or the first that a clause before has named."""
    first: dict[str, str] = {}
    for number, join in enumerate(joins):
        for each in join.args.get("using") or ():
            if number and each.name not in first:
                column, right = each.name, roles[number + 1]
                written = " or ".join(f"ON {role}.{column} = {right}.{column}" for role in roles[: number + 1])
                raise query.error(join, f"USING ({each.name}) does not say which stream before has it: write {written}")
            first.setdefault(each.name, roles[number])
        yield from using(join, first, roles[number + 1])
