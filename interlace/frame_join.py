"""`il.join`: two frames in, a frame of the same kind out; the topology is launched and stopped behind it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from interlace.same_kind import as_frame
from operators import (
    CountWindow,
    Expression,
    JoinError,
    StreamJoin,
    TimeWindow,
    UnboundedStateWarning,
    UnboundedWindow,
    in_time_order,
)
from topology import FrameKind, Runtime, arrow_table, frame_kind

Window = CountWindow | TimeWindow | UnboundedWindow

SOURCES = ("left", "right")
"""The names of the sources, whatever the frames are called: of rows of equal event time, the left one comes first."""


def join(
    left: Any,
    right: Any,
    *,
    on: str | Expression,
    window: Window | tuple[Window, Window] | None,
    select: Sequence[str | Expression] | None = None,
    kind: str = "inner",
    event_time: str | Mapping[str, str] | None = None,
    runtime: Runtime | None = None,
    names: tuple[str, str] = ("left", "right"),
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
    event_time: the event-time column, or a mapping of frame to column. Frames are sorted by it; rows of equal time keep
                their order. None: the number of the row is its time.
    runtime:    where to run; None: in this process.
    names:      what the two frames are called in the condition, in `select` and in the result.

    Frames must be bounded; `StreamJoin` joins streams. A frame joined with itself meets itself, row by row, as in SQL.

        >>> import interlace as il
        >>> il.join({"x": [1, 5]}, {"x": [3]}, on="left.x < right.x", window=il.UnboundedWindow())
        {'left_x': [1], 'right_x': [3]}
    """
    _check_names(names)
    frames = dict(zip(names, (left, right), strict=True))
    kinds = {name: _kind(name, frame) for name, frame in frames.items()}
    described = StreamJoin(*names, on, window, kind=kind, select=select, event_time=event_time)
    if FrameKind.SPARK in kinds.values():
        return _spark_join(frames, kinds, described, runtime)
    tables = {name: _table(described, name, frame) for name, frame in frames.items()}
    columns = _frame_columns(described, {name: table.schema.names for name, table in tables.items()})
    inputs = {name: {source: table} for source, (name, table) in zip(SOURCES, tables.items(), strict=True)}
    result = described.collect(inputs, runtime)
    new_names = _new_names(result.schema.names, columns)
    origins = {
        new: (frames[columns[old].frame], columns[old].column)
        for old, new in zip(result.schema.names, new_names, strict=True)
        if old in columns
    }
    return as_frame(left, result.rename_columns(new_names), origins)


@dataclass(frozen=True)
class _FrameColumn:
    """A column of the result that is a column of a frame."""

    frame: str
    column: str


def _check_names(names: object) -> None:
    given = list(names) if isinstance(names, tuple | list) else []
    if len(given) != 2 or given[0] == given[1] or not all(isinstance(name, str) and name for name in given):
        raise JoinError(f"names must be two different names, such as ('orders', 'offers'), not {names!r}")


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


def _frame_columns(join: StreamJoin, columns: Mapping[str, Sequence[str]]) -> dict[str, _FrameColumn]:
    """The columns of the result that are columns of a frame, by their names in the result.

    columns: those of each frame. Raises a `JoinError` if two columns of the result would have one name.
    """
    found = {}
    selection = join.resolved.selection
    for side, (name, known) in enumerate(columns.items()):
        schema = pa.schema([(column, pa.null()) for column in known])
        for each in selection.columns(side, schema):
            found[each.name] = _FrameColumn(name, each.column)
    others = [each.name for each in selection.computed]
    if selection.counted is not None:
        others.append(selection.counted.name)
    names = _new_names([*found, *others], found)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise JoinError(
            f"two columns of the result would be called '{twice}': give one another name in select=, with .alias(..), "
            "or the frames other names, with names="
        )
    return found


def _new_names(names: Sequence[str], columns: Mapping[str, _FrameColumn]) -> list[str]:
    """The names of the result's columns, without the dot between frame and column."""
    new = []
    for name in names:
        origin = columns.get(name)
        plain = origin is not None and name == f"{origin.frame}.{origin.column}"
        new.append(f"{origin.frame}_{origin.column}" if origin is not None and plain else name)
    return new


def _spark_join(
    frames: Mapping[str, Any], kinds: Mapping[str, FrameKind], join: StreamJoin, runtime: Runtime | None
) -> Any:
    """Join two Spark DataFrames: executors feed the topology, and one of them reads its results."""
    from spark_bridge import feed, results_dataframe

    for name, kind in kinds.items():
        if kind is not FrameKind.SPARK:
            raise JoinError(
                f"frame '{name}' is {kind.value} and the other one Spark: give two Spark DataFrames "
                "(spark.createDataFrame), or none (df.toArrow() brings the rows into this process)"
            )
        if frames[name].isStreaming:
            raise JoinError(
                f"frame '{name}' is a streaming DataFrame, and il.join takes bounded frames: read it with spark.read, "
                "or launch a StreamJoin and send it each micro-batch: df.writeStream.foreachBatch(lambda rows, number: "
                f"running.send('{name}', rows.toArrow()))"
            )
    unbounded = all(isinstance(each, UnboundedWindow) for each in join.windows)
    if not unbounded and None in join.resolved.event_times.values():
        raise JoinError("rows of a Spark DataFrame have no order of their own: name their event time, event_time=")
    columns = _frame_columns(join, {name: frame.columns for name, frame in frames.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnboundedStateWarning)  # the frames are bounded
        running = join.launch(runtime)
    with running:
        for source, (name, frame) in zip(SOURCES, frames.items(), strict=True):
            feed(frame, running, stream=name, source_prefix=source, progress=False)
        result = results_dataframe(running, frames[join.roles[0]].sparkSession)
        running.warn_of_late_rows()
    return result.toDF(*_new_names(result.columns, columns))
