"""The rows that have reached a sink and wait for their reader or for its acknowledgement, bounded in bytes."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from topology.graph.components import Emit
from topology.graph.errors import (
    AcknowledgedError,
    InputError,
    SinkHasReaderError,
    StoppedError,
    TakenOverError,
)
from topology.graph.messages import Batch, End, Message, Punctuation, Resume, rows_bytes
from topology.handle.kept_results import KeptResults, Place
from topology.handle.result_shelf import ResultShelf
from topology.handle.results import Reading
from topology.tasks.metrics import TaskCounters

log = logging.getLogger("interlace")

FULL_WARNING_SECONDS = 10.0
"""After how long a reader that waits although there is no room for more results is warned."""


PROGRESS_ROWS = 1 << 16
"""While there are no results to acknowledge, progress is reported each time that so many rows have passed."""


class Progress(NamedTuple):
    """How far the results of a sink are done with.

    number: the last result that was acknowledged.
    place:  the last sequence number, at the end of a step, whose results are all acknowledged.
    result: the number of the first result after that place.
    """

    number: int
    place: int
    result: int


class Extent(NamedTuple):
    """Which results a sink has: from number `first`, the first that is not acknowledged, up to and without `end`.

    complete: no more will come.
    """

    first: int
    end: int
    complete: bool


class ResultsQueue:
    """The results of one sink. It is full when it keeps `capacity` bytes; the batch in a reader's hands does not count.

    A full queue makes the sink's task wait, so a slow reader slows the topology. If the batch in hand counted, the
    topology would stand still while a large batch is being dealt with. One reader reads at a time.

    on_progress:   called when results have been acknowledged, or steps have passed without any; None: nobody asks.
    awaits_resume: it does not know yet where it was before a restart: readers and acknowledgements wait for `resume`.
    """

    def __init__(self, capacity: int, sink: str = "results", directory: str | None = None) -> None:
        self.sink = sink
        self.error: Exception | None = None
        self._capacity = capacity
        self._directory = directory
        self._shelf: ResultShelf | None = None
        self._kept = KeptResults()
        self._held = 0  # bytes that count against the capacity
        self._given = 0  # the number behind the last row that any reader has got
        self._ended = False
        self._closed = False
        self._reader: QueueReader | None = None
        self._on_room: Callable[[], None] | None = None
        self.on_progress: Callable[[Progress], None] | None = None
        self.awaits_resume = False
        self._progress = Progress(-1, -1, 0)
        self._ends: deque[tuple[int, int]] = deque()  # of steps: the number of the next result, the sequence number
        self._resumed = False
        self._rejoined = False
        self._repeated = 0  # results that are here already and come again first
        self._last_step = -1
        self._skipped_until = -1  # results of steps up to this one have been given out before a restart
        self._skipping = False
        self._lock = threading.RLock()  # a reader that is garbage-collected closes itself, in any thread
        self._changed = threading.Condition(self._lock)

    @property
    def has_room(self) -> bool:
        """Whether the next rows need not wait."""
        return self._shelf is not None or self._held < self._capacity

    def call_when_room(self, action: Callable[[], None]) -> None:
        """Call `action` each time that room appears."""
        self._on_room = action

    def push(self, counters: TaskCounters, emit: Emit) -> None:
        """Keep what the sink's task emits, which has asked for room, and record its latency."""
        message = emit.message
        if isinstance(message, Batch):
            if not self._skipping:
                with self._lock:
                    self._keep_new(message.rows)
        elif isinstance(message, Punctuation):
            self._end_step(message.seq)
        elif isinstance(message, Resume):
            self.resume(message)
        elif message == End():  # readers do not need the end of a single source
            self.end()
        _note_latency(counters, message)

    def resume(self, message: Resume) -> None:
        """Go on as another queue of this sink was, before any rows have come; harmless when repeated."""
        with self._lock:
            if message.sink != self.sink:
                return
            self.awaits_resume = False
            if message.first:
                self._changed.notify_all()
            elif not self._resumed and not self._rejoined:
                self._resumed = True
                self._skipping = message.place >= 0
                self._skipped_until = message.place
                self._progress = Progress(message.acknowledged, message.place, message.number)
                self._kept.resume(message.number, message.acknowledged)
                self._given = max(self._given, message.acknowledged + 1)
                self._note_change()

    def rejoin(self, message: Resume) -> None:
        """Take the results of other tasks, which begin where `message` says: those that are here come again first.

        The readers of this queue notice nothing. The tasks that filled it before have ended.
        """
        with self._lock:
            self._rejoined = True
            self.awaits_resume = False
            self._skipping = message.place >= 0
            self._skipped_until = message.place
            self._repeated = self._kept.end - message.number
            self._progress = Progress(message.acknowledged, message.place, message.number)
            self._report_progress()

    def put(self, rows: pa.RecordBatch) -> None:
        """Add rows; waits while the queue is full."""
        size = rows_bytes(rows)
        with self._lock:
            self._changed.wait_for(lambda: self._closed or self._fits(size))
            self._keep(rows)

    def end(self) -> None:
        """Say that no more rows will come."""
        with self._lock:
            self._ended = True
            self._changed.notify_all()

    def read(self, after: int | None = None, take_over: bool = False, patience: float = 0.0) -> QueueReader:
        """Begin to read: from the first row that is not acknowledged, or from the one after number `after`.

        take_over: end the iteration of a reader that is there, instead of refusing this one.
        patience:  seconds to wait for a reader that may just be leaving.
        """
        with self._lock:
            self._wait_for_resume()
            if after is not None:
                self._check_after(after)
            if not take_over:
                self._changed.wait_for(lambda: self._reader is None, patience)
                if self._reader is not None:
                    raise SinkHasReaderError(
                        f"sink '{self.sink}' has a reader already, and one reads at a time: leave that loop or close() "
                        f"its iterator, or read with take_over=True, which ends it"
                    )
            replaced, self._reader = self._reader, None
            if replaced is not None:
                replaced.taken_over = True
            self._fill()
            place = self._kept.start() if after is None else self._kept.place_after(after)
            self._reader = reader = QueueReader(self, self._kept, place)
            self._note_change()
            return reader

    def look(self, first: int) -> QueueReader:
        """Begin to read rows from number `first` beside the reader: any number may look, none of them acknowledges.

        Raises an `AcknowledgedError` if rows from there on are gone. Rows that have not come yet are waited for.
        """
        with self._lock:
            self._wait_for_resume()
            self._check_kept(first - 1)
            self._fill()
            return QueueReader(self, self._kept, self._kept.place_after(first - 1))

    def extent(self) -> Extent:
        """Return which results are there."""
        with self._lock:
            self._wait_for_resume()
            self._fill()
            return Extent(self._kept.acknowledged + 1, self._kept.end, not self._more_to_come())

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of the results that have come; None while none has."""
        with self._lock:
            self._fill()
            return self._kept.schema

    def retain(self) -> None:
        """From now on keep results on disk until they are acknowledged, so that a full queue makes nobody wait."""
        with self._lock:
            had_room = self.has_room
            self._shelf = self._shelf or ResultShelf(self._directory)
            self._kept.shelve(self._shelf)
            self._fill()
            self._note_change()
        self._tell_of_room(not had_room)

    def acknowledge(self, number: int) -> None:
        """Forget all rows up to and including this number; one that was acknowledged before changes nothing."""
        with self._lock:
            self._wait_for_resume()
            if number >= self._given and not self._resumed:
                given = f"the last was number {self._given - 1}" if self._given else "none has been given out"
                raise InputError(
                    f"sink '{self.sink}': result {number} cannot be acknowledged, because it has not been given to a "
                    f"reader; {given}"
                )
            had_room = self.has_room
            self._kept.acknowledge(number)
            self._fill()
            self._note_change()
            self._report_progress()
        self._tell_of_room(not had_room)

    def close(self, error: Exception | None = None) -> None:
        """Drop all rows; readers that have not reached the end raise `error`, or else `StoppedError`."""
        with self._lock:
            self.error = self.error or error
            self._closed = True
            self._kept.clear()
            self._note_change()

    @property
    def nbytes(self) -> int:
        """Bytes that are kept, for the reader or until it acknowledges them."""
        return self._kept.nbytes

    def metrics(self) -> dict[str, float]:
        """How many rows nobody has acknowledged, and whether more may come: `ended` is 1 if not."""
        return {"unread_rows": float(self._kept.end - self._kept.acknowledged - 1), "ended": float(self._ended)}

    def _wait_for_resume(self) -> None:
        if self.awaits_resume:
            self._changed.wait_for(lambda: self._closed or not self.awaits_resume)
            if self._closed:
                raise self.error or StoppedError("the topology has been stopped")

    def _keep(self, rows: pa.RecordBatch) -> None:
        if self._closed:
            raise StoppedError("the topology has been stopped")
        self._kept.append(rows)
        if self._shelf is not None:
            self._kept.shelve(self._shelf)
        self._note_change()

    def _keep_new(self, rows: pa.RecordBatch) -> None:
        """Keep rows, except those that are here already."""
        if self._repeated:
            here = min(self._repeated, rows.num_rows)
            self._repeated -= here
            if here == rows.num_rows:
                return
            rows = rows.slice(here)
        self._keep(rows)

    def _fits(self, size: int) -> bool:
        return not self._held or self._shelf is not None or self._held + size <= self._capacity

    def _note_change(self) -> None:
        """Count the bytes again and wake everyone who waits."""
        self._held = self._kept.nbytes - (0 if self._reader is None else self._reader.bytes_in_hand)
        self._changed.notify_all()

    def _fill(self) -> None:
        """Bring in rows that wait elsewhere; here there are none."""

    def _more_to_come(self) -> bool:
        """Whether rows may still come."""
        return not self._ended

    def _check_kept(self, after: int) -> None:
        first = self._kept.acknowledged + 1
        if after < first - 1:
            raise AcknowledgedError(
                f"sink '{self.sink}': results up to number {first - 1} have been acknowledged and are gone, so none "
                f"can be read after {after}; the first that is kept is {first}: read with after={first - 1} or later"
            )

    def _check_after(self, after: int) -> None:
        self._check_kept(after)
        first = self._kept.acknowledged + 1
        if after > first - 1 and after >= self._given and not self._resumed:
            raise InputError(
                f"sink '{self.sink}': nobody can have read result {after}; {self._given} have been given out, "
                f"numbered from 0"
            )

    def _end_step(self, seq: int) -> None:
        """Note that all results of the steps up to this sequence number have come."""
        if self._skipping:
            self._skipping = seq < self._skipped_until
        elif self.on_progress is not None and seq > self._last_step:
            self._last_step = seq
            with self._lock:
                end = self._kept.end
                if self._ends and self._ends[-1][0] == end:
                    self._ends.pop()
                self._ends.append((end, seq))
                if end == self._kept.acknowledged + 1 and seq - self._progress.place >= PROGRESS_ROWS:
                    self._report_progress()

    def _report_progress(self) -> None:
        """Tell how far results are acknowledged, if that has changed."""
        if self.on_progress is None:
            return
        number = self._kept.acknowledged
        result, place = self._progress.result, self._progress.place
        while self._ends and self._ends[0][0] <= number + 1:
            result, place = self._ends.popleft()
        progress = Progress(number, place, result)
        if progress != self._progress:
            self._progress = progress
            self.on_progress(progress)

    def _tell_of_room(self, changed: bool) -> None:
        if changed and self._on_room is not None and self.has_room:
            self._on_room()


class QueueReader(Reading):
    """The reader of a queue. Its methods may be called by any thread; one at a time calls `next`.

    known: the number behind the last row that was there when reading began.
    """

    def __init__(self, queue: ResultsQueue, kept: KeptResults, place: Place) -> None:
        self.taken_over = False
        self.known = kept.end
        self.first = place.number
        self._queue = queue
        self._kept = kept
        self._place = self._before = place
        self._closed = False
        self._failure: Exception | None = None

    @property
    def bytes_in_hand(self) -> int:
        """The size of the batch that `next` gave last."""
        return self._kept.bytes_before(self._place) if self._place is not self._before else 0

    @property
    def closed(self) -> bool:
        """Whether it has left."""
        return self._closed

    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        queue = self._queue
        limit = None if timeout is None else time.monotonic() + timeout
        with queue._lock:
            while True:
                if self._failure is not None:
                    raise self._failure
                if self.taken_over:
                    raise TakenOverError(f"another reader has taken over sink '{queue.sink}' (take_over=True)")
                if self._closed:
                    return None
                queue._fill()
                found = self._kept.next(self._place)
                if found is not None:
                    number, rows, after = found
                    had_room = queue.has_room
                    self._before, self._place = self._place, after
                    queue._given = max(queue._given, after.number)
                    queue._note_change()
                    break
                # What was acknowledged while it stood before it does not come any more.
                reached = max(self._place.number, self._kept.acknowledged + 1)
                if not queue._more_to_come() and reached >= self._kept.end:
                    self.finished = True
                    return None
                if queue._closed:
                    raise queue.error or StoppedError("the topology was stopped before all results had been read")
                left = None if limit is None else limit - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._wait(left)
        queue._tell_of_room(not had_room)
        return number, rows

    def wait_until_closed(self, timeout: float) -> bool:
        """Wait for `close` or another reader that takes over; return whether that has happened."""
        with self._queue._lock:
            return self._queue._changed.wait_for(lambda: self._closed or self.taken_over, timeout)

    def step_back(self) -> None:
        """Undo the last `next`: its rows come again."""
        with self._queue._lock:
            self._place = self._before
            self._queue._note_change()

    def acknowledge(self, number: int) -> None:
        with self._queue._lock:
            if self._queue._reader is not self:
                return
        self._queue.acknowledge(number)

    def close(self) -> None:
        self.fail(None)

    def fail(self, error: Exception | None) -> None:
        """Leave; whoever waits in `next` raises `error`, if there is one."""
        queue = self._queue
        with queue._lock:
            if not self._closed:
                self._closed = True
                self._failure = error
                if queue._reader is self:
                    queue._reader = None
                queue._note_change()

    def _wait(self, left: float | None) -> None:
        """Wait for a change, with the lock held; warn if none can come without an acknowledgement."""
        queue = self._queue
        if queue.has_room or (left is not None and left < FULL_WARNING_SECONDS):
            queue._changed.wait(left)
        elif not queue._changed.wait(FULL_WARNING_SECONDS):
            log.warning(
                "reading '%s' waits: %d bytes of results have been given out and fill the queue until somebody "
                "acknowledges them; call acknowledge()",
                queue.sink, queue.nbytes,
            )  # fmt: skip


def _note_latency(counters: TaskCounters, message: Message) -> None:
    if isinstance(message, Batch | Punctuation) and message.born:
        counters.latencies.append(time.time() - message.born)
