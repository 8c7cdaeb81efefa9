"""Rows in the order of a column of times, however large the file.

A file whose times never go backwards is read as it is. Another is cut into runs that fit into memory; each is sorted
and written to disk, and the runs are merged while they are read. The sort is stable: rows of equal time keep the order
of the file. Rows without a time have no place in the order and are left out.

    times 3 1 4 | 1 5 9  ->  runs 1 3 4 and 1 5 9  ->  1 1 3 | 4 | 5 9

The merge takes, from the batch at the head of each run, all rows up to the bound: the earliest of the batches' last
times. Rows that equal the bound are taken only from runs up to the one whose batch ends with it: that run may have more
of them in its next batch, and they come before those of the runs after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from topology import Times, event_times

RUN_BYTES = 128 << 20
MERGED_ROWS = 1 << 16


@dataclass(frozen=True)
class Order:
    """What a look at all times has found: whether they never go backwards; how many rows there are, and without one."""

    in_order: bool
    rows: int
    untimed: int


def order_of(batches: Iterable[pa.RecordBatch], column: str, seen: Callable[[int], None] = lambda rows: None) -> Order:
    """Look at the times of all rows; `seen` is told how many there were so far."""
    in_order, rows, untimed, latest = True, 0, 0, None
    for batch in batches:
        rows += batch.num_rows
        seen(rows)
        times = _valid_times(batch.column(column))
        untimed += batch.num_rows - len(times)
        if in_order and len(times):
            in_order = bool((times[1:] >= times[:-1]).all()) and (latest is None or times[0] >= latest)
            latest = times[-1]
    return Order(in_order, rows, untimed)


def in_time_order(
    batches: Iterable[pa.RecordBatch], column: str, directory: str, *, run_bytes: int = RUN_BYTES
) -> Iterator[pa.RecordBatch]:
    """The rows that have a time, sorted by it; `directory` takes the runs if there is more than one."""
    runs: list[str] = []
    gathered: list[pa.RecordBatch] = []
    size = 0
    with ExitStack() as files:
        for batch in batches:
            gathered.append(batch)
            size += batch.nbytes
            if size >= run_bytes:
                runs.append(_written(_sorted(gathered, column), os.path.join(directory, f"run-{len(runs)}.arrow")))
                size = 0
        if not runs:
            yield from _sorted(gathered, column)
            return
        runs.append(_written(_sorted(gathered, column), os.path.join(directory, f"run-{len(runs)}.arrow")))
        readers = [files.enter_context(pa.OSFile(run)) for run in runs]
        yield from merged([_read(reader) for reader in readers], column)


def merged(runs: list[Iterator[pa.RecordBatch]], column: str) -> Iterator[pa.RecordBatch]:
    """The rows of several sorted runs in one order; of equal times, those of earlier runs first."""
    heads = [(batch, _valid_times(batch.column(column)), run) for run in runs if (batch := next(run, None)) is not None]
    while heads:
        ends = [times[-1] for _, times, _ in heads]
        first = int(np.argmin(ends))  # the first of those that end earliest
        taken, left = [], []
        for number, (batch, times, run) in enumerate(heads):
            count = int(np.searchsorted(times, ends[first], side="right" if number <= first else "left"))
            taken.append(batch.slice(0, count))
            rest: pa.RecordBatch | None = batch.slice(count) if count < len(times) else next(run, None)
            if rest is not None:
                left.append((rest, _valid_times(rest.column(column)), run))
        heads = left
        yield from _sorted(taken, column)


def _sorted(batches: list[pa.RecordBatch], column: str) -> Iterator[pa.RecordBatch]:
    """The rows of some batches in order; empties the list, so that each row is held once."""
    if not batches:
        return
    table = pa.Table.from_batches(batches).combine_chunks()
    batches.clear()
    valid = _has_time(table[column])
    if not pc.all(valid).as_py():
        table = table.filter(valid)
    order = pc.sort_indices(table, sort_keys=[(column, "ascending")])
    for start in range(0, table.num_rows, MERGED_ROWS):
        yield from table.take(order.slice(start, MERGED_ROWS)).combine_chunks().to_batches()


def _has_time(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)))


def _valid_times(column: pa.Array) -> Times:
    times, valid = event_times(column)
    return times if valid is None else times[valid]


def _written(batches: Iterator[pa.RecordBatch], path: str) -> str:
    writer = None
    with pa.OSFile(path, "wb") as file:
        for batch in batches:
            writer = writer or pa.ipc.new_stream(file, batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()
    return path


def _read(file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    if file.size():
        yield from pa.ipc.open_stream(file)
