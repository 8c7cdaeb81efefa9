"""Functions that fail on their first attempt, halfway through; in a module that executors can import."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from spark_bridge import InterlaceDataSource
from spark_bridge.feed_writer import FeedWriter, TaskMessage
from spark_bridge.results_spool import ReadSink
from spark_bridge.stage_micro_batch import NUMBER
from spark_bridge.stage_partition import StagePartition
from topology.flight.client import FlightClient


def first_attempt() -> bool:
    context = TaskContext.get()
    assert context is not None
    return context.attemptNumber() == 0


class FailsHalfway(StagePartition):
    """Partition 1 stages one batch of several, then raises."""

    def stage(self, client: FlightClient, source: str, attempt: str, batches: Iterable[pa.RecordBatch]) -> int:
        if source.endswith("1") and first_attempt():
            super().stage(client, source, attempt, itertools.islice(batches, 1))
            raise RuntimeError("planted: failed halfway")
        return super().stage(client, source, attempt, batches)


class FailsAtTheEnd(StagePartition):
    """Every partition stages all its rows, then its process dies before it reports to Spark."""

    def stage(self, client: FlightClient, source: str, attempt: str, batches: Iterable[pa.RecordBatch]) -> int:
        rows = super().stage(client, source, attempt, batches)
        if first_attempt():
            os._exit(1)
        return rows


class RepeatsAndDiffers(StagePartition):
    """Partition 0 stages other rows than its retry does, and partition 3 the same ones; all of them, then it fails."""

    def stage(self, client: FlightClient, source: str, attempt: str, batches: Iterable[pa.RecordBatch]) -> int:
        if source[-1] not in "03" or not first_attempt():
            return super().stage(client, source, attempt, batches)
        skipped = 1 if source.endswith("0") else 0
        super().stage(client, source, attempt, (rows.slice(skipped) for rows in batches))
        raise RuntimeError("planted: failed after all rows")


class DiesWhileReading(ReadSink):
    """Reads the first results, then its process dies."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, cell in enumerate(super().__call__(batches)):
            if number and first_attempt():
                os._exit(1)
            yield cell


def fails_in_the_third_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    for rows in batches:
        yield rows
        if context.partitionId() == 2:
            raise ValueError("planted: the user's own code failed")


def waits_before_its_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    time.sleep(1)
    yield from batches


def stalls_at_the_end(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    time.sleep(600)


@dataclass(frozen=True)
class FaultyWriter(FeedWriter):
    """Fails once for each file in the folder `faults`, as its name says; the file goes away.

    half-0-1:   at micro-batch 0, the process of partition 1 dies when half of the rows are staged
    late-0-1:   the same when all are staged, before Spark hears of it
    twice-0-1:  two attempts at the partition stage its rows, as with speculation; the later one counts
    before-0:   the commit of micro-batch 0 fails before the topology has it
    after-0:    it fails after that
    """

    faults: str = ""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        context = TaskContext.get()
        assert context is not None
        place = f"{context.getLocalProperty(NUMBER)}-{context.partitionId()}"
        if self.happens(f"half-{place}"):
            super().write(itertools.islice(iterator, 1))
            os._exit(1)
        if self.happens(f"twice-{place}"):
            batches = list(iterator)
            super().write(iter(batches))
            return super().write(iter(batches))
        message = super().write(iterator)
        if self.happens(f"late-{place}"):
            os._exit(1)
        return message

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        if self.happens(f"before-{batchId}"):
            raise RuntimeError("planted: before the commit")
        super().commit(messages, batchId)
        if self.happens(f"after-{batchId}"):
            raise RuntimeError("planted: after the commit")

    def happens(self, fault: str) -> bool:
        try:
            (Path(self.faults) / fault).unlink()
        except FileNotFoundError:
            return False
        return True


class FaultyDataSource(InterlaceDataSource):
    """`format("faulty")`: as `interlace`, with the option `faults`."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:
        writer = FaultyWriter.of(self.options, schema, type(self).tokens)
        return replace(writer, faults=self.options["faults"])
