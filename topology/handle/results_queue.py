"""The queue of rows that have reached a sink and wait for their reader, bounded in bytes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from topology.graph.components import Emit
from topology.graph.messages import Batch, End, Message, Punctuation
from topology.tasks.inbox import Inbox
from topology.tasks.metrics import TaskCounters


class ResultsQueue:
    """The reader's side of one sink. The sink's task waits while it is full, so a slow reader slows the topology."""

    def __init__(self, capacity: int) -> None:
        self._inbox = Inbox(1, capacity)
        self._given_back: pa.RecordBatch | None = None
        self.finished = False
        self.error: Exception | None = None

    @property
    def has_room(self) -> bool:
        """Whether the next rows need not wait."""
        return self._inbox.has_room(0)

    def call_when_room(self, action: Callable[[], None]) -> None:
        """Call `action` each time that room appears."""
        self._inbox.on_room = lambda index: action()

    def push(self, counters: TaskCounters, emit: Emit) -> None:
        """Queue what the sink's task emits, which has asked for room, and record its latency."""
        message = emit.message
        if isinstance(message, Batch) or message == End():  # readers do not need the end of a single source
            self._inbox.push(0, message)
        self._note_latency(counters, message)

    def put(self, rows: pa.RecordBatch) -> None:
        """Add rows; waits while the queue is full."""
        self._inbox.put(0, Batch("", rows))

    def end(self) -> None:
        """Queue the end."""
        self._inbox.put(0, End())

    def next(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """Return the next rows; None if `timeout` has passed, all rows were read (`finished`) or it is `closed`."""
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
        """Take back the rows that `next` returned last, because their reader has gone."""
        self._given_back = rows

    def close(self, error: Exception | None = None) -> None:
        """Drop all rows; keep `error` for readers that find the queue closed."""
        self.error = self.error or error
        self._inbox.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed before all rows were read."""
        return self._inbox.closed and not self.finished

    @staticmethod
    def _note_latency(counters: TaskCounters, message: Message) -> None:
        if isinstance(message, Batch | Punctuation) and message.born:
            counters.latencies.append(time.time() - message.born)

    @property
    def nbytes(self) -> int:
        """Bytes waiting for the reader."""
        return self._inbox.nbytes
