"""The queue of a sink that is optional to read: it never blocks the topology, and spills to disk beyond a bound."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from topology.graph.components import Component, Emit, Sink
from topology.graph.errors import StoppedError
from topology.graph.messages import Batch, End, Message, rows_bytes
from topology.handle.results_queue import ResultsQueue
from topology.tasks.metrics import TaskCounters
from topology.tasks.spill import SpillQueue

MEMORY = 4 * 1024 * 1024
"""Bytes of unread rows that stay in memory."""

PIECE_BYTES = 256 * 1024
"""Small batches are gathered into pieces of this size, so that bookkeeping per piece costs little."""


class SpillingResults(ResultsQueue):
    """A results queue that always has room. Rows come out in order, in batches that may be larger than those put in."""

    def __init__(self, memory: int = MEMORY, directory: str | None = None) -> None:
        super().__init__(memory)
        self._queue = SpillQueue(memory, directory)
        self._newest: deque[pa.RecordBatch] = deque()
        self._newest_bytes = 0
        self._ended = False
        self._closed = False
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)

    @property
    def has_room(self) -> bool:
        return True

    def call_when_room(self, action: Callable[[], None]) -> None:
        """Do nothing: there is always room."""

    def push(self, counters: TaskCounters, emit: Emit) -> None:
        self._take(emit.message)

    def put(self, rows: pa.RecordBatch) -> None:
        self._take(Batch("", rows))

    def end(self) -> None:
        self._take(End())

    def next(self, timeout: float | None = None) -> pa.RecordBatch | None:
        with self._lock:
            if self._given_back is not None:
                rows, self._given_back = self._given_back, None
                return rows
            self._arrived.wait_for(lambda: self._closed or self._ended or self._queue or self._newest, timeout)
            if self._closed:
                return None
            if not self._queue and self._newest:
                self._gather()
            if self._queue:
                return self._queue.popleft()
            self.finished = self._ended
            return None

    def close(self, error: Exception | None = None) -> None:
        with self._lock:
            self.error = self.error or error
            self._closed = True
            self._queue.close()
            self._newest.clear()
            self._newest_bytes = 0
            self._arrived.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed and not self.finished

    @property
    def nbytes(self) -> int:
        return 0  # unread rows here make nobody wait

    def _take(self, message: Message) -> None:
        """Keep rows and the end; ignore other messages, which readers do not need."""
        if not isinstance(message, Batch) and message != End():
            return
        with self._lock:
            if self._closed:
                raise StoppedError("the topology has been stopped")
            if isinstance(message, Batch):
                if self._newest and not message.rows.schema.equals(self._newest[0].schema):
                    self._gather()
                self._newest.append(message.rows)
                self._newest_bytes += rows_bytes(message.rows)
                if self._newest_bytes >= PIECE_BYTES:
                    self._gather()
            else:
                self._ended = True
            self._arrived.notify_all()

    def _gather(self) -> None:
        """Append the newest batches to the queue as one."""
        self._queue.append(self._newest[0] if len(self._newest) == 1 else pa.concat_batches(self._newest))
        self._newest.clear()
        self._newest_bytes = 0


def results_queue(sink: Component, capacity: int, directory: str | None) -> ResultsQueue:
    """Make the queue of a sink: one that blocks when it is full, or one that spills if reading is optional."""
    aside = isinstance(sink, Sink) and sink.aside
    return SpillingResults(directory=directory) if aside else ResultsQueue(capacity)
