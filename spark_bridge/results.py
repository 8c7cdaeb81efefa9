"""Reads the results of a topology into a DataFrame."""

from __future__ import annotations

import threading
import uuid
import weakref

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.deployment import prepare_executors
from spark_bridge.errors import ResultsLostError, restored
from spark_bridge.progress import waiting_line
from spark_bridge.results_spool import SPOOL, ReadSink, UnpackRows, schema_in
from spark_bridge.schemas import separated, spark_ready, spark_schema
from spark_bridge.session import without_pandas_warning
from spark_bridge.tagged_jobs import tagged_work
from topology import Handle, InputError, InterlaceError, StoppedError, TopologyError

CAUSE_SECONDS = 10.0
"""How long to wait for the reason why a topology stopped."""


def results_dataframe(
    running: Handle, spark: SparkSession, sink: str | None = None, *, finish: bool = True, separator: str = "_"
) -> DataFrame:
    """Read all rows of a sink into a DataFrame; return when the last result has been read.

    A sink gives out its rows once, but Spark evaluates a DataFrame each time that it is used. So one executor reads the
    whole sink now, over Flight, into Spark's own storage on that executor's disk (a local checkpoint). The DataFrame
    reads from there as often as it is used, and the space is freed when the DataFrame is garbage-collected. No row
    passes through the driver, and memory holds a few megabytes at a time.

    The DataFrame has one partition, in result order; repartition it for parallel work. If Spark loses the executor's
    storage, using the DataFrame raises an error and never gives part of the rows: write it to a file if it must outlive
    its executors. If the reading task dies or is cancelled, the rows it has read are lost, and a `ResultsLostError`
    says so.

    sink:      the sink to read, if there are several; "late" for the rows that took no part in a join.
    finish:    call `running.finish()` first, because a DataFrame is finite: after that no stream takes rows. With False
               the caller finishes the streams, before or during this call.
    separator: what stands in place of each dot in the names of columns, which are called R_id. With "." they keep the
               names of the results, and Spark wants them in backticks: ``df["`R.id`"]``.
    """
    sinks = running.topology.sinks
    name = running.topology.main_sink if sink is None else sink
    if name is None or name not in sinks:
        raise TopologyError(
            f"topology '{running.topology.name}': name the sink to read, one of: {', '.join(sinks) or 'none'}"
        )
    separated(running.sink_schema(name) or pa.schema([]), separator)  # refused before anything is read
    prepare_executors(spark, running.endpoint(name))
    if finish:
        running.finish()
    _claim(running, name)
    with tagged_work(spark, f"interlace-results-{uuid.uuid4().hex}"), without_pandas_warning():
        reading = spark.range(0, 1, 1, 1).mapInArrow(ReadSink(running.endpoint(name), name), SPOOL)
        with waiting_line(f"reading '{name}' into Spark", running):
            spool = reading.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
        outcomes = [row.outcome for row in spool.where("outcome IS NOT NULL").select("outcome").collect()]
        if len(outcomes) != 1:
            raise ResultsLostError(f"the reading of sink '{name}' has {len(outcomes)} ends: results may be missing")
        if outcomes[0]:
            raise _cause(running, name, restored(outcomes[0]))
        first = spool.select("content").first()
        known = None if first is None or first.content is None else schema_in(first.content)
        schema = spark_ready(_result_schema(running, name, known))
        results = spool.mapInArrow(UnpackRows(schema), spark_schema(schema))
        return results if separator == "." else results.toDF(*separated(schema, separator))


def _cause(running: Handle, sink: str, error: InterlaceError) -> InterlaceError:
    """Return the error that stopped the topology, where the reader saw only that it stopped."""
    if isinstance(error, StoppedError):
        try:
            next(running.results(sink, timeout=CAUSE_SECONDS, take_over=True), None)  # raises the reason
        except InterlaceError as cause:
            return cause
    return error


def _result_schema(running: Handle, sink: str, read: pa.Schema | None) -> pa.Schema:
    """The schema that the topology declares for a sink, or else that of the rows read."""
    known = running.sink_schema(sink)
    if known is not None:
        return known
    return pa.schema([]) if read is None else read


_read: weakref.WeakKeyDictionary[Handle, set[str]] = weakref.WeakKeyDictionary()
_read_lock = threading.Lock()


def _claim(running: Handle, sink: str) -> None:
    with _read_lock:
        sinks = _read.setdefault(running, set())
        if sink in sinks:
            raise InputError(
                f"the results of sink '{sink}' have been read already, or a call to read them has failed; "
                f"a sink gives out its rows once: keep the DataFrame of the first call"
            )
        sinks.add(sink)
