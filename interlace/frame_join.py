"""`il.join`: two frames in, a frame of the same kind out; the topology is launched and stopped behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from interlace.result_names import frame_columns, new_names
from interlace.same_kind import as_frame
from interlace.spark_frames import SOURCES, bounded_join, streaming_join
from operators import (
    Aggregate,
    CountWindow,
    Expression,
    JoinError,
    StreamJoin,
    TimeWindow,
    UnboundedWindow,
    in_time_order,
)
from topology import FrameKind, Runtime, arrow_table, frame_kind

Window = CountWindow | TimeWindow | UnboundedWindow
Duration = str | float | timedelta


def join(
    left: Any,
    right: Any,
    *,
    on: str | Expression,
    window: Window | tuple[Window, Window] | None,
    select: Sequence[str | Expression] | None = None,
    kind: str = "inner",
    aggregate: Mapping[str, Aggregate] | None = None,
    event_time: str | Mapping[str, str] | None = None,
    runtime: Runtime | None = None,
    names: tuple[str, str] = ("left", "right"),
    out_of_order: Duration | Mapping[str, Duration] | None = None,
    checkpoint: str | Path | None = None,
) -> Any:
    """Join two frames; return the result as the same kind of frame as `left`.

    A pandas frame gives a pandas frame, Polars gives Polars (a lazy frame comes back lazy, but is computed now), Spark
    gives Spark, a dict of columns a dict, a list of dicts a list; Arrow, DuckDB and all others give an Arrow table.

    on:         the condition, as SQL text such as "left.x < right.x", or as column expressions.
    window:     the rows of a side that later rows of the other may meet; a pair gives each side its own. All of them:
                `UnboundedWindow()`. None: it follows from a condition that bounds the difference of the event times.
    select:     the columns to show, such as ["left.id", "right.id"]; None: all of both. Columns of the result are
                called left_id and right_id, or what `.alias(..)` says.
    kind:       "inner", "left", "right", "full", "semi", "anti", "count", "asof" or "asof inner". The last two
                give each row of `left` the last row of `right` up to its event time, with equalities and window=None.
    aggregate:  names of results and what they are, such as {"n": il.count(), "volume": il.sum("right.size")}: every row
                of `left` once, with values over its matches. It takes the place of `kind`. Where the aggregates name
                columns of `left`, the rows of `right` come out.
    event_time: the event-time column, or a mapping of frame to column. Frames are sorted by it; rows of equal time keep
                their order. None: the number of the row is its time.
    runtime:    where to run; None: in this process.
    names:      what the two frames are called in the condition, in `select` and in the result.

    A frame joined with itself meets itself, row by row, as in SQL. Of Spark, one or both may be streaming DataFrames;
    the result is one, too. The join behind it ends with the first query that reads it, or with the session.

    out_of_order: of streaming DataFrames: how much earlier a row may be than rows of micro-batches before it, as text
                such as "5 min", in the event time's unit, or a mapping of frame to that. None: as their watermarks say.
    checkpoint: a directory where two streaming DataFrames keep how far they have been read. With it and a runtime that
                keeps the state (`LocalRuntime(state=...)`), the same call goes on where an earlier program was.

        >>> import interlace as il
        >>> il.join({"x": [1, 5]}, {"x": [3]}, on="left.x < right.x", window=il.UnboundedWindow())
        {'left_x': [1], 'right_x': [3]}
    """
    _check_names(names)
    frames = dict(zip(names, (left, right), strict=True))
    kinds = {name: _kind(name, frame) for name, frame in frames.items()}
    described = StreamJoin(
        *names,
        on,
        window,
        kind=kind,
        select=select,
        event_time=event_time,
        out_of_order=out_of_order,
        aggregate=aggregate,
    )
    if FrameKind.SPARK in kinds.values():
        _check_both_spark(kinds)
    if any(kind is FrameKind.SPARK and frames[name].isStreaming for name, kind in kinds.items()):
        return streaming_join(frames, described, runtime, checkpoint)
    for option, given in (("out_of_order", out_of_order), ("checkpoint", checkpoint)):
        if given is not None:
            raise JoinError(f"{option}= has no effect on bounded frames, which are sorted: leave it out")
    if FrameKind.SPARK in kinds.values():
        return bounded_join(frames, described, runtime)
    tables = {name: _table(described, name, frame) for name, frame in frames.items()}
    columns = frame_columns(described, {name: table.schema.names for name, table in tables.items()})
    inputs = {name: {source: table} for source, (name, table) in zip(SOURCES, tables.items(), strict=True)}
    result = described.collect(inputs, runtime)
    called = new_names(result.schema.names, columns)
    origins = {
        new: (frames[columns[old].frame], columns[old].column)
        for old, new in zip(result.schema.names, called, strict=True)
        if old in columns
    }
    return as_frame(left, result.rename_columns(called), origins)


def _check_names(names: object) -> None:
    given = list(names) if isinstance(names, tuple | list) else []
    if len(given) != 2 or given[0] == given[1] or not all(isinstance(name, str) and name for name in given):
        raise JoinError(f"names must be two different names, such as ('orders', 'offers'), not {names!r}")


def _check_both_spark(kinds: Mapping[str, FrameKind]) -> None:
    for name, kind in kinds.items():
        if kind is not FrameKind.SPARK:
            raise JoinError(
                f"frame '{name}' is {kind.value} and the other one Spark: give two Spark DataFrames "
                "(spark.createDataFrame), or none (df.toArrow() brings the rows into this process)"
            )


def _kind(name: str, frame: object) -> FrameKind:
    kind = frame_kind(frame)
    if kind is None:
        arrow_table(f"frame '{name}'", frame)  # raises the error that says what is taken
        raise AssertionError("what is not rows is refused")
    return kind


def _table(join: StreamJoin, name: str, frame: object) -> pa.Table:
    table = arrow_table(f"frame '{name}'", frame)
    column = join.resolved.event_times[name]
    return table if column is None else in_time_order(name, table, column)
