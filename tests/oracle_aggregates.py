"""What aggregates give over the matches of a row: docs/semantics.md, Aggregates, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan
from typing import Any, Literal

import pyarrow as pa

from tests.oracle_order import taken
from tests.oracle_terms import is_absent, values_of

Function = Literal["count", "sum", "min", "max", "avg"]


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a column of the other side; without one, of the matches themselves."""

    name: str
    function: Function
    column: str | None = None


def aggregated(each: Aggregate, table: pa.Table, matches: list[list[int]]) -> pa.Array | pa.ChunkedArray:
    """The column of results; `matches` holds for each row the positions of its matches in `table`."""
    if each.column is None:
        return pa.array([len(met) for met in matches], pa.int64())
    column = table[each.column]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = values_of(column)
    present = [sorted(p for p in met if not is_absent(values[p])) for met in matches]
    if each.function == "count":
        return pa.array([len(met) for met in present], pa.int64())
    if each.function in ("min", "max"):
        choose = min if each.function == "min" else max
        chosen = [choose(met, key=lambda p: values[p]) if met else None for met in present]  # the first of equal ones
        return taken(column, pa.array(chosen, pa.int64()))
    stored = column.cast(pa.int64()).to_pylist() if pa.types.is_duration(column.type) else values
    sums = [_sum([stored[p] for p in met]) if met else None for met in present]
    if each.function == "avg":
        counted = zip(sums, present, strict=True)
        return pa.array([None if total is None else _nearest(total) / len(met) for total, met in counted], pa.float64())
    return _typed(sums, column.type)


def _typed(sums: list[Fraction | float | None], kind: pa.DataType) -> pa.Array:
    """Sums in their type."""
    if pa.types.is_floating(kind):
        return pa.array([None if each is None else _nearest(each) for each in sums], pa.float64())
    if pa.types.is_decimal(kind):
        scaled = [None if each is None else int(each * 10**kind.scale) for each in sums]
        words = b"".join((each or 0).to_bytes(16, "little", signed=True) for each in scaled)
        valid = sum(1 << place for place, each in enumerate(scaled) if each is not None)
        mask = valid.to_bytes(len(scaled) // 8 + 1, "little")
        buffers = [pa.py_buffer(mask), pa.py_buffer(words)]
        return pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(scaled), buffers)
    whole = pa.array([None if each is None else int(each) for each in sums], pa.int64())
    return whole.cast(kind) if pa.types.is_duration(kind) else whole


def _sum(values: list[Any]) -> Fraction | float:
    """The exact sum; a float only where it is infinite or NaN."""
    ends = {value for value in values if value in (inf, -inf)}
    if ends:
        return nan if len(ends) == 2 else float(ends.pop())
    return sum(map(Fraction, values), Fraction(0))


def _nearest(exact: Fraction | float) -> float:
    """The nearest float64."""
    if isinstance(exact, float):
        return exact
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return inf if exact > 0 else -inf
