"""What reached a sink and waits for its reader, bounded in bytes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from topology.graph.components import Emit
from topology.graph.messages import Batch, End, Message, Punctuation
from topology.tasks.inbox import Inbox
from topology.tasks.metrics import TaskCounters


class ResultsQueue:
    """The reader's side of one sink: the sink's task waits while the queue is full, so a slow reader slows all."""

    def __init__(self, capacity: int) -> None:
        self._inbox = Inbox(1, capacity)
        self._given_back: pa.RecordBatch | None = None
        self.finished = False
        self.error: Exception | None = None

    def take_from(self, counters: TaskCounters, emit: Emit) -> None:
        """Take what the sink's task sends; rows wait for the reader, and their latency is noted."""
        message = emit.message
        if isinstance(message, Batch):
            self._inbox.put(0, message)
        self._note_latency(counters, message)

    @property
    def has_room(self) -> bool:
        """Whether the next rows would not have to wait."""
        return self._inbox.has_room(0)

    def call_when_room(self, action: Callable[[], None]) -> None:
        """Have `action` called each time that room appears."""
        self._inbox.on_room = lambda index: action()

    def push(self, counters: TaskCounters, emit: Emit) -> None:
        """As `take_from` and `end`, without waiting: the sink's task has asked for room."""
        message = emit.message
        if isinstance(message, Batch) or message == End():  # the end of a single source is of no use to a reader
            self._inbox.push(0, message)
        self._note_latency(counters, message)

    def put(self, rows: pa.RecordBatch) -> None:
        """Add rows; waits while the queue is full."""
        self._inbox.put(0, Batch("", rows))

    def end(self, message: Message | None = None) -> None:
        """Say that nothing follows; other messages, and the end of a single source, are of no use to a reader."""
        if message is None or message == End():
            self._inbox.put(0, End())

    def next(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """Return the next rows; None when `timeout` has passed, all has been read (`finished`) or it is `closed`."""
        if self._given_back is not None:
            rows, self._given_back = self._given_back, None
            return rows
        if self.finished:
            return None
        found = self._inbox.take(timeout=timeout)
        if found is None:
            return None
        message = found[1]
        if isinstance(message, Batch):
            return message.rows
        self.finished = True
        return None

    def give_back(self, rows: pa.RecordBatch) -> None:
        """Take back the rows that `next` returned last: their reader had gone before it got them."""
        self._given_back = rows

    def close(self, error: Exception | None = None) -> None:
        """Drop what waits; `error` is kept for the readers that find it closed."""
        self.error = self.error or error
        self._inbox.close()

    @property
    def closed(self) -> bool:
        """Whether it has been closed before all was read."""
        return self._inbox.closed and not self.finished

    @staticmethod
    def _note_latency(counters: TaskCounters, message: Message) -> None:
        if isinstance(message, Batch | Punctuation) and message.born:
            counters.latencies.append(time.time() - message.born)

    @property
    def nbytes(self) -> int:
        """Bytes that wait for the reader."""
        return self._inbox.nbytes
