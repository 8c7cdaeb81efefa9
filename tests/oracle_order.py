"""The total order of the law (docs/semantics.md, Order): which rows take part, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.oracle_terms import values_of
from tests.oracle_windows import in_units, unit_of

Sources = Mapping[str, Mapping[str, pa.Table]]
EventTime = str | Mapping[str, str] | None


@dataclass(frozen=True)
class Late:
    """A row that takes no part: `time` is its event time in the column's own unit, None or NaN where it has none."""

    stream: str
    source: str
    offset: int
    time: Any
    reason: str


@dataclass
class Stream:
    """One logical stream after the gate: per position its seq and event time, and the rows."""

    table: pa.Table
    event_time: pa.DataType | None
    seqs: list[int] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)

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


def gate(
    sources: Sources, event_time: EventTime, out_of_order: Mapping[str, Any]
) -> tuple[dict[str, Stream], list[Late]]:
    """Merge all sources by (event time, source name, stream name, offset) and number the rows."""
    late: list[Late] = []
    arrivals: list[tuple[Any, str, str, int]] = []
    merged: dict[str, Stream] = {}
    starts: dict[tuple[str, str], int] = {}
    for stream, of_stream in sources.items():
        table = pa.concat_tables(list(of_stream.values()))
        column = column_of(event_time, stream)
        merged[stream] = Stream(table, None if column is None else table.schema.field(column).type)
        bound = in_units(out_of_order.get(stream, 0), unit_of(merged[stream].event_time))
        start = 0
        for source, rows in of_stream.items():
            arrivals += admit(stream, source, event_times(rows, column), bound, late)
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
