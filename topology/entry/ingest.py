"""Where rows from outside enter a topology: checked and counted by the stream's ledger, then put on its queue.

Calls go one way: `Ingest` calls the ledger, the staging area, the idle watch and the queue; none of them calls back.
The clock that decides which sources are idle is here too, because tasks have no clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress

import pyarrow as pa

from topology.checks.quotas import Quotas
from topology.durable.group_commit import Ticket
from topology.entry.feeds import Delay, MicroBatchPart, StreamFeeds
from topology.entry.idle_watch import EntryClock, IdleWatch
from topology.entry.input_stream import InputStream
from topology.entry.recorder import ROOM_SECONDS, WARNING_SECONDS, Recorder, log
from topology.entry.source_ledger import SourceLedger
from topology.entry.staging import Staging
from topology.graph.components import DEFAULT_STREAM, Input
from topology.graph.errors import InputError, StoppedError
from topology.graph.messages import Batch, End, Idle, Message, Watermark
from topology.journal.opening import Opened
from topology.journal.replay import Replay
from topology.tasks.activity import Activity
from topology.tasks.spill_room import spill_room

_UNTIMED = nullcontext()
JOIN_SECONDS = 10.0
LOOK_UP_SECONDS = 0.5  # the longest pause between two looks for idle sources


class Ingest:
    """The inputs of one topology (or of one input task), each with its ledger, its staging area and its queue.

    clock:  decides which sources are idle; None: that of the machine, with a thread that looks at it. Whoever gives
            another one calls `report_idle`.
    opened: a journal that everything is recorded in before it is acknowledged; None: nothing survives this process.
    activity: whether rows are taken just now.

    Only `send` and `finish` wait for room. The other methods return at once even while the topology takes nothing, so
    that writers can stage and commit everything before anyone begins to read results.
    """

    def __init__(
        self,
        spill_directory: str | None = None,
        clock: EntryClock | None = None,
        opened: Opened | None = None,
        activity: Activity | None = None,
    ) -> None:
        self._activity = activity or Activity()
        self._deactivated = ExitStack()
        self._changing = threading.Lock()
        self._record = Recorder(None if opened is None else opened.journal)
        self._replay = None if opened is None else opened.replay
        self._resumed = threading.Event()
        if self._replay is None:
            self._resumed.set()
        self._resuming: threading.Thread | None = None
        self._streams: dict[str, InputStream] = {}
        self._spill_directory = spill_directory
        self._clock = clock or EntryClock()
        self._looks = clock is None
        self._is_watched = False
        self._watch = IdleWatch(self._clock)
        self._watcher: threading.Thread | None = None
        self._closed = threading.Event()
        self._room = spill_room(spill_directory)

    def add(
        self,
        stream: str,
        description: Input,
        put: Callable[[Message], object],
        wait: Callable[[Batch], object] = lambda batch: None,
    ) -> None:
        """Open the entry of a stream.

        put:  queues a message for the topology, and waits for room if it is a batch.
        wait: waits for room for a batch, so that `put` need not.
        """
        if not self._streams:
            self._room.add_entry()
        ledger = SourceLedger(stream, description)
        ledger.restore(self._record.image(stream))
        staging = Staging(self._spill_directory)
        order, staged = threading.Lock(), threading.Lock()
        feeds = StreamFeeds(
            stream, description, ledger, staging, self._record, self._watch, put, order, staged, self._sending
        )
        self._streams[stream] = InputStream(stream, ledger, put, wait, staging, feeds, order, staged)
        if description.idle_after is not None:
            self._watch.watch(stream, description.idle_after)
            self._is_watched = True
            if self._watcher is None and self._looks:
                self._watcher = threading.Thread(target=self._look_for_idle, name="idle sources", daemon=True)
                self._watcher.start()

    def resume(self) -> None:
        """Bring in again what was sent before a failure and never taken; calls that send wait for it meanwhile."""
        if self._replay is not None:
            self._resuming = threading.Thread(target=self._resume, args=(self._replay,), name="resume", daemon=True)
            self._resuming.start()

    def resume_steps(self, replay: Replay) -> Iterator[tuple[str, Batch]]:
        """What `resume` does, in steps: it pauses before each batch that may have to wait for room.

        Sources are announced before any rows, because rows of a source that is not known yet may be late.
        """
        for stream, target in self._streams.items():
            for source in target.ledger.sources:
                self._watch.heard_of(stream, source)
                target.put(Watermark(None, DEFAULT_STREAM, source, target.feeds.delay(source)))
        for stream, target in self._streams.items():
            image = self._record.image(stream)
            for source, known in list(image.sources.items()):
                if target.ledger.is_known(source):
                    for batch in replay.rest(stream, source):
                        yield stream, batch
                        target.put(batch)
                    if known.ended:
                        self._announce_end(stream, source)
                for attempt in known.staged:
                    for batch in replay.staged(stream, source, attempt):
                        times = target.ledger.stage(source, attempt, batch.rows)
                        target.staging.keep(source, attempt, batch.rows, times)
            for feed, bound in image.feeds.items():
                for number, attempt in bound.staged:
                    for batch in replay.micro_batch(stream, feed, number, attempt):
                        target.feeds.keep(MicroBatchPart(feed, bound.query, number, attempt), batch.rows)
            if image.finished:
                self._watch.forget(stream, "")
                target.put(End())
        self._resumed.set()

    def set_active(self, active: bool) -> None:
        """Take rows from now on, or none: calls that bring some wait. What has been taken goes on.

        The clock stands while none are taken, because nobody can help being silent then.
        """
        with self._changing:
            if active is self._activity.is_active:
                return
            self._activity.change(active)
            self._deactivated.close()
            if not active:
                self._deactivated.enter_context(self._clock.sending())

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that enter here."""
        return tuple(self._streams)

    def open(self, stream: str, source: str, behind: str | None = None) -> None:
        """Announce a source, so that the gate waits for it; repeated, it says that the source is not idle.

        behind: a source whose attempts are staged: this one has no earlier row, and so does not hold that one back.
        """
        target = self._ready(stream)
        with target.ledger.lock:
            new = target.ledger.open(source)
            if target.ledger.is_open(source):
                self._watch.heard_of(stream, source)
            if new:
                self._record.opened(stream, source)
                promise = None if behind is None else target.followers.add(source, behind)
                target.put(Watermark(promise, DEFAULT_STREAM, source))

    def send(self, stream: str, source: str, rows: pa.RecordBatch, offset: int | None = None) -> int:
        """Take the next rows of a source, those from `offset` on; returns when there is room for them.

        Return the offset of the row that comes next. With a journal, all rows before it are durable then.
        """
        self._record.wait_for_room(self._closed)
        self._wait_for_spill(stream, source)
        following = self.take(stream, source, rows, offset)
        self._record.wait()
        return following

    def take(self, stream: str, source: str, rows: pa.RecordBatch, offset: int | None = None) -> int:
        """As `send`, but do not wait until the rows are durable: `flush` does."""
        target = self._ready(stream)
        self._wait_until_active(target)
        with self._sending(), target.order:
            new = rows if offset is None else target.ledger.new_rows(source, rows, offset)
            if new is not None:
                batch = target.ledger.accept(source, new)
                self._watch.heard_of(stream, source)
                self._enqueue(target, batch)
            else:
                self._record.repeated()
            return target.ledger.next_offset(source)

    def wait_for_room(self, stream: str, source: str) -> None:
        """Before `take`: wait while a disk is full that the rows need."""
        self._record.wait_for_room(self._closed)
        self._wait_for_spill(stream, source)

    def _wait_for_spill(self, stream: str, source: str) -> None:
        """Wait while waiting rows cannot be spilled, unless others wait for this source."""
        warn_at = time.monotonic()
        while not self._room.has_room and self._is_ahead(stream, source) and not self._closed.wait(ROOM_SECONDS):
            if time.monotonic() >= warn_at:
                warn_at += WARNING_SECONDS
                log.warning("%s", self._room.trouble)

    def _is_ahead(self, stream: str, source: str) -> bool:
        """Whether another source, or a stream without one, has got less far: rows of this one may wait for it."""
        reached = {name: target.ledger.reached() for name, target in self._streams.items()}
        own = reached[stream].get(source)
        places = [place for sources in reached.values() for place in sources.values()]
        return own is not None and any(place is None or place < own for place in places)

    @property
    def recorded(self) -> Ticket | None:
        """The promise of what was recorded last; everything before it is durable when it is."""
        return self._record.latest

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything that has been taken is durable; `TimeoutError` after a timeout."""
        self._record.wait(timeout)

    def next_offset(self, stream: str, source: str) -> int:
        """The offset of the next row of a source; behind rows that wait for room."""
        target = self._streams[stream]
        with target.order:
            return target.ledger.next_offset(source)

    def durable_offset(self, stream: str, source: str) -> int:
        """As `next_offset`; with a journal, all rows before it are durable."""
        offset = self.next_offset(stream, source)
        self._record.repeated()
        self._record.wait()
        return offset

    def finish(self, stream: str, source: str | None = None) -> None:
        """End one source, or with None the whole stream: only rows committed before will still enter."""
        self.end(stream, source)
        self._record.wait()

    def end(self, stream: str, source: str | None = None) -> None:
        """As `finish`, but do not wait until that is durable."""
        target = self._ready(stream)
        if source is not None:
            with target.order:
                if target.ledger.end(source):
                    self._record.ended(stream, source)
                    self._announce_end(stream, source)
                else:
                    self._record.repeated()
        elif target.ledger.finish():
            with target.staged:
                target.ends_when_drained = target.pump is not None
            if not target.ends_when_drained:
                self._end_all(stream)
        else:
            self._record.repeated()

    def pin(self, stream: str, schema: pa.Schema) -> None:
        """Check a schema against the stream's and keep it."""
        ledger = self._streams[stream].ledger
        with ledger.lock:
            was_known = ledger.schema is not None
            ledger.pin(schema)
            if not was_known:
                self._record.pinned(stream, schema)

    def schema(self, stream: str) -> pa.Schema | None:
        """The schema of a stream's rows; None while it is not known."""
        return self._streams[stream].ledger.schema

    def is_open(self, stream: str, source: str) -> bool:
        """Whether a source is known, and neither committed nor ended."""
        return self._streams[stream].ledger.is_open(source)

    def is_finished(self, stream: str) -> bool:
        """Whether a stream takes no more rows, from any source."""
        return self._streams[stream].ledger.is_finished

    def sources(self, stream: str) -> dict[str, int]:
        """Rows taken so far from each source of a stream."""
        return self._streams[stream].ledger.sources

    def stage(self, stream: str, source: str, attempt: str, rows: pa.RecordBatch, quotas: Quotas | None = None) -> None:
        """Keep rows of one attempt at writing a source; invisible until `commit` names that attempt.

        Rows for a source that is committed already come from a straggler; they are dropped.
        """
        target = self._ready(stream)
        with target.staged:
            if target.ledger.is_committed(source) or target.ledger.is_discarded(attempt):
                return
            self._require_open()
            if quotas is not None:
                target.staging.require_room(stream, source, attempt, rows, quotas)
            first = target.ledger.attempt_rows(source, attempt)
            times = target.ledger.stage(source, attempt, rows)
            self._record.staged(stream, source, attempt, first, rows)
            target.staging.keep(source, attempt, rows, times)
        self._record.wait()
        if target.ledger.is_open(source):
            self._watch.heard_of(stream, source)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """Make the rows of the winning attempt visible and end the source; see `SourceLedger.commit`.

        A thread feeds committed rows to the topology as fast as it takes them, so this returns at once.
        """
        self._commit(self._ready(stream), stream, source, attempt, rows)
        self._record.wait()

    def _commit(self, target: InputStream, stream: str, source: str, attempt: str, rows: int) -> None:
        with target.staged:
            with target.ledger.lock:
                announced = target.ledger.is_known(source)
                if not target.ledger.commit(source, attempt, rows):
                    self._record.repeated()
                    return
                # All rows of the source are here: it is not silent while they wait for their turn.
                self._watch.heard_of(stream, source)
                self._watch.forget(stream, source)
                self._record.ended(stream, source, attempt)
                if not announced:
                    target.put(Watermark(None, DEFAULT_STREAM, source))
            target.staging.commit(source, attempt)
            if target.pump is None:
                target.pump = threading.Thread(target=self._pump, args=(stream,), name=f"staged {stream}", daemon=True)
                target.pump.start()

    def discard(self, stream: str, attempts: str) -> None:
        """Drop what attempts have staged whose names begin with `attempts`, and what they still send.

        Sources at which one of them is committed stay as they are; the others end without rows.
        """
        target = self._ready(stream)
        with target.staged:
            sources = target.ledger.discard(attempts)
        for source in sources:
            with suppress(InputError):  # the stream has been finished
                self.commit(stream, source, f"{attempts}nobody", 0)

    def open_feed(self, stream: str, feed: str, query: str, take_over: bool = False, delay: Delay | None = None) -> int:
        """See `StreamFeeds.open`."""
        return self._ready(stream).feeds.open(feed, query, take_over, delay)

    def stage_micro_batch(
        self, stream: str, part: MicroBatchPart, rows: pa.RecordBatch, quotas: Quotas | None = None
    ) -> None:
        """See `StreamFeeds.stage`."""
        target = self._ready(stream)
        self._record.wait_for_room(self._closed)
        target.feeds.stage(part, rows, quotas)

    def commit_micro_batch(self, stream: str, feed: str, query: str, number: int, attempts: Mapping[str, int]) -> None:
        """See `StreamFeeds.commit`."""
        target = self._ready(stream)
        self._wait_until_active(target)
        self._require_open()
        target.feeds.commit(feed, query, number, attempts)

    def close(self) -> None:
        """Drop staged rows and stop the threads."""
        if self._streams and not self._closed.is_set():
            self._room.add_entry(-1)
        self._closed.set()
        self._resumed.set()
        self._activity.close()
        if self._resuming is not None:
            self._resuming.join(JOIN_SECONDS)
        for target in self._streams.values():
            target.feeds.close(JOIN_SECONDS)
            with target.staged:
                target.staging.close()
                pump = target.pump
            if pump is not None:
                pump.join(JOIN_SECONDS)
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join(JOIN_SECONDS)

    def report_idle(self) -> float | None:
        """Emit `Idle` for silent sources; return in how many seconds to look again.

        A stream that somebody is sending to is left out, so that `Idle` cannot overtake rows on their way.
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

    def _pump(self, stream: str) -> None:
        """Deliver committed rows until none are left, then end the stream if that is due."""
        target = self._streams[stream]
        with suppress(StoppedError):
            while True:
                with target.staged:
                    if self._closed.is_set():
                        return
                    committed = target.staging.next()
                    if committed is None:
                        target.pump = None
                        ending = target.ends_when_drained
                        break
                if committed.rows is not None:
                    self._activity.wait(f"committed rows of '{stream}'")
                    with self._sending(), target.order:
                        batch = target.ledger.release(committed.source, committed.rows, committed.times)
                        target.put(batch)
                        target.ledger.record(batch)
                        self._promise(target, batch)
                else:
                    with target.order:
                        target.ledger.end_committed(committed.source)
                        with target.ledger.lock:
                            target.followers.forget(committed.source)
                        self._announce_end(stream, committed.source)
            if ending:
                self._end_all(stream)

    def _promise(self, target: InputStream, batch: Batch) -> None:
        """Sources behind the one of this batch have no earlier rows."""
        if batch.times is not None:
            with target.ledger.lock:
                for promise in target.followers.promises(batch.source, batch.times[1]):
                    target.put(promise)

    def _wait_until_active(self, target: InputStream) -> None:
        """Wait while no rows are taken, unless the stream has been finished meanwhile, so that they never will be."""
        self._activity.wait(f"a call to '{target.name}'", lambda: target.ledger.is_finished)

    def _sending(self) -> AbstractContextManager[None]:
        """Around a call that may wait for room; where no source is watched, nobody asks for the time."""
        return self._clock.sending() if self._is_watched else _UNTIMED

    def _enqueue(self, target: InputStream, batch: Batch) -> None:
        """Queue rows and count them; they count only once they are queued, so an interrupted wait changes nothing."""
        if self._record.is_on:
            target.wait(batch)
            self._record.sent(target.name, batch)
            with suppress(StoppedError):  # what is in the journal has been taken: another life goes on from there
                target.put(batch)
        else:
            target.put(batch)
        target.ledger.record(batch)

    def _announce_end(self, stream: str, source: str) -> None:
        self._watch.forget(stream, source)
        self._streams[stream].put(End(DEFAULT_STREAM, source))

    def _end_all(self, stream: str) -> None:
        target = self._streams[stream]
        with target.order:
            self._watch.forget(stream, "")
            self._record.finished(stream)
            for source in target.ledger.end_all():
                self._announce_end(stream, source)
            target.put(End())

    def _ready(self, stream: str) -> InputStream:
        """The stream, when everything that was sent to it before a failure is in."""
        if not self._resumed.is_set():
            self._resumed.wait()
            self._require_open()
        return self._streams[stream]

    def _resume(self, replay: Replay) -> None:
        try:
            while not replay.finished.wait(LOOK_UP_SECONDS):
                if self._closed.is_set() or self._activity.is_closed:
                    return
            with suppress(StoppedError):
                for _ in self.resume_steps(replay):
                    pass
        finally:  # if a task has failed meanwhile, whoever waits for the end of this must learn of it
            self._resumed.set()

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise StoppedError("the topology has been stopped")
