"""The door of a topology: what comes from outside is checked by the stream's guard, then put on its queue.

The door also has the clock by which sources are idle: the tasks behind it have none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from topology.entry.idle_watch import EntryClock, IdleWatch
from topology.entry.input_guard import InputGuard
from topology.entry.staging import Staging
from topology.graph.components import DEFAULT_STREAM, Input
from topology.graph.errors import StoppedError
from topology.graph.messages import End, Idle, Message, Time, Watermark

JOIN_SECONDS = 10.0
LOOK_UP_SECONDS = 0.5
"""How often the door looks for idle sources, at least while there are any to watch."""


@dataclass
class _Stream:
    """`order` is held while rows wait for room, so that batches enter in the order in which they were numbered."""

    guard: InputGuard
    put: Callable[[Message], object]
    staging: Staging
    order: threading.Lock


class Ingest:
    """The inputs of one topology (or of one input task), each with its guard and the queue behind it.

    Only `send` and `finish` wait for room. The others return at once even while the topology takes nothing, so that
    writers can stage and commit everything before anyone begins to read results.
    """

    def __init__(self, spill_directory: str | None = None, clock: EntryClock | None = None) -> None:
        self._streams: dict[str, _Stream] = {}
        self._spill_directory = spill_directory
        self._clock = clock or EntryClock()
        self._watch = IdleWatch(self._clock)
        self._watcher: threading.Thread | None = None
        self._closed = threading.Event()

    def add(self, stream: str, description: Input, put: Callable[[Message], object]) -> None:
        """Open the door for a stream; `put` takes a message into the topology and waits for room, if it is a batch."""
        guard = InputGuard(stream, description)
        staging = Staging(
            stream,
            check=guard.stage,
            claim=partial(self._claim, stream),
            deliver=partial(self._deliver, stream, committed=True),
            complete=partial(self._end, stream, committed=True),
            spill_directory=self._spill_directory,
        )
        self._streams[stream] = _Stream(guard, put, staging, threading.Lock())
        if description.idle_after is not None:
            self._watch.watch(stream, description.idle_after)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._look_for_idle, name="idle sources", daemon=True)
                self._watcher.start()

    def open(self, stream: str, source: str) -> None:
        """Announce a source, so that the gate waits for it; harmless when repeated."""
        target = self._streams[stream]
        with target.guard.lock:
            if target.guard.open(source):
                self._watch.heard_of(stream, source)
                target.put(Watermark(None, DEFAULT_STREAM, source))

    def send(self, stream: str, source: str, rows: pa.RecordBatch) -> None:
        """Take the next rows of a source; returns when there is room for them."""
        self._deliver(stream, source, rows)

    def finish(self, stream: str, source: str | None = None) -> None:
        """End one source, or with None the whole stream: no rows will follow but those committed before."""
        target = self._streams[stream]
        if source is not None:
            self._end(stream, source)
        elif target.guard.finish():
            target.staging.when_drained(partial(self._end_all, stream))

    def pin(self, stream: str, schema: pa.Schema) -> None:
        """Check a schema against the stream's and keep it."""
        self._streams[stream].guard.pin(schema)

    def sources(self, stream: str) -> dict[str, int]:
        """Rows taken so far from each source of a stream."""
        return self._streams[stream].guard.sources

    def staging(self, stream: str) -> Staging:
        """The rows of a stream that wait for their commit."""
        return self._streams[stream].staging

    def stage(self, stream: str, source: str, attempt: str, rows: pa.RecordBatch) -> None:
        """Keep rows of one attempt at writing a source; invisible until `commit` names that attempt."""
        self._streams[stream].staging.stage(source, attempt, rows)
        if self._streams[stream].guard.is_open(source):
            self._watch.heard_of(stream, source)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """Make the rows of the winning attempt visible and end the source; see `Staging.commit`."""
        self._streams[stream].staging.commit(source, attempt, rows)

    def close(self) -> None:
        """Drop what is staged, and look for idle sources no more."""
        self._closed.set()
        for target in self._streams.values():
            target.staging.close()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join(JOIN_SECONDS)

    def report_idle(self) -> float | None:
        """Tell those behind the door who has been silent for too long; return in how many seconds to look again.

        Said only where nobody is sending to the stream, so that it cannot overtake rows that are on their way.
        """
        silent, seconds = self._watch.silent()
        for stream, source in silent:
            target = self._streams[stream]
            if target.order.acquire(blocking=False):
                try:
                    if self._watch.still_silent(stream, source):
                        target.put(Idle(DEFAULT_STREAM, source))
                finally:
                    target.order.release()
        return seconds

    def _look_for_idle(self) -> None:
        seconds: float | None = 0.0
        while not self._closed.wait(LOOK_UP_SECONDS if seconds is None else min(seconds, LOOK_UP_SECONDS)):
            try:
                seconds = self.report_idle()
            except StoppedError:
                return

    def _claim(self, stream: str, source: str) -> None:
        target = self._streams[stream]
        with target.guard.lock:
            fresh = target.guard.claim(source)
            # its rows are all here: that they wait for their turn is no silence
            self._watch.heard_of(stream, source)
            self._watch.forget(stream, source)
            if fresh:
                target.put(Watermark(None, DEFAULT_STREAM, source))

    def _deliver(self, stream: str, source: str, rows: pa.RecordBatch, committed: bool = False) -> Time | None:
        """Number rows and queue them. They count only once they are queued, so an interrupted wait changes nothing."""
        target = self._streams[stream]
        with self._clock.sending(), target.order:
            batch = target.guard.check(rows, source, committed)
            if not committed:
                self._watch.heard_of(stream, source)
            target.put(batch)
            target.guard.record(batch)
        return batch.times[1] if batch.times else None

    def _end(self, stream: str, source: str, committed: bool = False) -> None:
        target = self._streams[stream]
        with target.order:
            for name in target.guard.end(source, committed):
                self._watch.forget(stream, name)
                target.put(End(DEFAULT_STREAM, name))

    def _end_all(self, stream: str) -> None:
        target = self._streams[stream]
        with target.order:
            self._watch.forget(stream, "")
            for name in target.guard.end(None, committed=True):
                self._watch.forget(stream, name)
                target.put(End(DEFAULT_STREAM, name))
            target.put(End())
