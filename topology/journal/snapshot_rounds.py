"""When to take snapshots, and when one is complete.

A round begins at the end of a step: the log begins a segment there, and a barrier follows the step through the
topology. Each task saves its snapshot when all its inputs have reached the barrier. When all tasks have, the journal
records it, and from then on a new life can start there: it restores the tasks and repeats only the steps after the
barrier. What lies before it is removed when the results of those steps have been acknowledged.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from topology.durable.group_commit import Ticket
from topology.graph.components import TaskState
from topology.graph.graph import TaskName
from topology.graph.messages import Barrier
from topology.journal.events import SnapshotKept
from topology.journal.journal import MOST_STATE_BYTES, Journal
from topology.journal.snapshots import Snapshots


class SnapshotRounds:
    """One round after the other, in the process that keeps the journal.

    life:  names this life of the topology; no other has the same.
    tasks: those that save snapshots in each round; None: some task has none, so there are no rounds.
    """

    def __init__(self, journal: Journal, life: str, tasks: Collection[TaskName] | None, snapshots: Snapshots) -> None:
        self._journal = journal
        self._life = life
        self._tasks = None if tasks is None else frozenset(tasks)
        self._snapshots = snapshots
        self._barrier: Barrier | None = None
        self._missing: set[TaskName] = set()
        self._bytes = 0
        self._last_bytes = 0
        self._sizes: dict[Barrier, int] = {}
        self._lock = threading.Lock()
        snapshots.on_saved = self.saved
        kept = frozenset(journal.snapshots())
        # Those of lives that ended in the middle of a round.
        snapshots.forget(lambda barrier: barrier.life != life and barrier not in kept)

    @property
    def is_due(self) -> bool:
        """Whether a round should begin: the log has grown, and twice as much as a snapshot takes."""
        size = min(self._last_bytes, MOST_STATE_BYTES)
        return self._tasks is not None and self._barrier is None and self._journal.is_start_due(size)

    @property
    def kept_bytes(self) -> int:
        """The size of all snapshots that a new life may begin with; those of earlier lives are looked up once."""
        kept = self._journal.snapshots()
        with self._lock:
            known = dict(self._sizes)
        try:
            known |= {barrier: self._snapshots.size(barrier) for barrier in kept if barrier not in known}
        except OSError:  # asked again the next time
            pass
        with self._lock:
            self._sizes = {barrier: known[barrier] for barrier in kept if barrier in known} | self._sizes
            for gone in self._sizes.keys() - set(self._journal.snapshots()):
                del self._sizes[gone]
            return sum(self._sizes.values())

    def begin(self, seq: int, state: TaskState) -> Barrier:
        """Begin a round behind the step that ends with `seq`; `state`: of the task that decides, there."""
        assert self._tasks is not None
        with self._lock:
            self._journal.start_segment(state)
            self._barrier = barrier = Barrier(seq, self._life)
            self._missing = set(self._tasks)
            self._bytes = 0
        return barrier

    def saved(self, task: TaskName, barrier: Barrier, nbytes: int) -> None:
        """Note that a task's snapshot is in the store."""
        with self._lock:
            if barrier != self._barrier or task not in self._missing:
                return
            self._missing.remove(task)
            self._bytes += nbytes
            if self._missing:
                return
            self._last_bytes = self._sizes[barrier] = self._bytes
            ticket = self._journal.record(SnapshotKept(barrier.checkpoint, barrier.life))
            self._barrier = None
        self.trim(ticket)

    def trim(self, because: Ticket) -> None:
        """Remove what nothing depends on any more, from the log and of the snapshots."""
        before = self._journal.snapshots()
        if self._journal.trim(because):
            # Named one by one: by the time that they are removed, more may be over for a reason that is not durable.
            gone = frozenset(before) - frozenset(self._journal.snapshots())
            self._snapshots.forget(lambda barrier: barrier in gone, lambda: because.durable)
