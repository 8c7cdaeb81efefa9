"""A run of rows that wait at a ScaleGate: of one source, in order; the first in memory, the rest on disk."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.values.takeable_types import take_rows
from topology import SpillQueue, Time, Times, rows_bytes, waiting_memory


class SourceName(NamedTuple):
    """A physical source and the stream that it feeds; sources are ordered by these."""

    name: str
    stream: str = ""


class Rank(NamedTuple):
    """The order of runs at equal times: by source, and within a source by offset."""

    name: SourceName
    number: int = 0


LAST = 2**62
"""A rank with this number comes after all runs of its source."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one batch, with their times, the first and last time, when they arrived, and their size in bytes."""

    rows: pa.RecordBatch
    times: Times
    born: float
    first: Time
    last: Time
    nbytes: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, times: Times, born: float, nbytes: int | None = None) -> Part:
        """Derive the first and last time, and the size unless it is given."""
        size = rows_bytes(rows) + times.nbytes if nbytes is None else nbytes
        return cls(rows, times, born, times[0].item(), times[-1].item(), size)

    def copy(self, nbytes: int | None = None) -> Part:
        """Copy the rows into memory of their own."""
        rows = take_rows(self.rows, np.arange(len(self.times)))
        return Part.of(rows, self.times.copy(), self.born, nbytes)

    def split(self, count: int) -> tuple[Part, Part]:
        """Split into the first `count` rows and the rest."""
        own = self.nbytes * count // len(self.times)
        return (
            Part.of(self.rows.slice(0, count), self.times[:count], self.born, own),
            Part.of(self.rows.slice(count), self.times[count:], self.born, self.nbytes - own),
        )


class OnDisk(NamedTuple):
    """The facts about a batch on disk that are kept in memory; its times were multiplied by `factor` since."""

    born: float
    rows: int
    first: Time
    last: Time
    factor: int = 1


@dataclass(eq=False)
class WaitingRun:
    """Rows of one source in order of time: parts in memory, followed by batches on disk.

    level:  how many times its rows have been merged with those of other runs.
    copied: the number of rows its memory was allocated for, where it was allocated here; see `compact`.
    """

    rank: Rank
    queue: SpillQueue
    parts: deque[Part] = field(default_factory=deque)
    behind: deque[OnDisk] = field(default_factory=deque)
    nbytes: int = 0
    waiting: int = 0
    level: int = 0
    copied: int = 0

    def append(self, part: Part, memory: int) -> None:
        """Append rows; beyond `memory` bytes they go to disk, unless the run is empty."""
        fits = not self.behind and self.nbytes + part.nbytes <= memory and waiting_memory.take(part.nbytes)
        if not self.parts or fits:
            self.parts.append(part)
            self.nbytes += part.nbytes
            waiting_memory.add(0 if fits else part.nbytes)
        else:
            self.queue.append(part.rows.append_column("", pa.array(part.times)))
            self.behind.append(OnDisk(part.born, len(part.times), part.first, part.last))
        self.waiting += len(part.times)

    def take(self, border: Border | None) -> list[Part]:
        """Remove and return the rows up to and including the border (None: all)."""
        taken: list[Part] = []
        left = border.cut_count if border is not None and border.cut_run is self else self.waiting
        while self.parts and left:
            part = self.parts[0]
            size = len(part.times)
            count = min(left, size)
            if border is not None and border.cut_run is not self:
                count = border.count(self.rank, part)
            if not count:
                break
            if count < size:
                part, self.parts[0] = part.split(count)
            else:
                self.parts.popleft()
                if not self.parts and self.behind:
                    self._load()
            self.nbytes -= part.nbytes
            waiting_memory.add(-part.nbytes)
            taken.append(part)
            self.waiting -= count
            left -= count
            if count < size:
                break
        return taken

    def first_times(self, count: int) -> Times:
        """The times of the first `count` rows, or of all if there are fewer; they are in memory then."""
        in_memory = sum(len(part.times) for part in self.parts)
        while in_memory < count and self.behind:
            in_memory += self.behind[0].rows
            self._load()
        found: Times = np.concatenate([part.times for part in self.parts])
        return found[:count]

    def most_before(self, border: Border) -> int:
        """Bound the rows up to the border from above: exact in memory; whole batches on disk."""
        if border.cut_run is self:
            return border.cut_count
        rows = 0
        for part in self.parts:
            count = border.count(self.rank, part)
            rows += count
            if count < len(part.times):
                return rows
        for batch in self.behind:
            if (batch.first, self.rank) > border.place:
                break
            rows += batch.rows
        return rows

    def cut(self, rows: int) -> Border:
        """Return the border after the first `rows` rows, or after the last batch that ends within them."""
        count, last = 0, self.parts[0].first
        for part in self.parts:
            size = len(part.times)
            if count + size > rows:
                if count < rows:
                    last = part.times[rows - count - 1].item()
                return Border(last, self.rank, self, rows)
            count += size
            last = part.last
        for batch in self.behind:
            if count + batch.rows > rows:
                break
            count += batch.rows
            last = batch.last
        return Border(last, self.rank, self, count)

    def is_like(self, other: WaitingRun) -> bool:
        """Whether the other run is in memory and has been merged equally often."""
        return not other.behind and other.level == self.level

    def compact(self) -> None:
        """Copy the rows if most of their memory still holds rows that have passed."""
        if 4 * self.waiting < self.copied and len(self.parts) == 1:
            self.parts[0] = self.parts[0].copy(self.nbytes)
            self.copied = self.waiting

    def close(self) -> None:
        """Drop all rows and free their disk space."""
        waiting_memory.add(-self.nbytes)
        self.nbytes = 0
        self.parts.clear()
        self.behind.clear()
        self.waiting = 0
        self.queue.close()

    def __del__(self) -> None:
        # The tasks of a topology that stops are just forgotten.
        waiting_memory.add(-self.nbytes)

    def rescale(self, factor: int) -> None:
        """Multiply all times, which must fit."""
        self.parts = deque(
            replace(part, times=part.times * np.int64(factor), first=part.first * factor, last=part.last * factor)
            for part in self.parts
        )
        self.behind = deque(
            each._replace(first=each.first * factor, last=each.last * factor, factor=each.factor * factor)
            for each in self.behind
        )

    def check_invariants(self) -> None:
        for part in self.parts:
            # Waiting parts are in order and not empty.
            assert len(part.times) == part.rows.num_rows > 0
            assert not (part.times[1:] < part.times[:-1]).any()
            assert (part.first, part.last) == (part.times[0], part.times[-1])
        firsts = [part.first for part in self.parts] + [batch.first for batch in self.behind]
        lasts = [part.last for part in self.parts] + [batch.last for batch in self.behind]
        assert all(last <= first for last, first in zip(lasts, firsts[1:], strict=False))
        # Rows on disk come after those in memory; a run with rows on disk has some in memory.
        assert self.parts or not len(self.queue)
        assert len(self.behind) == len(self.queue)
        # The counts of waiting rows and bytes are right.
        assert self.nbytes == sum(part.nbytes for part in self.parts)
        in_memory = sum(len(part.times) for part in self.parts)
        assert self.waiting == in_memory + sum(each.rows for each in self.behind)

    def _load(self) -> None:
        """Load the first batch on disk back into memory."""
        rows, batch = self.queue.popleft(), self.behind.popleft()
        columns = rows.num_columns - 1
        times = rows.column(columns).to_numpy()
        if batch.factor != 1:
            times = times * np.int64(batch.factor)
        part = Part.of(rows.select(list(range(columns))), times, batch.born)
        self.parts.append(part)
        self.nbytes += part.nbytes
        waiting_memory.add(part.nbytes)


@dataclass(frozen=True)
class Border:
    """Rows up to (time, rank) may pass; of `cut_run`, exactly its first `cut_count`."""

    time: Time
    rank: Rank
    cut_run: WaitingRun | None = None
    cut_count: int = 0

    @property
    def place(self) -> tuple[Time, Rank]:
        return (self.time, self.rank)

    def count(self, rank: Rank, part: Part) -> int:
        """Count the rows of another run's part that may pass."""
        if rank <= self.rank:
            return len(part.times) if part.last <= self.time else int(part.times.searchsorted(self.time, "right"))
        return len(part.times) if part.last < self.time else int(part.times.searchsorted(self.time, "left"))
