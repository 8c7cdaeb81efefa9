"""Rows of writers that may be retried: kept out of sight until the winning attempt is committed.

A committed source is complete, so it waits here, on disk if it is large, and a thread of its own feeds the sources to
the topology as fast as that takes them, always the one that lags behind in event time. So `commit` returns at once,
and the gate downstream never has to hold much of a source that is ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from topology.graph.errors import InputError, StoppedError
from topology.graph.messages import Time
from topology.tasks.spill import SpillQueue

JOIN_SECONDS = 10.0


@dataclass
class _Staged:
    queue: SpillQueue
    rows: int = 0
    latest: Time | None = None


@dataclass
class Staging:
    """The staged and the committed sources of one stream.

    check:   refuses rows (rows, source, attempt) that could not be delivered, when they are staged and not when it is
             too late to tell their writer.
    claim:   reserves a source for its committed rows, or refuses.
    deliver: takes (source, rows) into the topology, waits for room and returns the latest event time so far.
    complete: is told when all rows of a source have been delivered.
    """

    stream: str
    check: Callable[[pa.RecordBatch, str, str], None]
    claim: Callable[[str], None]
    deliver: Callable[[str, pa.RecordBatch], Time | None]
    complete: Callable[[str], None]
    spill_directory: str | None = None
    _attempts: dict[tuple[str, str], _Staged] = field(default_factory=dict)
    _committed: dict[str, str] = field(default_factory=dict)
    _ready: dict[str, _Staged] = field(default_factory=dict)
    _when_drained: Callable[[], None] | None = None
    _thread: threading.Thread | None = None
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stage(self, source: str, attempt: str, rows: pa.RecordBatch) -> None:
        """Keep rows of one attempt; rows for a source that is committed already are a straggler's and are dropped."""
        with self._lock:
            if source in self._committed:
                return
            if self._closed:
                raise StoppedError("the topology has been stopped")
            self.check(rows, source, attempt)
            key = (source, attempt)
            if key not in self._attempts:
                self._attempts[key] = _Staged(SpillQueue(directory=self.spill_directory))
            self._attempts[key].queue.append(rows)
            self._attempts[key].rows += rows.num_rows

    def rows(self, source: str, attempt: str) -> int:
        """Rows staged so far by one attempt."""
        with self._lock:
            staged = self._attempts.get((source, attempt))
            return staged.rows if staged else 0

    @property
    def staged_rows(self) -> int:
        """Rows of all attempts that wait for their commit."""
        with self._lock:
            return sum(staged.rows for staged in self._attempts.values())

    def commit(self, source: str, attempt: str, rows: int) -> None:
        """Choose the attempt whose rows count. Repeating it changes nothing; contradicting it is an error."""
        with self._lock:
            winner = self._committed.get(source)
            if winner == attempt:
                return
            if winner is not None:
                raise InputError(
                    f"stream '{self.stream}', source '{source}': attempt '{attempt}' cannot be committed, "
                    f"attempt '{winner}' has been"
                )
            staged = self._attempts.get((source, attempt)) or _Staged(SpillQueue())
            if staged.rows != rows:
                raise InputError(
                    f"stream '{self.stream}', source '{source}': attempt '{attempt}' is said to have {rows} rows, "
                    f"but {staged.rows} have arrived"
                )
            self.claim(source)
            self._committed[source] = attempt
            self._attempts.pop((source, attempt), None)
            for loser in [key for key in self._attempts if key[0] == source]:
                self._attempts.pop(loser).queue.close()
            self._ready[source] = staged
            if self._thread is None:
                self._thread = threading.Thread(target=self._pump, name=f"staged {self.stream}", daemon=True)
                self._thread.start()

    def when_drained(self, action: Callable[[], None]) -> None:
        """Do something after all committed rows have been delivered; at once if they have been."""
        with self._lock:
            if self._thread is not None:
                self._when_drained = action
                return
        action()

    def close(self) -> None:
        """Stop delivering and give the space back."""
        with self._lock:
            self._closed = True
            for staged in [*self._attempts.values(), *self._ready.values()]:
                staged.queue.close()
            self._attempts.clear()
            self._ready.clear()
            thread = self._thread
        if thread is not None:
            thread.join(JOIN_SECONDS)

    def _pump(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                if not self._ready:
                    self._thread = None
                    action, self._when_drained = self._when_drained, None
                    break
                source, staged = min(self._ready.items(), key=_lag)
                rows = staged.queue.popleft() if staged.queue else None
                if rows is None:
                    del self._ready[source]
                    staged.queue.close()
            try:
                if rows is None:
                    self.complete(source)
                else:
                    latest = self.deliver(source, rows)
                    staged.latest = staged.latest if latest is None else latest
            except StoppedError:
                return
        if action is not None:
            with suppress(StoppedError):
                action()


def _lag(item: tuple[str, _Staged]) -> tuple[bool, Time, str]:
    """Sources that have delivered nothing come first, then the one whose event time is furthest behind."""
    source, staged = item
    return (staged.latest is not None, staged.latest if staged.latest is not None else 0, source)
