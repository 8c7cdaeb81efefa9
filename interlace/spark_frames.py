"""`il.join` of Spark DataFrames: executors feed a topology of its own, and others read its results."""

from __future__ import annotations

import tempfile
import uuid
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlace.result_names import frame_columns, new_names
from operators import JoinError, RunningJoin, StreamJoin, UnboundedStateWarning, UnboundedWindow
from topology import Runtime, in_notebook

if TYPE_CHECKING:
    from spark_bridge import StreamingFeed

SOURCES = ("left", "right")
"""The names of the sources, whatever the frames are called: of rows of equal event time, the left one comes first."""

SPARK_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
"""Where Spark puts checkpoints that nobody names."""


def bounded_join(frames: Mapping[str, Any], join: StreamJoin, runtime: Runtime | None) -> Any:
    """Join two bounded DataFrames; return the result as one that outlives the topology."""
    from spark_bridge import feed, prepare_executors, results_dataframe

    _check_order(join)
    columns = frame_columns(join, {name: frame.columns for name, frame in frames.items()})
    spark = frames[join.roles[0]].sparkSession
    prepare_executors(spark)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnboundedStateWarning)  # the frames are bounded
        running = join.launch(runtime)
    with running:
        for source, (name, frame) in zip(SOURCES, frames.items(), strict=True):
            feed(frame, running, stream=name, source_prefix=source, progress=in_notebook())
        result = results_dataframe(running, spark, separator=".")
        running.warn_of_late_rows()
        return result.toDF(*new_names(result.columns, columns))


def streaming_join(
    frames: Mapping[str, Any], join: StreamJoin, runtime: Runtime | None, checkpoint: str | Path | None
) -> Any:
    """Join DataFrames of which one or both are streaming; return the result as a streaming one.

    A bounded frame enters whole and ends before the other begins. The topology ends with the query that reads it.
    """
    from spark_bridge import (
        EndsWithQuery,
        connect_spark,
        feed,
        prepare_executors,
        require_delay,
        start_feed,
    )

    streaming = {name: source for source, name in zip(SOURCES, frames, strict=True) if frames[name].isStreaming}
    _check_order(join)
    _check_survival(frames, streaming, runtime, checkpoint)
    columns = frame_columns(join, {name: frame.columns for name, frame in frames.items()})
    topology = join.topology()
    for name, source in streaming.items():
        require_delay(topology, name, source, frames[name])
    spark = frames[join.roles[0]].sparkSession
    prepare_executors(spark)
    run = uuid.uuid4().hex if checkpoint is None else str(checkpoint)
    feeds: list[StreamingFeed] = []
    behind = ExitStack()
    ending = EndsWithQuery(spark, run, feeds, behind.close)
    try:
        running = join.launch(runtime, sources={name: [source] for name, source in streaming.items()})
        behind.callback(_stop, running)
        for source, (name, frame) in zip(SOURCES, frames.items(), strict=True):
            if name not in streaming:
                feed(frame, running, stream=name, source_prefix=source, progress=in_notebook())
                running.finish(name)
        place = _checkpoints(spark, checkpoint, behind)
        for name, source in streaming.items():
            feeds.append(start_feed(frames[name], running, name, source, place and f"{place}/{source}", None))
        connect_spark(spark, running)
        results = spark.readStream.format("interlace").option("endpoint", running.endpoint("results").uri)
        found = results.option("sink", "results").option("run", run).load()
        shown = found.toDF(*new_names(running.result_schema().names, columns))
    except BaseException:
        ending.end()
        raise
    ending.start()
    return shown


def _check_order(join: StreamJoin) -> None:
    unbounded = all(isinstance(each, UnboundedWindow) for each in join.windows)
    if not unbounded and None in join.resolved.event_times.values():
        raise JoinError("rows of a Spark DataFrame have no order of their own: name their event time, event_time=")


def _check_survival(
    frames: Mapping[str, Any],
    streaming: Mapping[str, str],
    runtime: Runtime | None,
    checkpoint: str | Path | None,
) -> None:
    """Refuse what would be lost or repeated when the same call is made again."""
    durable = runtime is not None and runtime.is_durable
    bounded = [name for name in frames if name not in streaming]
    if bounded and (durable or checkpoint is not None):
        raise JoinError(
            f"frame '{bounded[0]}' is bounded and the other one streaming, and a second run would feed it again: leave "
            f"out checkpoint= and the runtime's state=; or launch a StreamJoin, il.feed the streaming frame and "
            f"il.feed_batch or running.send the other, with offsets"
        )
    if durable != (checkpoint is not None):
        has, lacks = ("state=", "checkpoint=") if durable else ("checkpoint=", "runtime=il.LocalRuntime(state=...)")
        raise JoinError(
            f"{has} is given and {lacks} is not: the queries that feed the join and the join itself go on where they "
            f"were only together; give both, or neither"
        )


def _checkpoints(spark: Any, checkpoint: str | Path | None, behind: ExitStack) -> str | None:
    """The directory for the checkpoints of the feeds; None where Spark has one for queries that name none."""
    if checkpoint is not None or spark.conf.get(SPARK_CHECKPOINTS, ""):
        return None if checkpoint is None else str(checkpoint)
    return behind.enter_context(tempfile.TemporaryDirectory(prefix="interlace-", ignore_cleanup_errors=True))


def _stop(running: RunningJoin) -> None:
    try:
        running.warn_of_late_rows()
    finally:
        running.stop()
