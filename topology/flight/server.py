"""Serves a topology to other processes: Arrow Flight in front of an `Ingest` and of the sinks' queues.

A call is checked in full before it reaches the ingest: token, operation, stream, size, buffers, schema. While the
ingest waits for room the handler stops reading, and Flight's flow control makes the client wait.

Operations (see `FlightPort` for how they are named):
  put    send, stream, source        live rows; a batch's metadata may name another source, no batch asks for an ack
  put    stage, stream, source, attempt
  action open, stream, source | pin, stream (body: schema) | commit, stream, source, attempt, rows
  action schema, stream              answers with the schema, or with nothing while it is not known
  action finish, stream [, source]
  get    results, sink               rows are given out once, to one reader at a time
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.entry.ingest import Ingest
from topology.flight.auth import Authority, Caller, Grant, Right
from topology.flight.port import FlightPort, Path
from topology.flight.wire import aligned, embedded
from topology.graph.errors import ConnectionLostError, InputError, StoppedError, TopologyError
from topology.graph.graph import Topology
from topology.handle.endpoint import Endpoint
from topology.handle.results_queue import ResultsQueue

MAX_BATCH_BYTES = 64 * 1024 * 1024
"""The largest batch that a client may send."""

LOOK_UP_SECONDS = 0.5
"""How often a handler that waits for results checks that its reader is still there."""

Failure = Callable[[], Exception | None]


class TopologyServer:
    """Serves the inputs and sinks of one topology, or of one of its tasks, on a new port or on a given one."""

    def __init__(
        self,
        topology: Topology,
        ingest: Ingest,
        results: Mapping[str, ResultsQueue],
        failure: Failure = lambda: None,
        port: FlightPort | None = None,
        authority: Authority | None = None,
    ) -> None:
        self._topology = topology
        self._ingest = ingest
        self._results = results
        self._failure = failure
        self._authority = authority or Authority()
        self._port = port or FlightPort(self._authority)
        self._tokens: dict[tuple[str, bool], str] = {}
        self._readers: set[str] = set()
        self._lock = threading.Lock()
        self._reader_left = threading.Condition(self._lock)
        self._port.puts.update(send=self._send, stage=self._stage)
        self._port.actions.update(
            open=self._open, pin=self._pin, schema=self._schema, commit=self._commit, finish=self._finish
        )
        self._port.gets.update(results=self._read)

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        """Return where to write an input or read a sink; with `control`, also to commit and finish the input."""
        with self._lock:
            key = (stream, control)
            if key not in self._tokens:
                self._tokens[key] = self._authority.issue(*grants(self._topology, stream, control))
            return self._port.endpoint(self._tokens[key])

    def close(self) -> None:
        """Stop listening."""
        self._port.close()

    def _send(self, caller: Caller, path: Path, reader: Any, writer: Any) -> None:
        stream, default_source = _parts(path, "stream", "source")
        self._require(caller, Right.WRITE, stream)
        rows = 0
        for batch, metadata in self._batches(stream, reader):
            if batch is None:
                writer.write(str(rows).encode())
                continue
            source = metadata.decode() if metadata else default_source
            with self._explaining_stop():
                self._ingest.send(stream, source, batch)
            rows += batch.num_rows
        writer.write(str(rows).encode())

    def _stage(self, caller: Caller, path: Path, reader: Any, writer: Any) -> None:
        stream, source, attempt = _parts(path, "stream", "source", "attempt")
        self._require(caller, Right.WRITE, stream)
        rows = 0
        for batch, _ in self._batches(stream, reader):
            if batch is not None:
                self._ingest.stage(stream, source, attempt, batch)
                rows += batch.num_rows
        writer.write(str(rows).encode())

    def _open(self, caller: Caller, path: Path, body: bytes) -> bytes:
        stream, source = _parts(path, "stream", "source")
        self._require(caller, Right.WRITE, stream)
        with self._explaining_stop():
            self._ingest.open(stream, source)
        return b""

    def _pin(self, caller: Caller, path: Path, body: bytes) -> bytes:
        (stream,) = _parts(path, "stream")
        self._require(caller, Right.WRITE, stream)
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(body))
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"stream '{stream}': the schema cannot be read ({error})") from None
        self._ingest.pin(stream, schema)
        return b""

    def _schema(self, caller: Caller, path: Path, body: bytes) -> bytes:
        (stream,) = _parts(path, "stream")
        self._require(caller, Right.WRITE, stream)
        schema = self._ingest.schema(stream)
        return b"" if schema is None else bytes(schema.serialize())

    def _commit(self, caller: Caller, path: Path, body: bytes) -> bytes:
        stream, source, attempt, rows = _parts(path, "stream", "source", "attempt", "rows")
        self._require(caller, Right.CONTROL, stream)
        if not rows.isdecimal():
            raise InputError(f"stream '{stream}', source '{source}': '{rows[:20]}' is not a number of rows")
        with self._explaining_stop():
            self._ingest.commit(stream, source, attempt, int(rows))
        return b""

    def _finish(self, caller: Caller, path: Path, body: bytes) -> bytes:
        stream, *rest = path or ("",)
        self._require(caller, Right.CONTROL, stream)
        with self._explaining_stop():
            self._ingest.finish(stream, rest[0] if rest else None)
        return b""

    def _read(self, caller: Caller, path: Path, context: flight.ServerCallContext) -> tuple[pa.Schema, Iterator[Any]]:
        (sink,) = _parts(path, "sink")
        caller.require(Right.READ, sink)
        if sink not in self._results:
            raise InputError(f"topology '{self._topology.name}' has no sink '{sink}' here")
        with self._reader_left:
            # A reader that has gone is noticed a moment later; the next one need not fail because of that.
            if not self._reader_left.wait_for(lambda: sink not in self._readers, 4 * LOOK_UP_SECONDS):
                raise InputError(f"sink '{sink}' has a reader already; its results are read once, by one reader")
            self._readers.add(sink)
        batches = self._waiting(sink, context)
        first = next(batches, None)
        if first is None:
            return pa.schema([]), iter(())
        return first.schema, _in_one_schema(first, batches)

    def _waiting(self, sink: str, context: flight.ServerCallContext) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a sink until its end; give up when the reader has gone."""
        queue = self._results[sink]
        try:
            while not queue.finished:
                rows = queue.next(LOOK_UP_SECONDS)
                lost = self._port.has_lost(context)
                if lost or context.is_cancelled():
                    if rows is not None:
                        queue.give_back(rows)
                    if lost:
                        raise ConnectionLostError(f"the reader of sink '{sink}' has fallen silent")
                    return
                if rows is not None:
                    yield rows
                    self._port.require_open()
                elif queue.closed or self._port.closed:
                    raise queue.error or self._failure() or StoppedError("the topology has been stopped")
        finally:
            with self._reader_left:
                self._readers.discard(sink)
                self._reader_left.notify_all()

    def _batches(self, stream: str, reader: Any) -> Iterator[tuple[pa.RecordBatch | None, bytes]]:
        """Yield the batches that a client sends, validated and within bounds, with their metadata."""
        while True:
            try:
                chunk = reader.read_chunk()
            except StopIteration:
                return
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"stream '{stream}': the rows cannot be read ({error})") from None
            self._port.require_open()
            metadata = chunk.app_metadata.to_pybytes() if chunk.app_metadata is not None else b""
            yield None if chunk.data is None else _checked(stream, chunk.data), metadata

    def _require(self, caller: Caller, right: Right, stream: str) -> None:
        self._topology.require_input(stream)
        caller.require(right, stream)

    def _explaining_stop(self) -> _ExplainingStop:
        return _ExplainingStop(self._failure)


class _ExplainingStop:
    """Replaces the error 'the queue is closed' by the error that closed it."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StoppedError):
            raise self._failure() or error


def grants(topology: Topology, stream: str, control: bool) -> tuple[Grant, ...]:
    """Return the rights of an endpoint of `stream`."""
    if stream in topology.inputs:
        write = Grant(Right.WRITE, stream)
        return (write, Grant(Right.CONTROL, stream)) if control else (write,)
    if stream in topology.sinks:
        return (Grant(Right.READ, stream),)
    known = ", ".join(f"'{name}'" for name in [*topology.inputs, *topology.sinks]) or "none"
    raise TopologyError(f"topology '{topology.name}' has no input or sink '{stream}'; its inputs and sinks: {known}")


def _checked(stream: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    # Nothing else may touch the batch before: asking a forged one for its size reads memory that is not there.
    try:
        rows.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"stream '{stream}': the batch is damaged ({error})") from None
    if rows.nbytes > MAX_BATCH_BYTES:
        raise InputError(
            f"stream '{stream}': a batch of {rows.nbytes:,} bytes is too large: "
            f"send at most {MAX_BATCH_BYTES:,} bytes at once"
        )
    return aligned(rows)


def _in_one_schema(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Fit batches into a Flight stream, which has one schema: others travel in the metadata of an empty batch."""
    nothing = first.slice(0, 0)
    yield first
    for rows in rest:
        if rows.schema.equals(first.schema, check_metadata=True):
            yield rows
        else:
            yield nothing, embedded(rows)


def _parts(path: Path, *names: str) -> Path:
    if len(path) != len(names) or not all(path):
        raise InputError(f"the call must name: {', '.join(names)}")
    return path
