"""Where expressions begin: columns of streams, built-in functions, and CASE.

After ``R = stream("R")``, its columns are ``R.power`` or ``R["power"]``. ``func.lower(R.name)`` calls a built-in
function, ``case((R.kind == 1, "a"), default="b")`` chooses a value.

``overlaps`` and ``contains`` are conditions on intervals: a start, and an end that is not part of it. They stand for
comparisons (docs/semantics.md, Conditions), so they are searched by keys as these are: two intervals overlap where each
starts before the other ends, which is two dimensions. That an interval is not empty concerns one stream alone, and is
tested once per row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from operators.functions.builtins import BUILTINS, builtin_named, similar_names
from operators.query.errors import PredicateError
from operators.query.expressions import Absolute, And, Apply, Column, Compare, Constant, Expression, as_expression


@dataclass(frozen=True)
class Stream:
    """A stream (or a role of one) whose attributes and items are its columns."""

    # An unlikely name for a column: this attribute would hide it.
    _stream_name: str

    def __getattr__(self, column: str) -> Column:
        if column.startswith("_"):  # protocols of pickle, copy and notebooks look such names up
            raise AttributeError(f"{column!r}: write such a column as stream[{column!r}]")
        return Column(self._stream_name, column)

    def __getitem__(self, column: str) -> Column:
        if not isinstance(column, str) or not column:
            raise TypeError(f"a column is named by a non-empty string, not {column!r}")
        return Column(self._stream_name, column)

    def __repr__(self) -> str:
        return f"stream({self._stream_name!r})"


def stream(name: str) -> Stream:
    """The stream (or role) called ``name``, whose attributes are its columns."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a stream is named by a non-empty string, not {name!r}")
    return Stream(name)


def col(name: str) -> Column:
    """A column by its full name: ``col("R.power")``; the stream ends at the first dot."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a column is named by a non-empty string, not {name!r}")
    owner, dot, column = name.partition(".")
    if dot and not (owner and column):
        raise PredicateError(f"col({name!r}) names no column: write col('stream.column')")
    return Column(owner, column) if dot else Column(None, name)


class BuiltinFunctions:
    """The built-in functions as attributes: ``func.coalesce(R.x, 0)``. docs/queries.md lists them."""

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name.startswith("__"):
            raise AttributeError(name)
        if builtin_named(name) is None and name not in ("abs", "nullif"):
            alike = similar_names(name)
            hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
            raise AttributeError(f"{name!r} is not a built-in function{hint}")
        return lambda *arguments: built_in(name, tuple(map(as_expression, arguments)))

    def __dir__(self) -> list[str]:
        return sorted([*(name for name in BUILTINS if name.isidentifier()), "abs", "nullif"])

    def __repr__(self) -> str:
        return "func"


func = BuiltinFunctions()


def case(*whens: tuple[object, object], default: object = None) -> Expression:
    """The value of the first condition that is true: ``case((R.x > 0, "more"), default="less")``. None is null."""
    if not whens or not all(isinstance(when, tuple) and len(when) == 2 for when in whens):
        raise PredicateError("case takes pairs of a condition and its value: case((R.x > 0, 'more'), default='less')")
    given = [each for when in whens for each in when]
    return Apply("case", tuple(Constant(None) if each is None else as_expression(each) for each in (*given, default)))


def built_in(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """A call of a built-in function by any of its names; checks the number of arguments."""
    lowered = name.lower()
    if lowered == "abs" and len(arguments) == 1:
        return Absolute(arguments[0])
    if lowered == "nullif" and len(arguments) == 2:
        return Apply("case", (Compare("=", *arguments), Constant(None), arguments[0]))
    if lowered in ("if", "iif") and len(arguments) in (2, 3):
        return Apply("case", (*arguments, *([Constant(None)] if len(arguments) == 2 else [])))
    builtin = builtin_named(name)
    if builtin is None:
        raise PredicateError(f"{name} is not a built-in function")
    count, most = len(arguments), builtin.most
    if count < builtin.least or (most is not None and count > most):
        wanted = str(builtin.least) if builtin.least == most else f"{builtin.least} or more"
        if most is not None and builtin.least != most:
            wanted = f"{builtin.least} to {most}"
        noun = "argument" if wanted == "1" else "arguments"
        raise PredicateError(f"{builtin.name} takes {wanted} {noun}, not {count}: {builtin.summary}")
    return Apply(builtin.name, arguments)


Interval = tuple[Any, Any]
"""The start and the end of an interval: columns, expressions or values."""


def overlaps(one: Interval, other: Interval) -> Expression:
    """``(one) OVERLAPS (other)``: some value is in both. ``overlaps((R.start, R.end), (S.start, S.end))``."""
    start, end = _ends("overlaps", one)
    other_start, other_end = _ends("overlaps", other)
    return _all(
        Compare("<", start, other_end),
        Compare("<", other_start, end),
        Compare("<", start, end),
        Compare("<", other_start, other_end),
    )


def contains(interval: Interval, inner: Any) -> Expression:
    """An interval contains another, or a value: ``contains((R.start, R.end), S.ts)``."""
    start, end = _ends("contains", interval)
    if not isinstance(inner, tuple):
        value = as_expression(inner)
        return _all(Compare("<=", start, value), Compare("<", value, end))
    inner_start, inner_end = _ends("contains", inner)
    return _all(
        Compare("<=", start, inner_start), Compare("<=", inner_end, end), Compare("<", inner_start, inner_end)
    )


def _ends(name: str, interval: object) -> tuple[Expression, Expression]:
    if not isinstance(interval, tuple) or len(interval) != 2:
        raise PredicateError(
            f"{name} takes an interval as its start and its end, such as (stream('R').start, stream('R').end), not "
            f"{interval!r}"
        )
    start, end = interval
    return as_expression(start), as_expression(end)


def _all(*parts: Expression) -> Expression:
    return reduce(And, parts)
