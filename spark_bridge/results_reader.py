"""`spark.read.format("interlace")`: the results of a bounded run as a DataFrame.

The sink keeps its results on disk from when the read is planned, and nothing is acknowledged. So every evaluation of
the DataFrame, every retry and every speculative copy of a task reads the same rows, as long as the topology runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_bridge.errors import calling
from spark_bridge.sink_access import SinkAccess

PARTITION_ROWS = 1 << 20
"""Results that are there already are divided into partitions of about this size, to be read in parallel."""


class NumberRange(InputPartition):
    """Results from number `first` up to and without `end`; None: until the last that comes."""

    def __init__(self, first: int, end: int | None) -> None:
        self.first = first
        self.end = end

    def __repr__(self) -> str:
        return f"NumberRange({self.first}, {self.end})"


def divided(first: int, end: int) -> list[NumberRange]:
    """Divide results into ranges of about equal size, in order; none if there are no results."""
    parts = -(-(end - first) // PARTITION_ROWS)
    cuts = [first + (end - first) * part // parts for part in range(parts)] + [end]
    return [NumberRange(begin, stop) for begin, stop in pairwise(cuts)]


class ResultsReader(DataSourceReader):
    """Reads all results of a sink, in order; the last partition waits until the streams are finished."""

    def __init__(self, access: SinkAccess, schema: StructType) -> None:
        self._access = access
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Runs beside Spark's driver, once for each DataFrame."""
        with calling(self._access.endpoint), self._access.connect() as client:
            client.retain(self._access.sink)
            extent = client.extent(self._access.sink)
        found: list[InputPartition] = [*divided(extent.first, extent.end)]
        if not extent.complete or not found:
            found.append(NumberRange(extent.end, extent.end if extent.complete else None))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs on an executor."""
        assert isinstance(partition, NumberRange)
        return self._access.rows(self._schema, partition.first, partition.end)
