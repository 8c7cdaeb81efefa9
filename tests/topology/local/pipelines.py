"""Small topologies that the tests of the local runtime share."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from topology import Bolt, Input, MapBatches, RunningTopology, Topology, TopologyBuilder


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return numbers(*(2 * value for value in rows.column("n").to_pylist()))


def pipeline(bolt: Bolt | None = None, parallelism: int = 1, source: Input | None = None) -> Topology:
    """in -> bolt -> results, rows divided by `n`."""
    builder = TopologyBuilder("pipeline")
    builder.input("in", source or Input())
    builder.bolt("bolt", bolt or MapBatches(doubled), parallelism).fields_grouping("in", "n")
    builder.sink().shuffle_grouping("bolt")
    return builder.build()


def read(running: RunningTopology, sink: str | None = None) -> list[int]:
    return [value for rows in running.results(sink) for value in rows.column("n").to_pylist()]


def send_each(running: RunningTopology, values: Iterable[int], finish: bool = False) -> None:
    for value in values:
        running.send("in", numbers(value))
    if finish:
        running.finish()


def same(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows
