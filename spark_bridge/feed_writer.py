"""Writes the micro-batches of a streaming query to an input: tasks stage their rows, and the driver commits them.

Spark gives the driver the messages of the tasks that count, and the driver's commit lets exactly their rows enter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark_bridge.options import option
from spark_bridge.schemas import stream_schema, watermark_delays
from spark_bridge.stage_micro_batch import Staged, StageMicroBatch
from spark_bridge.tokens import token_for
from topology import Endpoint, InputError


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """What a task has staged. It carries the token to the driver, which commits in a process without a session."""

    endpoint: Endpoint
    staged: Staged


@dataclass(frozen=True)
class FeedWriter(DataSourceStreamArrowWriter):
    """Made by the driver from the options of a query; `write` runs in tasks, `commit` in a process of the driver."""

    uri: str
    stage: StageMicroBatch
    tokens: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, tokens: Mapping[str, str]) -> Self:
        """Return the writer of a query with these options, columns and tokens."""
        uri, stream, feed = (option(options, name) for name in ("endpoint", "stream", "feed"))
        Endpoint.from_uri(uri, "")  # raises if it is none
        take_over = option(options, "takeOver", "false").lower()
        if take_over not in ("true", "false"):
            raise InputError(f"option takeOver must be true or false, not {take_over!r}")
        return cls(
            uri,
            StageMicroBatch(stream, feed, take_over == "true", stream_schema(schema, stream), watermark_delays(schema)),
            tokens,
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Stage the rows of one task."""
        endpoint = Endpoint.from_uri(self.uri, token_for(self.stage.stream, self.tokens))
        return TaskMessage(endpoint, self.stage(endpoint, iterator))

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        """Let the rows that tasks have staged enter."""
        told = [message for message in messages if message is not None]
        if told:
            self.stage.commit(told[0].endpoint, batchId, [message.staged for message in told])

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        """Do nothing: what was staged for a micro-batch goes away when it is committed."""
