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
from topology.graph.messages import Time
from topology.journal.events import (
    Acknowledged,
    Continued,
    Decided,
    Event,
    RowsSent,
    SchemaPinned,
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
        return min((batches[0][1] for batches in (self.unseen, *self.staged.values()) if batches), default=None)


@dataclass
class StreamImage:
    """An input: its schema if it is known, its sources, and whether it is finished."""

    schema: pa.Schema | None = None
    finished: bool = False
    sources: dict[str, SourceImage] = field(default_factory=dict)


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
    sinks:    those whose results are kept until they are acknowledged.
    asides:   of sinks that are optional to read, the last number that was acknowledged.
    """

    def __init__(self, identity: str, sinks: Iterable[str], choose_start: ChooseStart) -> None:
        self.identity = identity
        self.streams: dict[str, StreamImage] = {}
        self.sinks = {sink: SinkImage() for sink in sinks}
        self.asides: dict[str, int] = {}
        self.starts: list[Start] = []
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
            case SchemaPinned(stream, schema):
                self.stream(stream).schema = schema
            case Decided():
                self._decide(event)
            case Acknowledged():
                self._acknowledge(event)
            case Started():
                self._read(event, segment)
            case Continued():
                pass

    def start(self) -> Start:
        """Where everything can start that the results which nobody has acknowledged depend on."""
        reached = [start.reached for start in self.starts]
        places = [sink.reached for sink in self.sinks.values()]
        chosen = [0 if place is None else self._choose_start(reached, place) for place in places]
        return self.starts[min(chosen, default=0)]

    @property
    def progress(self) -> tuple[int, int]:
        """Two numbers that only grow: with anything that happens, and with results that are dealt with."""
        sources = [source for stream in self.streams.values() for source in stream.sources.values()]
        done = sum(sink.number + sink.place for sink in self.sinks.values())
        return self.seq + sum(source.count + source.ended for source in sources) + done, done

    def started(self, segment: int) -> Mapping[str, Any]:
        """Note that a segment starts here, and return the image as JSON, for its first record."""
        sources = [source for stream in self.streams.values() for source in stream.sources.values()]
        unseen = [found for source in sources if (found := source.first_segment) is not None]
        self.starts.append(Start(segment, self.seq, self.reached, min(unseen, default=segment)))
        return self._written()

    def forget_before(self, segment: int) -> None:
        """Forget the starts of segments that have been trimmed."""
        self.starts = [start for start in self.starts if start.segment >= segment]

    def _end(self, source: SourceImage, attempt: str | None) -> None:
        source.announced = source.ended = True
        source.attempt = attempt
        if attempt is not None:
            source.unseen = source.staged.get(attempt, deque())
            source.count = source.unseen[-1][0] if source.unseen else 0
            source.staged.clear()

    def _decide(self, event: Decided) -> None:
        for stream, sources in event.seen.items():
            for source, end in sources.items():
                known = self.source(stream, source)
                known.seen = end
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
            "seq": self.seq,
            "reached": self.reached,
            "steps": list(self._steps),
            "starts": [[start.segment, start.seq, start.reached, start.inputs] for start in self.starts],
            "sinks": {name: [sink.number, sink.place, sink.result, sink.reached] for name, sink in self.sinks.items()},
            "asides": self.asides,
            "streams": {name: _written_stream(stream) for name, stream in self.streams.items()},
        }

    def _read(self, event: Started, segment: int) -> None:
        """Begin from the first record of a segment."""
        written = event.image
        self.identity = written["identity"]
        self.seq, self.reached = written["seq"], written["reached"]
        self._steps = deque((seq, reached) for seq, reached in written["steps"])
        self.starts = [Start(*start) for start in written["starts"]]
        self.sinks = {name: SinkImage(*sink) for name, sink in written["sinks"].items()}
        self.asides = dict(written["asides"])
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
    return StreamImage(schema, written["finished"], sources)


def _read_batches(written: list[list[int]]) -> deque[tuple[int, int]]:
    return deque((end, segment) for end, segment in written)
