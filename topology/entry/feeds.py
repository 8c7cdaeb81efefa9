"""The feeds of one stream: what streaming queries write enters once, whatever is tried again.

Attempts stage the rows of a micro-batch, and one commit lets them enter, put in order: partitions and attempts do not
reach the total order. `FeedLedger` decides what counts. With a journal the commit is one record, so a micro-batch
enters whole or not at all, also across the death of the topology.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

import pyarrow as pa

from topology.checks.quotas import Quotas
from topology.entry.feed_ledger import FeedLedger, later
from topology.entry.idle_watch import IdleWatch
from topology.entry.recorder import Recorder
from topology.entry.source_ledger import SourceLedger
from topology.entry.staging import Staging
from topology.graph.components import DEFAULT_STREAM, Input
from topology.graph.errors import InputError, SchemaError, StoppedError
from topology.graph.messages import Message, Watermark
from topology.journal.events import FeedBound, MicroBatchCommitted, MicroBatchStaged
from topology.journal.micro_batch import in_order, unordered_column


@dataclass(frozen=True)
class Delay:
    """How far a query declares its rows to be out of order: a bound on a column, in the unit of that column."""

    column: str
    bound: int


@dataclass(frozen=True)
class MicroBatchPart:
    """One attempt at a part of a micro-batch of a feed, by the query that the feed belongs to."""

    feed: str
    query: str
    number: int
    attempt: str


class StreamFeeds:
    """Lets micro-batches enter one stream; any thread may call it.

    The arguments belong to the entry of the stream. `order` and `staged` are its locks, which `Ingest` explains;
    `sending` is a context around calls that may wait for room.
    """

    def __init__(
        self,
        stream: str,
        description: Input,
        sources: SourceLedger,
        staging: Staging,
        record: Recorder,
        watch: IdleWatch,
        put: Callable[[Message], object],
        order: threading.Lock,
        staged: threading.Lock,
        sending: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._stream = stream
        self._description = description
        self._sources = sources
        self._staging = staging
        self._record = record
        self._watch = watch
        self._put = put
        self._order = order
        self._staged = staged
        self._sending = sending
        self._entering: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._ledger = FeedLedger(stream)
        self._ledger.restore(record.image(stream).feeds)

    def open(self, feed: str, query: str, take_over: bool = False, delay: Delay | None = None) -> int:
        """Give a feed to a query and announce its source; return its last committed micro-batch, -1 if there is none.

        Harmless when repeated. The source promises its greatest committed time less the delay that the query or the
        stream declares, whichever is greater. If neither does, it is refused, unless rows have no event time.

        take_over: take the feed from another query, which is refused from now on.
        """
        own = self._own_delay(feed, delay)
        with self._staged, self._sources.lock:
            if not self._ledger.is_known(feed) and self._sources.next_offset(feed):
                raise self._refusal(feed, "a source of that name has sent rows itself: choose another name")
            self._sources.require_unended(feed)
            before = self._ledger.staged(feed)
            if self._ledger.bind(feed, query, take_over, own):
                self._drop(feed, before)
                self._record.bound(FeedBound(self._stream, feed, query, own))
                if self._sources.open(feed) or own is not None:
                    self._watch.heard_of(self._stream, feed)
                    self._put(Watermark(None, DEFAULT_STREAM, feed, own))
            else:
                self._record.repeated()
            committed = self._ledger.committed(feed, query)
        self._record.wait()
        return committed

    def stage(self, part: MicroBatchPart, rows: pa.RecordBatch, quotas: Quotas | None = None) -> None:
        """Keep rows of an attempt, in any order; invisible until the micro-batch is committed.

        If it is committed already, they come from a straggler, or from a query that does it again, and are dropped.
        """
        with self._staged:
            if part.number <= self._ledger.committed(part.feed, part.query):
                return
            if quotas is not None:
                self._staging.require_room(self._stream, part.feed, _key(part.number, part.attempt), rows, quotas)
            first = self._ledger.staged_rows(part.feed, part.query, part.number, part.attempt)
            self.keep(part, rows)
            self._record.staged_for_feed(
                MicroBatchStaged(self._stream, part.feed, part.number, part.attempt, first, rows)
            )
        self._record.wait()
        self._watch.heard_of(self._stream, part.feed)

    def commit(self, feed: str, query: str, number: int, attempts: Mapping[str, int]) -> None:
        """Let the rows of these attempts enter, put in order; once, however often it is called.

        Waits until those of the commit before have entered: the query feels back-pressure, and stages its next
        micro-batch while this one enters. `attempts`: how many rows each has staged.
        """
        with self._sending():
            self._order.acquire()  # whatever is sent, ended or committed next waits for it
        try:
            if self._failure is not None:
                raise self._failure
            ordered = list(in_order(self._taken(feed, query, number, attempts), self._description.event_time))
            entering = threading.Thread(target=self._enter, args=(feed, ordered), name=f"feed {feed}", daemon=True)
            self._entering = entering
            entering.start()
        except BaseException:
            self._order.release()
            raise
        self._record.wait()

    def close(self, timeout: float) -> None:
        """Wait for the thread whose rows find the topology closed."""
        if self._entering is not None:
            self._entering.join(timeout)

    def _enter(self, feed: str, ordered: list[pa.RecordBatch]) -> None:
        """Let rows in, and those that wait for it go on."""
        try:
            with self._sending(), suppress(StoppedError):
                for rows in ordered:
                    batch = self._sources.number(feed, rows)
                    self._put(batch)
                    self._sources.record(batch)
        except BaseException as failure:
            self._failure = failure  # rows are missing: the next commit says why
        finally:
            self._order.release()

    def keep(self, part: MicroBatchPart, rows: pa.RecordBatch) -> None:
        """Check, count and keep staged rows; after a failure also those that were recorded before."""
        times = self._sources.check(part.feed, rows)
        stuck = unordered_column(rows.schema)
        if stuck is not None:
            kind = rows.schema.field(stuck).type
            raise SchemaError(
                f"stream '{self._stream}', feed '{part.feed}': column '{stuck}' is {kind}, which cannot be put in "
                f"order: cast it"
            )
        latest = None if times is None else times[1]
        self._ledger.stage(part.feed, part.query, part.number, part.attempt, rows.num_rows, latest)
        self._staging.keep(part.feed, _key(part.number, part.attempt), rows, times)

    def _taken(self, feed: str, query: str, number: int, attempts: Mapping[str, int]) -> list[pa.RecordBatch]:
        """Record a commit, and return its rows; none if it has been recorded before."""
        with self._staged:
            if number <= self._ledger.committed(feed, query):
                self._record.repeated()
                return []
            self._sources.require_unended(feed)
            before = self._ledger.staged(feed)
            latest = later(self._ledger.commit(feed, query, number, attempts), self._sources.latest(feed))
            taken = [rows for attempt in attempts for rows in self._staging.take(feed, _key(number, attempt))]
            self._drop(feed, [key for key in before if key[0] <= number])
            self._watch.heard_of(self._stream, feed)
            self._record.committed_to_feed(
                MicroBatchCommitted(
                    self._stream,
                    feed,
                    number,
                    tuple(attempts),
                    self._sources.next_offset(feed),
                    sum(attempts.values()),
                    latest,
                    self._description.event_time,
                )
            )
            return taken

    def _drop(self, feed: str, staged: list[tuple[int, str]]) -> None:
        for number, attempt in staged:
            self._staging.drop(feed, _key(number, attempt))

    def delay(self, feed: str) -> int | None:
        """How far event time may go backwards in a feed, if its query has declared that."""
        with self._staged:
            return self._ledger.delay(feed)

    def _own_delay(self, feed: str, delay: Delay | None) -> int | None:
        """The delay of the query, if it is about the stream's event time and the stream takes it."""
        described = self._description
        if delay is not None and delay.column == described.event_time and described.takes_bounds:
            return delay.bound
        if described.event_time is not None and not described.disordered:
            raise self._refusal(
                feed,
                "it declares no delay, so rows that are earlier than those of the micro-batch before would be late: "
                "declare how far rows may be out of order (out_of_order= of a join, or a watermark of the query on "
                f"'{described.event_time}')",
            )
        return None

    def _refusal(self, feed: str, reason: str) -> InputError:
        return InputError(f"stream '{self._stream}', feed '{feed}': {reason}")


def _key(number: int, attempt: str) -> str:
    """The name under which an attempt at a part of a micro-batch is staged."""
    return f"{number}/{attempt}"
