"""Reads a join's settings of event time: bounds of sources out of order, seconds until a source is idle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from operators.intake.late_rows import LATE
from operators.query.durations import Duration, checked_duration, in_unit, written
from operators.query.errors import DurationError, JoinError
from topology import SchemaError

RESULTS = "results"
"""The sink of a join's results."""


def check_stream_names(streams: tuple[str, ...]) -> None:
    """Refuse a stream that has the name of an output."""
    for name in (LATE, RESULTS):
        if name in streams:
            raise JoinError(
                f"a stream of a join cannot be called '{name}', which is one of its outputs: rename it, "
                f"or give the role another stream: streams={{{name!r}: '{name}_rows'}}"
            )


def bounds_of(
    out_of_order: Duration | Mapping[str, Duration] | None, event_time: Mapping[str, str | None]
) -> dict[str, int | float | timedelta]:
    """Return the bound of each stream that may be out of order; `event_time` gives the column of each stream."""
    if out_of_order is None:
        return {}
    if isinstance(out_of_order, Mapping):
        for stream in out_of_order:
            if stream not in event_time:
                streams = tuple(event_time)
                raise JoinError(f"out_of_order names '{stream}', which is not a stream of this join: {streams}")
        wanted = dict(out_of_order)
    else:
        wanted = {stream: out_of_order for stream, column in event_time.items() if column is not None}
    if not wanted and not isinstance(out_of_order, Mapping):
        raise JoinError(f"out_of_order={out_of_order!r} needs event_time=: row numbers are always in order")
    bounds = {}
    for stream, given in wanted.items():
        if event_time[stream] is None:
            raise JoinError(f"out_of_order: stream '{stream}' has no event_time=; row numbers are always in order")
        try:
            bound = checked_duration(given)
        except DurationError as error:
            raise JoinError(f"out_of_order of stream '{stream}': {error}") from None
        if bound < (timedelta(0) if isinstance(bound, timedelta) else 0):  # type: ignore[operator]
            raise JoinError(f"out_of_order of stream '{stream}' must not be negative: {written(given)}")
        if bound:
            bounds[stream] = bound
    return bounds


def idle_seconds(idle_after: Duration | None) -> float | None:
    """Return the seconds after which a source is idle; plain numbers are seconds."""
    if idle_after is None:
        return None
    try:
        given = checked_duration(idle_after)
    except DurationError as error:
        raise JoinError(f"idle_after: {error}") from None
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    if seconds <= 0:
        raise JoinError(f"idle_after must be more than 0 seconds, not {idle_after!r}; None: never")
    return seconds


@dataclass(frozen=True)
class BoundCheck:
    """Refuses a stream whose event time has no unit for its bound; runs at the entry, after another check."""

    stream: str
    column: str
    bound: Duration
    before: Callable[[pa.Schema], None]

    def __call__(self, schema: pa.Schema) -> None:
        self.before(schema)
        try:
            in_unit(self.bound, schema.field(self.column).type)
        except DurationError as error:
            raise SchemaError(f"stream '{self.stream}': out_of_order: {error}") from None
