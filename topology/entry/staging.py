"""The staged rows of one stream: kept out of sight until their attempt is committed, then given out.

Rows of each attempt wait in a queue of their own. All of them share one memory bound, and files on disk beyond it. A
commit moves a queue to the committed ones as it is, so each row is spilled at most once here. `next` always takes from
the source that lags behind in event time: so the gate downstream rarely holds many rows of a source that is ahead.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pyarrow as pa

from topology.checks.quotas import Quotas
from topology.graph.errors import QuotaError
from topology.graph.messages import Time, rows_bytes
from topology.tasks.budget import waiting_memory
from topology.tasks.spill_files import Spilled, SpillFiles
from topology.tasks.spill_room import FULL, spill_room

MEMORY = 64 * 1024 * 1024
"""The bytes of all attempts of a stream that are kept in memory."""


@dataclass(frozen=True)
class Committed:
    """The next rows of a committed source with their time bounds; `rows` is None after the last ones."""

    source: str
    rows: pa.RecordBatch | None
    times: tuple[Time, Time] | None = None


@dataclass
class _Staged:
    queue: deque[pa.RecordBatch | Spilled] = field(default_factory=deque)
    times: deque[tuple[Time, Time] | None] = field(default_factory=deque)
    latest: Time | None = None


class Staging:
    """Keeps rows and nothing else: `SourceLedger` decides what may be staged and which attempt wins.

    Not thread-safe, and never waits for anything except the disk.
    """

    def __init__(self, spill_directory: str | None = None, memory: int = MEMORY) -> None:
        self._memory = memory
        self._in_memory = 0
        self._files = SpillFiles(spill_directory)
        self._room = spill_room(spill_directory)
        self._attempts: dict[tuple[str, str], _Staged] = {}
        self._committed: dict[str, _Staged] = {}

    @property
    def memory_bytes(self) -> int:
        """Bytes of the rows in memory."""
        return self._in_memory

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, in memory and on disk."""
        return self._in_memory + self._files.nbytes

    def require_room(self, stream: str, source: str, attempt: str, rows: pa.RecordBatch, quotas: Quotas) -> None:
        """Raise a `QuotaError` if these rows would be too many, before anything has changed."""
        if (source, attempt) not in self._attempts and len(self._attempts) >= quotas.attempts:
            raise QuotaError(
                f"stream '{stream}' has {quotas.attempts:,} attempts staged, and no more are taken: commit some, or "
                f"raise Quotas(attempts=...)"
            )
        size = rows_bytes(rows)
        if not waiting_memory.has_room(size) and not self._room.disk.has_room(size):
            raise QuotaError(
                f"stream '{stream}' takes no more staged rows: rows that wait in this process use "
                f"{self._room.disk.used:,} bytes of disk, and may use {self._room.disk.most:,}: commit some and read "
                f"results, or raise Budget(disk=...)"
            )
        if self.nbytes + size > quotas.staged_bytes:
            raise QuotaError(
                f"stream '{stream}' has {self.nbytes:,} bytes staged, and at most {quotas.staged_bytes:,} are taken: "
                f"commit them and read results, or raise Quotas(staged_bytes=...)"
            )

    def keep(self, source: str, attempt: str, rows: pa.RecordBatch, times: tuple[Time, Time] | None) -> None:
        """Keep the next rows of an attempt, with their time bounds."""
        size = rows_bytes(rows)
        staged = self._attempts.get((source, attempt)) or _Staged()
        fits = self._in_memory + size <= self._memory and waiting_memory.take(size)
        kept = rows if fits else self._spilled(rows)
        staged.queue.append(kept)
        if kept is rows:
            self._in_memory += size
            waiting_memory.add(0 if fits else size)
        staged.times.append(times)
        self._attempts[source, attempt] = staged

    def commit(self, source: str, attempt: str) -> None:
        """Give out the rows of this attempt from now on; drop those of the source's other attempts."""
        self._committed[source] = self._attempts.pop((source, attempt), _Staged())
        for loser in [key for key in self._attempts if key[0] == source]:
            self.drop(*loser)

    def take(self, source: str, attempt: str) -> list[pa.RecordBatch]:
        """Remove and return the rows of an attempt that is not committed as a whole source."""
        return [self._take(item) for item in self._attempts.pop((source, attempt), _Staged()).queue]

    def drop(self, source: str, attempt: str) -> None:
        """Drop the rows of an attempt."""
        for item in self._attempts.pop((source, attempt), _Staged()).queue:
            self._drop(item)

    def next(self) -> Committed | None:
        """Remove and return the next rows of the committed source that lags furthest behind; None if none is left."""
        if not self._committed:
            return None
        source, staged = min(self._committed.items(), key=_lag)
        if not staged.queue:
            del self._committed[source]
            return Committed(source, None)
        times = staged.times.popleft()
        if times is not None:
            staged.latest = times[1]
        return Committed(source, self._take(staged.queue.popleft()), times)

    def close(self) -> None:
        """Drop all rows and give the disk space back."""
        self._attempts.clear()
        self._committed.clear()
        self._files.close()
        self._free(self._in_memory)

    def _spilled(self, rows: pa.RecordBatch) -> pa.RecordBatch | Spilled:
        """Put rows on disk; if that is full they stay here, and the quota bounds them."""
        try:
            return self._files.write(rows)
        except OSError as error:
            if error.errno not in FULL:
                raise
            return rows

    def _take(self, item: pa.RecordBatch | Spilled) -> pa.RecordBatch:
        if isinstance(item, Spilled):
            return self._files.take(item)
        self._free(rows_bytes(item))
        return item

    def _drop(self, item: pa.RecordBatch | Spilled) -> None:
        if isinstance(item, Spilled):
            self._files.drop(item)
        else:
            self._free(rows_bytes(item))

    def _free(self, size: int) -> None:
        self._in_memory -= size
        waiting_memory.add(-size)


def _lag(item: tuple[str, _Staged]) -> tuple[bool, Time, str]:
    """Order sources that have given out nothing first, then by the latest time that they have given out."""
    source, staged = item
    return (staged.latest is not None, staged.latest if staged.latest is not None else 0, source)
