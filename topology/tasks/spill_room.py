"""Whether rows that wait can be spilled: a full disk holds back those who send, and ends nothing.

Rows that cannot be written stay in memory. Where rows enter this process, sources that are ahead of others then wait
(`Ingest`), so that little is added, and the sources that everybody waits for still get in. When what had to stay in
memory has been taken, or the disk has room for it, all go on.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
import threading
from functools import cache

from topology.tasks.budget import Account, Budget, waiting_memory

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errors of a disk, or a share of it, that is full."""

RESERVE = 64 * 1024 * 1024
"""So much must be free beside what waits for it."""


class SpillRoom:
    """What queues that spill to one directory share; any thread may call it.

    disk: the bytes of their files.
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory or tempfile.gettempdir()
        self._lock = threading.Lock()
        self._entries = 0
        self.disk = Account()
        self.held = 0
        """Bytes that stay in memory because the disk was full."""

    def add_entry(self, count: int = 1) -> None:
        """Note that rows enter this process somewhere, where they can be held back; -1: no more."""
        with self._lock:
            self._entries += count

    def admit(self, budget: Budget) -> None:
        """Keep to a budget from now on; `release` it again."""
        waiting_memory.limit(budget.memory)
        if budget.disk is not None:
            self.disk.limit(budget.disk)

    def release(self, budget: Budget) -> None:
        """Keep to it no more: the topology that it was for has ended."""
        waiting_memory.lift(budget.memory)
        if budget.disk is not None:
            self.disk.lift(budget.disk)

    def take(self, size: int) -> None:
        """Use bytes of the disk; raises an `OSError` of a full disk if the budget has no room for them."""
        if not self.disk.take(size):
            raise OSError(errno.ENOSPC, f"rows that wait use {self.disk.used:,} bytes of disk: raise Budget(disk=...)")

    def hold(self, size: int, error: OSError) -> None:
        """Note that rows stay in memory. Where nobody could be held back, the error of the disk is raised."""
        with self._lock:
            if not self._entries:
                raise error
            self.held += size

    def give_back(self, size: int) -> None:
        """Note that such rows have been taken."""
        with self._lock:
            self.held -= size

    @property
    def has_room(self) -> bool:
        """Whether nothing has to stay in memory, or the disk has room again."""
        return not self.held or (self.disk.has_room(self.held) and free_bytes(self._directory) > self.held + RESERVE)

    @property
    def trouble(self) -> str:
        """Why rows wait, for people; "" if they do not."""
        if self.has_room:
            return ""
        why, remedy = f"the disk of {self._directory}, where waiting rows are spilled, is full", "make room"
        if not self.disk.has_room(self.held):
            why = f"waiting rows use {self.disk.used:,} of the {self.disk.most:,} bytes of disk that they may"
            remedy = "raise Budget(disk=...)"
        return f"send() waits, except for sources that others wait for: {why}; {remedy}, or feed those that are behind"


@cache
def spill_room(directory: str | None) -> SpillRoom:
    """The one of a directory in this process."""
    return SpillRoom(directory)


def free_bytes(directory: str) -> int:
    """How much can be written there."""
    return shutil.disk_usage(directory).free
