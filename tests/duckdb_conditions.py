"""Conditions of the law in DuckDB's SQL, over columns that hold values as `tests/oracle_terms.values_of` gives them.

Three-valued logic and exact integers are DuckDB's own. DuckDB orders NaN above everything and equal to itself, so NaN
becomes NULL before a comparison. Not supported: integers beyond 2^53 compared with floats, decimals of many digits,
and division.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from tests import oracle_terms as term
from tests.oracle_terms import constant, nearest, values_of
from tests.random_conditions import odd_and_known, third

Sort = Literal["integer", "float", "single", "half", "decimal", "other"]
Sorts = tuple[Mapping[str, Sort], Mapping[str, Sort]]
_ALIASES = ("l", "r")


def plain_columns(table: pa.Table) -> tuple[pa.Table, dict[str, Sort]]:
    """The table with the values that the law computes with, and what sort of values each column has."""
    columns: dict[str, pa.Array] = {}
    sorts: dict[str, Sort] = {}
    for name in table.column_names:
        kind = table[name].type
        values = values_of(table[name])
        if pa.types.is_floating(kind):
            narrow: dict[int, Sort] = {16: "half", 32: "single"}
            columns[name], sorts[name] = pa.array(values, pa.float64()), narrow.get(kind.bit_width, "float")
        elif pa.types.is_decimal(kind):
            millionths = [None if v is None else int(v * 10**6) for v in values]
            columns[name], sorts[name] = pa.array(millionths, pa.int64()), "decimal"
        elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
            columns[name], sorts[name] = pa.array(values, pa.int64()), "integer"
        else:
            text = "string" in str(kind)
            columns[name], sorts[name] = pa.array(values, pa.string() if text else pa.binary()), "other"
    return pa.table(columns), sorts


def sort_of(node: term.Value, sorts: Sorts) -> Sort:
    """What sort of value an expression has."""
    match node:
        case term.Column(side, name):
            return "float" if sorts[side][name] in ("single", "half") else sorts[side][name]
        case term.Constant(written):
            value = constant(written)
            if isinstance(value, Fraction):
                return "decimal"
            return "integer" if isinstance(value, int) else "float" if isinstance(value, float) else "other"
        case term.Negative(operand) | term.Absolute(operand):
            return sort_of(operand, sorts)
        case term.Apply(_, arguments):
            return sort_of(arguments[0], sorts)
    found = {sort_of(node.one, sorts), sort_of(node.other, sorts)}
    return "decimal" if "decimal" in found else "float" if "float" in found else "integer"


def value_sql(node: term.Value, sorts: Sorts, wanted: Sort) -> str:
    """An expression as an operand of that sort; decimals are whole numbers of millionths."""
    own = sort_of(node, sorts)
    if wanted == "decimal" and isinstance(node, term.Arithmetic):
        own = "decimal"  # a decimal anywhere in the comparison makes all of its arithmetic exact
    match node:
        case term.Column(side, name):
            sql = f'{_ALIASES[side]}."{name}"'
            sql = f"({sql})::HUGEINT" if own in ("integer", "decimal") else sql
        case term.Constant(written):
            return _literal(constant(written), wanted)
        case term.Arithmetic("*", one, other) if own == "decimal":
            product = f"({value_sql(one, sorts, own)} * {value_sql(other, sorts, own)})"
            sql = f"({product} // 1000000)"
        case term.Arithmetic(sign, one, other):
            sql = f"({value_sql(one, sorts, own)} {sign} {value_sql(other, sorts, own)})"
        case term.Apply(name, arguments):
            sql = f"{name}({', '.join(value_sql(each, sorts, own) for each in arguments)})"
        case term.Negative(operand):
            return f"(-{value_sql(operand, sorts, wanted)})"
        case term.Absolute(operand):
            return f"abs({value_sql(operand, sorts, wanted)})"
    if own == "integer" and wanted == "float":
        return f"({sql})::DOUBLE"
    if own == "integer" and wanted == "decimal":
        return f"({sql} * 1000000)"
    return sql


def _literal(value: Any, wanted: Sort) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::BLOB"
    if wanted == "decimal":
        exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
        return f"({int(exact * 10**6)}::HUGEINT)"
    return f"('{float(value)!r}'::DOUBLE)" if wanted == "float" else f"({value}::HUGEINT)"


def condition_sql(node: term.Condition, sorts: Sorts) -> str:
    """A condition between the tables l and r."""

    def compared(op: str, one: term.Value, other: term.Value) -> str:
        one, other = _met(one, other, sorts), _met(other, one, sorts)
        found = {sort_of(one, sorts), sort_of(other, sorts)}
        common: Sort = "decimal" if "decimal" in found else "float" if "float" in found else "integer"
        return f"({_known(one, sorts, common)} {op} {_known(other, sorts, common)})"

    match node:
        case term.Compare(op, one, other):
            return compared(op, one, other)
        case term.Overlaps() | term.Contains():
            return f"({' AND '.join(compared(*each) for each in node.comparisons)})"
        case term.Between(operand, low, high):
            return f"({compared('>=', operand, low)} AND {compared('<=', operand, high)})"
        case term.In(operand, choices):
            return f"({' OR '.join(compared('=', operand, choice) for choice in choices)})"
        case term.IsNull(operand):
            return f"({_known(operand, sorts, sort_of(operand, sorts))} IS NULL)"
        case term.Distinct(one, other):
            same = compared("=", one, other)
            both = f"({condition_sql(term.IsNull(one), sorts)} AND {condition_sql(term.IsNull(other), sorts)})"
            return f"(NOT (coalesce({same}, FALSE) OR {both}))"
        case term.IsTruth(part, value):
            return f"({condition_sql(part, sorts)} IS {str(value).upper()})"
        case term.And(parts):
            return f"({' AND '.join(condition_sql(part, sorts) for part in parts)})"
        case term.Or(parts):
            return f"({' OR '.join(condition_sql(part, sorts) for part in parts)})"
        case term.Not(part):
            return f"(NOT {condition_sql(part, sorts)})"
        case term.Function(compute, (one, other)) if compute is third:
            return f"(({value_sql(one, sorts, 'integer')} + {value_sql(other, sorts, 'integer')}) % 3 = 0)"
        case term.Function(compute, (one, other)) if compute is odd_and_known:
            known = value_sql(other, sorts, sort_of(other, sorts))
            return f"(CASE WHEN {known} IS NULL THEN NULL ELSE {value_sql(one, sorts, 'integer')} % 2 = 1 END)"
    raise TypeError(node)


def _met(one: term.Value, other: term.Value, sorts: Sorts) -> term.Value:
    """A number that is written beside a column of float32 or float16 is the nearest of these."""
    if isinstance(one, term.Negative):
        return term.Negative(_met(one.operand, other, sorts))
    other = term.signless(other)
    if isinstance(one, term.Constant) and isinstance(one.written, float) and isinstance(other, term.Column):
        code = {"single": "f", "half": "e"}.get(sorts[other.side][other.name])
        return one if code is None else term.Constant(nearest(one.written, code))
    return one


def _known(node: term.Value, sorts: Sorts, wanted: Sort) -> str:
    """The operand, NULL where it is NaN."""
    sql = value_sql(node, sorts, wanted)
    return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END)" if wanted == "float" else sql
