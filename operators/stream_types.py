"""Checks the types of both streams of a join together: event times, windows, comparisons, results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.bounds.condition_types import check_condition
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
    for stream, window, schema in zip(join.streams, join.windows, (left, right), strict=True):
        if schema is None:
            return
        kinds.append(event_time_type(join, stream, schema))
        try:
            liveness(window, kinds[-1])
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
    """Whether event times of two types are numbers of the same unit: integers of any width are."""
    if one is None or other is None:
        return one is other
    return bool(one == other or (pa.types.is_integer(one) and pa.types.is_integer(other)))


def _remedy(join: ResolvedJoin, kinds: Sequence[pa.DataType | None]) -> str:
    """The cast to write where event times cannot be merged."""
    units = ("s", "ms", "us", "ns")
    left, right = kinds
    if left is None or right is None or not (pa.types.is_timestamp(left) and pa.types.is_timestamp(right)):
        return "cast one of them"
    if (left.tz is None) != (right.tz is None):
        side = LEFT if left.tz is None else RIGHT
        call = 'pc.assume_timezone(table["{0}"], "UTC")'
    else:
        side = LEFT if units.index(left.unit) < units.index(right.unit) else RIGHT
        target = (right, left)[side]
        zone = "" if target.tz is None else f', "{target.tz}"'
        call = f'table["{{0}}"].cast(pa.timestamp("{target.unit}"{zone}))'
    return f"cast that of '{join.streams[side]}': " + call.format(join.event_times[join.streams[side]])


def event_time_type(join: ResolvedJoin, stream: str, schema: pa.Schema) -> pa.DataType | None:
    """The type of the event-time column; None where the number of the row is its time."""
    column = join.event_times[stream]
    return None if column is None else schema.field(column).type
