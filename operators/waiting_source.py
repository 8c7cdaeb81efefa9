"""What waits at a ScaleGate, source by source."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from topology.event_time import Times
from topology.messages import Time, rows_bytes
from topology.spill import SpillQueue

MEMORY = 64 * 1024 * 1024
"""Bytes of a source's waiting rows that stay in memory; the rest is on disk."""


class SourceName(NamedTuple):
    """A physical source and the stream that it feeds; sources are ordered by these."""

    name: str
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one batch, with their times, the first and the last of these, when they came in, and their bytes."""

    rows: pa.RecordBatch
    times: Times
    born: float
    first: Time
    last: Time
    nbytes: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, times: Times, born: float, nbytes: int | None = None) -> Part:
        """Find out what is not given."""
        size = rows_bytes(rows) + times.nbytes if nbytes is None else nbytes
        return cls(rows, times, born, times[0].item(), times[-1].item(), size)

    def split(self, count: int) -> tuple[Part, Part]:
        """The first `count` rows, and the others."""
        own = self.nbytes * count // len(self.times)
        return (
            Part.of(self.rows.slice(0, count), self.times[:count], self.born, own),
            Part.of(self.rows.slice(count), self.times[count:], self.born, self.nbytes - own),
        )


class OnDisk(NamedTuple):
    """What is known of a batch on disk."""

    born: float
    rows: int
    first: Time
    last: Time


@dataclass
class WaitingSource:
    """One physical source: the parts in memory, and the batches behind them, on disk."""

    name: SourceName
    queue: SpillQueue
    parts: deque[Part] = field(default_factory=deque)
    behind: deque[OnDisk] = field(default_factory=deque)
    nbytes: int = 0
    waiting: int = 0
    frontier: Time | None = None
    ended: bool = False

    def append(self, part: Part) -> None:
        """Add rows behind all others."""
        if not self.parts or (not self.behind and self.nbytes + part.nbytes <= MEMORY):
            self.parts.append(part)
            self.nbytes += part.nbytes
        else:
            self.queue.append(part.rows.append_column("", pa.array(part.times)))
            self.behind.append(OnDisk(part.born, len(part.times), part.first, part.last))
        self.waiting += len(part.times)
        self.frontier = part.last

    def take(self, border: Border | None) -> list[Part]:
        """Remove and return the rows up to and including the border (None: all)."""
        taken: list[Part] = []
        left = border.cut_count if border is not None and border.cut_source is self else self.waiting
        while self.parts and left:
            part = self.parts[0]
            size = len(part.times)
            count = min(left, size)
            if border is not None and border.cut_source is not self:
                count = border.count(self.name, part)
            if not count:
                break
            if count < size:
                part, self.parts[0] = part.split(count)
            else:
                self.parts.popleft()
                if not self.parts and self.behind:
                    self._load()
            self.nbytes -= part.nbytes
            taken.append(part)
            self.waiting -= count
            left -= count
            if count < size:
                break
        return taken

    def most_before(self, border: Border) -> int:
        """How many rows at most lie up to the border: exactly those in memory, and all of a batch that begins there."""
        if border.cut_source is self:
            return border.cut_count
        rows = 0
        for part in self.parts:
            count = border.count(self.name, part)
            rows += count
            if count < len(part.times):
                return rows
        for batch in self.behind:
            if (batch.first, self.name) > border.place:
                break
            rows += batch.rows
        return rows

    def cut(self, rows: int) -> Border:
        """The border after the first `rows` rows, or after the last batch that ends within them."""
        count, last = 0, self.parts[0].first
        for part in self.parts:
            size = len(part.times)
            if count + size > rows:
                if count < rows:
                    last = part.times[rows - count - 1].item()
                return Border(last, self.name, self, rows)
            count += size
            last = part.last
        for batch in self.behind:
            if count + batch.rows > rows:
                break
            count += batch.rows
            last = batch.last
        return Border(last, self.name, self, count)

    def _load(self) -> None:
        """Bring the first batch on disk back."""
        rows, batch = self.queue.popleft(), self.behind.popleft()
        columns = rows.num_columns - 1
        part = Part.of(rows.select(list(range(columns))), rows.column(columns).to_numpy(), batch.born)
        self.parts.append(part)
        self.nbytes += part.nbytes


@dataclass(frozen=True)
class Border:
    """Rows up to (time, source) may pass; of `cut_source`, exactly its first `cut_count`."""

    time: Time
    name: SourceName
    cut_source: WaitingSource | None = None
    cut_count: int = 0

    @property
    def place(self) -> tuple[Time, SourceName]:
        return (self.time, self.name)

    def count(self, name: SourceName, part: Part) -> int:
        """How many rows of another source's part may pass."""
        if name <= self.name:
            return len(part.times) if part.last <= self.time else int(part.times.searchsorted(self.time, "right"))
        return len(part.times) if part.last < self.time else int(part.times.searchsorted(self.time, "left"))
