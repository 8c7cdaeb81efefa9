"""The total order of the law (docs/semantics.md, Order): which rows take part, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tests.oracle_terms import values_of
from tests.oracle_windows import in_units, unit_of

Sources = Mapping[str, Mapping[str, pa.Table]]
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EventTime = str | Mapping[str, str] | None


@dataclass(frozen=True)
class Late:
    """A row that takes no part: `time` is its event time in the unit of the order, None or NaN where it has none."""

    stream: str
    source: str
    offset: int
    time: Any
    reason: str


@dataclass
class Stream:
    """One logical stream after the gate: per position its seq and event time, and the rows.

    per_unit: how many units of the order one of its event-time column is.
    """

    table: pa.Table
    event_time: pa.DataType | None
    per_unit: int = 1
    seqs: list[int] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)

    def own(self, time: Any) -> Any:
        """A time in the unit of the stream's own column."""
        return time if self.per_unit == 1 else Fraction(time, self.per_unit)

    def values(self) -> list[dict[str, Any]]:
        """The rows as the law computes with them."""
        names = self.table.column_names
        columns = [values_of(self.table[name]) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def taken(column: pa.ChunkedArray, positions: pa.Array) -> pa.ChunkedArray:
    """The values at these positions, null where a position is null."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(column.type)
    if plain is not None:  # Arrow cannot take from views
        return column.cast(plain).take(positions).cast(column.type)
    return column.take(positions)


def column_of(event_time: EventTime, stream: str) -> str | None:
    """The event-time column of a stream."""
    return event_time.get(stream) if isinstance(event_time, Mapping) else event_time


def event_times(table: pa.Table, column: str | None) -> list[Any]:
    """Event time per row: row numbers without a column, times as integers of their own unit."""
    if column is None:
        return list(range(table.num_rows))
    values = table[column]
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    result: list[Any] = values.to_pylist()
    return result


def finest(kinds: list[pa.DataType | None]) -> int:
    """Of the timestamps among some types the most units per second; 0 if there are none."""
    return max((PER_SECOND[kind.unit] for kind in kinds if kind is not None and pa.types.is_timestamp(kind)), default=0)


def admit(stream: str, source: str, times: list[Any], bound: Any, late: list[Late]) -> list[tuple[Any, str, str, int]]:
    """The rows of one source that take part, as (time, source, stream, offset); the others are added to `late`."""
    arrivals = []
    greatest: Any = None  # among the rows of the source with smaller offsets
    for offset, time in enumerate(times):
        if time is None or time != time:
            late.append(Late(stream, source, offset, time, "no event time"))
            continue
        if greatest is not None and time < greatest - bound:
            if bound == 0:
                raise ValueError(f"event time goes backwards in source {source!r}")
            late.append(Late(stream, source, offset, time, "out of order"))
        else:
            arrivals.append((time, source, stream, offset))
        greatest = time if greatest is None else max(greatest, time)
    return arrivals


def _moved(row: Late, per_unit: int) -> Late:
    return row if row.time is None else replace(row, time=row.time * per_unit)


def gate(
    sources: Sources, event_time: EventTime, out_of_order: Mapping[str, Any]
) -> tuple[dict[str, Stream], list[Late]]:
    """Merge all sources by (event time, source name, stream name, offset) and number the rows."""
    late: list[Late] = []
    arrivals: list[tuple[Any, str, str, int]] = []
    merged: dict[str, Stream] = {}
    starts: dict[tuple[str, str], int] = {}
    types = {
        stream: next(iter(of_stream.values())).schema.field(column).type
        for stream, of_stream in sources.items()
        if (column := column_of(event_time, stream)) is not None
    }
    unit = finest(list(types.values()))
    for stream, of_stream in sources.items():
        table = pa.concat_tables(list(of_stream.values()))
        column = column_of(event_time, stream)
        kind = types.get(stream)
        per_unit = unit // PER_SECOND[kind.unit] if kind is not None and pa.types.is_timestamp(kind) else 1
        merged[stream] = Stream(table, kind, per_unit)
        bound = in_units(out_of_order.get(stream, 0), unit_of(merged[stream].event_time))
        start = 0
        for source, rows in of_stream.items():
            own: list[Late] = []
            admitted = admit(stream, source, event_times(rows, column), bound, own)
            arrivals += [(time * per_unit, *place) for time, *place in admitted]
            late += own if per_unit == 1 else [_moved(row, per_unit) for row in own]
            starts[stream, source] = start
            start += rows.num_rows
    # Tuples compare element by element and str compares by code point: exactly the law's order.
    arrivals.sort()
    picked: dict[str, list[int]] = {stream: [] for stream in sources}
    for seq, (time, source, stream, offset) in enumerate(arrivals):
        merged[stream].seqs.append(seq)
        merged[stream].times.append(time)
        picked[stream].append(starts[stream, source] + offset)
    for stream, rows in picked.items():
        table, positions = merged[stream].table, pa.array(rows, pa.int64())
        merged[stream].table = pa.table([taken(column, positions) for column in table.columns], schema=table.schema)
    return merged, late
