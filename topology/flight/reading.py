"""A reader of results at the client's end of an exchange.

The server sends rows ahead, as many as it keeps, each message with the number of its first row, and behind the last a
message without rows. A thread takes them in, because a wait inside Arrow has no timeout. The client writes
acknowledgements on the same exchange: when they are worth a message, before it waits, and before it leaves. It leaves
by ending its side. The server then ends the other, and so the client knows that its last acknowledgement has arrived
and that its place is free.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import pyarrow as pa

from topology.flight.exchanges import Exchanges
from topology.graph.arrow_rows import extracted
from topology.graph.errors import ConnectionLostError, InterlaceError
from topology.graph.messages import rows_bytes
from topology.handle.results import Reading

ACKNOWLEDGED_BYTES = 512 * 1024
"""Acknowledgements are sent at least this often, in bytes of rows."""

CATCH_UP_SECONDS = 10.0
"""How long rows that were at the sink before reading began may be on their way, whatever the timeout."""

LEAVE_SECONDS = 5.0
"""How long a reader that leaves waits for the server to say that it knows."""

NUMBER_BYTES = 8


def packed_number(number: int) -> bytes:
    """A number as it stands before everything else in the metadata of a message."""
    return number.to_bytes(NUMBER_BYTES, "little")


def numbered_chunk(chunk: Any) -> tuple[int, pa.RecordBatch]:
    """The rows of a message and the number of the first."""
    metadata = chunk.app_metadata
    number = int.from_bytes(metadata.slice(0, NUMBER_BYTES).to_pybytes(), "little")
    if metadata.size > NUMBER_BYTES:  # rows of another schema than the stream's
        return number, extracted(pa.py_buffer(metadata.slice(NUMBER_BYTES).to_pybytes()))
    return number, chunk.data


class FlightReading(Reading):
    """Reads one sink of the peer; raises what the peer refuses. One thread at a time calls `next`."""

    def __init__(self, exchanges: Exchanges, options: Any, sink: str, after: int | None, take_over: bool) -> None:
        asked = ("" if after is None else str(after), "take over" if take_over else "")
        self._exchanges = exchanges
        self._lock = threading.RLock()  # an iterator that is garbage-collected closes this, in any thread
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[tuple[int, pa.RecordBatch]] = deque()
        self._sizes: deque[tuple[int, int]] = deque()  # the last number and the size of batches that were given out
        self._unsent: int | None = None  # to be acknowledged
        self._unsent_bytes = 0
        self._complete = False  # the last row has come
        self._ended = False  # nothing more can come
        self._error: Exception | None = None
        self._closed = False
        self._broken_off: Exception | None = None
        self._exchange = exchanges.begin(options, "results", sink, *asked)
        try:
            with exchanges.calling():
                first, self._known = map(int, self._exchange.reader.read_chunk().app_metadata.to_pybytes().split())
        except BaseException:
            self._exchange.close()
            raise
        self.received = first
        self._thread = threading.Thread(target=self._fetch, name=f"reading {sink}", daemon=True)
        self._thread.start()

    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        began = time.monotonic()
        while True:
            with self._lock:
                if self._closed:
                    if self._broken_off is not None:
                        raise self._broken_off
                    return None
                if self._complete and not self._waiting:
                    self.finished = True
                    return None
                if self._error is not None:
                    raise self._error
                if self._waiting:
                    number, rows = self._waiting.popleft()
                    self._sizes.append((number + rows.num_rows - 1, rows_bytes(rows)))
                    return number, rows
                if self._unsent is None:
                    left = self._seconds_left(timeout, began)
                    if left is not None and left <= 0:
                        return None
                    self._changed.wait(left)
                    continue
            self._send_acknowledgement()

    def acknowledge(self, number: int) -> None:
        with self._lock:
            self._unsent = number
            while self._sizes and self._sizes[0][0] <= number:
                self._unsent_bytes += self._sizes.popleft()[1]
            enough = self._unsent_bytes >= ACKNOWLEDGED_BYTES
        if enough:
            self._send_acknowledgement()

    def close(self) -> None:
        self.leave(None)

    def leave(self, error: Exception | None) -> None:
        """Leave, and see that acknowledgements arrive; whoever goes on reading raises `error`, if there is one."""
        with self._lock:
            if self._closed:
                return
            self._closed, self._broken_off = True, error
            self._waiting.clear()
            self._changed.notify_all()
            over = self._ended
        if not over:
            self._send_acknowledgement()
            try:
                with self._exchanges.calling():
                    self._exchange.writer.done_writing()
            except InterlaceError:
                pass  # the connection has gone, and with it the reader
            if self._thread is not threading.current_thread():
                self._thread.join(LEAVE_SECONDS)
        self._exchange.close()

    def _seconds_left(self, timeout: float | None, began: float) -> float | None:
        if timeout is None:
            return None
        allowed = timeout if self.received >= self._known else max(timeout, CATCH_UP_SECONDS)
        return began + allowed - time.monotonic()

    def _send_acknowledgement(self) -> None:
        with self._lock:
            number, self._unsent, self._unsent_bytes = self._unsent, None, 0
            if number is None or number < 0 or self._ended:
                return
        try:
            with self._exchanges.calling():
                self._exchange.writer.write_metadata(str(number).encode())
        except InterlaceError:
            pass  # the reason comes on the reading side

    def _fetch(self) -> None:
        """Take in rows until the end, or until the peer or this reader gives up."""
        error: Exception | None = None
        try:
            with self._exchanges.calling():
                while True:
                    try:
                        chunk = self._exchange.reader.read_chunk()
                    except StopIteration:
                        break
                    self._take(chunk)
        except Exception as failure:
            error = failure
        with self._lock:
            if error is None and not self._complete and not self._closed:
                error = ConnectionLostError(f"{self._exchanges.peer} ended the results before their end")
            self._ended, self._error = True, error
            self._changed.notify_all()

    def _take(self, chunk: Any) -> None:
        if chunk.data is None:
            with self._lock:
                self._complete = True
                self._changed.notify_all()
            return
        number, rows = numbered_chunk(chunk)
        with self._lock:
            if not self._closed:
                self._waiting.append((number, rows))
            self.received = number + rows.num_rows
            self._changed.notify_all()
