"""The writer's end of a log: records go in, and are acknowledged when they survive.

Nothing here starts a thread or asks a clock. `append` puts a record into the group of the next commit. `commit` writes
that group, syncs it, looks for a higher epoch (`take_over.py` says why), and returns the last position that survives.
A driver decides when to commit: the longer it waits, the more records share a sync.

A log is cut into segments. Each begins with a *start record* of the caller, from which everything after it can start;
so the segments before it can be trimmed when nobody needs them. A segment's first group names the segments before it
and their ends.

A disk that is full is a state and not an error: `commit` returns what is durable so far, `disk_full` is true, and the
next commit writes the same group again. Other errors of the store are raised; the caller may commit again after these,
too. Only a successor ends a log.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from topology.durable.copying import save
from topology.durable.group import Group, GroupBuilder, RowsEncoder
from topology.durable.kept import KeptSegment, described, records_of
from topology.durable.names import Epoch, KeptMark, SegmentName, epochs_in, kept_in
from topology.durable.record import Position, Record
from topology.durable.scan import End
from topology.durable.steps import Steps, finish
from topology.durable.store import Store
from topology.graph.errors import FencedError, StoreError

DISK_RESERVE = 64 * 1024 * 1024
"""A log has no room when the disk has fewer free bytes: others need some, and so does trimming."""

_FULL = {errno.ENOSPC, errno.EDQUOT}


class Log:
    """Made by `TakeOver.start`. Not thread-safe: `GroupCommit` is."""

    def __init__(
        self,
        store: Store,
        epoch: Epoch,
        start: Record,
        kept: Sequence[KeptSegment],
        garbage: Sequence[str],
        reserve: int,
    ) -> None:
        self.epoch = epoch
        self.disk_full = False
        self.durable: Position | None = None
        """The last record that survives, and all before it; None until the first commit."""
        self._store = store
        self._reserve = reserve
        self.free_bytes = store.free_bytes()
        """What the disk had left when it was last asked; None for a store without a limit."""
        self._kept = list(kept)
        self._garbage = list(garbage)
        self._cleaned = False
        self._encoder = RowsEncoder()
        self._waiting: deque[tuple[SegmentName, int, Group]] = deque()
        self._synced: tuple[SegmentName, End] | None = None
        self._durable: KeptSegment | None = None
        self._fenced: str | None = None
        self._begin(kept[-1].name.number + 1 if kept else 1, self._only(start))

    @property
    def segment(self) -> int:
        """The number of the segment that records are appended to."""
        return self._name.number

    @property
    def segments(self) -> list[int]:
        """The numbers of all segments that are kept, oldest first."""
        return [*(segment.name.number for segment in self._kept), self.segment]

    @property
    def segment_bytes(self) -> int:
        """The size of that segment: a driver begins another one when it is large."""
        return self._end.nbytes + self._open.nbytes

    @property
    def kept_bytes(self) -> int:
        """The size of all segments."""
        return sum(segment.end.nbytes for segment in self._kept) + self.segment_bytes

    @property
    def waiting_bytes(self) -> int:
        """What has been appended and is not durable yet; it is held in memory."""
        return self._open.nbytes + sum(group.nbytes for _, _, group in list(self._waiting))

    @property
    def has_room(self) -> bool:
        """Whether more should be appended: the disk is not nearly full."""
        if self.free_bytes is not None and self.free_bytes < self._reserve:
            self.free_bytes = self._store.free_bytes()  # others may have made room since
        free = self.free_bytes is None or self.free_bytes >= self._reserve
        return free and not self.disk_full

    def append(self, record: Record) -> Position:
        """Add a record, which a later commit makes durable; return its position."""
        self._check_fenced()
        self._open.add(record)
        return Position(self.segment, self._end.records + len(self._open) - 1)

    def rotate(self, start: Record) -> Position:
        """Begin a segment with its start record; return that one's position. A later commit makes it durable."""
        self._check_fenced()
        opening = self._only(start)
        self._freeze()
        self._kept.append(KeptSegment(self._name, self._end))
        return self._begin(self.segment + 1, opening)

    def commit(self) -> Position | None:
        """Make everything durable that has been appended; return `durable`. If the disk is full, that is less."""
        return finish(self.commit_steps())

    def commit_steps(self) -> Steps[Position | None]:
        """`commit` in steps. What is appended before the first of them takes part, and may go on meanwhile."""
        self._check_fenced()
        self._freeze()
        try:
            while self._waiting:
                name, at, group = self._waiting[0]
                yield
                self._store.write(str(name), group.number, at, group.pieces)
                yield
                self._store.sync(str(name))
                self._waiting.popleft()
                self._synced = name, End(group.number + 1, group.first_record + group.records, at + group.nbytes)
            if self._synced is not None:
                yield
                self._look()
                self._acknowledge(*self._synced)
            self.disk_full = False
            yield from self._clean_steps()
            self.free_bytes = self._store.free_bytes()
        except OSError as error:
            if error.errno not in _FULL:
                raise StoreError(
                    f"segment {self.segment} of the log cannot be written: {error}; commit again"
                ) from error
            self.disk_full = True
        return self.durable

    def trim(self, before: int) -> None:
        """Remove the segments before a number, whose own start record must be durable."""
        finish(self.trim_steps(before))

    def trim_steps(self, before: int) -> Steps[None]:
        """`trim` in steps.

        A mark says first what is to be removed, and survives. Otherwise a writer that looked, fell asleep, and removed
        a segment when it woke up could take it from a successor that counts on it.
        """
        self._check_fenced()
        if self.durable is None or before > self.durable.segment:
            raise ValueError(f"segment {before} has no durable start record: commit first")
        gone = [segment for segment in self._kept if segment.name.number < before]
        if not gone:
            return
        mark = KeptMark(before, self.epoch)
        try:
            yield
            self._store.mark(str(mark))
            yield
            self._look()
            for segment in gone:
                yield
                self._store.delete(str(segment.name))
                self._kept.remove(segment)
            yield
            for older in kept_in(self._store.marks()):
                if older.epoch <= self.epoch and older != mark:
                    self._store.unmark(str(older))
            self.free_bytes = self._store.free_bytes()
        except OSError as error:
            raise StoreError(f"the log cannot be trimmed: {error}; trim again") from error

    def records(self, first: int) -> Iterator[tuple[Position, Record]]:
        """Read the durable records from the start record of segment `first` on."""
        durable = self.durable_segments()
        return records_of(self._store, durable, first) if durable else iter(())

    def durable_segments(self) -> list[KeptSegment]:
        """The segments that are kept, oldest first, up to the last record that survives."""
        last = self._durable
        if last is None:
            return []
        return [*(segment for segment in list(self._kept) if segment.name.number < last.name.number), last]

    def save(self, first: int, target: Store, copy_more: Callable[[], None] = lambda: None) -> None:
        """Copy what is durable from segment `first` on, and what belongs to it; nothing may be trimmed meanwhile."""
        save(self._store, [kept for kept in self.durable_segments() if kept.name.number >= first], target, copy_more)

    def close(self) -> None:
        """Give back open files. What is durable stays; nothing else is written."""
        self._store.close()

    def _only(self, record: Record) -> GroupBuilder:
        group = GroupBuilder(self._encoder)
        group.add(record)
        return group

    def _begin(self, number: int, opening: GroupBuilder) -> Position:
        self._name = SegmentName(number, self.epoch)
        self._end = End()
        self._open = opening
        self._freeze(described(self.epoch, self._kept))
        return Position(number, 0)

    def _freeze(self, opening: dict[str, object] | None = None) -> None:
        """Make a group of what has been appended: from now on its bytes stay the same, however often it is written."""
        if not len(self._open):
            return
        end = self._end
        group = self._open.finished(str(self._name), end.groups, end.records, opening)
        self._open = GroupBuilder(self._encoder)
        self._waiting.append((self._name, end.nbytes, group))
        self._end = End(end.groups + 1, end.records + group.records, end.nbytes + group.nbytes)

    def _acknowledge(self, name: SegmentName, end: End) -> None:
        self._durable = KeptSegment(name, end)
        self.durable = Position(name.number, end.records - 1)

    def _clean_steps(self) -> Steps[None]:
        """Remove what earlier writers left and nobody needs; safe when this one's first group is durable."""
        if self._cleaned:
            return
        for segment in self._garbage:
            yield
            self._store.delete(segment)
        yield
        marks = self._store.marks()
        for mark in [*epochs_in(marks), *kept_in(marks)]:
            if (mark.epoch if isinstance(mark, KeptMark) else mark) < self.epoch:
                self._store.unmark(mark.name if isinstance(mark, Epoch) else str(mark))
        self._cleaned = True

    def _look(self) -> None:
        """Look for a higher epoch: after the sync, before anything is acknowledged or removed."""
        higher = max(epochs_in(self._store.marks()), default=self.epoch)
        if higher > self.epoch:
            self._fenced = f"another process has taken the log over (epoch {higher}; this is {self.epoch})"
            self._check_fenced()

    def _check_fenced(self) -> None:
        if self._fenced is not None:
            raise FencedError(f"{self._fenced}: what was not acknowledged may be lost; end this writer")
