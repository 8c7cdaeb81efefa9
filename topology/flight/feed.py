"""Rows on their way from a client to one stream: pipelined, bounded, and acknowledged.

`write` returns as soon as the rows are queued within the bound: it waits for room, not for an answer to each batch. A
small batch is written at once, others by a thread of the feed. A second thread reads acknowledgements: the server sends
one now and then without being asked, and one whenever it is asked, with the rows and the batches that it has taken.

Flight gives each stream one schema, so a feed opens another stream when the schema of the rows changes, once the rows
before have been taken. The first batch of each stream is waited for: most mistakes show there.

The server ends the stream with the first batch that it refuses, after it has acknowledged those before it. So nothing
behind a refused batch enters. The next call raises the refusal.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.errors import raised_by
from topology.flight.operations import descriptor
from topology.graph.errors import ConnectionLostError, InputError, InterlaceError, StoppedError
from topology.graph.messages import rows_bytes

PIPELINE_BYTES = 8 * 1024 * 1024
PIPELINE_BATCHES = 64
"""Bytes and batches that a feed may hold before the server has taken them; one batch may exceed the first."""

SMALL_BATCH_BYTES = 32 * 1024
"""Up to this size batches under way are written by the caller: they fit into the connection's window at any time."""

LOOK_UP_SECONDS = 0.2
"""How often a call that waits asks whether it should go on waiting."""

REASON_SECONDS = 5.0
"""How long a failed write waits for the reason, which comes on the reading side of the stream."""

ASK = b"ack"

Waiting = Callable[[], None]
"""Called now and then while a call waits; it may raise, which ends the wait."""


class Feed:
    """One client's rows for one operation of a server (`send` or `stage`) and its subject.

    Calls of `write`, `flush` and `close` come from one thread at a time. `abandon` comes from any.
    """

    def __init__(self, client: flight.FlightClient, options: Any, peer: str, *path: str, taken: int = 0) -> None:
        self.rows_taken = taken
        self._client = client
        self._options = options
        self._peer = peer
        self._path = path
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[tuple[pa.RecordBatch, bytes]] = deque()
        self._under_way: deque[int] = deque()  # the bytes of each batch that is queued or written, but not taken
        self._bytes = 0
        self._asked = False  # the server is to be asked as soon as the queue is empty
        self._writing = False
        self._error: Exception | None = None
        self._schema: pa.Schema | None = None
        self._stream: _Stream | None = None
        self._thread: threading.Thread | None = None

    def write(self, rows: pa.RecordBatch, source: str, waiting: Waiting) -> None:
        """Send a batch; wait for room. If the server refuses it, a later call raises that, unless the schema is new."""
        size = rows_bytes(rows)
        with self._lock:
            self._wait_until(self._has_room, waiting)
            self._queue.append((rows, source.encode()))
            self._under_way.append(size)
            self._bytes += size
            small = self._bytes <= SMALL_BATCH_BYTES
            new = self._schema is None or not rows.schema.equals(self._schema, check_metadata=True)
            self._schema = rows.schema
        self._go_on(at_once=small)
        if new:
            self.flush(waiting)

    def flush(self, waiting: Waiting, timeout: float | None = None) -> None:
        """Wait until the server has taken everything; raises its refusal, or `TimeoutError`."""
        limit = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            self._wait_until(lambda: not self._under_way, waiting, limit)

    def close(self, waiting: Waiting) -> None:
        """Flush and end the stream."""
        self.flush(waiting)
        with self._lock:
            stream, self._stream = self._stream, None
        try:
            if stream is not None:
                with raised_by(self._peer):
                    stream.end()
        finally:
            self._fail(StoppedError("the connection is closed"))

    def abandon(self, error: Exception) -> None:
        """Give up at once, whatever its state; calls that wait raise `error`."""
        self._fail(error)
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.abandon()

    def _has_room(self) -> bool:
        return self._bytes < PIPELINE_BYTES and len(self._under_way) < PIPELINE_BATCHES

    def _wait_until(self, condition: Callable[[], bool], waiting: Waiting, limit: float | None = None) -> None:
        """Wait with the lock held. The server is asked for an answer, again and again if it gives none."""
        asking = True
        while True:
            if self._error is not None:
                raise self._error
            if condition():
                return
            left = LOOK_UP_SECONDS if limit is None else min(LOOK_UP_SECONDS, limit - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"{self._peer} has not taken all rows yet: {len(self._under_way)} batches wait")
            if asking:
                self._asked = True
                self._start_thread()
                self._changed.notify_all()
            asking = not self._changed.wait(left)
            if asking:
                self._lock.release()
                try:
                    waiting()
                finally:
                    self._lock.acquire()

    def _go_on(self, at_once: bool) -> None:
        """Write what is queued, in this thread if it takes no time."""
        with self._lock:
            if self._writing:
                return  # whoever writes looks again
            if not at_once or self._stream is None:
                self._start_thread()
                self._changed.notify_all()
                return
            self._writing = True
        self._write_queued()

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"sending {' '.join(self._path)}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._changed.wait_for(
                    lambda: self._error is not None or (not self._writing and bool(self._queue or self._asked))
                )
                if self._error is not None:
                    return
                self._writing = True
            self._write_queued()

    def _write_queued(self) -> None:
        """Write until nothing is queued; nobody else writes meanwhile."""
        try:
            while True:
                with self._lock:
                    item = self._queue.popleft() if self._queue else None
                    if self._error is not None or (item is None and not self._asked):
                        return
                    if item is None:
                        self._asked = False
                with raised_by(self._peer):
                    if item is not None:
                        self._stream_of(item[0].schema).write(*item)
                    elif self._stream is not None:
                        self._stream.ask()
        except InterlaceError as error:
            stream = self._stream
            self._fail(error if stream is None else stream.reason(error))
        finally:
            with self._lock:
                self._writing = False
                if self._queue or self._asked:
                    self._changed.notify_all()

    def _stream_of(self, schema: pa.Schema) -> _Stream:
        stream = self._stream
        if stream is not None and not stream.schema.equals(schema, check_metadata=True):
            stream.end()
            stream = None
        if stream is None:
            stream = _Stream(self._client, self._options, self._peer, self._path, schema, self._taken, self._fail)
            with self._lock:
                self._stream = stream
        return stream

    def _taken(self, rows: int, batches: int) -> None:
        with self._lock:
            self.rows_taken += rows
            for _ in range(min(batches, len(self._under_way))):
                self._bytes -= self._under_way.popleft()
            self._changed.notify_all()

    def _fail(self, error: Exception) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
                if isinstance(error, InputError):
                    error.rows_taken = self.rows_taken
                    error.add_note(f"{self.rows_taken} rows that were sent before have been taken; none after them.")
                self._queue.clear()
                self._changed.notify_all()


class _Stream:
    """One Flight stream of a feed: all its rows have one schema.

    taken: called with the rows and batches of each acknowledgement.
    fail:  called when the server refuses rows, or the connection breaks.
    """

    def __init__(
        self,
        client: flight.FlightClient,
        options: Any,
        peer: str,
        path: tuple[str, ...],
        schema: pa.Schema,
        taken: Callable[[int, int], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self.schema = schema
        self._peer = peer
        self._on_taken = taken
        self._on_failure = fail
        self._rows = 0
        self._batches = 0
        self._ending = False
        self._failure: Exception | None = None
        self._writer, self._answers = client.do_exchange(descriptor(*path), options)
        self._writer.begin(schema)
        self._reading = threading.Thread(target=self._read, name=f"answers to {' '.join(path)}", daemon=True)
        self._reading.start()

    def write(self, rows: pa.RecordBatch, metadata: bytes) -> None:
        self._writer.write_with_metadata(rows, metadata)

    def ask(self) -> None:
        """Ask the server for an acknowledgement."""
        self._writer.write_metadata(ASK)

    def end(self) -> None:
        """Say that nothing follows, and wait until the server has taken everything or refused it."""
        self._ending = True
        self._writer.done_writing()
        self._reading.join()
        if self._failure is not None:
            raise self._failure
        _close(self._writer)

    def reason(self, error: Exception) -> Exception:
        """Return why the stream broke: the server's reason, which comes on the reading side, or else `error`."""
        self._reading.join(REASON_SECONDS)
        return self._failure or error

    def abandon(self) -> None:
        """Leave the stream whatever its state."""
        self._ending = True
        self._answers.cancel()
        self._reading.join(REASON_SECONDS)
        _close(self._writer)

    def _read(self) -> None:
        try:
            with raised_by(self._peer):
                while True:
                    try:
                        answer = self._answers.read_chunk().app_metadata
                    except StopIteration:
                        break
                    rows, batches = map(int, answer.to_pybytes().split())
                    self._on_taken(rows - self._rows, batches - self._batches)
                    self._rows, self._batches = rows, batches
            if not self._ending:
                raise ConnectionLostError(f"{self._peer} ended the stream before all rows had been sent")
        except Exception as error:
            self._failure = error
            self._on_failure(error)


def _close(part: Any) -> None:
    try:
        part.close()
    except (flight.FlightError, pa.ArrowException, OSError):
        pass  # the reason has been reported, or does not matter any more
