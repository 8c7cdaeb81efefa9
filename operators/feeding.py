"""Feeds a running join from finite inputs, with one thread for all sources.

The source that has sent the fewest rows sends next, so no source runs far ahead and few rows wait in the gate.
Back-pressure blocks this thread, never the reader of the results.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeGuard

import pyarrow as pa

from operators.query.errors import JoinError
from topology import (
    FrameKind,
    Handle,
    InputError,
    InterlaceError,
    SchemaError,
    StoppedError,
    arrow_table,
    frame_kind,
    is_columns,
)

FEED_ROWS = 1 << 16
"""The most rows in a batch of a table."""


@dataclass
class Feed:
    """One physical source: its batches and, if known beforehand, their schema."""

    stream: str
    source: str
    batches: Iterator[pa.RecordBatch]
    schema: pa.Schema | None


def sources_of(stream: str, rows: object) -> list[Feed]:
    """List the sources of one stream, given its rows, or a mapping of source name to rows."""
    if isinstance(rows, Mapping) and not is_columns(rows):
        return [_feed(stream, name, each) for name, each in rows.items()]
    return [_feed(stream, stream, rows)]


def _feed(stream: str, source: str, rows: object) -> Feed:
    if not isinstance(source, str) or not source:
        raise JoinError(f"stream '{stream}': a source needs a name, not {source!r}")
    where = f"stream '{stream}', source '{source}'"
    if isinstance(rows, pa.RecordBatchReader):  # may be longer than memory: read as the join takes it
        return Feed(stream, source, _batches(where, rows), rows.schema)
    if _holds_frames(rows):
        return Feed(stream, source, _batches(where, rows), None)
    try:
        table = arrow_table(where, rows)
    except SchemaError:
        raise
    except InputError as error:
        raise JoinError(str(error)) from None
    return Feed(stream, source, iter(table.to_batches(max_chunksize=FEED_ROWS)), table.schema)


def _holds_frames(rows: object) -> TypeGuard[Iterable[object]]:
    """Whether these are frames that come one after the other; a sequence without items gives no rows."""
    if isinstance(rows, Sequence):
        return not isinstance(rows, str | bytes) and (
            len(rows) == 0 or frame_kind(rows[0]) not in (None, FrameKind.PYTHON)
        )
    return isinstance(rows, Iterable) and frame_kind(rows) is None and not hasattr(rows, "dtype")


def _batches(where: str, frames: Iterable[object]) -> Iterator[pa.RecordBatch]:
    """The rows of frames that come one after the other."""
    for frame in frames:
        if isinstance(frame, pa.RecordBatch):
            yield frame
        else:
            yield from arrow_table(where, frame).to_batches(max_chunksize=FEED_ROWS)


class Feeding:
    """Sends all feeds in a thread of its own and then finishes; a context manager that waits for the thread."""

    def __init__(self, running: Handle, feeds: list[Feed]) -> None:
        self._running = running
        self._feeds = feeds
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Feeding:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._running.stop()  # wakes the thread if back-pressure blocks it
        self._thread.join()
        if error is not None and self._error is not None and isinstance(error, StoppedError):
            raise self._error from None

    def raise_error(self) -> None:
        """Raise the error that stopped the feeding, if there was one."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._send_all()
        except BaseException as error:
            self._error = error
        with suppress(InterlaceError):  # if the topology has failed, the reader gets the error
            self._running.finish()

    def _send_all(self) -> None:
        turn = [(0, index) for index in range(len(self._feeds))]
        heapq.heapify(turn)
        while turn:
            sent, index = heapq.heappop(turn)
            feed = self._feeds[index]
            batch: Any = next(feed.batches, None)
            if batch is None:
                self._running.finish(feed.stream, feed.source)
                continue
            self._running.send(feed.stream, batch, feed.source)
            heapq.heappush(turn, (sent + batch.num_rows, index))
