"""Opens a journal: a new one, or one that another process has left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from topology.durable.log import Log
from topology.durable.store import Store
from topology.durable.take_over import TakeOver, take_over
from topology.graph.components import TaskState
from topology.graph.errors import StoreError, TopologyError
from topology.graph.messages import Resume
from topology.journal.events import Continued, Event, Started, from_record, to_record
from topology.journal.image import ChooseStart, Image
from topology.journal.journal import SEGMENT_BYTES, Journal
from topology.journal.new_query import NewQuery, changed
from topology.journal.replay import Replay


@dataclass(frozen=True)
class Opened:
    """A journal, and what to repeat before it goes on; None if there is nothing.

    progress: how much had happened when it was opened; see `Image.progress`.
    life:     names this life of the topology; no other has the same.
    """

    journal: Journal
    replay: Replay | None
    progress: tuple[int, int] = (0, 0)
    life: str = ""

    def resumes(self, sinks: Iterable[str]) -> tuple[Resume, ...]:
        """Where each of these sinks stood; a sink that nobody has read begins at its first result."""
        known = {} if self.replay is None else {resume.sink: resume for resume in self.replay.resumes}
        return tuple(known.get(sink, Resume(sink, first=self.replay is None)) for sink in sinks)


def open_journal(
    store: Store,
    identity: str,
    sinks: Iterable[str],
    choose_start: ChooseStart,
    *,
    spill_directory: str | None = None,
    segment_bytes: int | None = None,
    threaded: bool = True,
    token: str | None = None,
    intake: str = "",
    new_query: NewQuery | None = None,
    with_snapshots: bool = False,
) -> Opened:
    """Become the writer of the journal in a store. Whoever wrote it before can make nothing durable any more.

    identity:      of the topology; a journal of another one is refused.
    segment_bytes: how large segments grow; None: `SEGMENT_BYTES`.
    token:         see `take_over`.
    with_snapshots: see `Image`.
    intake:        see `Topology.intake`.
    new_query:     lets the topology go on from the rows of another one; None: it must be the same.
    """
    segment_bytes = segment_bytes or SEGMENT_BYTES
    taken = take_over(store, token)
    image = Image(identity, sinks, choose_start, with_snapshots, intake)
    life = str(taken.epoch)
    if not taken.segments:
        log = _begun(taken, Started(image.started(1), {}, TaskState()))
        journal = Journal(log, image, segment_bytes, threaded)
        journal.begin_trimming()
        return Opened(journal, None, life=life)
    for position, record in taken.records(_last_start(taken, taken.segments)):
        image.apply(from_record(record), position.segment)
    change = None
    if image.identity != identity:
        if new_query is None:
            raise TopologyError(
                f"the state belongs to another topology. It was kept for: {image.identity}. This one is: {identity}. "
                f"Launch that one, or give another name or another place for the state; or, to begin a new series of "
                f"results from the rows that are kept, new_query=True"
            )
        change = changed(image, identity, intake, taken.segments[0], new_query, choose_start)
        image.apply(change, taken.segments[-1])
    resumes = [Resume(name, sink.place, sink.result, sink.number) for name, sink in image.sinks.items()]
    resumes += [Resume(name, -1, 0, number) for name, number in image.asides.items()]
    start = image.start()
    replay = Replay(taken, start, tuple(resumes), image.snapshots.get(start.seq), spill_directory)
    log = _begun(taken, Continued(), *([] if change is None else [change]))
    return Opened(Journal(log, image, segment_bytes, threaded), replay, image.progress, life)


def _begun(taken: TakeOver, first: Event, *then: Event) -> Log:
    """Write the first records. Until they are durable, what was read may not count: another may begin first."""
    log = taken.start(to_record(first))
    for event in then:
        log.append(to_record(event))
    if log.commit() is None:
        log.close()
        raise StoreError("the state cannot be opened: the disk is full; make room and launch again")
    return log


def _last_start(taken: TakeOver, segments: Sequence[int]) -> int:
    """The last segment from which everything can start; the others continue it."""
    for segment in reversed(segments):
        if isinstance(from_record(next(taken.records(segment))[1]), Started):
            return segment
    raise AssertionError("the oldest segment that is kept is a start")
