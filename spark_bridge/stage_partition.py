"""The function that executors run on each partition: it stages the rows, which stay invisible until committed.

A partition is a physical source. Each attempt at it (first try, retry or speculative copy) stages its rows under its
own id. Spark returns the status row of one attempt to the driver, and the driver commits that attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from spark_bridge.errors import calling, described
from spark_bridge.schemas import fitted, gathered
from topology import Endpoint, FlightClient, InputError, Time, time_as_json, time_bounds

STATUS = "partition INT, attempt STRING, rows LONG, times STRING, error STRING"
_STATUS = pa.schema(
    [
        ("partition", pa.int32()),
        ("attempt", pa.string()),
        ("rows", pa.int64()),
        ("times", pa.string()),
        ("error", pa.string()),
    ]
)


def source_name(prefix: str, partition: int) -> str:
    """Return the source of a partition; names sort by code point as partitions do by number."""
    return f"{prefix}/{partition:06d}"


@dataclass(frozen=True)
class StagePartition:
    """Takes the batches of a partition and returns one status row.

    A refusal by the topology is reported instead of raised, because Spark would retry the rows and they would be
    refused again. Spark retries after any other error.

    reports:    an accumulator that gets the number of rows; None: the status alone tells it.
    event_time: the column whose smallest and largest value are returned, too; None: none.
    """

    endpoint: Endpoint
    stream: str
    prefix: str
    feed: str
    schema: pa.Schema
    reports: Any
    event_time: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Python worker of Spark."""
        context = TaskContext.get()
        assert context is not None
        partition = context.partitionId()
        attempt = f"{self.feed}.{context.taskAttemptId()}"
        rows, error, times = 0, None, _Bounds(self.event_time)
        with calling(self.endpoint), FlightClient(self.endpoint) as client:
            try:
                rows = self.stage(client, source_name(self.prefix, partition), attempt, times.over(batches))
            except InputError as refusal:
                error = described(refusal)
        if self.reports is not None:
            self.reports.add([rows])
        status = {"partition": partition, "attempt": attempt, "rows": rows, "times": times.as_json(), "error": error}
        yield pa.RecordBatch.from_pylist([status], schema=_STATUS)

    def stage(self, client: FlightClient, source: str, attempt: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Send the rows of one attempt; return how many arrived."""
        fitting = (fitted(rows.select(self.schema.names), self.schema) for rows in batches)
        return client.stage(self.stream, source, attempt, gathered(fitting))


class _Bounds:
    """Notes the smallest and the largest event time of the batches that pass."""

    def __init__(self, column: str | None) -> None:
        self._column = column
        self._bounds: tuple[Time, Time] | None = None

    def over(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        for rows in batches:
            found = None if self._column is None else time_bounds(rows, self._column, 0)
            if found is not None:
                known = self._bounds or found
                self._bounds = min(found[0], known[0]), max(found[1], known[1])
            yield rows

    def as_json(self) -> str | None:
        """Both bounds as a list; None if there are none."""
        return None if self._bounds is None else json.dumps([time_as_json(time) for time in self._bounds])
