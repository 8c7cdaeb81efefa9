"""How a process becomes the writer of a log.

Nobody can be sure that the writer before has ended: it may be asleep, and wake up in the middle of a commit. So each
writer has an *epoch*, and the order of two pairs of calls keeps them apart:

    a writer     writes its group, syncs it,  looks for a higher epoch,  and only then acknowledges
    a successor  claims a higher epoch first, and only then reads what is there to the end

If the writer's look came before the claim, then so did its sync, and the successor reads the group. If it came after,
the writer sees the claim and acknowledges nothing more. Either way nothing that was acknowledged is lost. What the
successor has read may not have been synced yet; so it syncs that itself, before anything builds on it. Where it stopped
reading is part of its first group: what the other one still writes behind that place never was.

A claim alone decides nothing about content. If a process dies between its claim and its first group, the next one reads
what it would have read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from topology.durable.kept import KeptSegment, before_in, check_present, records_of
from topology.durable.log import DISK_RESERVE, Log
from topology.durable.names import Epoch, SegmentName, epochs_in, kept_in, new_token, segments_in
from topology.durable.record import Position, Record
from topology.durable.scan import scan
from topology.durable.steps import Steps, finish
from topology.durable.store import Store
from topology.graph.errors import FencedError, StoreError


@dataclass(frozen=True)
class TakeOver:
    """A log whose earlier writers can acknowledge nothing any more. Read what they left, then `start`.

    segments: the numbers of the segments that can be read, oldest first.
    """

    epoch: Epoch
    _store: Store = field(repr=False)
    _kept: Sequence[KeptSegment] = field(repr=False)
    _garbage: Sequence[str] = field(repr=False)

    @property
    def segments(self) -> list[int]:
        """The numbers of the segments that can be read, oldest first; none in a new store."""
        return [kept.name.number for kept in self._kept]

    def records(self, first: int) -> Iterator[tuple[Position, Record]]:
        """Read all records from the start record of segment `first` on; start records have number 0."""
        return records_of(self._store, self._kept, first)

    def start(self, start: Record, reserve: int = DISK_RESERVE) -> Log:
        """Begin a segment, and return the log that writes it. Call `commit` before anything relies on it."""
        return Log(self._store, self.epoch, start, self._kept, self._garbage, reserve)


def take_over(store: Store, token: str | None = None) -> TakeOver:
    """Become the writer of the log in a store, which may be new.

    token: 16 hexadecimal digits that no other writer has; simulations give their own.
    """
    return finish(take_over_steps(store, token))


def take_over_steps(store: Store, token: str | None = None) -> Steps[TakeOver]:
    """`take_over` in steps."""
    try:
        yield
        known = epochs_in(store.marks())
        yield
        written = [name.epoch for name in segments_in(store.segments())]
        epoch = Epoch(max((each.number for each in (*known, *written)), default=0) + 1, token or new_token())
        yield
        store.mark(epoch.name)
        yield
        marks = store.marks()
        yield
        names = store.segments()
        _check_highest(epoch, marks, names)
        kept: list[KeptSegment] = []
        for name in _latest_first(names):
            yield
            tip = _opened(store, name)
            if tip is not None:
                kept = _still_kept(tip, marks)
                yield
                store.sync(str(name))
                break
        check_present(names, kept)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"the log cannot be taken over: {error}") from error
    needed = {str(segment.name) for segment in kept}
    return TakeOver(epoch, store, kept, [name for name in names if name not in needed])


def _check_highest(epoch: Epoch, marks: list[str], names: list[str]) -> None:
    higher = max([*epochs_in(marks), *(name.epoch for name in segments_in(names))], default=epoch)
    if higher > epoch:
        raise FencedError(f"another process took the log over at the same time (epoch {higher}; this is {epoch})")


def _latest_first(names: list[str]) -> list[SegmentName]:
    """The later writer counts, whatever the numbers of the segments."""
    return sorted(segments_in(names), key=lambda name: (name.epoch, name.number), reverse=True)


def _opened(store: Store, name: SegmentName) -> list[KeptSegment] | None:
    """Return a segment and all before it, or None if its first group is not whole: then nothing in it counts."""
    groups, end = scan(str(name), store.read(str(name)))
    if not groups:
        return None
    opening = groups[0].opening
    assert opening is not None, f"the first group of {name} describes the segment"
    return [*before_in(opening), KeptSegment(name, end)]


def _still_kept(kept: list[KeptSegment], marks: list[str]) -> list[KeptSegment]:
    """Leave out what the last writer trimmed. What an earlier one marks after it has lost the log does not count."""
    writer = kept[-1].name.epoch
    first = max((mark.segment for mark in kept_in(marks) if mark.epoch == writer), default=0)
    return [segment for segment in kept if segment.name.number >= first]
