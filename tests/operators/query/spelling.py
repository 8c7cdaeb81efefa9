"""Random joins of `tests/surface.py` as a user writes them: SQL text or column expressions, windows, the whole join."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Literal

from operators import CountWindow, Engine, StreamJoin, TimeWindow, UnboundedWindow
from operators.query import expressions as spelt
from operators.query import select_items as spelt_aggregates
from operators.query.functions import function
from operators.query.streams import contains, func, overlaps, stream
from tests import oracle_terms as term
from tests.oracle import Aggregate, Condition, Count, Unbounded, Window
from tests.random_conditions import VECTORISED
from tests.sql_spelling import Roles, as_sql
from tests.surface import SurfaceCase


def join_of(case: SurfaceCase, engine: Engine | Literal["auto"] = "auto") -> StreamJoin:
    """The join as a user writes it."""
    where = [one for one in case.where if one is not None]
    everywhere = None if not where else where[0] if len(where) == 1 else term.And(tuple(where))
    options: dict[str, Any] = {}
    if case.out_of_order:
        options["out_of_order"] = case.out_of_order
    if everywhere is not None:
        options["where"] = condition_of(case, everywhere)
    own, wanted = case.aggregates
    if wanted:
        options["aggregate"] = {each.name: aggregate_of(each, case.roles[1 - own]) for each in wanted}
    return StreamJoin(
        case.left,
        case.right,
        condition_of(case, case.on),
        (window_of(case.windows[0]), window_of(case.windows[1])),
        kind="inner" if wanted else case.kind,
        select=case.select,
        event_time=case.event_time,
        using=engine,
        streams=case.streams,
        ordering=case.ordering,
        step_rows=case.step_rows,
        **options,
    )


def aggregate_of(aggregate: Aggregate, role: str) -> spelt_aggregates.Aggregate:
    """An aggregate of a column of a role."""
    function = getattr(spelt_aggregates, aggregate.function)
    found: spelt_aggregates.Aggregate
    found = function() if aggregate.column is None else function(f"{role}.{aggregate.column}")
    return found


def condition_of(case: SurfaceCase, condition: Condition) -> str | spelt.Expression:
    """A condition as SQL text or as column expressions."""
    return as_sql(condition, case.roles) if case.written == "SQL" else as_expression(condition, case.roles)


def window_of(window: Window) -> CountWindow | TimeWindow | UnboundedWindow:
    """A window as `StreamJoin` takes it."""
    match window:
        case Unbounded():
            return UnboundedWindow()
        case Count(size, slide, per_key):
            return CountWindow(size, slide, per_key=True) if per_key else CountWindow(size, slide)
    return TimeWindow(window.size, window.slide)


def as_expression(node: term.Condition | term.Value, roles: Roles) -> spelt.Expression:
    """The condition or value as Python users write it."""

    def express(part: term.Condition | term.Value) -> spelt.Expression:
        return as_expression(part, roles)

    match node:
        case term.Column(side, name):
            return stream(roles[side])[name]
        case term.Constant(written):
            return spelt.as_expression(written)
        case term.Arithmetic(sign, one, other):
            return _ARITHMETIC[sign](express(one), express(other))
        case term.Negative(operand):
            return -express(operand)
        case term.Absolute(operand):
            return abs(express(operand))
        case term.Compare(op, one, other):
            return _COMPARISONS[op](express(one), express(other))
        case term.Between(operand, low, high):
            return express(operand).between(express(low), express(high))
        case term.Overlaps((start, end), (other_start, other_end)):
            return overlaps((express(start), express(end)), (express(other_start), express(other_end)))
        case term.Contains((start, end), inner):
            within = tuple(map(express, inner)) if isinstance(inner, tuple) else express(inner)
            return contains((express(start), express(end)), within)
        case term.In(operand, choices):
            return express(operand).isin(*map(express, choices))
        case term.IsNull(operand):
            return express(operand).is_null()
        case term.Not(term.Distinct(one, other)):
            return express(one).is_not_distinct_from(express(other))
        case term.Distinct(one, other):
            return express(one).is_distinct_from(express(other))
        case term.IsTruth(part, value):
            return express(part).is_true() if value else express(part).is_false()
        case term.Apply(name, arguments):
            return getattr(func, name)(*map(express, arguments))
        case term.And(parts):
            return reduce(lambda one, other: one & other, map(express, parts))
        case term.Or(parts):
            return reduce(lambda one, other: one | other, map(express, parts))
        case term.Not(term.IsNull(operand)):
            return express(operand).is_not_null()
        case term.Not(part):
            return ~express(part)
        case term.Function(compute, arguments):
            condition = function(VECTORISED[compute], compute.__name__)(*map(express, arguments))
            assert isinstance(condition, spelt.Expression)
            return condition
    raise TypeError(node)


_ARITHMETIC: dict[str, Callable[[Any, Any], spelt.Expression]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one / other,
}
_COMPARISONS: dict[str, Callable[[Any, Any], spelt.Expression]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
}
