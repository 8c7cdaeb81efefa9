"""The client of a topology's server, for other processes: Spark executors, loaders, readers of results.

Imports only pyarrow, the standard library and the light modules of this package.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeAlias

import pyarrow as pa

from topology.flight.call_options import action_options, call_options
from topology.flight.calls_under_way import calls_under_way
from topology.flight.connection import connect
from topology.flight.exchanges import Exchanges
from topology.flight.feed import Feed
from topology.graph.arrow_rows import extracted
from topology.graph.errors import InputError, StoppedError
from topology.graph.messages import rows_bytes
from topology.handle.endpoint import Endpoint

SEND_BYTES = 4 * 1024 * 1024
"""Larger batches are split before they are sent."""

Batches: TypeAlias = "pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]"


class FlightClient:
    """Calls one endpoint. Raises the errors of the topology.

    waiting: called now and then while a call waits for room or for an answer; it may raise, which ends the wait.
    """

    def __init__(self, endpoint: Endpoint, waiting: Callable[[], None] = lambda: None) -> None:
        self.waiting = waiting
        self._options = call_options(endpoint.token)
        self._action_options = action_options(endpoint.token)
        self._aligned = call_options(
            endpoint.token, read_options=pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
        )
        self._client = connect(endpoint)
        self._exchanges = Exchanges(self._client, f"the topology at {endpoint.location}")
        self._feeds: dict[str, Feed] = {}
        self._taken: dict[str, int] = {}
        self._turns: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        calls_under_way.add(self)

    def send(self, stream: str, source: str, batches: Batches) -> int:
        """Send the next rows of a source; return their number. Waits for room, not until the topology has taken them.

        Raises an `InputError` if the topology has refused rows of an earlier call: its `rows_taken` is the number of
        rows of this client that have been taken from the stream; nothing behind them has. The rows of this call have
        not been sent then. `flush` finds out whether they were taken.
        """
        rows = 0
        with self._used(stream, source) as feed:
            for piece in _pieces(stream, batches):
                feed.write(piece, source, self.waiting)
                rows += piece.num_rows
        return rows

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the topology has taken all rows that were sent; raises what `send` would raise.

        timeout: seconds after which to raise `TimeoutError`; the rows are still on their way then.
        """
        limit = None if timeout is None else time.monotonic() + timeout
        for stream in list(self._feeds):
            with self._used(stream) as feed:
                feed.flush(self.waiting, None if limit is None else max(0.0, limit - time.monotonic()))

    def stage(self, stream: str, source: str, attempt: str, batches: Batches) -> int:
        """Send rows of one attempt at a source, invisible until it is committed; return their number."""
        feed = Feed(self._exchanges, self._options, "stage", stream, source, attempt)
        try:
            for piece in _pieces(stream, batches):
                feed.write(piece, "", self.waiting)
            feed.close(self.waiting)
            return feed.rows_taken
        except BaseException:
            feed.abandon(StoppedError("the attempt was given up"))
            raise

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """Make the rows of an attempt visible and end the source; needs a token with the right to control."""
        self.flush()
        self._act("commit", stream, source, attempt, str(rows))

    def open(self, stream: str, *sources: str) -> None:
        """Announce sources before they send, behind all rows that were sent before."""
        self.flush()
        for source in sources:
            self._act("open", stream, source)

    def finish(self, stream: str, source: str | None = None) -> None:
        """End a source, or the whole stream, behind all rows that were sent; needs a token with the right to control.

        Waits for its turn behind rows that are being sent, however long they wait for room.
        """
        self.flush()
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
        exchange = self._exchanges.begin(self._aligned, "results", sink)
        try:
            with self._exchanges.calling():
                exchange.writer.done_writing()
            while True:
                with self._exchanges.calling():
                    try:
                        chunk = exchange.reader.read_chunk()
                    except StopIteration:
                        return
                if chunk.app_metadata is not None:
                    yield extracted(pa.py_buffer(chunk.app_metadata.to_pybytes()))
                else:
                    yield chunk.data
        finally:
            exchange.close()

    def close(self) -> None:
        """Wait until all rows that were sent have been taken, and close the connection; harmless when repeated."""
        try:
            for stream in list(self._feeds):
                with self._used(stream) as feed:
                    feed.close(self.waiting)
        finally:
            self.abandon(StoppedError("the connection is closed"))

    def abandon(self, error: Exception) -> None:
        """Close the connection at once: rows that were not flushed may be lost, and calls that wait raise `error`.

        All threads that wait for the topology stop waiting, whatever they wait for.
        """
        self._exchanges.cancel(error)
        for feed in list(self._feeds.values()):
            feed.abandon(error)
        self._feeds.clear()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon(StoppedError("the connection is closed"))

    @contextmanager
    def _used(self, stream: str, source: str = "") -> Iterator[Feed]:
        """The feed of a stream, for one thread at a time; a feed that has failed is replaced by the next call."""
        with self._lock:
            turn = self._turns.setdefault(stream, threading.Lock())
        with turn:
            feed = self._feeds.get(stream)
            if feed is None:
                taken = self._taken.get(stream, 0)
                feed = Feed(self._exchanges, self._options, "send", stream, source, taken=taken)
                self._feeds[stream] = feed
            try:
                yield feed
            except TimeoutError:
                raise
            except BaseException as error:
                feed.abandon(error if isinstance(error, Exception) else StoppedError("the call was interrupted"))
                self._feeds.pop(stream, None)
                self._taken[stream] = feed.rows_taken
                raise

    def _act(self, *parts: str, body: bytes = b"", deadline: bool = True) -> bytes:
        exchange = self._exchanges.begin(self._action_options if deadline else self._options, *parts)
        try:
            with self._exchanges.calling():
                if body:
                    exchange.writer.write_metadata(body)
                exchange.writer.done_writing()
                return bytes(exchange.reader.read_chunk().app_metadata or b"")
        finally:
            exchange.close()


def _pieces(stream: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield single batches of a size that Flight carries well."""
    if isinstance(batches, pa.RecordBatch):
        batches = [batches]
    elif isinstance(batches, pa.Table):
        batches = batches.to_batches()
    for rows in batches:
        if not isinstance(rows, pa.RecordBatch):
            raise InputError(f"stream '{stream}' takes pyarrow record batches, not {type(rows).__name__}")
        parts = max(1, min(rows.num_rows, -(-rows_bytes(rows) // SEND_BYTES)))
        length = -(-rows.num_rows // parts) if rows.num_rows else 1
        for start in range(0, max(1, rows.num_rows), length):
            yield rows if parts == 1 else rows.slice(start, length)
