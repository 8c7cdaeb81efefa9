"""Repeats what a deciding task did before a failure: the rows that it took, and its decisions, in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from topology.durable.record import Position
from topology.durable.take_over import TakeOver
from topology.graph.components import DEFAULT_STREAM, Facts, TaskState
from topology.graph.messages import Barrier, Batch, Resume
from topology.journal.events import (
    Decided,
    FeedBound,
    MicroBatchCommitted,
    MicroBatchStaged,
    RowsSent,
    SourceEnded,
    Started,
    from_record,
)
from topology.journal.image import Start
from topology.journal.micro_batch import in_order
from topology.journal.row_queue import MEMORY_OF_ALL, RowQueue
from topology.tasks.spill import MemoryBudget


@dataclass(frozen=True)
class Heard:
    """The task heard of a source, or of its bound; see `Watermark`."""

    stream: str
    source: str
    bound: int | None = None


@dataclass(frozen=True)
class Took:
    """The task took rows of a stream."""

    stream: str
    batch: Batch


@dataclass(frozen=True)
class Chose:
    """The task made a choice."""

    choice: Facts


class Replay:
    """What was recorded from a start on. `steps` once; then `rest` has the rows that the task had not taken.

    Rows are held from where they were sent to where they were taken, on disk beyond a bound.

    resumes:  where each sink stood.
    snapshot: of the tasks, at the start; None: they begin new.
    finished: set when all has been repeated.
    """

    def __init__(
        self,
        taken: TakeOver,
        start: Start,
        resumes: tuple[Resume, ...],
        snapshot: Barrier | None = None,
        directory: str | None = None,
    ) -> None:
        self.resumes = resumes
        self.snapshot = snapshot
        self.finished = threading.Event()
        self._taken = taken
        self._start = start
        self._directory = directory
        self._budget = MemoryBudget(MEMORY_OF_ALL)
        self._seen: dict[tuple[str, str], int] = {}
        self._queues: dict[tuple[str, str], RowQueue] = {}
        self._staged: dict[tuple[str, str], dict[str, RowQueue]] = {}
        self._micro_batches: dict[tuple[str, str], dict[tuple[int, str], RowQueue]] = {}
        event = from_record(next(taken.records(start.segment))[1])
        assert isinstance(event, Started), "a start begins with an image"
        self.state: TaskState | None = event.state if event.state.facts else None
        self._bounds: dict[tuple[str, str], int] = {}  # that the task may not have heard of
        for stream, image in event.image["streams"].items():
            for feed, bound in image["feeds"].items():
                self._note_bound(stream, feed, bound["delay"])
            for source, known in image["sources"].items():
                if known["seen"] is not None:
                    self._seen[stream, source] = known["seen"]

    def steps(self) -> Iterator[Heard | Took | Chose]:
        """Yield what the task did, in order."""
        begin = Position(self._start.segment, 0)
        for position, record in self._taken.records(min(self._start.segment, self._start.inputs)):
            if position == begin:
                continue
            event = from_record(record)
            if isinstance(event, RowsSent):
                self._hold(event)
            elif isinstance(event, SourceEnded) and event.attempt is not None:
                self._commit(event)
            elif isinstance(event, MicroBatchStaged):
                queues = self._micro_batches.setdefault((event.stream, event.feed), {})
                queue = queues.setdefault((event.number, event.attempt), self._new_queue())
                queue.append(event.first, event.rows)
            elif isinstance(event, FeedBound):
                self._micro_batches.pop((event.stream, event.feed), None)
                self._note_bound(event.stream, event.feed, event.delay)
            elif isinstance(event, MicroBatchCommitted):
                self._commit_micro_batch(event)
            elif isinstance(event, Decided) and position > begin:
                yield from self._taken_by(event)

    def rest(self, stream: str, source: str) -> Iterator[Batch]:
        """Yield the rows of a source that the task had not taken; they are gone then."""
        queue = self._queues.get((stream, source))
        while queue:
            yield _batch(source, *queue.popleft())

    def staged(self, stream: str, source: str, attempt: str) -> Iterator[Batch]:
        """Yield the rows of an attempt that has not been committed; they are gone then."""
        queue = self._staged.get((stream, source), {}).get(attempt)
        while queue:
            yield _batch(source, *queue.popleft())

    def micro_batch(self, stream: str, feed: str, number: int, attempt: str) -> Iterator[Batch]:
        """Yield what an attempt has staged for a micro-batch that has not been committed; it is gone then."""
        queue = self._micro_batches.get((stream, feed), {}).get((number, attempt))
        while queue:
            yield _batch(feed, *queue.popleft())

    def _hold(self, event: RowsSent) -> None:
        source = event.stream, event.source
        if not event.rows.num_rows or event.end <= self._seen.get(source, 0):
            return
        if event.attempt is None:
            queue = self._queues.setdefault(source, self._new_queue())
        else:
            queue = self._staged.setdefault(source, {}).setdefault(event.attempt, self._new_queue())
        queue.append(event.first, event.rows)

    def _new_queue(self) -> RowQueue:
        return RowQueue(self._directory, self._budget)

    def _commit(self, event: SourceEnded) -> None:
        """The rows of one attempt are those of the source; the others never were."""
        attempts = self._staged.pop((event.stream, event.source), {})
        if event.attempt in attempts:
            self._queues[event.stream, event.source] = attempts[event.attempt]

    def _commit_micro_batch(self, event: MicroBatchCommitted) -> None:
        """Put the rows of a micro-batch in order, as it was done before: that follows from the rows."""
        feed = event.stream, event.feed
        staged = self._micro_batches.get(feed, {})
        seen = self._seen.get(feed, 0)
        if event.first + event.rows > seen:
            rows = [batch for attempt in event.attempts for batch in _emptied(staged.get((event.number, attempt)))]
            queue = self._queues.setdefault(feed, self._new_queue())
            first = event.first
            for batch in in_order(rows, event.event_time):
                if first + batch.num_rows > seen:
                    queue.append(first, batch)
                first += batch.num_rows
        self._micro_batches[feed] = {key: queue for key, queue in staged.items() if key[0] > event.number}

    def _note_bound(self, stream: str, feed: str, delay: int | None) -> None:
        if delay is not None:
            self._bounds[stream, feed] = delay

    def _taken_by(self, event: Decided) -> Iterator[Heard | Took | Chose]:
        for stream, sources in event.seen.items():
            for source, end in sources.items():
                yield from self._taken_from(stream, source, end)
        if event.decision is not None:
            yield Chose(event.decision.choice)

    def _taken_from(self, stream: str, source: str, end: int) -> Iterator[Heard | Took]:
        bound = self._bounds.pop((stream, source), None)
        if (stream, source) not in self._seen or bound is not None:
            yield Heard(stream, source, bound)
        self._seen[stream, source] = max(end, self._seen.get((stream, source), 0))
        queue = self._queues.get((stream, source))
        while queue and queue.first < end:
            yield Took(stream, _batch(source, *queue.popleft()))


def _batch(source: str, first: int, rows: pa.RecordBatch) -> Batch:
    return Batch(DEFAULT_STREAM, rows, first, source)


def _emptied(queue: RowQueue | None) -> Iterator[pa.RecordBatch]:
    while queue:
        yield queue.popleft()[1]
