"""Checks the types of both streams of a join together: event times, windows, comparisons, results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from operators.bounds.condition_types import check_condition
from operators.intake.time_unit import finest, fit, in_units, misfit
from operators.protocol.sides import LEFT, RIGHT
from operators.query.errors import PredicateError, WindowError
from operators.resolved_join import ResolvedJoin
from operators.routing.liveness import liveness
from topology import SchemaError


@dataclass(frozen=True)
class TypesCheck:
    """Refuses streams whose types do not fit each other; see `Gate`."""

    join: ResolvedJoin

    def __call__(self, schemas: Mapping[str, pa.Schema]) -> None:
        check_types(self.join, schemas)


def check_types(join: ResolvedJoin, schemas: Mapping[str, pa.Schema]) -> None:
    """Refuse types that the windows or the comparisons do not allow, once the schemas of both sides are known."""
    left, right = (schemas.get(stream) for stream in join.streams)
    kinds: list[pa.DataType | None] = []
    for stream, schema in zip(join.streams, (left, right), strict=True):
        if schema is None:
            return
        kinds.append(event_time_type(join, stream, schema))
    for stream, window, kind in zip(join.streams, join.windows, kinds, strict=True):
        try:
            liveness(window, kind, factor=in_units(kind, finest(kinds)))
        except WindowError as error:
            raise SchemaError(f"stream '{stream}': {error}") from error
    if not can_be_merged(kinds[LEFT], kinds[RIGHT]):
        shown = [f"'{stream}' has {kind or 'row numbers'}" for stream, kind in zip(join.streams, kinds, strict=True)]
        remedy = _remedy(join, kinds)
        raise SchemaError(f"event times of different types cannot be merged: {', '.join(shown)}: {remedy}")
    try:
        check_condition(join.condition, join.wheres, (left, right))
        join.selection.result_schema((left, right))
    except PredicateError as error:
        raise SchemaError(f"streams '{join.streams[LEFT]}' and '{join.streams[RIGHT]}': {error}") from error


def can_be_merged(one: pa.DataType | None, other: pa.DataType | None) -> bool:
    """Whether event times of two types have one order: integers of any width, timestamps of any unit, or alike."""
    if one is None or other is None:
        return one is other
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return bool(one.tz == other.tz)
    return bool(one == other or (pa.types.is_integer(one) and pa.types.is_integer(other)))


def check_fit(
    stream: str, rows: pa.RecordBatch | pa.Table, column: str | None, kinds: Sequence[pa.DataType | None]
) -> None:
    """Refuse rows whose event times the finest unit of all streams cannot hold; `kinds` are those of all streams."""
    if column is None or column not in rows.schema.names:
        return
    factor = in_units(rows.schema.field(column).type, finest(kinds))
    if factor > 1:
        ends = pc.min_max(rows.column(column).cast(pa.int64())).as_py()
        if ends["min"] is not None and not fit(ends["min"], ends["max"], factor):
            raise misfit(stream)


def _remedy(join: ResolvedJoin, kinds: Sequence[pa.DataType | None]) -> str:
    """The cast to write where event times cannot be merged."""
    left, right = kinds
    if left is None or right is None or not (pa.types.is_timestamp(left) and pa.types.is_timestamp(right)):
        return "cast one of them"
    side = LEFT if left.tz is None or right.tz is not None else RIGHT
    zone = (right, left)[side].tz
    call = f'pc.assume_timezone(table["{{0}}"], "{zone}")'
    if left.tz is not None and right.tz is not None:
        call = f'table["{{0}}"].cast(pa.timestamp("{kinds[side].unit}", "{zone}"))'  # type: ignore[union-attr]
    return f"cast that of '{join.streams[side]}': " + call.format(join.event_times[join.streams[side]])


def event_time_type(join: ResolvedJoin, stream: str, schema: pa.Schema) -> pa.DataType | None:
    """The type of the event-time column; None where the number of the row is its time."""
    column = join.event_times[stream]
    return None if column is None else schema.field(column).type
