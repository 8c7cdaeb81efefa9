"""Functions that run on executors: read a sink into a spool, and take rows out of the spool.

The spool is a column of binary cells, each a complete Arrow IPC stream of a few megabytes. Spark stores and moves the
cells without looking inside, so the rows stay columnar. The last row of the spool has no cell; it says how the reading
ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from spark_bridge.errors import ResultsLostError, calling, described
from spark_bridge.schemas import completed
from topology import Endpoint, FlightClient, InterlaceError

SPOOL = "content BINARY, outcome STRING"
_SPOOL = pa.schema([("content", pa.binary()), ("outcome", pa.string())])
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")

CELL_BYTES = 4 * 1024 * 1024
"""Small batches are gathered into cells of about this size, large ones are split."""


@dataclass(frozen=True)
class ReadSink:
    """Reads a sink to its end: the first cell holds only the schema, the others the rows in order.

    A sink gives out its rows once. So a second attempt, after the first has died, must not continue as if no rows were
    missing. Errors of the topology are the outcome instead of being raised, because Spark would retry after an error.
    """

    endpoint: Endpoint
    sink: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Python worker of Spark."""
        for _ in batches:
            pass  # the single row that makes Spark call this once
        context = TaskContext.get()
        assert context is not None
        try:
            if context.attemptNumber() > 0:
                raise ResultsLostError(
                    f"the Spark task that read sink '{self.sink}' died, and the results that it had read are lost: "
                    f"run the topology again"
                )
            with calling(self.endpoint), FlightClient(self.endpoint) as client:
                yield from packed(client.results(self.sink))
            yield _outcome("")
        except InterlaceError as error:
            yield _outcome(described(error))


@dataclass(frozen=True)
class UnpackRows:
    """Takes the rows out of the cells and gives them one schema."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Python worker of Spark, each time the DataFrame is evaluated."""
        for cells in batches:
            for cell in cells.column(0).drop_null():
                with pa.ipc.open_stream(cell.as_buffer()) as stream:
                    for rows in stream:
                        if rows.num_rows:
                            yield completed(rows, self.schema)


def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Gather batches into cells, each of one schema."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for rows in batches:
        if not gathered or not rows.schema.equals(gathered[0].schema):
            if gathered:
                yield _cell(gathered)
            else:
                yield _cell([rows.slice(0, 0)])
            gathered, size = [], 0
        parts = max(1, min(rows.num_rows, -(-rows.nbytes // CELL_BYTES)))
        length = max(1, -(-rows.num_rows // parts))
        for start in range(0, max(1, rows.num_rows), length):
            if size >= CELL_BYTES:
                yield _cell(gathered)
                gathered, size = [], 0
            part = rows.slice(start, length)
            gathered.append(part)
            size += part.nbytes
    if gathered:
        yield _cell(gathered)


def schema_in(cell: bytes | bytearray) -> pa.Schema:
    """The schema of the rows in a cell."""
    with pa.ipc.open_stream(pa.py_buffer(cell)) as stream:
        return stream.schema


def _cell(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batches[0].schema, options=_OPTIONS) as writer:
        writer.write_table(pa.Table.from_batches(batches).combine_chunks())
    return pa.record_batch([[out.getvalue().to_pybytes()], [None]], schema=_SPOOL)


def _outcome(error: str) -> pa.RecordBatch:
    """The last row: what went wrong, as `described` writes it; empty if all rows have been read."""
    return pa.record_batch([[None], [error]], schema=_SPOOL)
