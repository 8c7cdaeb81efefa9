"""What a journal records, one type for each kind of event, and their form in the log.

A record's header is JSON: the kind of the event, and its fields. Rows are record batches beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from topology.durable.record import Record
from topology.graph.components import Decision, Facts, TaskState
from topology.graph.errors import StoreError
from topology.graph.event_time import time_as_json, time_from_json
from topology.graph.messages import Time

VERSION = 1
_KIND = "event"

Seen: TypeAlias = "Mapping[str, Mapping[str, int]]"
"""By stream and source: how many rows a deciding task has taken; 0 for a source that has only been announced."""


@dataclass(frozen=True)
class RowsSent:
    """A source has sent rows, or staged them.

    first:   the offset of the first row.
    latest:  the greatest event time of the source so far.
    attempt: where rows are staged, the attempt that they belong to: they count when it is committed.
    """

    stream: str
    source: str
    first: int
    rows: pa.RecordBatch
    latest: Time | None = None
    attempt: str | None = None

    @property
    def end(self) -> int:
        """The offset behind the last row."""
        return self.first + self.rows.num_rows


@dataclass(frozen=True)
class SourceOpened:
    """A source has been announced."""

    stream: str
    source: str


@dataclass(frozen=True)
class SourceEnded:
    """A source sends no more rows. `attempt`: where rows were staged, the attempt that is committed with this."""

    stream: str
    source: str
    attempt: str | None = None


@dataclass(frozen=True)
class StreamFinished:
    """A stream takes no more rows, from any source."""

    stream: str


@dataclass(frozen=True)
class FeedBound:
    """A feed belongs to this query from now on. What another query has staged for it is void.

    delay: how far event time may go backwards in the feed, where the query has declared that.
    """

    stream: str
    feed: str
    query: str
    delay: int | None = None


@dataclass(frozen=True)
class MicroBatchStaged:
    """An attempt at a part of a feed's micro-batch has staged rows; `first` numbers them within the attempt."""

    stream: str
    feed: str
    number: int
    attempt: str
    first: int
    rows: pa.RecordBatch

    @property
    def end(self) -> int:
        """The number behind the last row."""
        return self.first + self.rows.num_rows


@dataclass(frozen=True)
class MicroBatchCommitted:
    """The rows of these attempts are the next ones of the source that is named after the feed.

    first:      the offset of the first row.
    rows:       how many there are.
    latest:     the greatest event time of the source, these rows included.
    event_time: the column that orders them.
    """

    stream: str
    feed: str
    number: int
    attempts: tuple[str, ...]
    first: int
    rows: int
    latest: Time | None = None
    event_time: str | None = None


@dataclass(frozen=True)
class SchemaPinned:
    """The schema of a stream is known before its rows."""

    stream: str
    schema: pa.Schema


@dataclass(frozen=True)
class Decided:
    """A deciding task has taken the rows in `seen` and, unless there is no decision, emitted a step.

    `seen` names only the sources of which more has been taken since the last such event.
    """

    seen: Seen
    decision: Decision | None = None


@dataclass(frozen=True)
class Acknowledged:
    """A reader has dealt with the results of `sink` up to `number`.

    place:  the end of the last step whose results are all acknowledged; -1: of none.
    result: the number of the first result after that place.
    """

    sink: str
    number: int
    place: int
    result: int


@dataclass(frozen=True)
class QueryChanged:
    """From here on the journal is kept for another query, whose results begin behind the last step.

    reached: where the deciding task stands, as the new query describes it.
    starts:  the places to start from that are kept, described likewise: segment, seq, reached, inputs; see `Start`.
    """

    identity: str
    reached: Facts
    starts: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class SnapshotKept:
    """All tasks have saved their snapshots at the barrier behind the step that ends with `seq`, placed in a `life`."""

    seq: int
    life: str


@dataclass(frozen=True)
class SavepointBegun:
    """All records before this one are part of a savepoint."""


@dataclass(frozen=True)
class Started:
    """The first record of a segment, from which everything after can start: an image, and a deciding task's state."""

    image: Mapping[str, Any]
    schemas: Mapping[str, pa.Schema]
    state: TaskState


@dataclass(frozen=True)
class Continued:
    """The first record of a segment that only continues the one before."""

    identity: str = ""
    version: int = field(default=VERSION)


Event: TypeAlias = (
    "RowsSent | SourceOpened | SourceEnded | StreamFinished | FeedBound | MicroBatchStaged | MicroBatchCommitted "
    "| SchemaPinned | Decided | Acknowledged | QueryChanged | SavepointBegun | SnapshotKept | Started | Continued"
)


def to_record(event: Event) -> Record:
    """The form of an event in the log."""
    header: dict[str, Any] = {_KIND: type(event).__name__}
    match event:
        case RowsSent(stream, source, first, rows, latest, attempt):
            header |= {"stream": stream, "source": source, "first": first, "latest": time_as_json(latest)}
            header |= {} if attempt is None else {"attempt": attempt}
            return Record(header, (rows,))
        case MicroBatchStaged(stream, feed, number, attempt, first, rows):
            header |= {"stream": stream, "feed": feed, "number": number, "attempt": attempt, "first": first}
            return Record(header, (rows,))
        case MicroBatchCommitted():
            return Record({**header, **vars(event), "latest": time_as_json(event.latest)})
        case SchemaPinned(stream, schema):
            return Record({**header, "stream": stream}, (_empty(schema),))
        case Decided(seen, decision):
            header["seen"] = seen
            if decision is not None:
                header["decision"] = [decision.seq, decision.choice, decision.reached]
            return Record(header)
        case Started(image, schemas, state):
            header |= {"version": VERSION, "image": image, "streams": list(schemas), "facts": state.facts}
            return Record(header, (*map(_empty, schemas.values()), *state.rows))
        case _:
            return Record({**header, **vars(event)})


def from_record(record: Record) -> Event:
    """The inverse of `to_record`."""
    fields = dict(record.header)
    kind = str(fields.pop(_KIND))
    if fields.get("version", VERSION) != VERSION:
        raise StoreError(f"the journal has version {fields['version']}, and this program reads {VERSION}")
    match kind:
        case "RowsSent":
            return RowsSent(**{**fields, "latest": time_from_json(fields["latest"])}, rows=record.batches[0])  # type: ignore[arg-type]
        case "MicroBatchStaged":
            return MicroBatchStaged(**fields, rows=record.batches[0])  # type: ignore[arg-type]
        case "MicroBatchCommitted":
            attempts: Any = fields.pop("attempts")
            latest = time_from_json(fields.pop("latest"))  # type: ignore[arg-type]
            return MicroBatchCommitted(**fields, attempts=tuple(attempts), latest=latest)  # type: ignore[arg-type]
        case "SchemaPinned":
            return SchemaPinned(str(fields["stream"]), record.batches[0].schema)
        case "Decided":
            decision: Any = fields.get("decision")
            return Decided(fields["seen"], None if decision is None else Decision(*decision))  # type: ignore[arg-type]
        case "Started":
            streams: Any = fields["streams"]
            schemas = {stream: record.batches[number].schema for number, stream in enumerate(streams)}
            state = TaskState(fields["facts"], record.batches[len(streams) :])  # type: ignore[arg-type]
            return Started(fields["image"], schemas, state)  # type: ignore[arg-type]
    return _PLAIN[kind](**fields)


_PLAIN: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(SourceOpened, SourceEnded, StreamFinished, FeedBound),
        *(Acknowledged, QueryChanged, SavepointBegun, SnapshotKept, Continued),
    )
}


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)
