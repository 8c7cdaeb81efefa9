"""The client of a topology's server, for other processes: Spark executors, loaders, readers of results.

Imports only pyarrow, the standard library and the light modules of this package.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, overload
from weakref import WeakSet

import pyarrow as pa

from topology.flight.call_options import action_options, call_options
from topology.flight.calls_under_way import calls_under_way
from topology.flight.connection import connect
from topology.flight.exchanges import Exchanges
from topology.flight.feed import Feed, Untaken
from topology.flight.numbered_rows import numbered_rows
from topology.flight.operations import TAKE_OVER
from topology.flight.reading import FlightReading
from topology.graph.errors import InputError, OffsetGapError, StoppedError
from topology.graph.graph import TaskName
from topology.graph.messages import Barrier, rows_bytes
from topology.handle.endpoint import Endpoint
from topology.handle.results import Results, numbered_results, plain_results
from topology.handle.results_queue import Extent, Progress

SEND_BYTES = 4 * 1024 * 1024
"""Larger batches are split before they are sent."""

Batches: TypeAlias = "pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]"


class FlightClient:
    """Calls one endpoint. Raises the errors of the topology.

    waiting: called now and then while a call waits for room or for an answer; it may raise, which ends the wait.
    untaken: after a failure, the batches that were sent and not taken, in their order.
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
        self.untaken: list[Untaken] = []  # what broken feeds have not delivered
        self._feeds: dict[str, Feed] = {}
        self._readings: WeakSet[FlightReading] = WeakSet()
        self._taken: dict[str, int] = {}
        self._offsets: dict[tuple[str, str], int] = {}  # of each stream and source, behind what was sent
        self._turns: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        calls_under_way.add(self)

    def send(self, stream: str, source: str, batches: Batches, offset: int | None = None) -> int:
        """Send the next rows of a source; return their number. Waits for room, not until the topology has taken them.

        offset: that of the first row; as for `Handle.send`.

        Raises an `InputError` if the topology has refused rows of an earlier call: its `rows_taken` is the number of
        rows of this client that have been taken from the stream; nothing behind them has. The rows of this call have
        not been sent then. `flush` finds out whether they were taken.
        """
        if offset is not None and offset > self.sent_offset(stream, source):
            self._require_no_gap(stream, source, offset)
        rows = 0
        with self._used(stream, source) as feed:
            for piece in _pieces(stream, batches):
                feed.write(piece, source, self.waiting, None if offset is None else offset + rows)
                rows += piece.num_rows
                self._note_sent(stream, source, piece.num_rows, None if offset is None else offset + rows)
        return rows

    def next_offset(self, stream: str, source: str) -> int:
        """Return how many rows of a source the topology has taken, behind all that this client has sent."""
        self.flush()
        offset = int(self._act("offset", stream, source, deadline=False))
        with self._lock:
            self._offsets[stream, source] = offset
        return offset

    def sent_offset(self, stream: str, source: str) -> int:
        """Return the offset behind the last row that was sent, if all are taken; asks only for a source that is new."""
        with self._lock:
            known = self._offsets.get((stream, source))
        return self.next_offset(stream, source) if known is None else known

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
        return self._stage(stream, batches, "stage", stream, source, attempt)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """Make the rows of an attempt visible and end the source; needs a token with the right to control."""
        self.flush()
        self._act("commit", stream, source, attempt, str(rows))

    def discard(self, stream: str, attempts: str) -> None:
        """Drop what attempts stage whose names begin with `attempts`; needs a token with the right to control."""
        self._act("discard", stream, attempts)

    def open_feed(
        self, stream: str, feed: str, query: str, take_over: bool = False, delays: Mapping[str, int] | None = None
    ) -> int:
        """Give a feed to a query; return the number of its last committed micro-batch, -1 if there is none.

        A feed that belongs to another query is refused, unless this one takes over.

        delays: columns, and how far each may go backwards, in its unit; that of the event time counts.
        """
        told = {TAKE_OVER: int(take_over), **(delays or {})}
        return int(self._act("open-feed", stream, feed, query, body=json.dumps(told).encode()))

    def stage_micro_batch(self, stream: str, feed: str, query: str, number: int, attempt: str, batches: Batches) -> int:
        """Send rows of one attempt at a part of a micro-batch, invisible until it is committed; return their number."""
        return self._stage(stream, batches, "stage-micro-batch", stream, feed, query, str(number), attempt)

    def commit_micro_batch(self, stream: str, feed: str, query: str, number: int, attempts: Mapping[str, int]) -> None:
        """Let the rows of these attempts enter: so many of each. Once, however often it is called.

        Waits until they have entered, however long they wait for room.
        """
        body = json.dumps(dict(attempts)).encode()
        self._act("commit-micro-batch", stream, feed, query, str(number), body=body, deadline=False)

    def open(self, stream: str, *sources: str, behind: str | None = None) -> None:
        """Announce sources before they send, behind all rows that were sent before. `behind`: see `Handle.open`."""
        self.flush()
        for source in sources:
            self._act("open", stream, source, *([] if behind is None else [behind]))

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
        return _read_schema(self._act("schema", stream))

    @overload
    def results(
        self,
        sink: str,
        timeout: float | None = None,
        *,
        after: int | None = None,
        numbered: Literal[False] = False,
        take_over: bool = False,
    ) -> Results[pa.RecordBatch]: ...

    @overload
    def results(
        self,
        sink: str,
        timeout: float | None = None,
        *,
        after: int | None = None,
        numbered: Literal[True],
        take_over: bool = False,
    ) -> Results[tuple[int, pa.RecordBatch]]: ...

    def results(
        self,
        sink: str,
        timeout: float | None = None,
        *,
        after: int | None = None,
        numbered: bool = False,
        take_over: bool = False,
    ) -> Results[Any]:
        """Iterate over the rows of a sink until its end; as `Handle.results`, whose arguments these are.

        A reader that leaves, or whose process is killed, loses nothing: what it has not acknowledged is given to the
        next one.
        """
        reading = self.open_reader(sink, after, take_over)
        if numbered:
            return numbered_results(reading, timeout)
        return plain_results(reading, timeout, acknowledges=after is None)

    def open_reader(self, sink: str, after: int | None = None, take_over: bool = False) -> FlightReading:
        """Begin to read a sink; raises an error if it has a reader, unless this one takes over."""
        reading = FlightReading(self._exchanges, self._aligned, sink, after, take_over)
        self._readings.add(reading)
        return reading

    def acknowledge(self, number: int, sink: str) -> None:
        """Say that all rows of a sink up to and including `number` have been dealt with; see `Handle.acknowledge`."""
        if number >= 0:
            self._act("acknowledge", sink, str(number), deadline=False)

    def extent(self, sink: str) -> Extent:
        """Return which results a sink has."""
        first, end, complete = map(int, self._act("extent", sink, deadline=False).split())
        return Extent(first, end, bool(complete))

    def columns(self, sink: str) -> pa.Schema | None:
        """Return the schema of the results that have come; None while none has."""
        return _read_schema(self._act("columns", sink))

    def retain(self, sink: str) -> None:
        """Make a sink keep its results on disk until they are acknowledged; a full sink then makes nobody wait."""
        self._act("retain", sink)

    def rows(self, sink: str, first: int, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over results by number, up to and without `end` (None: all), beside other readers.

        Acknowledges nothing. Waits for rows that have not come; raises an `AcknowledgedError` if some are gone.
        """
        yield from numbered_rows(self._exchanges, self._aligned, sink, first, end)

    def report_progress(self, sink: str, incarnation: int, progress: Progress) -> None:
        """Tell the worker with the journal how far a sink is; returns when that is durable. Among workers only."""
        self._act("progress", sink, str(incarnation), *map(str, progress), deadline=False)

    def report_snapshot(self, task: TaskName, incarnation: int, barrier: Barrier, nbytes: int) -> None:
        """Report that a task's snapshot is in the store to the worker that keeps the journal."""
        parts = (task[0], barrier.life, *map(str, (incarnation, task[1], barrier.checkpoint, nbytes)))
        self._act("snapshot", *parts, deadline=False)

    def close(self) -> None:
        """Wait until all rows that were sent have been taken, and close the connection; harmless when repeated.

        Readers leave: what they have acknowledged counts, and one that goes on raises a `StoppedError`.
        """
        try:
            for reading in list(self._readings):
                reading.leave(StoppedError("the connection is closed"))
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
            self.untaken += feed.untaken
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
                if self._feeds.pop(stream, None) is not None:
                    self.untaken += feed.untaken
                self._taken[stream] = feed.rows_taken
                with self._lock:  # rows may not have been taken: ask again
                    self._offsets = {key: offset for key, offset in self._offsets.items() if key[0] != stream}
                raise

    def _stage(self, stream: str, batches: Batches, *path: str) -> int:
        feed = Feed(self._exchanges, self._options, *path)
        try:
            for piece in _pieces(stream, batches):
                feed.write(piece, "", self.waiting)
            feed.close(self.waiting)
            return feed.rows_taken
        except BaseException:
            feed.abandon(StoppedError("the attempt was given up"))
            raise

    def _note_sent(self, stream: str, source: str, rows: int, end: int | None) -> None:
        with self._lock:
            known = self._offsets.get((stream, source))
            if known is not None:
                self._offsets[stream, source] = known + rows if end is None else max(known, end)

    def _require_no_gap(self, stream: str, source: str, offset: int) -> None:
        known = self.next_offset(stream, source)  # another client may have sent rows meanwhile
        if offset > known:
            raise OffsetGapError.between(stream, source, known, offset)

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


def _read_schema(answer: bytes) -> pa.Schema | None:
    return pa.ipc.read_schema(pa.py_buffer(answer)) if answer else None


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
