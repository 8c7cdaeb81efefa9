"""The queue of a sink that is optional to read: it never blocks the topology, and spills to disk beyond a bound."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pyarrow as pa

from topology.graph.components import Component, Emit, Sink
from topology.graph.errors import StoppedError
from topology.graph.messages import Batch, End, Resume, rows_bytes
from topology.handle.results_queue import ResultsQueue, log
from topology.tasks.metrics import TaskCounters
from topology.tasks.spill import SpillQueue

MEMORY = 4 * 1024 * 1024
"""Bytes of unread rows that stay in memory."""

MOST_BYTES = 1024 * 1024 * 1024
"""Bytes of unread rows that are kept, in memory and on disk; rows beyond that are dropped, and counted."""

PIECE_BYTES = 256 * 1024
"""Small batches are gathered into pieces of this size, so that bookkeeping per piece costs little."""


class SpillingResults(ResultsQueue):
    """A results queue that always has room. Rows come out in order, in batches that may be larger than those put in.

    Rows wait in `_backlog`, on disk beyond a bound. As many as fit into memory move to the kept results, where they
    have numbers and stay until they are acknowledged; a reader that acknowledges nothing waits for itself.

    Beyond `most` bytes, rows that come are dropped until somebody reads. Their numbers are not given to others.

    dropped: how many rows have been.
    """

    def __init__(
        self, memory: int = MEMORY, directory: str | None = None, sink: str = "late", most: int = MOST_BYTES
    ) -> None:
        super().__init__(memory, sink, directory)
        self._most = most
        self.dropped = 0
        self._pieces = [0, 0]  # that have entered the backlog, and have left it
        self._gaps: deque[list[int]] = deque()  # before which piece, how many rows
        self._backlog = SpillQueue(memory, directory)
        self._newest: deque[pa.RecordBatch] = deque()
        self._newest_bytes = 0
        self._numbered = False
        self._end = 0  # the number behind the last row that has come
        self._lost = False  # rows were dropped before they had numbers

    @property
    def has_room(self) -> bool:
        return True

    def call_when_room(self, action: Callable[[], None]) -> None:
        """Do nothing: there is always room."""

    def push(self, counters: TaskCounters, emit: Emit) -> None:
        message = emit.message
        if isinstance(message, Batch):
            self._number_from(message.first)
            here = max(0, self._end - message.first) if self._rejoined else 0
            if here < message.num_rows:
                self.put(message.rows.slice(here))
                self._end = message.end
        elif isinstance(message, Resume):
            self.resume(message)
        elif message == End():
            self.end()

    def _number_from(self, first: int) -> None:
        """Number the first rows as they are numbered where they come from: after a restart those before are gone."""
        with self._lock:
            if not self._numbered:
                self._numbered = True
                self._kept.resume(first, max(first - 1, self._kept.acknowledged))

    def put(self, rows: pa.RecordBatch) -> None:
        with self._lock:
            self._keep(rows)

    def close(self, error: Exception | None = None) -> None:
        with self._lock:
            self._lost = self._more_to_come()
            self._newest.clear()
            self._newest_bytes = 0
            self._backlog.close()
            super().close(error)

    @property
    def nbytes(self) -> int:
        return 0  # unread rows here make nobody wait

    def _keep(self, rows: pa.RecordBatch) -> None:
        if self._closed:
            raise StoppedError("the topology has been stopped")
        if self._backlog.memory_bytes + self._backlog.disk_bytes >= self._most:
            self._drop(rows.num_rows)
            return
        if self._newest and not rows.schema.equals(self._newest[0].schema):
            self._gather()
        self._newest.append(rows)
        self._newest_bytes += rows_bytes(rows)
        if self._newest_bytes >= PIECE_BYTES:
            self._gather()
        self._note_change()

    def _fill(self) -> None:
        if not self._backlog and self._newest:
            self._gather()
        while self._backlog and (self._shelf is not None or self._held < self._capacity):
            self._skip_dropped()
            self._pieces[1] += 1
            super()._keep(self._backlog.popleft())
        if not self._backlog:
            self._skip_dropped()

    def _more_to_come(self) -> bool:
        return not self._ended or self._lost or bool(self._backlog) or bool(self._newest)

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), "dropped_rows": float(self.dropped)}

    def _drop(self, rows: int) -> None:
        if self._newest:
            self._gather()
        if not self._gaps or self._gaps[-1][0] != self._pieces[0]:
            self._gaps.append([self._pieces[0], 0])
            log.warning(
                "sink '%s' keeps %d bytes that nobody has read; rows that come now are dropped (%d so far), until "
                "somebody reads", self.sink, self._most, self.dropped + rows,
            )  # fmt: skip
        self._gaps[-1][1] += rows
        self.dropped += rows

    def _skip_dropped(self) -> None:
        """Leave out the numbers of rows that were dropped before the next piece."""
        while self._gaps and self._gaps[0][0] <= self._pieces[1]:
            self._kept.end += self._gaps.popleft()[1]

    def _gather(self) -> None:
        """Append the newest batches to the backlog as one."""
        self._pieces[0] += 1
        self._backlog.append(self._newest[0] if len(self._newest) == 1 else pa.concat_batches(self._newest))
        self._newest.clear()
        self._newest_bytes = 0


def results_queue(name: str, sink: Component, capacity: int, directory: str | None) -> ResultsQueue:
    """Make the queue of a sink: one that blocks when it is full, or one that spills if reading is optional."""
    aside = isinstance(sink, Sink) and sink.aside
    return SpillingResults(directory=directory, sink=name) if aside else ResultsQueue(capacity, name, directory)
