"""Conditions and values from SQL text: converts sqlglot's tree into column expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from operators.functions.arguments import ArgumentError
from operators.functions.builtins import builtin_named, similar_names
from operators.functions.type_casts import named_type
from operators.query.comparison_operators import ComparisonOperator
from operators.query.condition import normalise
from operators.query.errors import PredicateError, QueryError
from operators.query.expressions import (
    Absolute,
    And,
    Apply,
    Arithmetic,
    ArithmeticOperator,
    Between,
    Cast,
    Column,
    Compare,
    Constant,
    Distinct,
    Expression,
    IsNull,
    IsTruth,
    Negate,
    Not,
    Or,
    one_of,
)
from operators.query.functions import function
from operators.query.streams import built_in, contains, overlaps
from operators.sql.intervals import FORMS, ends_of_interval, is_interval
from operators.sql.literals import CalendarLength, calendar_length, literal
from operators.sql.row_values import compare_rows, one_of_rows, parts_of_row
from operators.sql.text import error_at, match_name, qualifier_of

Functions = Mapping[str, Callable[..., Any]]
"""The user's own functions, by their name in the query."""

_COMPARISONS: dict[type[exp.Expression], ComparisonOperator] = {
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "!=",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expression], ArithmeticOperator] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
}  # fmt: skip
_BUILT_IN: dict[type[exp.Expression], str] = {
    exp.Mod: "%", exp.Pow: "power", exp.IntDiv: "div", exp.DPipe: "||", exp.BitwiseAnd: "&", exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>", exp.RegexpLike: "regexp_matches",
}  # fmt: skip


_INSTEAD_OF_QUANTIFIERS = (
    "list_contains(list, value) says whether a list holds a value, as value = ANY(list) does; for another comparison "
    "with ANY or ALL write a Python function of your own"
)
_CLOCKS = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "now")


class ConditionReader:
    """Converts sqlglot's nodes into expressions; ``resolve`` converts a column.

    front: the class whose `from_sql` messages name.
    """

    front = "StreamJoin"

    def __init__(
        self,
        text: str,
        left: str,
        right: str,
        functions: Functions | None = None,
        resolve: Callable[[exp.Column], Expression] | None = None,
    ) -> None:
        self.text = text
        self.roles: tuple[str, ...] = (left, right)
        self.functions = check_functions(functions)
        self.resolve = resolve or self.column

    def error(self, node: exp.Expression, message: str) -> QueryError:
        return error_at(self.text, node, message)

    def condition(self, node: exp.Expression) -> Expression:
        """The condition. Each part is checked separately, so that an error can point at it."""
        node = node.unnest()
        match node:
            case exp.And():
                return And(self.condition(node.left), self.condition(node.right))
            case exp.Or():
                return Or(self.condition(node.left), self.condition(node.right))
            case exp.Not():
                return Not(self.condition(node.this))
        condition = self.expression(node)
        if isinstance(condition, Constant) and (condition.value is None or isinstance(condition.value, bool)):
            return condition
        try:
            self.check(condition)
        except QueryError:
            raise
        except PredicateError as error:
            raise self.error(node, str(error)) from None
        return condition

    def check(self, condition: Expression) -> None:
        """Raise a PredicateError for a part of a condition that has no meaning."""
        left, right = self.roles
        normalise(condition, left, right)

    def expression(self, node: exp.Expression) -> Expression:
        kind = type(node)
        if kind in _COMPARISONS:
            return self.comparison(_COMPARISONS[kind], node)
        if kind in _ARITHMETIC:
            return self.arithmetic(_ARITHMETIC[kind], node)
        if kind in _BUILT_IN:
            return self.built_in(node, _BUILT_IN[kind], node.this, node.expression)
        constant = literal(self.text, node)
        if constant is not None:
            return Constant(constant)
        match node:
            case exp.Paren():
                return self.expression(node.this)
            case exp.Column():
                return self.resolve(node)
            case exp.Null():
                return Constant(None)
            case exp.Neg():
                return Negate(self.expression(node.this))
            case exp.Abs():
                return Absolute(self.expression(node.this))
            case exp.BitwiseNot():
                return self.built_in(node, "~", node.this)
            case exp.Between():
                if node.args.get("symmetric"):
                    raise self.error(node, "BETWEEN SYMMETRIC is not supported: write BETWEEN with the lower end first")
                low, high = self.expression(node.args["low"]), self.expression(node.args["high"])
                return Between(self.expression(node.this), low, high)
            case exp.In() if not node.args.get("query") and node.expressions:
                return self.listed(node)
            case exp.Overlaps():
                return overlaps(self.interval(node, node.this), self.interval(node, node.expression))
            case exp.ArrayContainsAll():  # CONTAINS
                inner = node.expression
                within = is_interval(inner, self.functions)
                return contains(
                    self.interval(node, node.this), self.interval(node, inner) if within else self.expression(inner)
                )
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self.expression(node.this))
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                return IsTruth(self.expression(node.this), bool(node.expression.this))
            case exp.NullSafeEQ():
                return Not(Distinct(self.expression(node.this), self.expression(node.expression)))
            case exp.NullSafeNEQ():
                return Distinct(self.expression(node.this), self.expression(node.expression))
            case exp.And():
                return And(self.expression(node.left), self.expression(node.right))
            case exp.Or():
                return Or(self.expression(node.left), self.expression(node.right))
            case exp.Not():
                return Not(self.expression(node.this))
            case exp.Cast():
                return self.cast(node)
            case exp.Anonymous():
                return self.call(node)
        found = self.built_in_syntax(node)
        if found is None:
            raise self.error(node, _refusal(node))
        return found

    def built_in_syntax(self, node: exp.Expression) -> Expression | None:
        """Built-in functions that SQL spells with words between their arguments; None for other nodes."""
        own = {exp.Trim: "trim", exp.Substring: "substring"}.get(type(node))
        if own is not None and match_name(own, tuple(self.functions)) is not None:
            given = [each for each in node.args.values() if isinstance(each, exp.Expression)]
            return self.call(exp.Anonymous(this=own, expressions=given))
        match node:
            case exp.Like() | exp.ILike() | exp.Escape():
                return self.like(node)
            case exp.Case():
                return self.case(node)
            case exp.If():
                return self.built_in(node, "if", node.this, node.args["true"], node.args.get("false"))
            case exp.Extract():
                part = exp.Literal.string(node.this.name)
                return self.built_in(node, "date_part", part, node.expression)
            case exp.StrPosition() if not node.args.get("position"):
                return self.built_in(node, "strpos", node.this, node.args["substr"])
            case exp.Substring():
                return self.built_in(node, "substring", node.this, node.args.get("start"), node.args.get("length"))
            case exp.Trim():
                name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "trim")
                return self.built_in(node, name, node.this, node.expression or None)
            case exp.Dot() if isinstance(node.expression, exp.Identifier):
                return Apply("struct_field", (self.expression(node.this), Constant(node.expression.name)))
            case exp.Array() if node.expressions:
                return self.built_in(node, "list_value", *node.expressions)
            case exp.Bracket() if len(node.expressions) == 1:
                place = self.expression(node.expressions[0])
                named = isinstance(place, Constant) and isinstance(place.value, str)
                return Apply("struct_field" if named else "list_element", (self.expression(node.this), place))
        return None

    def comparison(self, operator: ComparisonOperator, node: exp.Expression) -> Expression:
        rows = [parts_of_row(side) for side in (node.this, node.expression)]
        if rows[0] is not None and rows[1] is not None:
            if len(rows[0]) != len(rows[1]):
                raise self.error(node, f"`{node.sql()}` compares {len(rows[0])} values with {len(rows[1])}")
            return compare_rows(operator, *([self.expression(part) for part in row] for row in rows if row is not None))
        if isinstance(node.expression, exp.Any) and operator == "=":
            return Apply("list_contains", (self.expression(node.expression.this), self.expression(node.this)))
        if any(self.is_quantified(side) for side in (node.this, node.expression)):
            raise self.error(node, f"`{node.sql()}` is not supported: {_INSTEAD_OF_QUANTIFIERS}")
        return Compare(operator, self.expression(node.this), self.expression(node.expression))

    def interval(self, node: exp.Expression, written: exp.Expression) -> tuple[Expression, Expression]:
        """The start and the end of an interval."""
        ends = ends_of_interval(written, self.functions)
        if ends is None:
            raise self.error(node, f"`{written.sql()}` is not an interval: {FORMS}")
        start, end = ends
        return self.expression(start), self.expression(end)

    def is_quantified(self, node: exp.Expression) -> bool:
        """Whether a side of a comparison is ANY(..) or ALL(..); sqlglot reads the latter as a call."""
        if isinstance(node, exp.Anonymous):
            name = str(node.this)
            return name.upper() in ("ALL", "SOME") and match_name(name, tuple(self.functions)) is None
        return isinstance(node, exp.Any | exp.All)

    def arithmetic(self, operator: ArithmeticOperator, node: exp.Expression) -> Expression:
        for length, time in ((node.expression, node.this), (node.this, node.expression)):
            months = calendar_length(self.text, length) if operator in "+-" else None
            if months is not None and not (operator == "-" and length is node.this):
                return _moved(self.expression(time), months, -1 if operator == "-" else 1)
        return Arithmetic(operator, self.expression(node.this), self.expression(node.expression))

    def listed(self, node: exp.In) -> Expression:
        row = parts_of_row(node.this)
        if row is None:
            return one_of(self.expression(node.this), tuple(map(self.expression, node.expressions)))
        listed = [parts_of_row(each) for each in node.expressions]
        if any(each is None or len(each) != len(row) for each in listed):
            raise self.error(node, f"`{node.sql()}`: every value in the list must have {len(row)} parts")
        parts = [self.expression(part) for part in row]
        return one_of_rows(parts, [[self.expression(part) for part in each] for each in listed if each is not None])

    def like(self, node: exp.Expression) -> Expression:
        written, escape = (node.this, node.expression) if isinstance(node, exp.Escape) else (node, None)
        if not isinstance(written, exp.Like | exp.ILike) or isinstance(written.expression, exp.Any | exp.All):
            raise self.error(node, _refusal(node))
        name = "ilike" if isinstance(written, exp.ILike) else "like"
        found = self.built_in(node, name, written.this, written.expression, escape)
        return Not(found) if written.args.get("negate") else found

    def case(self, node: exp.Case) -> Expression:
        subject = None if node.this is None else self.expression(node.this)
        arguments: list[Expression] = []
        for each in node.args["ifs"]:
            when = self.expression(each.this)
            arguments += [when if subject is None else Compare("=", subject, when), self.expression(each.args["true"])]
        default = node.args.get("default")
        return Apply("case", (*arguments, Constant(None) if default is None else self.expression(default)))

    def cast(self, node: exp.Cast) -> Expression:
        try:
            target = named_type(node.to.sql())
        except ArgumentError as error:
            raise self.error(node, f"`{node.sql()}`: {error}") from None
        return Cast(self.expression(node.this), target)

    def built_in(self, node: exp.Expression, name: str, *arguments: exp.Expression | None) -> Expression:
        try:
            return built_in(name, tuple(self.expression(each) for each in arguments if each is not None))
        except QueryError:
            raise
        except PredicateError as error:
            raise self.error(node, str(error)) from None

    def call(self, node: exp.Anonymous) -> Expression:
        name = node.this.name if isinstance(node.this, exp.Expression) else str(node.this)
        known = match_name(name, tuple(self.functions))
        if known is None and (builtin_named(name) is not None or name.lower() in ("nullif", "if", "iif")):
            return self.built_in(node, name, *node.expressions)
        if known is None:
            raise self.error(node, self.unknown_function(name))
        try:
            return function(self.functions[known], known).call(tuple(map(self.expression, node.expressions)))
        except QueryError:
            raise
        except PredicateError as error:
            raise self.error(node, str(error)) from None

    def unknown_function(self, name: str) -> str:
        alike = similar_names(name)
        given = f"the query was given {', '.join(self.functions)}" if self.functions else "it is not built in"
        return (
            f"{name} is not a function of this query ({given}): "
            + (f"write {' or '.join(alike)}, or " if alike else "")
            + f"pass functions={{'{name}': f}} to {self.front}.from_sql, where f takes Arrow arrays and returns one "
            "boolean per row, or f = function(f, returns=pa.float64()) for a value"
        )

    def column(self, node: exp.Column) -> Expression:
        qualifier = qualifier_of(node)
        if qualifier is None and node.name.lower() in _CLOCKS:
            raise self.error(
                node, f"{node.name} has no meaning in a join of streams: compare event times, or write TIMESTAMP '..'"
            )
        if qualifier is None:
            raise self.error(
                node,
                f"column {node.name} does not say which stream it belongs to: "
                f"write {' or '.join(f'{role}.{node.name}' for role in self.roles)}" + _quoting(node),
            )
        role = match_name(qualifier, self.roles)
        if role is not None:
            return Column(role, node.name)
        first, *names = (part.name for part in node.parts)
        role = match_name(first, self.roles)
        if role is None:
            sides = " and ".join(self.roles)
            raise self.error(node, f"there is no stream {qualifier} in this join: its sides are {sides}")
        found: Expression = Column(role, names[0])
        for name in names[1:]:  # R.column.field
            found = Apply("struct_field", (found, Constant(name)))
        return found


def check_functions(functions: object) -> Functions:
    """The functions; raises PredicateError unless they map names to functions."""
    if functions is None:
        return {}
    if not isinstance(functions, Mapping):
        raise PredicateError(f"functions must map names to functions, such as {{'near': near}}, not {functions!r}")
    for name, compute in functions.items():
        if not isinstance(name, str) or not callable(compute):
            raise PredicateError(f"functions: {name!r} must name a function over Arrow arrays, not {compute!r}")
    return functions


def _quoting(node: exp.Column) -> str:
    quoted = isinstance(node.this, exp.Identifier) and node.this.quoted
    return f"; a string is written '{node.name}', in single quotes" if quoted else ""


def _refusal(node: exp.Expression) -> str:
    """Why a piece of SQL is not supported, and what to write instead."""
    shown = f"`{node.sql()}`"
    match node:
        case exp.In() if not node.args.get("query"):
            return f"{shown} lists no value, so nothing would match: name at least one"
        case exp.In():
            return f"{shown}: IN takes a list of values, such as IN (1, 2): write SEMI JOIN for IN (SELECT ..)"
        case exp.Is():
            return f"{shown} is not supported: IS takes NULL, TRUE, FALSE or [NOT] DISTINCT FROM"
        case exp.Count():
            return f"{shown} belongs in the SELECT list"
        case exp.Tuple():
            return f"{shown} is a list where one value is expected: compare it with a list of as many values"
        case exp.Array() | exp.Struct():
            return f"{shown} cannot be written here: write the length of a list, len(R.l) = 0, or a field, R.s.a = 2"
        case exp.AtTimeZone():
            return f"{shown} is not supported: write CAST(.. AS TIMESTAMP) for the time in the column's own zone"
        case exp.SimilarTo():
            return f"{shown} is not supported: write LIKE, or regexp_matches(text, pattern)"
        case exp.Any() | exp.All():
            return f"{shown} is not supported here: {_INSTEAD_OF_QUANTIFIERS}"
        case exp.Subquery() | exp.Select() | exp.Exists():
            return (
                f"{shown}: subqueries are not supported: write SEMI JOIN for EXISTS, ANTI JOIN for NOT EXISTS, and a "
                "value where one is meant"
            )
    return (
        f"{shown} is not supported in a join condition: write comparisons (< <= > >= = !=, BETWEEN, IN, LIKE, IS NULL, "
        "IS DISTINCT FROM, ABS(a - b) <= c) with AND, OR, NOT, built-in functions, or a Python function of your own"
    )


def _moved(time: Expression, length: CalendarLength, sign: int) -> Expression:
    """A time some months, and then a fixed length, later or earlier."""
    moved: Expression = Apply("add_months", (time, Constant(sign * length.months)))
    if not length.rest:
        return moved
    return Arithmetic("+" if sign > 0 else "-", moved, Constant(length.rest))
