"""A queue of record batches that keeps a bounded part in memory and the rest on disk.

It is used where rows wait for other rows that may come much later: the gate waits for its slowest source, and blocking
the fast ones could wait for ever. Rows that do not fit in memory go to unnamed temporary files, which the operating
system removes with the process. A file goes when its last batch has been taken: the disk space follows what waits, and
not what has passed. If the disk is full, batches stay in memory (`spill_room.py`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pyarrow as pa

from topology.graph.messages import rows_bytes
from topology.tasks.budget import waiting_memory
from topology.tasks.spill_files import Spilled, SpillFiles
from topology.tasks.spill_room import FULL, spill_room

DEFAULT_MEMORY = 64 * 1024 * 1024


@dataclass
class MemoryBudget:
    """The bytes that several queues may hold in memory together; the first batch of each may exceed it.

    Not thread-safe: for queues that one thread uses.
    """

    most: int
    used: int = 0


@dataclass(frozen=True, slots=True)
class _Held:
    """A batch that found no room on disk."""

    rows: pa.RecordBatch
    size: int


class SpillQueue:
    """First in, first out. Cost: one write and one read for each batch beyond the memory bound.

    budget: what it shares with other queues; None: nothing.
    """

    def __init__(
        self, memory: int = DEFAULT_MEMORY, directory: str | None = None, budget: MemoryBudget | None = None
    ) -> None:
        self._memory = memory
        self._budget = budget or MemoryBudget(memory)
        self._room = spill_room(directory)
        self._items: deque[pa.RecordBatch | Spilled | _Held] = deque()
        self._in_memory = 0
        self._files = SpillFiles(directory, keeps_one=True)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the batches held in memory."""
        return self._in_memory

    @property
    def disk_bytes(self) -> int:
        """Bytes of the batches on disk."""
        return self._files.nbytes

    @property
    def file_bytes(self) -> int:
        """The size of the files on disk."""
        return self._files.used_bytes

    def append(self, rows: pa.RecordBatch) -> None:
        """Add a batch at the end."""
        size = rows_bytes(rows)
        fits = self._in_memory + size <= self._memory and self._budget.used + size <= self._budget.most
        fits = fits and waiting_memory.take(size)
        if self._items and not fits:
            self._items.append(self._spilled(rows, size))
            return
        self._items.append(rows)
        self._hold(size)
        if not fits:
            waiting_memory.add(size)

    def popleft(self) -> pa.RecordBatch:
        """Remove and return the first batch; `IndexError` when empty."""
        item = self._items.popleft()
        if isinstance(item, Spilled):
            return self._files.take(item)
        if isinstance(item, _Held):
            self._room.give_back(item.size)
            return item.rows
        self._hold(-rows_bytes(item))
        waiting_memory.add(-rows_bytes(item))
        return item

    def close(self) -> None:
        """Drop all batches and free the disk space."""
        self._room.give_back(sum(item.size for item in self._items if isinstance(item, _Held)))
        self._items.clear()
        waiting_memory.add(-self._in_memory)
        self._hold(-self._in_memory)
        self._files.close()

    def _spilled(self, rows: pa.RecordBatch, size: int) -> Spilled | _Held:
        try:
            return self._files.write(rows)
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._room.hold(size, error)
            return _Held(rows, size)

    def _hold(self, size: int) -> None:
        self._in_memory += size
        self._budget.used += size

    def __del__(self) -> None:
        # Stopping a task does not notify it, so it cannot close its queues itself.
        self.close()
