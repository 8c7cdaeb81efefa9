"""Joins as parts of topologies, with sources that play back batches, and what the oracle says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.oracle_order import EventTime, Sources, gate
from topology import DEFAULT_STREAM, Batch, Emit, LocalRuntime, Runtime, Spout, SpoutTask, TaskContext, Topology


@dataclass(frozen=True)
class Playback(Spout):
    """Each task emits its own batches."""

    tasks: tuple[tuple[pa.RecordBatch, ...], ...]

    def build(self, context: TaskContext) -> SpoutTask:
        return _PlaybackTask(self.tasks[context.task])


class _PlaybackTask(SpoutTask):
    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._batches = batches

    def batches(self) -> Iterator[Emit]:
        for rows in self._batches:
            yield Emit(Batch(DEFAULT_STREAM, rows))


def playback(*tables: pa.Table | Sequence[pa.RecordBatch], rows: int = 7) -> Playback:
    """A spout with a task per table, in batches of so many rows."""
    return Playback(tuple(tuple(_batches(table, rows)) for table in tables))


def _batches(table: pa.Table | Sequence[pa.RecordBatch], rows: int) -> Sequence[pa.RecordBatch]:
    if not isinstance(table, pa.Table):
        return table
    empty = pa.RecordBatch.from_pylist([], table.schema)
    return table.combine_chunks().to_batches(rows) or [empty]


def run(
    topology: Topology, runtime: Runtime | None = None, sent: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, list[pa.RecordBatch]]:
    """Run a topology to its end; return the batches of every sink. `sent`: rows by input and source."""
    with (runtime or LocalRuntime()).launch(topology) as running:
        for stream, sources in (sent or {}).items():
            running.open(stream, *sources)
        for stream, sources in (sent or {}).items():
            for source, batches in sources.items():
                for rows in batches if isinstance(batches, list) else [batches]:
                    running.send(stream, rows, source=source)
        running.finish()
        return {sink: list(running.results(sink, timeout=120)) for sink in topology.sinks}


def as_table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The rows of a sink; without any, a table of the schema that they would have."""
    return pa.Table.from_batches(batches) if batches else pa.Table.from_batches([], schema)


def times_by_place(sources: Sources, event_time: EventTime, out_of_order: Mapping[str, Any]) -> list[Any]:
    """The event time at each place of the total order, and once more that of the last row for the end."""
    streams, _ = gate(sources, event_time, out_of_order)
    known = {seq: time for stream in streams.values() for seq, time in zip(stream.seqs, stream.times, strict=True)}
    times = [known[seq] for seq in range(len(known))]
    return [*times, *times[-1:]]
