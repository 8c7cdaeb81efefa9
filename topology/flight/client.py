"""The client of a topology's server, for other processes: Spark executors, loaders, readers of results.

Imports only pyarrow, the standard library and the light modules of this package.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeAlias

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.auth import action_options, call_options
from topology.flight.connection import connect
from topology.flight.errors import raised_by
from topology.flight.operations import action, descriptor, ticket
from topology.flight.wire import extracted
from topology.graph.errors import ConnectionLostError, InputError
from topology.handle.endpoint import Endpoint

SEND_BYTES = 16 * 1024 * 1024
"""Larger batches are split before they are sent."""

Batches: TypeAlias = "pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]"


class FlightClient:
    """Calls one endpoint. Raises the errors of the topology; after an `InputError` nothing has changed."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._peer = f"the topology at {endpoint.location}"
        self._options = call_options(endpoint.token)
        self._action_options = action_options(endpoint.token)
        self._aligned = call_options(
            endpoint.token, read_options=pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
        )
        self._client = connect(endpoint)
        self._feeds: dict[str, _Put] = {}
        self._readers: list[Any] = []
        self._lock = threading.Lock()

    def send(self, stream: str, source: str, batches: Batches) -> int:
        """Send the next rows of a source; return their number when the topology has taken them all."""
        with self._lock:
            feed = self._feeds.get(stream)
            if feed is None:
                feed = self._feeds[stream] = _Put(self._client, self._options, self._peer, "send", stream, source)
            try:
                feed.write(batches, source)
                return feed.flush()
            except BaseException:
                self._feeds.pop(stream).abandon()
                raise

    def stage(self, stream: str, source: str, attempt: str, batches: Batches) -> int:
        """Send rows of one attempt at a source, invisible until it is committed; return their number."""
        put = _Put(self._client, self._options, self._peer, "stage", stream, source, attempt)
        try:
            put.write(batches)
            return put.close()
        except BaseException:
            put.abandon()
            raise

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """Make the rows of an attempt visible and end the source; needs a token with the right to control."""
        self._act("commit", stream, source, attempt, str(rows))

    def open(self, stream: str, *sources: str) -> None:
        """Announce sources before they send."""
        for source in sources:
            self._act("open", stream, source)

    def finish(self, stream: str, source: str | None = None) -> None:
        """End a source, or the whole stream; needs a token with the right to control.

        Waits for its turn behind rows that are being sent, however long they wait for room.
        """
        self._act("finish", stream, *([] if source is None else [source]), deadline=False)

    def pin(self, stream: str, schema: pa.Schema) -> None:
        """Check the schema of a stream's future rows and keep it."""
        self._act("pin", stream, body=schema.serialize().to_pybytes())

    def schema(self, stream: str) -> pa.Schema | None:
        """Return the schema of a stream's rows; None while it is not known."""
        answer = self._act("schema", stream)
        return pa.ipc.read_schema(pa.py_buffer(answer)) if answer else None

    def results(self, sink: str) -> Generator[pa.RecordBatch, None, None]:
        """Iterate over the rows of a sink until its end. Rows are given out once; leaving early gives up the rest."""
        with raised_by(self._peer):
            reader = self._client.do_get(ticket("results", sink), self._aligned)
        self._readers.append(reader)
        try:
            while True:
                with raised_by(self._peer):
                    try:
                        chunk = reader.read_chunk()
                    except StopIteration:
                        return
                if chunk.app_metadata is not None:
                    yield extracted(pa.py_buffer(chunk.app_metadata.to_pybytes()))
                else:
                    yield chunk.data
        finally:
            self._readers.remove(reader)
            reader.cancel()

    def close(self) -> None:
        """Close the connection, and end the wait of a thread that reads results; harmless when repeated."""
        for reader in list(self._readers):
            reader.cancel()
        with self._lock:
            for feed in self._feeds.values():
                feed.abandon()
            self._feeds.clear()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _act(self, *parts: str, body: bytes = b"", deadline: bool = True) -> bytes:
        options = self._action_options if deadline else self._options
        answer = b""
        with raised_by(self._peer):
            for result in self._client.do_action(action(*parts, body=body), options):
                answer = result.body.to_pybytes()
        return answer


class _Put:
    """Rows on their way to the server: one Flight stream, and a new one each time that the schema changes."""

    def __init__(self, client: flight.FlightClient, options: Any, peer: str, *path: str) -> None:
        self._client = client
        self._options = options
        self._peer = peer
        self._path = path
        self._schema: pa.Schema | None = None
        self._writer: Any = None
        self._acks: Any = None
        self._taken_before = 0
        self._taken = 0

    @property
    def taken(self) -> int:
        """The rows that the server is known to have taken."""
        return self._taken_before + self._taken

    def write(self, batches: Batches, source: str = "") -> None:
        """Send rows; the server may refuse them only during a later call, at the latest in the next `flush`."""
        metadata = source.encode()
        for rows in _pieces(self._path[1], batches):
            with raised_by(self._peer):
                if self._schema is None or not rows.schema.equals(self._schema, check_metadata=True):
                    self.close()
                    self._writer, self._acks = self._client.do_put(descriptor(*self._path), rows.schema, self._options)
                    self._schema = rows.schema
                self._writer.write_with_metadata(rows, metadata)

    def flush(self) -> int:
        """Wait until all written rows have been taken; return how many since the last call."""
        before = self.taken
        if self._writer is not None:
            with raised_by(self._peer):
                self._writer.write_metadata(b"ack")
                self._taken = self._answer()
        return self.taken - before

    def close(self) -> int:
        """End the stream; return how many rows the server has taken in all."""
        if self._writer is not None:
            with raised_by(self._peer):
                self._writer.done_writing()
                self._taken_before += self._answer()
                self._taken = 0
                self._writer.close()
            self._writer = self._schema = None
        return self.taken

    def _answer(self) -> int:
        answer = self._acks.read()
        if answer is None:  # the server has left the stream; closing the stream raises the reason
            writer, self._writer = self._writer, None
            writer.close()
            raise ConnectionLostError(f"{self._peer} did not answer")
        return int(answer.to_pybytes())

    def abandon(self) -> None:
        """End the stream whatever its state; its errors have been reported already or do not matter."""
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()
            except (flight.FlightError, pa.ArrowException, OSError):
                pass


def _pieces(stream: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield single batches of a size that Flight carries well."""
    if isinstance(batches, pa.RecordBatch):
        batches = [batches]
    elif isinstance(batches, pa.Table):
        batches = batches.to_batches()
    for rows in batches:
        if not isinstance(rows, pa.RecordBatch):
            raise InputError(f"stream '{stream}' takes pyarrow record batches, not {type(rows).__name__}")
        parts = max(1, min(rows.num_rows, -(-rows.nbytes // SEND_BYTES)))
        length = -(-rows.num_rows // parts) if rows.num_rows else 1
        for start in range(0, max(1, rows.num_rows), length):
            yield rows if parts == 1 else rows.slice(start, length)
