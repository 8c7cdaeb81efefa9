"""The writer of a journal: events go in, and count when they are durable.

An event is applied to the image in the same breath in which it is appended to the log, so the image at any moment is
what the records up to that moment add up to. Segments begin with a whole image and the state of the deciding task, so
that what lies before them can be trimmed when no result that somebody may still ask for depends on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from topology.durable.group_commit import GroupCommit, Ticket
from topology.durable.log import Log
from topology.durable.store import Store
from topology.graph.components import TaskState
from topology.graph.messages import Barrier
from topology.journal.events import Event, SavepointBegun, Started, to_record
from topology.journal.image import Image

SEGMENT_BYTES = 32 * 1024 * 1024
"""A segment that is larger is followed by another one."""

MOST_STATE_BYTES = 128 * 1024 * 1024
"""A state that is larger is not written again: the segment grows until the task holds less."""


class Journal:
    """Made by `open_journal`. Any thread may record; `close` it.

    segment_bytes: how large segments grow.
    threaded:      see `GroupCommit`.
    """

    def __init__(self, log: Log, image: Image, segment_bytes: int = SEGMENT_BYTES, threaded: bool = True) -> None:
        self.image = image
        self._log = log
        self._segment_bytes = segment_bytes
        self.committer = GroupCommit(log, threaded)
        self._lock = threading.RLock()
        self._trimmed = 0
        self._trimming = False
        self._saving = 0  # savepoints under way, which need what there is

    @property
    def has_room(self) -> bool:
        """Whether more should be recorded: the disk has room."""
        return self.committer.has_room

    @property
    def trouble(self) -> str | None:
        """What keeps records from becoming durable just now, or None."""
        return self.committer.trouble

    @property
    def waits_for_disk(self) -> str:
        """Why rows wait that should be recorded; empty if they do not."""
        if self.trouble is None and self.has_room:
            return ""
        return f"the disk of the state: {self.trouble or 'it is nearly full'}"

    @property
    def kept_bytes(self) -> int:
        """The size of all that is kept."""
        return self._log.kept_bytes

    @property
    def free_bytes(self) -> int | None:
        """How much can still be written, as far as is known; None if the store sets no limit."""
        return self._log.free_bytes

    def record(self, event: Event, then: Callable[[Ticket], None] | None = None) -> Ticket:
        """Append an event and apply it. `then` is called, by another thread, when it is durable or never will be."""
        with self._lock:
            ticket = self.committer.append(to_record(event), then)
            self.image.apply(event, ticket.position.segment)
            return ticket

    def trim(self, because: Ticket) -> bool:
        """Remove what no result depends on that somebody may still ask for, once that is known for good.

        because: the last acknowledgement, or snapshot. Return whether there was something to remove.
        """
        with self._lock:
            if not self._trimming or self._saving or len(self.image.starts) < 2:
                return False
            start = self.image.start()
            before = min(start.segment, start.inputs)
            durable = self._log.durable
            if before > self._trimmed and durable is not None and before <= durable.segment:
                self.committer.trim(before, because.position)
                self._trimmed = before
                self.image.forget_before(before)
                return True
            return False

    def snapshots(self) -> list[Barrier]:
        """The snapshots that tasks may begin with."""
        with self._lock:
            return list(self.image.snapshots.values())

    def is_start_due(self, state_bytes: int) -> bool:
        """Whether a segment should begin here; `state_bytes`: the size of the deciding task's state."""
        size = self._log.segment_bytes
        return (
            self._trimming
            and size >= self._segment_bytes
            and size >= 2 * state_bytes
            and state_bytes <= MOST_STATE_BYTES
        )

    def start_segment(self, state: TaskState) -> None:
        """Begin a segment from which everything can start; called between two decisions, with the task's state."""
        with self._lock:
            image = self.image.started(self._log.segment + 1)
            schemas = {name: stream.schema for name, stream in self.image.streams.items() if stream.schema is not None}
            self.committer.rotate(to_record(Started(image, schemas, state)))

    def save(
        self,
        open_target: Callable[[str], Store],
        copy_snapshots: Callable[[str, Collection[Barrier]], None] = lambda name, barriers: None,
    ) -> str:
        """Copy what is needed to go on from here to another store, while the journal goes on; return its name.

        open_target:    opens the store for the copy of a given name, which no other has.
        copy_snapshots: copies the snapshots of some barriers for the copy of that name.
        """
        with self._lock:
            self._saving += 1
            start = self.image.start()
            ticket = self.record(SavepointBegun())
        try:
            ticket.wait()
            name = f"{ticket.position.segment}-{ticket.position.record}-{self._log.epoch.token}"
            target = open_target(name)
            try:
                # Asked for when the records are copied: none of them then names a snapshot that is not copied.
                more = lambda: copy_snapshots(name, self.snapshots())  # noqa: E731
                self._log.save(min(start.segment, start.inputs), target, more)
            finally:
                target.close()
            return name
        finally:
            with self._lock:
                self._saving -= 1

    def begin_trimming(self) -> None:
        """Allow to remove and to begin segments: nobody reads what was there before."""
        with self._lock:
            self._trimming = True

    def close(self) -> None:
        """Make durable what has been recorded, and end."""
        try:
            self.committer.close()
        finally:
            self._log.close()
