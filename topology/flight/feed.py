"""Rows on their way from a client to one stream: pipelined, bounded, and acknowledged.

`write` returns as soon as the rows are queued within the bound: it waits for room, not for an answer to each batch. A
small batch is written at once, others by a thread of the feed. A second thread reads acknowledgements: the server sends
one now and then without being asked, and one whenever it is asked, with the rows and the batches that it has taken.

Flight gives each stream one schema, so a feed opens another stream when the schema of the rows changes, once the rows
before have been taken. The first batch of each stream is waited for: most mistakes show there.

Batches that wait while the server is behind are joined, because a message costs more than a few rows. If joined batches
are refused, they are sent again one by one: what is taken does not depend on how they were joined.

The server ends the stream with the first batch that it refuses, after it has acknowledged those before it. So nothing
behind a refused batch enters. The next call raises the refusal.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from topology.flight.exchanges import Exchanges
from topology.flight.operations import source_metadata
from topology.graph.arrow_rows import is_flat
from topology.graph.errors import ConnectionLostError, InputError, InterlaceError, StoppedError
from topology.graph.messages import rows_bytes

PIPELINE_BYTES = 8 * 1024 * 1024
PIPELINE_BATCHES = 64
"""Bytes and batches that a feed may hold before the server has taken them; one batch may exceed the first."""

MESSAGES_UNDER_WAY = 8
"""Messages that the server has not taken; it acknowledges sooner. Batches that wait meanwhile travel together."""

TOGETHER_BYTES = 128 * 1024
"""Small batches are joined up to this size."""

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

    untaken: once it has failed without a refusal, the batches that the server has not taken.
    """

    def __init__(self, exchanges: Exchanges, options: Any, *path: str, taken: int = 0) -> None:
        self.rows_taken = taken
        self.untaken: list[Untaken] = []
        self._exchanges = exchanges
        self._options = options
        self._peer = exchanges.peer
        self._path = path
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[Untaken] = deque()
        self._written: deque[list[Untaken]] = deque()  # the batches of each message that the server has not taken
        self._one_by_one = 0  # batches at the front of the queue that are not joined
        self._batches = 0  # queued or written, but not taken
        self._bytes = 0
        self._asked = False  # the server is to be asked as soon as the queue is empty
        self._writing = False
        self._error: Exception | None = None
        self._schema: pa.Schema | None = None
        self._stream: _Stream | None = None
        self._refused: _Stream | None = None  # to be closed by the next who writes
        self._thread: threading.Thread | None = None

    def write(self, rows: pa.RecordBatch, source: str, waiting: Waiting, offset: int | None = None) -> None:
        """Send a batch, which begins at `offset` if that is given; wait for room.

        If the server refuses it, a later call raises that, unless the schema is new.
        """
        size = rows_bytes(rows)
        with self._lock:
            self._wait_until(self._has_room, waiting)
            self._queue.append(Untaken(rows, source, offset, size))
            self._batches += 1
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
            self._wait_until(lambda: not self._batches, waiting, limit)

    def close(self, waiting: Waiting) -> None:
        """Flush and end the stream."""
        self.flush(waiting)
        with self._lock:
            stream, self._stream = self._stream, None
        try:
            if stream is not None:
                with self._exchanges.calling():
                    stream.end()
        finally:
            self._fail(StoppedError("the connection is closed"))

    def abandon(self, error: Exception) -> None:
        """Give up at once, whatever its state; calls that wait raise `error`."""
        self._fail(error)
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()
            with self._lock:
                self._changed.wait_for(lambda: not self._writing, REASON_SECONDS)
            stream.abandon()
        self._close_refused()

    def _has_room(self) -> bool:
        return self._bytes < PIPELINE_BYTES and self._batches < PIPELINE_BATCHES

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
                raise TimeoutError(f"{self._peer} has not taken all rows yet: {self._batches} batches wait")
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
                self._changed.wait_for(lambda: self._error is not None or (not self._writing and self._has_work()))
                if self._error is not None:
                    return
                self._writing = True
            self._write_queued()

    def _has_work(self) -> bool:
        """Whether something can be written now: a batch, if few messages are under way, or a question behind them."""
        return len(self._written) < MESSAGES_UNDER_WAY if self._queue else self._asked

    def _write_queued(self) -> None:
        """Write while there is work; nobody else writes meanwhile."""
        while True:
            with self._lock:
                if self._error is not None or not self._has_work():
                    self._stop_writing()
                    return
                stream, group = self._stream, self._next_group()
                if group:
                    self._written.append(group)
                else:
                    self._asked = False
            try:
                with self._exchanges.calling():
                    if not group:
                        stream.ask() if stream is not None else None
                    elif stream is not None and stream.schema.equals(group[0].rows.schema, check_metadata=True):
                        stream.write(group)
                    else:
                        self._open_stream(stream, group[0].rows.schema).write(group)
            except InterlaceError as error:
                failed = self._stream if stream is None else stream
                self._broken(failed, error if failed is None else failed.reason(error))
            except BaseException:
                with self._lock:
                    self._stop_writing()
                raise

    def _stop_writing(self) -> None:
        self._writing = False
        if self._error is not None:
            self._changed.notify_all()  # whoever gives the feed up waits for this

    def _next_group(self) -> list[Untaken]:
        """Take the next batches that travel as one message: small ones of one source that wait."""
        if not self._queue:
            return []
        first = self._queue.popleft()
        group, size, end = [first], first.size, first.end
        if self._one_by_one:
            self._one_by_one -= 1
            return group
        while self._queue and size + self._queue[0].size <= TOGETHER_BYTES and first.can_join(self._queue[0], end):
            size += self._queue[0].size
            end = self._queue[0].end
            group.append(self._queue.popleft())
        return group

    def _open_stream(self, last: _Stream | None, schema: pa.Schema) -> _Stream:
        self._close_refused()
        if last is not None:
            last.end()
        stream = _Stream(self._exchanges, self._options, self._path, schema, self._taken, self._broken)
        with self._lock:
            self._stream = stream
        return stream

    def _close_refused(self) -> None:
        with self._lock:
            refused, self._refused = self._refused, None
        if refused is not None:
            refused.abandon()

    def _taken(self, rows: int, batches: int) -> None:
        with self._lock:
            self.rows_taken += rows
            for _ in range(min(batches, len(self._written))):
                for item in self._written.popleft():
                    self._bytes -= item.size
                    self._batches -= 1
            self._changed.notify_all()

    def _broken(self, stream: _Stream | None, error: Exception) -> None:
        """Keep the reason why a stream ended early. If joined batches were refused, find out which by sending each."""
        with self._lock:
            if self._error is None and stream is not self._stream:
                return  # an old stream, whose batches have been queued again
            if isinstance(error, InputError) and self._written and len(self._written[0]) > 1:
                self._one_by_one = len(self._written[0])
                self._queue.extendleft(reversed([item for group in self._written for item in group]))
                self._written.clear()
                self._refused, self._stream = self._stream, None
                self._changed.notify_all()
                return
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
                if isinstance(error, InputError):
                    error.rows_taken = self.rows_taken
                    error.add_note(f"{self.rows_taken} rows that were sent before have been taken; none after them.")
                else:
                    self.untaken = [*(item for group in self._written for item in group), *self._queue]
                self._queue.clear()
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Untaken:
    """A batch on its way, with the name of its source, its offset if it has one, and its size."""

    rows: pa.RecordBatch
    source: str
    offset: int | None
    size: int

    @property
    def end(self) -> int | None:
        return None if self.offset is None else self.offset + self.rows.num_rows

    def can_join(self, other: Untaken, end: int | None) -> bool:
        """Whether the other batch can travel in one message with this one; `end` is the offset behind those between."""
        same = self.source == other.source and end == other.offset
        return same and self.rows.schema.equals(other.rows.schema, check_metadata=True) and is_flat(self.rows.schema)


class _Stream:
    """One Flight stream of a feed: all its rows have one schema.

    taken: called with the rows and batches of each acknowledgement.
    fail:  called when the server refuses rows, or the connection breaks.
    """

    def __init__(
        self,
        exchanges: Exchanges,
        options: Any,
        path: tuple[str, ...],
        schema: pa.Schema,
        taken: Callable[[int, int], None],
        fail: Callable[[_Stream, Exception], None],
    ) -> None:
        self.schema = schema
        self._exchanges = exchanges
        self._on_taken = taken
        self._on_failure = fail
        self._rows = 0
        self._batches = 0
        self._ending = False
        self._failure: Exception | None = None
        self._exchange = exchanges.begin(options, *path)
        self._writer, self._answers = self._exchange.writer, self._exchange.reader
        try:
            self._writer.begin(schema)
        except BaseException:
            self._exchange.close()
            raise
        self._reading = threading.Thread(target=self._read, name=f"answers to {' '.join(path)}", daemon=True)
        self._reading.start()

    def write(self, group: list[Untaken]) -> None:
        """Send batches as one message."""
        rows = group[0].rows if len(group) == 1 else pa.concat_batches([item.rows for item in group])
        self._writer.write_with_metadata(rows, source_metadata(group[0].source, group[0].offset))

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
        self._exchange.close()

    def reason(self, error: Exception) -> Exception:
        """Return why the stream broke: the server's reason, which comes on the reading side, or else `error`."""
        self._reading.join(REASON_SECONDS)
        return self._failure or error

    def cancel(self) -> None:
        """End the stream: whoever waits in it comes back."""
        self._ending = True
        self._exchange.cancel()

    def abandon(self) -> None:
        """Leave the stream whatever its state; nobody writes any more."""
        self.cancel()
        self._reading.join(REASON_SECONDS)
        self._exchange.close()

    def _read(self) -> None:
        try:
            with self._exchanges.calling():
                while True:
                    try:
                        answer = self._answers.read_chunk().app_metadata
                    except StopIteration:
                        break
                    rows, batches = map(int, answer.to_pybytes().split())
                    self._on_taken(rows - self._rows, batches - self._batches)
                    self._rows, self._batches = rows, batches
            if not self._ending:
                raise ConnectionLostError(f"{self._exchanges.peer} ended the stream before all rows had been sent")
        except Exception as error:
            self._failure = error
            self._on_failure(self, error)
