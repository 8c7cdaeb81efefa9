"""The entry of a topology that goes on in another life, in the same process.

A call that the end of a life interrupts is made again in the next. That changes nothing if it had come through: rows
are either in the journal, and then their call succeeds, or were never taken; all other calls may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import pyarrow as pa

from topology.checks.quotas import Quotas
from topology.entry.feeds import Delay, MicroBatchPart
from topology.entry.ingest import Ingest
from topology.graph.errors import StoppedError

T = TypeVar("T")


class Entry(Protocol):
    """What clients in other processes may ask of an entry; see `Ingest`."""

    def open(self, stream: str, source: str, behind: str | None = None) -> None: ...

    def send(self, stream: str, source: str, rows: pa.RecordBatch, offset: int | None = None) -> int: ...

    def stage(
        self, stream: str, source: str, attempt: str, rows: pa.RecordBatch, quotas: Quotas | None = None
    ) -> None: ...

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None: ...

    def discard(self, stream: str, attempts: str) -> None: ...

    def open_feed(
        self, stream: str, feed: str, query: str, take_over: bool = False, delay: Delay | None = None
    ) -> int: ...

    def stage_micro_batch(
        self, stream: str, part: MicroBatchPart, rows: pa.RecordBatch, quotas: Quotas | None = None
    ) -> None: ...

    def commit_micro_batch(
        self, stream: str, feed: str, query: str, number: int, attempts: Mapping[str, int]
    ) -> None: ...

    def finish(self, stream: str, source: str | None = None) -> None: ...

    def flush(self, timeout: float | None = None) -> None: ...

    def pin(self, stream: str, schema: pa.Schema) -> None: ...

    def schema(self, stream: str) -> pa.Schema | None: ...

    def durable_offset(self, stream: str, source: str) -> int: ...

    def is_open(self, stream: str, source: str) -> bool: ...


class EntryOfLives:
    """As `Ingest`, in whichever life. What a call has recorded is durable when it returns.

    current:  returns the entry of the life that runs.
    outlived: called with an entry that has been closed: waits for the next life; False: there is none.
    """

    def __init__(self, current: Callable[[], Ingest], outlived: Callable[[Ingest], bool]) -> None:
        self._current = current
        self._outlived = outlived

    def open(self, stream: str, source: str, behind: str | None = None) -> None:
        """As `Ingest.open`."""
        self._durably(lambda entry: entry.open(stream, source, behind))

    def send(self, stream: str, source: str, rows: pa.RecordBatch, offset: int | None = None) -> int:
        """As `Ingest.send`."""
        return self._call(lambda entry: entry.send(stream, source, rows, offset))

    def stage(self, stream: str, source: str, attempt: str, rows: pa.RecordBatch, quotas: Quotas | None = None) -> None:
        """As `Ingest.stage`."""
        self._call(lambda entry: entry.stage(stream, source, attempt, rows, quotas))

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """As `Ingest.commit`."""
        self._call(lambda entry: entry.commit(stream, source, attempt, rows))

    def discard(self, stream: str, attempts: str) -> None:
        """As `Ingest.discard`."""
        self._call(lambda entry: entry.discard(stream, attempts))

    def open_feed(self, stream: str, feed: str, query: str, take_over: bool = False, delay: Delay | None = None) -> int:
        """As `Ingest.open_feed`."""
        return self._call(lambda entry: entry.open_feed(stream, feed, query, take_over, delay))

    def stage_micro_batch(
        self, stream: str, part: MicroBatchPart, rows: pa.RecordBatch, quotas: Quotas | None = None
    ) -> None:
        """As `Ingest.stage_micro_batch`."""
        self._call(lambda entry: entry.stage_micro_batch(stream, part, rows, quotas))

    def commit_micro_batch(self, stream: str, feed: str, query: str, number: int, attempts: Mapping[str, int]) -> None:
        """As `Ingest.commit_micro_batch`."""
        self._call(lambda entry: entry.commit_micro_batch(stream, feed, query, number, attempts))

    def finish(self, stream: str, source: str | None = None) -> None:
        """As `Ingest.finish`."""
        self._call(lambda entry: entry.finish(stream, source))

    def flush(self, timeout: float | None = None) -> None:
        """As `Ingest.flush`."""
        self._call(lambda entry: entry.flush(timeout))

    def pin(self, stream: str, schema: pa.Schema) -> None:
        """As `Ingest.pin`."""
        self._durably(lambda entry: entry.pin(stream, schema))

    def schema(self, stream: str) -> pa.Schema | None:
        """As `Ingest.schema`."""
        return self._current().schema(stream)

    def durable_offset(self, stream: str, source: str) -> int:
        """As `Ingest.durable_offset`."""
        return self._call(lambda entry: entry.durable_offset(stream, source))

    def is_open(self, stream: str, source: str) -> bool:
        """As `Ingest.is_open`."""
        return self._current().is_open(stream, source)

    def _durably(self, call: Callable[[Ingest], None]) -> None:
        def call_and_wait(entry: Ingest) -> None:
            call(entry)
            entry.flush()

        self._call(call_and_wait)

    def _call(self, call: Callable[[Ingest], T]) -> T:
        while True:
            entry = self._current()
            try:
                return call(entry)
            except StoppedError:
                if not self._outlived(entry):
                    raise
