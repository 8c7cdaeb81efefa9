"""Conditions from SQL text: sqlglot's tree turned into the expressions of this package."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import ClassVar

import sqlglot
from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from operators.errors import PredicateError, QueryError, at_place
from operators.expressions import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticOperator,
    Between,
    Column,
    Compare,
    ComparisonOperator,
    Constant,
    Expression,
    Negate,
    Not,
    Or,
)
from operators.condition import normalise
from operators.sql_window import length_of

_COMPARISONS: dict[type[exp.Expression], ComparisonOperator] = {
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "!=",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expression], ArithmeticOperator] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
}  # fmt: skip


class InterlaceDialect(Dialect):
    """Standard SQL in which names may also be quoted as in Spark, with backticks."""

    class Tokenizer(tokens.Tokenizer):
        """Cuts the text into words; both kinds of quotes make a name."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]


def parse_text(body: str, text: str, what: str) -> exp.Expression:
    """The tree of ``body`` as sqlglot gives it; errors show ``text``, the whole of it."""
    try:
        trees = sqlglot.parse(body, dialect=InterlaceDialect)
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        message = details[0].get("description") or str(error)
        missing = re.search(r"missing for <class '[\w.]*\.(\w+)'>", message)
        if missing:  # sqlglot's own words name its classes
            message = f"something is missing in {missing[1].upper()}"
        line, column = details[0].get("line"), details[0].get("col")
        offset = None
        if line and column:
            starts = [0, *(match.end() for match in re.finditer("\n", text))]
            offset = min(starts[line - 1] + column - 1, len(text))
        raise at_place(f"the text cannot be read: {message}", text, offset) from None
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1 or isinstance(found[0], exp.Block):
        raise QueryError(f"write {what}, and one only: {text!r}")
    return found[0]


def place_of(node: exp.Expression) -> int | None:
    """Where the node starts in the text: the first of its parts that knows its place."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


class ConditionReader:
    """Turns sqlglot's nodes into expressions; ``resolve`` says what a column stands for."""

    def __init__(
        self,
        text: str,
        left: str,
        right: str,
        resolve: Callable[[exp.Column], Column] | None = None,
    ) -> None:
        self.text = text
        self.roles = (left, right)
        self.resolve = resolve or self.column

    def error(self, node: exp.Expression, message: str) -> QueryError:
        return at_place(message, self.text, place_of(node))

    def condition(self, node: exp.Expression) -> Expression:
        """The condition, each part of it checked, so that an error can point at the part."""
        node = node.unnest()
        if isinstance(node, exp.And):
            return And(self.condition(node.left), self.condition(node.right))
        condition = self.expression(node)
        try:
            normalise(condition, *self.roles)
        except QueryError:
            raise
        except PredicateError as error:
            raise at_place(str(error), self.text, place_of(node)) from None
        return condition

    def expression(self, node: exp.Expression) -> Expression:
        kind = type(node)
        if kind in _COMPARISONS:
            left, right = self.expression(node.this), self.expression(node.expression)
            return Compare(_COMPARISONS[kind], left, right)
        if kind in _ARITHMETIC:
            left, right = self.expression(node.this), self.expression(node.expression)
            return Arithmetic(_ARITHMETIC[kind], left, right)
        match node:
            case exp.Paren():
                return self.expression(node.this)
            case exp.Column():
                return self.resolve(node)
            case exp.Literal():
                return self.literal(node)
            case exp.Neg():
                operand = self.expression(node.this)
                # -3 is a number, not an operation on one
                if isinstance(operand, Constant) and isinstance(node.this, exp.Literal):
                    assert isinstance(operand.value, int | float)
                    return Constant(-operand.value)
                return Negate(operand)
            case exp.Abs():
                return Absolute(self.expression(node.this))
            case exp.Interval():
                return self.interval(node)
            case exp.Between():
                if node.args.get("symmetric"):
                    raise self.error(node, "BETWEEN SYMMETRIC is not supported: write BETWEEN")
                low, high = self.expression(node.args["low"]), self.expression(node.args["high"])
                return Between(self.expression(node.this), low, high)
            case exp.And():
                return And(self.expression(node.left), self.expression(node.right))
            case exp.Or():
                return Or(self.expression(node.left), self.expression(node.right))
            case exp.Not():
                return Not(self.expression(node.this))
        raise self.error(
            node,
            f"`{node.sql()}` is not supported in a join condition: write comparisons of columns "
            "(< <= > >= = !=, BETWEEN, ABS(a - b) <= c), joined with AND",
        )

    def literal(self, node: exp.Literal) -> Constant:
        written = str(node.this)
        if node.is_string:
            raise self.error(
                node,
                f"the string '{written}' cannot be compared yet: write a number, or a length of "
                "time as INTERVAL '5' MINUTE",
            )
        if written.isdigit():
            return Constant(int(written))
        if not math.isfinite(float(written)):
            raise self.error(node, f"{written} is too large for a float")
        return Constant(float(written))

    def interval(self, node: exp.Interval) -> Constant:
        unit = node.args.get("unit")
        if not isinstance(node.this, exp.Literal) or not isinstance(unit, exp.Var):
            raise self.error(node, f"`{node.sql()}` is not supported: write INTERVAL '5' MINUTE")
        length = length_of(str(node.this.this), str(unit.this))
        if isinstance(length, str):
            raise self.error(node, length)
        return Constant(length)

    def column(self, node: exp.Column) -> Column:
        qualifier = qualifier_of(node)
        if qualifier is None:
            left, right = self.roles
            raise self.error(
                node,
                f"column {node.name} does not say which stream it belongs to: "
                f"write {left}.{node.name} or {right}.{node.name}",
            )
        return Column(self.role(node, qualifier), node.name)

    def role(self, node: exp.Column, qualifier: str) -> str:
        role = match_role(qualifier, self.roles)
        if role is None:
            left, right = self.roles
            raise self.error(
                node,
                f"there is no stream {qualifier} in this join: its sides are {left} and {right}",
            )
        return role


def qualifier_of(node: exp.Column) -> str | None:
    """What stands before a column's name: ``R`` of ``R.power``."""
    return ".".join(part.name for part in node.parts[:-1]) or None


def match_role(qualifier: str, roles: tuple[str, ...]) -> str | None:
    """The role a qualifier names: as written, else without regard to case if that is clear."""
    if qualifier in roles:
        return qualifier
    alike = [role for role in roles if role.lower() == qualifier.lower()]
    return alike[0] if len(alike) == 1 else None
