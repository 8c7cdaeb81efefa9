"""A function for `foreachBatch`: each micro-batch enters a stream once and whole, as with `format("interlace")`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.deployment import prepare_executors
from spark_bridge.errors import UnsupportedSessionError, described, restored
from spark_bridge.feed_checks import checked_schema, chosen, require_delay, sent_columns
from spark_bridge.session import without_pandas_warning
from spark_bridge.stage_micro_batch import Staged, StageMicroBatch
from topology import Endpoint, Handle, InputError

STATUS = "query STRING, attempt STRING, rows LONG, error STRING"
_STATUS = pa.schema([("query", pa.string()), ("attempt", pa.string()), ("rows", pa.int64()), ("error", pa.string())])


def feed_batch(
    running: Handle, stream: str = "R", feed: str | None = None, *, take_over: bool = False
) -> Callable[[DataFrame, int], None]:
    """Return a function for `df.writeStream.foreachBatch(...)` that sends each micro-batch to an input stream.

    Call it yourself where a micro-batch has other uses, too: `feed_batch(running, "R", "trips")(df, batch_id)`. It
    returns when the rows have entered. A micro-batch that has entered before is skipped, so a query that restarts from
    its checkpoint adds no row twice; every micro-batch is one part of the same source.

    feed:      the name of what the query writes, and of its source; None: that of the stream.
    take_over: take the feed from another query that had it; see `docs/spark.md`.
    """
    require_delay(running.topology, stream, feed or stream)
    return _SendBatch(running, stream, feed or stream, take_over)


@dataclass(frozen=True)
class _SendBatch:
    """Sends one micro-batch after the other."""

    running: Handle
    stream: str
    feed: str
    take_over: bool

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        df = chosen(df, sent_columns(df, self.running, self.stream))
        schema = checked_schema(df, self.running, self.stream)
        stage = StageMicroBatch(self.stream, self.feed, self.take_over, schema)
        endpoint = self.running.endpoint(self.stream)
        prepare_executors(df.sparkSession, endpoint)
        with without_pandas_warning():
            statuses = df.mapInArrow(_StageForDriver(endpoint, stage), STATUS).collect()
        for status in statuses:
            if status.error is not None:
                raise restored(status.error)
        stage.commit(endpoint, batch_id, [Staged(status.query, status.attempt, status.rows) for status in statuses])

    def __reduce__(self) -> NoReturn:
        raise UnsupportedSessionError(
            f"stream '{self.stream}': Spark Connect runs the function of foreachBatch on its server, where the "
            f'running topology is not: use il.feed or writeStream.format("interlace")'
        )


@dataclass(frozen=True)
class _StageForDriver:
    """Stages the rows of a task and returns a status row; a refusal is reported, because it would be repeated."""

    endpoint: Endpoint
    stage: StageMicroBatch

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            staged = self.stage(self.endpoint, batches)
            status = {"query": staged.query, "attempt": staged.attempt, "rows": staged.rows, "error": None}
        except InputError as refusal:
            status = {"query": "", "attempt": "", "rows": 0, "error": described(refusal)}
        yield pa.RecordBatch.from_pylist([status], schema=_STATUS)
