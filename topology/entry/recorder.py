"""Records in a journal what happens at the entry; without one, does nothing and waits for nothing."""

from __future__ import annotations

import logging
import threading
import time

import pyarrow as pa

from topology.durable.group_commit import Ticket
from topology.graph.messages import Batch
from topology.journal.events import (
    Event,
    FeedBound,
    MicroBatchCommitted,
    MicroBatchStaged,
    RowsSent,
    SchemaPinned,
    SourceEnded,
    SourceOpened,
    StreamFinished,
)
from topology.journal.image import StreamImage
from topology.journal.journal import Journal

log = logging.getLogger("interlace")

ROOM_SECONDS = 0.1
"""How often a call that waits for room on the disk looks again."""

WARNING_SECONDS = 10.0
"""How often a call that waits for the store says so."""


class Recorder:
    """What each thread has recorded last is what it waits for: all that was recorded before is durable then, too.

    latest: what any thread has recorded last; None: nothing.
    """

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._last = threading.local()
        self.latest: Ticket | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is a journal."""
        return self._journal is not None

    def image(self, stream: str) -> StreamImage:
        """What is known of a stream; empty without a journal."""
        return StreamImage() if self._journal is None else self._journal.image.stream(stream)

    def wait_for_room(self, closed: threading.Event) -> None:
        """Wait while the disk is nearly full; what is left of it is for acknowledgements, which make room again."""
        warn_at = time.monotonic()
        while self._journal is not None and not self._journal.has_room and not closed.wait(ROOM_SECONDS):
            if time.monotonic() >= warn_at:
                warn_at += WARNING_SECONDS
                log.warning("send() waits: the disk of the state is nearly full; make room, or read and acknowledge")

    def sent(self, stream: str, batch: Batch) -> None:
        """A source has sent rows."""
        if self._journal is not None:
            latest = self._journal.image.source(stream, batch.source).latest if batch.times is None else batch.times[1]
            self._record(RowsSent(stream, batch.source, batch.first, batch.rows, latest))

    def staged(self, stream: str, source: str, attempt: str, first: int, rows: pa.RecordBatch) -> None:
        """Rows of an attempt have been staged."""
        self._record(RowsSent(stream, source, first, rows, attempt=attempt))

    def opened(self, stream: str, source: str) -> None:
        """A source has been announced."""
        self._record(SourceOpened(stream, source))

    def ended(self, stream: str, source: str, attempt: str | None = None) -> None:
        """A source has ended, or an attempt at it has been committed."""
        self._record(SourceEnded(stream, source, attempt))

    def finished(self, stream: str) -> None:
        """A stream has been finished."""
        self._record(StreamFinished(stream))

    def pinned(self, stream: str, schema: pa.Schema) -> None:
        """The schema of a stream is known."""
        self._record(SchemaPinned(stream, schema))

    def bound(self, event: FeedBound) -> None:
        """A feed belongs to a query."""
        self._record(event)

    def staged_for_feed(self, event: MicroBatchStaged) -> None:
        """Rows of a micro-batch have been staged."""
        self._record(event)

    def committed_to_feed(self, event: MicroBatchCommitted) -> None:
        """A micro-batch has been committed."""
        self._record(event)

    def repeated(self) -> None:
        """Let this thread wait for what others have recorded: it was told the same again."""
        self._last.ticket = self.latest

    def wait(self, timeout: float | None = None) -> None:
        """Wait until what this thread has recorded is durable; says so in the log while a full disk holds it up."""
        ticket: Ticket | None = getattr(self._last, "ticket", None)
        if ticket is None or self._journal is None:
            return
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"not durable after {timeout} s: {self._journal.trouble or 'the store is slow'}")
            if ticket.wait(WARNING_SECONDS if left is None else min(left, WARNING_SECONDS)):
                self._last.ticket = None
                return
            log.warning("send() waits until rows are durable: %s", self._journal.trouble or "the store is slow")

    def _record(self, event: Event) -> None:
        if self._journal is not None:
            self._last.ticket = self.latest = self._journal.record(event)
