"""Starts a streaming query that feeds an input, and the handle of that query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_bridge.data_source import NAME, connect_spark
from spark_bridge.deployment import prepare_executors
from spark_bridge.errors import found_in
from spark_bridge.feed_checks import checked_schema, chosen, require_delay, sent_columns
from spark_bridge.progress import waiting_line
from topology import Handle


class StreamingFeed:
    """A streaming query that feeds a stream. It has what Spark's `StreamingQuery` has, and raises our errors.

    query:  Spark's own handle.
    stream: the input.
    name:   the feed, which is the name of its source, too.
    """

    def __init__(self, query: Any, running: Handle, stream: str, name: str) -> None:
        self._running = running
        self.query = query
        self.stream = stream
        self.name = name

    @property
    def id(self) -> str:
        """The id of the query, which its checkpoint keeps."""
        return str(self.query.id)

    @property
    def isActive(self) -> bool:  # noqa: N802  Spark's name
        """Whether the query runs."""
        return bool(self.query.isActive)

    @property
    def status(self) -> Mapping[str, Any]:
        """What the query does now."""
        status: Mapping[str, Any] = self.query.status
        return status

    @property
    def lastProgress(self) -> Any:  # noqa: N802  Spark's name
        """What Spark tells of the last micro-batch; None before the first."""
        return self.query.lastProgress

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  Spark's name
        """What Spark tells of the last micro-batches."""
        return list(self.query.recentProgress)

    def exception(self) -> Exception | None:
        """What ended the query; None if it runs, or was stopped."""
        error = self.query.exception()
        return None if error is None else found_in(str(error)) or error

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802  Spark's name
        """Wait until the query ends, at most `timeout` seconds; return whether it has. Raises what ended it."""
        try:
            with waiting_line(f"feeding {self.stream} by query '{self.name}'", self._running):
                ended = self.query.awaitTermination(timeout) if timeout is not None else self.query.awaitTermination()
        except PySparkException as error:
            _raise(error)
        return timeout is None or bool(ended)

    def processAllAvailable(self) -> None:  # noqa: N802  Spark's name
        """Wait until all that the query's sources have now has been committed; for tests."""
        try:
            self.query.processAllAvailable()
        except PySparkException as error:
            _raise(error)

    def stop(self) -> None:
        """Stop the query. The source stays open: `running.finish(stream, name)` ends it."""
        self.query.stop()

    def explain(self, extended: bool = False) -> None:
        """Print the plan of the query."""
        self.query.explain(extended)


def start_feed(
    df: DataFrame,
    running: Handle,
    stream: str,
    name: str | None,
    checkpoint: str | Path | None,
    trigger: str | Mapping[str, Any] | None,
) -> StreamingFeed:
    """Start the query; see `feed`."""
    name = name or stream
    require_delay(running.topology, stream, name, df)
    df = chosen(df, sent_columns(df, running, stream))
    checked_schema(df, running, stream)
    endpoint = running.endpoint(stream)
    prepare_executors(df.sparkSession, endpoint)
    connect_spark(df.sparkSession, running)
    writer = df.writeStream.format(NAME).option("endpoint", endpoint.uri).option("stream", stream).option("feed", name)
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger is not None:
        writer = writer.trigger(**({"processingTime": trigger} if isinstance(trigger, str) else dict(trigger)))
    return StreamingFeed(writer.start(), running, stream, name)


def _raise(error: PySparkException) -> None:
    raise found_in(str(error)) or error from None
