"""What the tasks of a streaming query do with their rows: they stage them for the micro-batch that they work for.

Spark may run a micro-batch again, with its rows in other partitions, and each task more than once. A task learns from
its context which query and which micro-batch it works for. What it stages is invisible until the driver commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext

from spark_bridge.errors import calling
from spark_bridge.schemas import fitted, gathered, needed_names, reordered
from topology import Endpoint, FlightClient, InputError

QUERY = "sql.streaming.queryId"
NUMBER = "streaming.sql.batchId"
"""The properties in which Spark tells a task for which query and for which micro-batch it works."""


@dataclass(frozen=True)
class Staged:
    """What a task has staged."""

    query: str
    attempt: str
    rows: int


@dataclass(frozen=True)
class StageMicroBatch:
    """Stages the rows of tasks for one feed. `delays`: see `watermark_delays`."""

    stream: str
    feed: str
    take_over: bool
    schema: pa.Schema
    delays: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, endpoint: Endpoint, batches: Iterable[pa.RecordBatch]) -> Staged:
        """Stage the rows of the task that this process runs; none if the micro-batch has been committed before."""
        context = TaskContext.get()
        assert context is not None
        query, number = context.getLocalProperty(QUERY), context.getLocalProperty(NUMBER)
        if query is None or number is None:
            raise InputError(f"feed '{self.feed}': this task does not work for a micro-batch of a streaming query")
        # Task ids begin again when Spark does, and what another Spark has staged may still be there.
        attempt = f"{context.partitionId()}.{context.taskAttemptId()}.{uuid.uuid4().hex}"
        with calling(endpoint), FlightClient(endpoint) as client:
            if int(number) <= client.open_feed(self.stream, self.feed, query, self.take_over, self.delays):
                return Staged(query, attempt, 0)
            known = client.schema(self.stream)
            names = needed_names(self.schema.names, endpoint.needed, known)
            schema = pa.schema([self.schema.field(name) for name in names])
            schema = schema if known is None else reordered(schema, known)
            rows = gathered(fitted(batch.select(schema.names), schema) for batch in batches)
            return Staged(
                query, attempt, client.stage_micro_batch(self.stream, self.feed, query, int(number), attempt, rows)
            )

    def commit(self, endpoint: Endpoint, number: int, staged: Iterable[Staged]) -> None:
        """Let the rows that tasks have staged enter; a micro-batch without tasks has none."""
        parts = list(staged)
        if parts:
            attempts = {part.attempt: part.rows for part in parts}
            with calling(endpoint), FlightClient(endpoint) as client:
                client.commit_micro_batch(self.stream, self.feed, parts[0].query, number, attempts)
