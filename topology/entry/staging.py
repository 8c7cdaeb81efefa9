"""The staged rows of one stream: kept out of sight until their attempt is committed, then given out.

Rows of each attempt wait in a queue of their own, on disk beyond a bound. A commit moves that queue to the committed
ones as it is, so each row is spilled at most once here. `next` always takes from the source that lags behind in event
time: so the gate downstream rarely has to hold many rows of a source that is ahead.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pyarrow as pa

from topology.graph.messages import Time
from topology.tasks.spill import SpillQueue


@dataclass(frozen=True)
class Committed:
    """The next rows of a committed source with their time bounds; `rows` is None after the last ones."""

    source: str
    rows: pa.RecordBatch | None
    times: tuple[Time, Time] | None = None


@dataclass
class _Staged:
    queue: SpillQueue
    times: deque[tuple[Time, Time] | None] = field(default_factory=deque)
    latest: Time | None = None


class Staging:
    """Keeps rows and nothing else: `SourceLedger` decides what may be staged and which attempt wins.

    Not thread-safe, and never waits for anything except the disk.
    """

    def __init__(self, spill_directory: str | None = None) -> None:
        self._spill_directory = spill_directory
        self._attempts: dict[tuple[str, str], _Staged] = {}
        self._committed: dict[str, _Staged] = {}

    def keep(self, source: str, attempt: str, rows: pa.RecordBatch, times: tuple[Time, Time] | None) -> None:
        """Keep the next rows of an attempt, with their time bounds."""
        staged = self._attempts.get((source, attempt)) or self._new()
        staged.queue.append(rows)
        staged.times.append(times)
        self._attempts[source, attempt] = staged

    def commit(self, source: str, attempt: str) -> None:
        """Give out the rows of this attempt from now on; drop those of the source's other attempts."""
        self._committed[source] = self._attempts.get((source, attempt)) or self._new()
        self._attempts.pop((source, attempt), None)
        for loser in [key for key in self._attempts if key[0] == source]:
            self._attempts.pop(loser).queue.close()

    def next(self) -> Committed | None:
        """Remove and return the next rows of the committed source that lags furthest behind; None if none is left."""
        if not self._committed:
            return None
        source, staged = min(self._committed.items(), key=_lag)
        if not staged.queue:
            self._committed.pop(source).queue.close()
            return Committed(source, None)
        times = staged.times.popleft()
        if times is not None:
            staged.latest = times[1]
        return Committed(source, staged.queue.popleft(), times)

    def close(self) -> None:
        """Drop all rows and give the disk space back."""
        for staged in [*self._attempts.values(), *self._committed.values()]:
            staged.queue.close()
        self._attempts.clear()
        self._committed.clear()

    def _new(self) -> _Staged:
        return _Staged(SpillQueue(directory=self._spill_directory))


def _lag(item: tuple[str, _Staged]) -> tuple[bool, Time, str]:
    """Order sources that have given out nothing first, then by the latest time that they have given out."""
    source, staged = item
    return (staged.latest is not None, staged.latest if staged.latest is not None else 0, source)
