"""What the driver decides and checks before a feed starts: which columns it sends, its event time, its delay."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.errors import UnsupportedSessionError
from spark_bridge.schemas import arrow_schema, needed_names, reordered, watermark_delays
from topology import Handle, InputError, Topology, check_event_time


def require_event_time(running: Handle, stream: str, event_time: str | None) -> None:
    """Refuse an event-time column other than the one that the topology declares; None names none."""
    declared = running.topology.require_input(stream).event_time
    if event_time is not None and event_time != declared:
        raise InputError(
            f"stream '{stream}': feed() names '{event_time}' as event time, but the topology was built with "
            f"{repr(declared) if declared else 'none (arrival order)'}: name the same in both"
        )


def require_turns(running: Handle, stream: str, connected: bool) -> None:
    """Refuse a stream or a session whose partitions cannot enter one after the other."""
    if connected:
        raise UnsupportedSessionError(
            f"stream '{stream}': through=True runs a job for each partition, which Spark Connect cannot: leave it out, "
            f"or feed the same files as a stream (spark.readStream, trigger={{'availableNow': True}})"
        )
    declared = running.topology.require_input(stream)
    if declared.event_time is None:
        raise InputError(
            f"stream '{stream}': through=True needs an event time, which orders the partitions: declare event_time= of "
            f"the join, or leave out through"
        )
    if declared.idle_after is not None:
        raise InputError(
            f"stream '{stream}': through=True and idle_after= exclude each other, because a partition that waits for "
            f"its turn is silent: leave out one of them"
        )


def require_delay(topology: Topology, stream: str, feed: str, df: DataFrame | None = None) -> None:
    """Refuse a stream that could not take a second micro-batch, because its rows must be in order.

    df: what is fed; a watermark on its event time is a delay, too.
    """
    declared = topology.require_input(stream)
    if declared.event_time is None or declared.disordered:
        return
    delays = {} if df is None or not declared.takes_bounds else watermark_delays(df.schema)
    if declared.event_time not in delays:
        raise InputError(
            f"stream '{stream}', feed '{feed}': it declares no delay, so rows that are earlier than those of the "
            f"micro-batch before would be late: declare how far rows may be out of order (out_of_order= of a join, or "
            f"df.withWatermark('{declared.event_time}', ...))"
        )


def sent_columns(df: DataFrame, running: Handle, stream: str) -> list[str]:
    """Return the columns of a DataFrame that are sent, in order: Spark need not read those that nobody needs."""
    known = running.schema(stream)
    names = needed_names(df.columns, running.endpoint(stream).needed, known)
    return known.names if known is not None and sorted(names) == sorted(known.names) else names


def chosen(df: DataFrame, names: list[str]) -> DataFrame:
    """Return these columns of a DataFrame."""
    return df if df.columns == names else df.select(*map(column, names))


def column(name: str) -> str:
    """Return the column of exactly that name, whatever characters it contains; as text, for sessions of both kinds."""
    return "`" + name.replace("`", "``") + "`"


def checked_schema(df: DataFrame, running: Handle, stream: str) -> pa.Schema:
    """Return the Arrow schema of a DataFrame that fits a stream, and pin it; columns may come in any order."""
    declared = running.topology.require_input(stream)
    schema = arrow_schema(df, stream, declared.schema)
    if declared.event_time is not None:
        check_event_time(stream, schema, declared.event_time)
    known = running.schema(stream)
    schema = schema if known is None else reordered(schema, known)
    running.pin(stream, schema)
    return schema
