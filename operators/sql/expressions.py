"""Conditions and values from SQL text: converts sqlglot's tree into column expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from operators.query.comparison_operators import ComparisonOperator
from operators.query.condition import normalise
from operators.query.errors import PredicateError, QueryError
from operators.query.expressions import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticOperator,
    Between,
    Call,
    Column,
    Compare,
    Constant,
    Expression,
    IsNull,
    Negate,
    Not,
    Or,
    one_of,
)
from operators.query.functions import function
from operators.sql.literals import literal
from operators.sql.text import error_at, match_name, qualifier_of

Functions = Mapping[str, Callable[..., Any]]
"""User-defined conditions, by their name in the query."""

_COMPARISONS: dict[type[exp.Expression], ComparisonOperator] = {
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "!=",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expression], ArithmeticOperator] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
}  # fmt: skip


class ConditionReader:
    """Converts sqlglot's nodes into expressions; ``resolve`` converts a column."""

    def __init__(
        self,
        text: str,
        left: str,
        right: str,
        functions: Functions | None = None,
        resolve: Callable[[exp.Column], Column] | None = None,
    ) -> None:
        self.text = text
        self.roles = (left, right)
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
        if isinstance(condition, Constant) and isinstance(condition.value, bool):
            return condition
        try:
            normalise(condition, *self.roles)
        except QueryError:
            raise
        except PredicateError as error:
            raise self.error(node, str(error)) from None
        return condition

    def expression(self, node: exp.Expression) -> Expression:
        kind = type(node)
        if kind in _COMPARISONS:
            if isinstance(node.this, exp.Null) or isinstance(node.expression, exp.Null):
                raise self.error(node, f"`{node.sql()}`: {_refusal(exp.Null())}")
            left, right = self.expression(node.this), self.expression(node.expression)
            return Compare(_COMPARISONS[kind], left, right)
        if kind in _ARITHMETIC:
            left, right = self.expression(node.this), self.expression(node.expression)
            return Arithmetic(_ARITHMETIC[kind], left, right)
        constant = literal(self.text, node)
        if constant is not None:
            return Constant(constant)
        match node:
            case exp.Paren():
                return self.expression(node.this)
            case exp.Column():
                return self.resolve(node)
            case exp.Neg():
                return Negate(self.expression(node.this))
            case exp.Abs():
                return Absolute(self.expression(node.this))
            case exp.Between():
                if node.args.get("symmetric"):
                    raise self.error(node, "BETWEEN SYMMETRIC is not supported: write BETWEEN with the lower end first")
                low, high = self.expression(node.args["low"]), self.expression(node.args["high"])
                return Between(self.expression(node.this), low, high)
            case exp.In() if not node.args.get("query") and node.expressions:
                return one_of(self.expression(node.this), tuple(map(self.expression, node.expressions)))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self.expression(node.this))
            case exp.And():
                return And(self.expression(node.left), self.expression(node.right))
            case exp.Or():
                return Or(self.expression(node.left), self.expression(node.right))
            case exp.Not():
                return Not(self.expression(node.this))
            case exp.Anonymous():
                return self.call(node)
        raise self.error(node, _refusal(node))

    def call(self, node: exp.Anonymous) -> Call:
        name = node.this.name if isinstance(node.this, exp.Expression) else str(node.this)
        known = match_name(name, tuple(self.functions))
        if known is None:
            given = f"the query was given {', '.join(self.functions)}" if self.functions else "only ABS is built in"
            raise self.error(
                node,
                f"{name} is not a function of this query ({given}): pass functions={{'{name}': f}} to "
                "StreamJoin.from_sql, where f takes Arrow arrays and returns one boolean per row",
            )
        try:
            return function(self.functions[known], known).call(tuple(map(self.expression, node.expressions)))
        except QueryError:
            raise
        except PredicateError as error:
            raise self.error(node, str(error)) from None

    def column(self, node: exp.Column) -> Column:
        qualifier = qualifier_of(node)
        left, right = self.roles
        if qualifier is None:
            raise self.error(
                node,
                f"column {node.name} does not say which stream it belongs to: "
                f"write {left}.{node.name} or {right}.{node.name}" + _quoting(node),
            )
        role = match_name(qualifier, self.roles)
        if role is None:
            raise self.error(
                node,
                f"there is no stream {qualifier} in this join: its sides are {left} and {right}",
            )
        return Column(role, node.name)


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
        case exp.Null():
            return "a comparison with NULL is never true: write IS NULL or IS NOT NULL"
        case exp.Cast():
            return (
                f"{shown}: a query does not cast: numbers of all types compare exactly as they are; "
                "for others, cast the column before it is sent"
            )
        case exp.In() if not node.args.get("query"):
            return f"{shown} lists no value, so nothing would match: name at least one"
        case exp.In():
            return f"{shown}: IN takes a list of values, such as IN (1, 2), not a query"
        case exp.Is():
            return (
                f"{shown} is not supported: IS takes NULL only; write a comparison such as x = {node.expression.sql()}"
            )
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return f"{shown} is not supported: write a comparison, and OR .. IS NULL for what NULL should do"
        case exp.Count():
            return f"{shown} belongs in the SELECT list"
        case exp.Tuple():
            return f"{shown} is a list where one value is expected: compare column by column, joined with AND"
        case exp.Subquery() | exp.Select() | exp.Exists():
            return f"{shown}: subqueries are not supported: write SEMI JOIN for EXISTS, ANTI JOIN for NOT EXISTS"
    return (
        f"{shown} is not supported in a join condition: write comparisons (< <= > >= = !=, BETWEEN, IN, IS NULL, "
        "ABS(a - b) <= c) with AND, OR, NOT, or a Python function of your own"
    )
