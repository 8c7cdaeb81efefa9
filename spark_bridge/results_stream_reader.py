"""`spark.readStream.format("interlace")`: the results of a topology as a stream.

An offset is a number of results: the first that has not been read. Results have these numbers for good, so a
micro-batch that Spark runs again, with the same two offsets, has the same rows. Results are acknowledged when Spark has
recorded that their micro-batch is complete, and only then does the sink forget them.

Spark commits a micro-batch to its source when it plans the next one. But a full sink has no next one to offer until
something is acknowledged. `latestOffset` therefore acknowledges, too, when nothing has come behind its start: Spark
asks for the next offset only when all before it is in its log of completed micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spark_bridge.errors import calling
from spark_bridge.options import option
from spark_bridge.results_reader import NumberRange, divided
from spark_bridge.sink_access import SinkAccess
from topology import FlightClient, InputError

Answer = TypeVar("Answer")
Offset = dict[str, int | str]

MAX_ROWS = "maxRowsPerTrigger"
"""The option that bounds a micro-batch."""

RESULTS, RUN = "results", "run"
"""The keys of the number in Spark's offsets, and of the run that it belongs to; the latter is an option, too."""

NO_RUN = "any"
"""Offsets of a topology that may go on in another process name no run."""


class ResultsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offers the results of a sink to Spark's micro-batches."""

    def __init__(self, access: SinkAccess, schema: StructType, options: Mapping[str, str]) -> None:
        self._access = access
        self._schema = schema
        self._max_rows = _max_rows(options)
        self._run = option(options, RUN, NO_RUN)
        self._last: int | None = None  # with Trigger.AvailableNow: where to end
        self._client: FlightClient | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """The first result that is not acknowledged."""
        return self._offset(self._call(lambda client: client.extent(self._access.sink).first))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As the option maxRowsPerTrigger says."""
        return ReadAllAvailable() if self._max_rows is None else ReadMaxRows(self._max_rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Behind the last result of the next micro-batch."""
        begin = self._number(start)
        return self._offset(self._call(lambda client: self._next_end(client, begin, limit)))

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Behind the last result that has come."""
        return self._offset(self._call(lambda client: client.extent(self._access.sink).end))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note where a query ends that reads what is available now.

        Between such queries nobody acknowledges. The sink keeps its results on disk, so that the topology goes on.
        """
        self._call(lambda client: client.retain(self._access.sink))
        self._last = self._call(lambda client: client.extent(self._access.sink).end)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Divide the results of a micro-batch."""
        return [*divided(self._number(start), self._number(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs on an executor; waits for results that have to be made again after a failure of the topology."""
        assert isinstance(partition, NumberRange)
        return self._access.rows(self._schema, partition.first, partition.end)

    def commit(self, end: Offset) -> None:
        """Acknowledge: Spark has recorded that everything before `end` is complete."""
        number = self._number(end)
        self._call(lambda client: self._acknowledge(client, number))

    def stop(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _offset(self, number: int) -> Offset:
        return {RESULTS: number} if self._run == NO_RUN else {RESULTS: number, RUN: self._run}

    def _number(self, offset: Offset) -> int:
        """The number in an offset; refuses one of another run, whose results are not those of this one."""
        run = offset.get(RUN, NO_RUN)
        if run != self._run:
            raise InputError(
                f"sink '{self._access.sink}': the checkpoint of this query belongs to another run, whose results are "
                f"gone: give the query a new checkpointLocation, or keep the topology's state (runtime=, checkpoint=)"
            )
        return int(offset[RESULTS])

    def _next_end(self, client: FlightClient, begin: int, limit: ReadLimit) -> int:
        sink = self._access.sink
        end = client.extent(sink).end
        if end <= begin:
            self._acknowledge(client, begin)
            end = client.extent(sink).end
        if self._last is not None:
            end = min(end, self._last)
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        if isinstance(limit, ReadMinRows) and end - begin < limit.min_rows and self._last is None:
            end = begin
        return max(begin, end)

    def _acknowledge(self, client: FlightClient, end: int) -> None:
        """Acknowledge all results before `end`, also those that the query did not look at (`foreachBatch` need not)."""
        sink = self._access.sink
        try:
            client.acknowledge(end - 1, sink)
        except InputError:  # nobody has been given them
            extent = client.extent(sink)
            if end > extent.end:
                raise
            for _ in client.rows(sink, extent.first, end):
                pass
            client.acknowledge(end - 1, sink)

    def _call(self, ask: Callable[[FlightClient], Answer]) -> Answer:
        """Ask the sink, over one connection for all calls of this process."""
        with calling(self._access.endpoint):
            if self._client is None:
                self._client = self._access.connect()
            return ask(self._client)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_client": None}


def _max_rows(options: Mapping[str, str]) -> int | None:
    """How many results a micro-batch has at most; None: all that are there."""
    given = options.get(MAX_ROWS)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and int(given) > 0):
        raise InputError(f"option {MAX_ROWS} must be a number of rows above 0, not '{given}'")
    return int(given)
