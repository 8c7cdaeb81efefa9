"""What has happened so far, as far as later events depend on it.

The writer applies each event when it records it, and a successor applies the same events when it reads them. So both
come to the same image, by the same code. An image holds no rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from topology.graph.components import Facts
from topology.graph.event_time import time_as_json, time_from_json
from topology.graph.messages import Barrier, Time
from topology.journal.events import (
    Acknowledged,
    Continued,
    Decided,
    Event,
    FeedBound,
    MicroBatchCommitted,
    MicroBatchStaged,
    QueryChanged,
    RowsSent,
    SavepointBegun,
    SchemaPinned,
    SnapshotKept,
    SourceEnded,
    SourceOpened,
    Started,
    StreamFinished,
)

ChooseStart = Callable[[Sequence[Facts], Facts], int]
"""`Component.start_for` of the component that decides."""


@dataclass
class SourceImage:
    """A physical source.

    announced: whether it has been opened, has sent rows or has ended; one that has only staged rows has not.
    count:  the rows that it has sent.
    latest: the greatest event time among them.
    seen:   how many of them the deciding task has taken; None: it has not heard of the source.
    unseen: where the other rows are: offsets behind batches, and the segment of each.
    staged: the same for rows of attempts that have not been committed.
    """

    count: int = 0
    latest: Time | None = None
    ended: bool = False
    attempt: str | None = None
    seen: int | None = None
    unseen: deque[tuple[int, int]] = field(default_factory=deque)
    staged: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)
    announced: bool = False

    @property
    def first_segment(self) -> int | None:
        """The first segment with rows that the task has not taken."""
        return _first_segment(self.unseen, *self.staged.values())


@dataclass
class FeedImage:
    """The feed of a query, whose rows are those of the source of the same name.

    query:     the query that it belongs to.
    past:      those that it belonged to before.
    delay:     see `FeedBound`.
    committed: the number of the last micro-batch that was committed; -1: none.
    staged:    by micro-batch and attempt, where the rows are that have not been committed; see `SourceImage.staged`.
    """

    query: str
    past: list[str] = field(default_factory=list)
    delay: int | None = None
    committed: int = -1
    staged: dict[tuple[int, str], deque[tuple[int, int]]] = field(default_factory=dict)


@dataclass
class StreamImage:
    """An input: its schema if it is known, its sources, whether it is finished, and the feeds of queries."""

    schema: pa.Schema | None = None
    finished: bool = False
    sources: dict[str, SourceImage] = field(default_factory=dict)
    feeds: dict[str, FeedImage] = field(default_factory=dict)

    @property
    def first_segment(self) -> int | None:
        """The first segment with rows that the deciding task has not taken."""
        of_sources = [source.first_segment for source in self.sources.values()]
        of_feeds = [_first_segment(*feed.staged.values()) for feed in self.feeds.values()]
        return min((found for found in (*of_sources, *of_feeds) if found is not None), default=None)


@dataclass(frozen=True)
class SinkImage:
    """How far the results of a sink have been acknowledged; see `Acknowledged`. `reached`: at that place."""

    number: int = -1
    place: int = -1
    result: int = 0
    reached: Facts | None = None


@dataclass(frozen=True)
class Start:
    """A segment from which everything after can start.

    seq:     the last sequence number before it.
    reached: where the deciding task stood.
    inputs:  the first segment that has rows which the task had not taken then.
    """

    segment: int
    seq: int
    reached: Facts
    inputs: int


class Image:
    """The state that the events of a journal add up to.

    identity: what kind of topology the journal belongs to; see `Topology.identity`.
    intake:   how its rows come to be in one order; see `Topology.intake`.
    sinks:    those whose results are kept until they are acknowledged.
    asides:   of sinks that are optional to read, the last number that was acknowledged.

    with_snapshots: tasks can begin at a start only with the snapshots that were taken there.
    """

    def __init__(
        self,
        identity: str,
        sinks: Iterable[str],
        choose_start: ChooseStart,
        with_snapshots: bool = False,
        intake: str = "",
    ) -> None:
        self.identity = identity
        self.intake = intake
        self.streams: dict[str, StreamImage] = {}
        self.sinks = {sink: SinkImage() for sink in sinks}
        self.asides: dict[str, int] = {}
        self.starts: list[Start] = []
        self.snapshots: dict[int, Barrier] = {}
        self._with_snapshots = with_snapshots
        self.seq = -1
        self.reached: Facts = {}
        self._choose_start = choose_start
        self._steps: deque[tuple[int, Facts]] = deque()  # those that no sink has acknowledged

    def stream(self, name: str) -> StreamImage:
        """The image of an input; empty if nothing has happened there."""
        return self.streams.setdefault(name, StreamImage())

    def source(self, stream: str, source: str) -> SourceImage:
        """The image of a source; new if nothing is known of it."""
        return self.stream(stream).sources.setdefault(source, SourceImage())

    def apply(self, event: Event, segment: int) -> None:
        """Take an event in, which is recorded in this segment."""
        match event:
            case RowsSent(stream, source, _, rows, latest, attempt):
                known = self.source(stream, source)
                self.stream(stream).schema = self.stream(stream).schema or rows.schema
                if attempt is not None:
                    known.staged.setdefault(attempt, deque()).append((event.end, segment))
                else:
                    known.announced = True
                    known.count, known.latest = event.end, latest
                    known.unseen.append((event.end, segment))
            case SourceOpened(stream, source):
                self.source(stream, source).announced = True
            case SourceEnded(stream, source, attempt):
                self._end(self.source(stream, source), attempt)
            case StreamFinished(stream):
                self.stream(stream).finished = True
            case FeedBound():
                self._bind(event)
            case MicroBatchStaged(stream, feed, number, attempt, _, rows):
                self.stream(stream).schema = self.stream(stream).schema or rows.schema
                staged = self.stream(stream).feeds[feed].staged
                staged.setdefault((number, attempt), deque()).append((event.end, segment))
            case MicroBatchCommitted():
                self._commit(event, segment)
            case SchemaPinned(stream, schema):
                self.stream(stream).schema = schema
            case Decided():
                self._decide(event)
            case Acknowledged():
                self._acknowledge(event)
            case SnapshotKept(seq, life):
                self.snapshots[seq] = Barrier(seq, life)
            case Started():
                self._read(event, segment)
            case QueryChanged(identity, reached, starts):
                self.identity, self.reached = identity, reached
                self.starts = [Start(*start) for start in starts]
                self.sinks = dict.fromkeys(self.sinks, SinkImage(place=self.seq, reached=reached or None))
                self._steps.clear()
            case SavepointBegun() | Continued():
                pass

    def start(self) -> Start:
        """Where everything can start that the results which nobody has acknowledged depend on."""
        starts = [start for start in self.starts if self._is_usable(start)]
        reached = [start.reached for start in starts]
        places = [sink.reached for sink in self.sinks.values()]
        chosen = [0 if place is None else self._choose_start(reached, place) for place in places]
        return starts[min(chosen, default=0)]

    def _is_usable(self, start: Start) -> bool:
        """Whether tasks can begin there; at the very beginning they need no snapshots."""
        return not self._with_snapshots or start.seq < 0 or start.seq in self.snapshots

    @property
    def progress(self) -> tuple[int, int]:
        """Two numbers that only grow: with anything that happens, and with results that are dealt with."""
        sources = [source for stream in self.streams.values() for source in stream.sources.values()]
        done = sum(sink.number + sink.place for sink in self.sinks.values())
        return self.seq + sum(source.count + source.ended for source in sources) + done, done

    def started(self, segment: int) -> Mapping[str, Any]:
        """Note that a segment starts here, and return the image as JSON, for its first record."""
        unseen = [found for stream in self.streams.values() if (found := stream.first_segment) is not None]
        self.starts.append(Start(segment, self.seq, self.reached, min(unseen, default=segment)))
        return self._written()

    def forget_before(self, segment: int) -> None:
        """Forget the starts of segments that have been trimmed, and their snapshots."""
        self.starts = [start for start in self.starts if start.segment >= segment]
        kept = {start.seq for start in self.starts}
        self.snapshots = {seq: barrier for seq, barrier in self.snapshots.items() if seq in kept}

    def _end(self, source: SourceImage, attempt: str | None) -> None:
        source.announced = source.ended = True
        source.attempt = attempt
        if attempt is not None:
            source.unseen = source.staged.get(attempt, deque())
            source.count = source.unseen[-1][0] if source.unseen else 0
            source.staged.clear()

    def _bind(self, event: FeedBound) -> None:
        feeds = self.stream(event.stream).feeds
        before = feeds.get(event.feed)
        feeds[event.feed] = FeedImage(event.query, [] if before is None else [*before.past, before.query], event.delay)
        self.source(event.stream, event.feed).announced = True

    def _commit(self, event: MicroBatchCommitted, segment: int) -> None:
        feed = self.stream(event.stream).feeds[event.feed]
        feed.committed = event.number
        chosen = [feed.staged.get((event.number, attempt), deque()) for attempt in event.attempts]
        feed.staged = {key: batches for key, batches in feed.staged.items() if key[0] > event.number}
        source = self.source(event.stream, event.feed)
        source.announced = True
        source.count, source.latest = event.first + event.rows, event.latest
        if event.rows:
            first = _first_segment(*chosen)
            source.unseen.append((source.count, segment if first is None else first))

    def _decide(self, event: Decided) -> None:
        for stream, sources in event.seen.items():
            for source, end in sources.items():
                known = self.source(stream, source)
                known.seen = max(end, known.seen or 0)  # after a restart sources are announced again, which is a 0
                while known.unseen and known.unseen[0][0] <= end:
                    known.unseen.popleft()
        if event.decision is not None:
            self.seq, self.reached = event.decision.seq, event.decision.reached
            self._steps.append((self.seq, self.reached))

    def _acknowledge(self, event: Acknowledged) -> None:
        before = self.sinks.get(event.sink)
        if before is None:
            self.asides[event.sink] = event.number
            return
        reached = before.reached
        if event.place > before.place:
            reached = next((facts for seq, facts in self._steps if seq == event.place), None)
        self.sinks[event.sink] = SinkImage(event.number, event.place, event.result, reached)
        done = min(sink.place for sink in self.sinks.values())
        while self._steps and self._steps[0][0] <= done:
            self._steps.popleft()

    def _written(self) -> dict[str, Any]:
        return {
            "identity": self.identity,
            "intake": self.intake,
            "seq": self.seq,
            "reached": self.reached,
            "steps": list(self._steps),
            "starts": [[start.segment, start.seq, start.reached, start.inputs] for start in self.starts],
            "sinks": {name: [sink.number, sink.place, sink.result, sink.reached] for name, sink in self.sinks.items()},
            "asides": self.asides,
            "snapshots": {barrier.checkpoint: barrier.life for barrier in self.snapshots.values()},
            "streams": {name: _written_stream(stream) for name, stream in self.streams.items()},
        }

    def _read(self, event: Started, segment: int) -> None:
        """Begin from the first record of a segment."""
        written = event.image
        self.identity, self.intake = written["identity"], written["intake"]
        self.seq, self.reached = written["seq"], written["reached"]
        self._steps = deque((seq, reached) for seq, reached in written["steps"])
        self.starts = [Start(*start) for start in written["starts"]]
        self.sinks = {name: SinkImage(*sink) for name, sink in written["sinks"].items()}
        self.asides = dict(written["asides"])
        self.snapshots = {int(seq): Barrier(int(seq), life) for seq, life in written.get("snapshots", {}).items()}
        self.streams = {
            name: _read_stream(stream, event.schemas.get(name)) for name, stream in written["streams"].items()
        }


def _written_stream(stream: StreamImage) -> dict[str, Any]:
    return {
        "finished": stream.finished,
        "sources": {
            name: {
                "count": each.count,
                "latest": time_as_json(each.latest),
                "ended": each.ended,
                "attempt": each.attempt,
                "seen": each.seen,
                "unseen": list(each.unseen),
                "announced": each.announced,
                "staged": {attempt: list(batches) for attempt, batches in each.staged.items()},
            }
            for name, each in stream.sources.items()
        },
        "feeds": {
            name: {
                "query": feed.query,
                "past": feed.past,
                "delay": feed.delay,
                "committed": feed.committed,
                "staged": [[*key, list(batches)] for key, batches in feed.staged.items()],
            }
            for name, feed in stream.feeds.items()
        },
    }


def _read_stream(written: Mapping[str, Any], schema: pa.Schema | None) -> StreamImage:
    sources = {
        name: SourceImage(
            each["count"],
            time_from_json(each["latest"]),
            each["ended"],
            each["attempt"],
            each["seen"],
            _read_batches(each["unseen"]),
            {attempt: _read_batches(batches) for attempt, batches in each["staged"].items()},
            each["announced"],
        )
        for name, each in written["sources"].items()
    }
    feeds = {
        name: FeedImage(
            each["query"],
            each["past"],
            each["delay"],
            each["committed"],
            {(number, attempt): _read_batches(batches) for number, attempt, batches in each["staged"]},
        )
        for name, each in written["feeds"].items()
    }
    return StreamImage(schema, written["finished"], sources, feeds)


def _first_segment(*queues: deque[tuple[int, int]]) -> int | None:
    """The first segment that rows of these queues are in; the rows of a micro-batch were staged before its commit."""
    return min((segment for batches in queues for _, segment in batches), default=None)


def _read_batches(written: list[list[int]]) -> deque[tuple[int, int]]:
    return deque((end, segment) for end, segment in written)
