"""Rows of one source with their offsets, first in, first out, on disk beyond a bound."""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from topology.tasks.spill import MemoryBudget, SpillQueue

MEMORY = 16 * 1024 * 1024
"""Bytes of a source's rows that stay in memory."""

MEMORY_OF_ALL = 256 * 1024 * 1024
"""The same for all sources together."""


class RowQueue:
    """Batches in the order of their offsets."""

    def __init__(self, directory: str | None = None, budget: MemoryBudget | None = None) -> None:
        self._rows = SpillQueue(MEMORY, directory, budget)
        self._firsts: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._firsts)

    @property
    def first(self) -> int:
        """The offset of the first row; only where there is one."""
        return self._firsts[0]

    def append(self, first: int, rows: pa.RecordBatch) -> None:
        """Add rows at the end, the first of them at offset `first`."""
        self._rows.append(rows)
        self._firsts.append(first)

    def popleft(self) -> tuple[int, pa.RecordBatch]:
        """Remove and return the first batch, with the offset of its first row."""
        return self._firsts.popleft(), self._rows.popleft()
