"""Gives the results of a topology's sinks to readers in other processes; the part of `TopologyServer` behind its port.

Rows are sent ahead of acknowledgements and stay in the sink's queue until these have come. So a reader that goes away,
in whatever way, loses nothing: the next one gets what the queue still keeps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from topology.checks.flight_data import metadata_data, rows_data, schema_data
from topology.entry.explained_stop import Failure
from topology.flight.client_port import Call, ClientPort
from topology.flight.operations import Path, named_parts, read_number
from topology.flight.reading import packed_number
from topology.graph.arrow_rows import embedded, has_dictionary, is_flat
from topology.graph.errors import InputError, StoppedError
from topology.graph.messages import rows_bytes
from topology.handle.results_queue import QueueReader, ResultsQueue
from topology.security.tokens import Right

LOOK_UP_SECONDS = 0.5
"""How often a handler that waits for results checks that its reader is still there."""

TOGETHER_BYTES = 128 * 1024
"""Results that wait for their reader are joined up to this size."""

START = "-1"
TAKE_OVER = "take over"


class ResultsServer:
    """Registers the operations on sinks at a port."""

    def __init__(
        self,
        topology: str,
        results: Mapping[str, ResultsQueue],
        port: ClientPort,
        failure: Failure,
        settled: Callable[[], None],
    ) -> None:
        self._topology = topology
        self._results = results
        self._port = port
        self._failure = failure
        self._settled = settled
        port.actions.update(
            acknowledge=self._acknowledge, extent=self._extent, columns=self._columns, retain=self._retain
        )
        port.gets.update(results=self._read, rows=self._look)

    def _acknowledge(self, call: Call, path: Path, body: bytes) -> bytes:
        sink, number = named_parts(path, "sink", "number")
        self._queue(call, sink).acknowledge(read_number(f"sink '{sink}'", number))
        self._settled()
        return b""

    def _extent(self, call: Call, path: Path, body: bytes) -> bytes:
        (sink,) = named_parts(path, "sink")
        return " ".join(str(int(part)) for part in self._queue(call, sink).extent()).encode()

    def _columns(self, call: Call, path: Path, body: bytes) -> bytes:
        (sink,) = named_parts(path, "sink")
        schema = self._queue(call, sink).schema
        return b"" if schema is None else bytes(schema.serialize())

    def _retain(self, call: Call, path: Path, body: bytes) -> bytes:
        (sink,) = named_parts(path, "sink")
        self._queue(call, sink).retain()
        return b""

    def _look(
        self, call: Call, path: Path, is_gone: Callable[[], bool], said: Iterator[bytes] | None
    ) -> Iterator[bytes]:
        sink, first, end = (*path, "")[:3] if len(path) == 2 else named_parts(path, "sink", "first", "end")
        queue = self._queue(call, sink)
        begin, limit = (read_number(f"sink '{sink}'", text) if text else None for text in (first, end))
        reader = queue.look(begin or 0)
        try:
            yield from _one_stream(_until(limit, self._given(queue, reader, is_gone)))
        finally:
            reader.close()

    def _read(
        self, call: Call, path: Path, is_gone: Callable[[], bool], said: Iterator[bytes] | None
    ) -> Iterator[bytes]:
        sink, after, take_over = _asked(path)
        queue = self._queue(call, sink)
        # A reader that has gone is noticed a moment later; the next one need not fail because of that.
        reader = queue.read(after, take_over, patience=4 * LOOK_UP_SECONDS)
        try:
            if said is not None:
                yield metadata_data(f"{reader.first} {reader.known}".encode())
                threading.Thread(target=_listen, args=(reader, said), name=f"reader of {sink}", daemon=True).start()
            yield from _one_stream(self._given(queue, reader, is_gone))
            if said is not None and reader.finished:
                yield metadata_data(b"end")
                while not reader.wait_until_closed(LOOK_UP_SECONDS) and not is_gone() and not self._port.closed:
                    pass  # it has yet to acknowledge the last rows
        finally:
            reader.close()

    def _given(
        self, queue: ResultsQueue, reader: QueueReader, is_gone: Callable[[], bool]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of a sink until its end; give up when the reader has gone."""
        while not is_gone():
            try:
                found = reader.next(LOOK_UP_SECONDS)
                together = None if found is None else _with_waiting(reader, *found)
            except StoppedError as error:
                raise self._failure() or error from None
            if together is not None:
                yield together
                self._port.require_open()
            elif reader.finished or reader.closed:
                return
            elif self._port.closed:
                raise queue.error or self._failure() or StoppedError("the topology has been stopped")

    def _queue(self, call: Call, sink: str) -> ResultsQueue:
        call.caller.require(Right.READ, sink)
        if sink not in self._results:
            raise InputError(f"topology '{self._topology}' has no sink '{sink}' here")
        return self._results[sink]


def _asked(path: Path) -> tuple[str, int | None, bool]:
    """What a reader asks for: sink, after, take over."""
    sink, after, take_over = (*path, "", "", "")[:3]
    if not sink or len(path) > 3 or take_over not in ("", TAKE_OVER):
        raise InputError(f"the call must name: sink, and may name the number to read after and '{TAKE_OVER}'")
    if after in ("", START):
        return sink, -1 if after else None, bool(take_over)
    return sink, read_number(f"sink '{sink}'", after), bool(take_over)


def _until(end: int | None, batches: Iterator[tuple[int, pa.RecordBatch]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield rows whose numbers are below `end`."""
    for number, rows in batches:
        if end is None or number + rows.num_rows < end:
            yield number, rows
            continue
        if number < end:
            yield number, rows.slice(0, end - number)
        return


def _listen(reader: QueueReader, said: Iterator[bytes]) -> None:
    """Take the acknowledgements of a reader until it leaves."""
    failure: Exception | None = None
    try:
        for number in said:
            reader.acknowledge(read_number("acknowledgement", number.decode("ascii", "replace")))
    except InputError as error:
        failure = error
    except Exception:
        pass  # the connection has gone
    finally:
        reader.fail(failure)


def _with_waiting(reader: QueueReader, first: int, rows: pa.RecordBatch) -> tuple[int, pa.RecordBatch]:
    """Return rows and those that wait behind them as one batch: a message costs more than a few rows."""
    together, size, end = [rows], rows_bytes(rows), first + rows.num_rows
    while size < TOGETHER_BYTES and is_flat(rows.schema):
        found = reader.next(0)
        if found is None:
            break
        number, more = found
        size += rows_bytes(more)
        if size > TOGETHER_BYTES or number != end or not more.schema.equals(rows.schema, check_metadata=True):
            reader.step_back()
            break
        together.append(more)
        end += more.num_rows
    return first, rows if len(together) == 1 else pa.concat_batches(together)


def _one_stream(batches: Iterator[tuple[int, pa.RecordBatch]]) -> Iterator[bytes]:
    """Fit batches into a Flight stream, which has one schema: others travel in the metadata of an empty batch."""
    opened: pa.RecordBatch | None = None
    for number, rows in batches:
        if opened is None:
            opened = rows.slice(0, 0)
            has_dictionaries = any(has_dictionary(kind) for kind in rows.schema.types)
            yield schema_data(rows.schema)
        if rows.schema.equals(opened.schema, check_metadata=True):
            yield from rows_data(rows, has_dictionaries, packed_number(number))
        else:
            embedding = packed_number(number) + embedded(rows).to_pybytes()
            yield from rows_data(opened, has_dictionaries, embedding)
    if opened is None:
        yield schema_data(pa.schema([]))
