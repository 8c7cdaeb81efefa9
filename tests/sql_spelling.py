"""The oracle's conditions spelt as SQL text.

Brackets stand around every operation: what binds how tightly is tested elsewhere.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from tests import oracle_terms as term

Roles = tuple[str, str]


def as_sql(node: term.Condition | term.Value, roles: Roles) -> str:
    """The condition or value as SQL text."""

    def sql(part: term.Condition | term.Value) -> str:
        return as_sql(part, roles)

    match node:
        case term.Column(side, name):
            return f"{roles[side]}.{name}"
        case term.Constant(written):
            return literal(written)
        case term.Arithmetic(sign, one, other):
            return f"({sql(one)} {sign} {sql(other)})"
        case term.Negative(operand):
            return f"(-({sql(operand)}))"
        case term.Absolute(operand):
            return f"ABS({sql(operand)})"
        case term.Compare(op, one, other):
            return f"({sql(one)} {op} {sql(other)})"
        case term.Between(operand, low, high):
            return f"({sql(operand)} BETWEEN {sql(low)} AND {sql(high)})"
        case term.Overlaps((start, end), (other_start, other_end)):
            return f"(({sql(start)}, {sql(end)}) OVERLAPS ({sql(other_start)}, {sql(other_end)}))"
        case term.Contains((start, end), inner):
            within = f"({sql(inner[0])}, {sql(inner[1])})" if isinstance(inner, tuple) else sql(inner)
            return f"(({sql(start)}, {sql(end)}) CONTAINS {within})"
        case term.In(operand, choices):
            return f"({sql(operand)} IN ({', '.join(map(sql, choices))}))"
        case term.IsNull(operand):
            return f"({sql(operand)} IS NULL)"
        case term.Not(term.Distinct(one, other)):
            return f"({sql(one)} IS NOT DISTINCT FROM {sql(other)})"
        case term.Distinct(one, other):
            return f"({sql(one)} IS DISTINCT FROM {sql(other)})"
        case term.IsTruth(part, value):
            return f"({sql(part)} IS {str(value).upper()})"
        case term.Apply(name, arguments):
            return f"{name}({', '.join(map(sql, arguments))})"
        case term.And(parts):
            return f"({' AND '.join(map(sql, parts))})"
        case term.Or(parts):
            return f"({' OR '.join(map(sql, parts))})"
        case term.Not(term.IsNull(operand)):
            return f"({sql(operand)} IS NOT NULL)"
        case term.Not(part):
            return f"(NOT {sql(part)})"
        case term.Function(compute, arguments):
            return f"{compute.__name__}({', '.join(map(sql, arguments))})"
    raise TypeError(node)


def without_intervals(node: Any) -> Any:
    """A condition with comparisons for OVERLAPS and containment, which DuckDB does not know."""
    if isinstance(node, term.Overlaps | term.Contains):
        return term.And(tuple(term.Compare(*each) for each in node.comparisons))
    if isinstance(node, tuple):
        return tuple(map(without_intervals, node))
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{each.name: without_intervals(getattr(node, each.name)) for each in fields(node)})
    return node


def readable(node: Any) -> Any:
    """A condition with the constants that SQL text can say: it has no decimals of its own, only numbers."""
    if isinstance(node, term.Constant):
        return term.Constant(float(node.written)) if isinstance(node.written, Decimal) else node
    if isinstance(node, tuple):
        return tuple(map(readable, node))
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{each.name: readable(getattr(node, each.name)) for each in fields(node)})
    return node


def literal(value: Any) -> str:
    """A constant as SQL text."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case timedelta():
            return f"INTERVAL '{value // timedelta(microseconds=1)}' MICROSECOND"
    return str(value)
