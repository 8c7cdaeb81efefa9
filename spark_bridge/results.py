"""The results of a topology as a DataFrame."""

from __future__ import annotations

import threading
import uuid
import weakref

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.errors import ResultsLostError, restored
from spark_bridge.reports import new_reports
from spark_bridge.results_task import SPOOL, ReadSink, UnpackRows, schema_in
from spark_bridge.schemas import spark_ready, spark_schema
from spark_bridge.session import require_classic, without_pandas_warning
from spark_bridge.tagged_jobs import tagged_jobs
from topology import Handle, InputError, InterlaceError, StoppedError, TopologyError

CAUSE_SECONDS = 10.0
"""How long to wait for the news of why a topology stopped."""


def results_dataframe(
    running: Handle, spark: SparkSession, sink: str | None = None, *, finish: bool = True
) -> DataFrame:
    """Bring everything that reaches a sink to Spark; returns when the last result has been read.

    A sink gives its rows once, while Spark evaluates a DataFrame whenever it is used. So one executor reads the sink to
    its end at once, over Flight, into Spark's own storage on that executor's disk (a local checkpoint); the DataFrame
    reads from there, as often as it is used, and the space is freed when it is garbage. Nothing passes through the
    driver, and memory holds a few megabytes at a time.

    The DataFrame has one partition, in result order; repartition it for parallel work. Should Spark lose the executor's
    storage, using the DataFrame is an error, never a part of the rows: write it out if it must outlive its executors.
    Should the reading task die or be cancelled, what it had read is gone, and a `ResultsLostError` says so. Columns are
    named as in the results; those with a dot are written in backticks: ``df["`R.id`"]``.

    sink:   which sink, if there are several; "late" for the rows that took no part in a join.
    finish: say `running.finish()` first, because a DataFrame is finite: no stream takes rows any more. With False
            someone else does so, before or meanwhile.
    """
    require_classic(spark)
    sinks = running.topology.sinks
    name = running.topology.main_sink if sink is None else sink
    if name is None or name not in sinks:
        raise TopologyError(
            f"topology '{running.topology.name}': name the sink to read, one of: {', '.join(sinks) or 'none'}"
        )
    if finish:
        running.finish()
    _claim(running, name)
    reports = new_reports(spark.sparkContext)
    with tagged_jobs(spark.sparkContext, f"interlace-results-{uuid.uuid4().hex}"), without_pandas_warning():
        reading = spark.range(0, 1, 1, 1).mapInArrow(ReadSink(running.endpoint(name), name, reports), SPOOL)
        spool = reading.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
        for report in reports.value:
            if report:
                raise _cause(running, name, restored(report))
        if len(reports.value) != 1:
            raise ResultsLostError(
                f"sink '{name}' was to be read by one Spark task, but {len(reports.value)} did: results may be missing"
            )
        first = spool.first()
        schema = spark_ready(_result_schema(running, name, None if first is None else schema_in(first.content)))
        return spool.mapInArrow(UnpackRows(schema), spark_schema(schema))


def _cause(running: Handle, sink: str, error: InterlaceError) -> InterlaceError:
    """What stopped the topology, where the reader only saw that it stopped."""
    if isinstance(error, StoppedError):
        try:
            next(running.results(sink, timeout=CAUSE_SECONDS), None)  # raises why there is nothing to read
        except InterlaceError as cause:
            return cause
    return error


def _result_schema(running: Handle, sink: str, read: pa.Schema | None) -> pa.Schema:
    """What the topology says the rows of a sink look like, or else what the first ones looked like."""
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
                f"the results of sink '{sink}' have been read, or a call that was to read them failed; "
                f"a sink gives its rows once: keep the DataFrame of the first call"
            )
        sinks.add(sink)
