"""Parses whole queries.

`parse_condition` parses a bare condition, `parse_query` a SELECT over two streams or over one stream joined with
itself.

A query over one stream without aliases uses the dialect of the inequality-join papers: a column in WHERE ends in 1 or
2, for the first or the second row of the pair, and an item of the SELECT list means that column of both rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from operators.protocol.sides import LEFT, RIGHT
from operators.query.condition import conjunction, folded, sides_of
from operators.query.errors import QueryError, at_place
from operators.query.expressions import Column, Compare, Constant, Expression, IsNull
from operators.query.kinds import Kind
from operators.query.select_items import Item
from operators.query.windows import Window
from operators.sql.expressions import ConditionReader, Functions
from operators.sql.select import SelectReader, aggregate_of, counts_matches
from operators.sql.text import error_at, mask_quotes, match_name, parse_text, qualifier_of
from operators.sql.window import ParameterValue, WrittenWindow, cut_window, windows_of

_SHAPE = "a query is SELECT .. FROM .. WHERE .. WINDOW .."
_REFUSED_CLAUSES = {
    "with_": f"WITH is not supported: {_SHAPE}",
    "windows": f"this WINDOW clause is not supported: {_SHAPE}, with WINDOW AS (ROWS 100) last",
    "having": "HAVING is not supported: every row comes out; filter the results",
    "order": "ORDER BY is not supported: results come in the order of event time, or as ordering= says: leave it out",
    "distinct": "DISTINCT is not supported: every result comes once; LEFT SEMI JOIN gives left rows once",
    "limit": "LIMIT is not supported: a join of streams has no end; stop reading its results instead",
}
_WHERE_SIDES: dict[Kind, tuple[int, ...]] = {
    Kind.LEFT: (LEFT,), Kind.RIGHT: (RIGHT,), Kind.FULL: (), Kind.SEMI: (LEFT,), Kind.ANTI: (LEFT,),
    Kind.ASOF: (LEFT,), Kind.ASOF_INNER: (LEFT,),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ParsedQuery:
    """A parsed query. A role is the name of a side in the query; its stream is where the rows come from.

    condition: the condition on pairs.
    where:     the condition that rows of one stream must satisfy to appear at all; None for kinds where it is part of
               `condition`.
    select:    None for ``*``.
    windows:   one for each side; None without a WINDOW clause.
    """

    left: str
    right: str
    left_stream: str
    right_stream: str
    kind: Kind
    condition: Expression
    where: Expression | None
    select: tuple[Item, ...] | None
    windows: tuple[Window, Window] | None


def parse_condition(
    text: str, left: str, right: str, functions: Functions | None = None, *, stream: str | None = None
) -> Expression:
    """The condition in ``text`` between the streams (or roles) ``left`` and ``right``.

    stream: in a self-join without roles, the stream's name in the text, as in the papers' dialect.
    """
    tree = parse_text(text, text, f"a condition such as {left}.a < {right}.b")
    resolve = None if stream is None else _PaperDialect(text, (left, right), stream).column
    return ConditionReader(text, left, right, functions, resolve).condition(tree)


def parse_query(
    text: str,
    parameters: Mapping[str, ParameterValue] | None = None,
    functions: Functions | None = None,
    *,
    read_window: bool = True,
) -> ParsedQuery:
    """The query in ``text``.

    parameters:  values for the names in its WINDOW clause.
    functions:   user-defined conditions that it may call.
    read_window: False skips the WINDOW clause, because the caller gives windows of its own.
    """
    tree, written = select_of(text, parameters, read_window)
    return Query(text, tree, functions).read(written)


def select_of(
    text: str, parameters: Mapping[str, ParameterValue] | None, read_window: bool
) -> tuple[exp.Select, tuple[WrittenWindow, ...]]:
    """The SELECT statement of a query, and the windows of its WINDOW clause."""
    if not isinstance(text, str):
        raise QueryError(f"a query is SQL text, not {text!r}")
    first = re.search(r"\w+", mask_quotes(text))
    if first is not None and get_close_matches(first[0].upper(), ("SELECT",)) and first[0].upper() != "SELECT":
        raise at_place(f"a query starts with SELECT, not {first[0]}", text, first.start())
    body, written = cut_window(text, parameters or {}, read_window)
    tree = parse_text(body, text, "a SELECT")
    if not isinstance(tree, exp.Select):
        raise error_at(text, tree, "a query starts with SELECT")
    return tree, written


class Query:
    """Reads one SELECT statement."""

    def __init__(self, text: str, tree: exp.Select, functions: Functions | None) -> None:
        self.text = text
        self.tree = tree
        self.functions = functions

    def error(self, node: exp.Expression, message: str) -> QueryError:
        return error_at(self.text, node, message)

    def read(self, written: tuple[WrittenWindow, ...]) -> ParsedQuery:
        self.check_clauses()
        source, joins = self.tree.args.get("from_"), self.tree.args.get("joins") or []
        if source is None:
            raise self.error(self.tree, "the query has no FROM: write FROM R, S")
        tables = [self.table(source.this), *(self.table(join.this) for join in joins)]
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
            raise self.error(
                joins[1], f"a join takes two streams, not {len(tables)}: use MultiJoin.from_sql for several"
            )
        (left, left_stream), (right, right_stream) = tables
        if left == right:
            raise self.error(
                joins[0],
                f"both streams are called {left}: give them roles, as in FROM {left_stream} AS a, {right_stream} AS b",
            )
        grouped = self.grouped((left, right))
        kind = self.kind(None if alone else joins[0], left, right, grouped)
        dialect = _PaperDialect(self.text, (left, right), role) if alone else None
        reader = ConditionReader(self.text, left, right, self.functions, dialect.column if dialect else None)
        condition, where = self.conditions(reader, kind, None if alone else joins[0])
        only = role if alone else None
        own = self.functions or ()
        selection = SelectReader(self.text, (left, right), kind, only, reader.expression, grouped, own)
        select = selection.items(self.tree.expressions)
        windows = windows_of(written, self.text, (left, right))
        both = None if windows is None else (windows[LEFT], windows[RIGHT])
        kind = Kind.INNER if grouped is not None else kind  # the aggregates say what it is
        return ParsedQuery(left, right, left_stream, right_stream, kind, condition, where, select, both)

    def check_clauses(self) -> None:
        known = {"expressions", "from_", "joins", "where", "group", "kind", "hint", "operation_modifiers"}
        for name, value in self.tree.args.items():
            if value and name not in known:
                node = value[0] if isinstance(value, list) else value
                message = _REFUSED_CLAUSES.get(name) or f"{name.upper()} is not supported: {_SHAPE}"
                raise self.error(node if isinstance(node, exp.Expression) else self.tree, message)

    def table(self, node: exp.Expression) -> tuple[str, str]:
        """(role, stream) of one entry of FROM."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.error(node, f"`{node.sql()}` is not a stream: FROM takes names of streams")
        extra = [name for name in node.args if name not in ("this", "db", "catalog", "alias")]
        if any(node.args[name] for name in extra):
            raise self.error(node, f"`{node.sql()}`: a stream in FROM takes a name and a role only")
        return node.alias or node.name, ".".join(part.name for part in node.parts)

    def grouped(self, roles: tuple[str, str]) -> str | None:
        """The role of GROUP BY, whose rows come out with aggregates over their matches."""
        group = self.tree.args.get("group")
        if group is None:
            return None
        left, right = roles
        keys = group.expressions
        named = keys[0] if len(keys) == 1 and isinstance(keys[0], exp.Column) else None
        role = None if named is None or qualifier_of(named) is not None else match_name(named.name, roles)
        if role is None:
            raise self.error(
                keys[0] if keys else group,
                f"GROUP BY takes one side of the join: write GROUP BY {left} for a result for every row of {left}, "
                f"with COUNT(*) and aggregates of columns of {right}",
            )
        if not any(aggregate_of(node, self.functions or ()) is not None for node in self.tree.expressions):
            raise self.error(
                keys[0], f"GROUP BY {role} needs an aggregate: select COUNT(*), or SUM, MIN, MAX or AVG of a column"
            )
        return role

    def kind(self, join: exp.Join | None, left: str, right: str, grouped: str | None) -> Kind:
        found = Kind.INNER if join is None else self.join_kind(join, left, right)
        if grouped is not None:
            if found != Kind.INNER:
                raise self.error(
                    self.tree.args["group"],
                    f"GROUP BY {grouped} gives every row of {grouped}, also one without matches: write JOIN for "
                    f"{found.upper()} JOIN",
                )
            return Kind.AGGREGATE
        if counts_matches(self.tree.expressions):
            if found != Kind.INNER:
                raise self.error(
                    self.tree.expressions[0],
                    f"COUNT(*) counts the matches of every row, also where there are none: "
                    f"write JOIN for {found.upper()} JOIN",
                )
            return Kind.COUNT
        return found

    def join_kind(self, join: exp.Join, left: str, right: str) -> Kind:
        side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
        on = f"FROM {left} JOIN {right} ON {left}.a = {right}.a"
        if method == "ASOF":
            if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
                written = " ".join(word for word in ("ASOF", side, kind, "JOIN") if word)
                raise self.error(join, f"{written} is not supported: write ASOF JOIN, or ASOF LEFT JOIN")
            return Kind.ASOF if side else Kind.ASOF_INNER
        if method:
            using = ", or USING (..) with the columns" if method == "NATURAL" else ""
            raise self.error(join, f"{method} JOIN is not supported: write {on}{using}")
        if kind in ("", "OUTER"):
            return Kind(side.lower()) if side else Kind.INNER
        if kind in ("INNER", "CROSS") and not side:
            return Kind.INNER
        if kind in ("SEMI", "ANTI"):
            if side in ("", "LEFT"):
                return Kind(kind.lower())
            raise self.error(
                join, f"{side} {kind} JOIN is not supported: write FROM {right} LEFT {kind} JOIN {left} ON .."
            )
        raise self.error(join, f"{kind} JOIN is not supported: write {on}")

    def conditions(
        self, reader: ConditionReader, kind: Kind, join: exp.Join | None
    ) -> tuple[Expression, Expression | None]:
        """The condition on pairs, and the condition that rows must satisfy to appear at all."""
        left, right = reader.roles
        on: exp.Expression | None = join.args.get("on") if join is not None else None
        written = self.tree.args.get("where")
        compared: exp.Expression | None = join.args.get("match_condition") if join is not None else None
        matching = [reader.condition(each) for each in (on, compared) if each is not None]
        if join is not None:
            matching += using(join, dict.fromkeys((each.name for each in join.args.get("using") or ()), left), right)
        showing, names_columns = [], written is None
        if not matching and join is not None and kind is not Kind.INNER and not kind.counts_on_arrival:
            raise self.error(join, f"{kind.upper()} JOIN needs its condition: write ON {left}.a < {right}.b")
        for node in () if written is None else _conjuncts(written.this):
            part = reader.condition(node)
            sides = sides_of(part, reader.roles)
            if kind == Kind.INNER or (kind.counts_on_arrival and len(sides) == 2):
                matching.append(part)
                continue
            names_columns |= bool(sides)
            constant = folded(part)
            if isinstance(constant, Constant) and constant.value is True:
                continue
            if not kind.counts_on_arrival:
                self.check_where(node, part, sides, kind, reader.roles)
            showing.append(part)
        if not matching:
            if names_columns and (join is None or str(join.args.get("kind") or "").upper() != "CROSS"):
                raise self.error(
                    self.tree,
                    f"the query has no condition: write WHERE {left}.a < {right}.b, "
                    f"or FROM {left} CROSS JOIN {right} for all pairs",
                )
            matching = [Constant(True)]
        return conjunction(matching), conjunction(showing) if showing else None

    def check_where(
        self, node: exp.Expression, part: Expression, sides: set[int], kind: Kind, roles: tuple[str, ...]
    ) -> None:
        left, right = roles
        if sides <= set(_WHERE_SIDES[kind]):  # what names no column is about all rows
            return
        join = {Kind.ASOF: "ASOF LEFT JOIN", Kind.ASOF_INNER: "ASOF JOIN"}.get(kind, f"{kind.upper()} JOIN")
        if isinstance(part, IsNull) and sides == {RIGHT} and kind == Kind.LEFT:
            raise self.error(
                node,
                f"`{part!r}` asks for the rows of {left} without a match: "
                f"write SELECT {left}.* FROM {left} LEFT ANTI JOIN {right} ON ..",
            )
        if kind.shows_right:
            allowed = " or ".join(roles[side] for side in _WHERE_SIDES[kind])
            reason = (
                f"a {join} fills either side with nulls, so WHERE cannot filter its streams"
                if not allowed
                else f"WHERE of a {join} may use columns of {allowed} only"
            )
        else:
            reason = f"WHERE of a {join} may use columns of {left} only: it returns no rows of {right}"
        instead = ", or write JOIN for the pairs alone" if kind.shows_right else ""
        raise self.error(node, f"`{part!r}`: {reason}: move it into ON, which decides which rows match{instead}")


def using(join: exp.Join, lefts: Mapping[str, str], right: str) -> list[Expression]:
    """The comparisons of ``JOIN .. USING (..)``; `lefts` gives the stream on the left of each column.

    They are equalities; the last column of an ASOF JOIN is the time, of which the right one may be earlier.
    """
    names = [each.name for each in join.args.get("using") or ()]
    is_as_of = str(join.args.get("method") or "").upper() == "ASOF"
    return [
        Compare(">=" if is_as_of and name == names[-1] else "=", Column(lefts[name], name), Column(right, name))
        for name in names
    ]


class _PaperDialect:
    """Resolves the columns of a query over one stream without aliases."""

    def __init__(self, text: str, roles: tuple[str, str], stream: str) -> None:
        self.text = text
        self.roles = roles
        self.stream = stream

    def column(self, node: exp.Column) -> Expression:
        """A column of WHERE, or of a computed item."""
        qualifier = qualifier_of(node)
        if qualifier is not None:
            role = match_name(qualifier, self.roles)
            if role is not None:
                return Column(role, node.name)
            if match_name(qualifier, (self.stream,)) is None:
                raise error_at(self.text, node, f"there is no stream {qualifier} here, only {self.stream}")
        if len(node.name) < 2 or node.name[-1] not in "12":
            raise error_at(
                self.text,
                node,
                f"{node.name} does not say which row of the pair it belongs to: write "
                f"{node.name}1 or {node.name}2, or name two roles, FROM {self.stream} AS a, "
                f"{self.stream} AS b",
            )
        return Column(self.roles[int(node.name[-1]) - 1], node.name[:-1])


def _conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    inner = node.unnest()
    if isinstance(inner, exp.And):
        yield from _conjuncts(inner.left)
        yield from _conjuncts(inner.right)
    else:
        yield node
