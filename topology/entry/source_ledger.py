"""The ledger of one stream: how many rows each source and each staged attempt has, and what it may still do.

A source either sends its rows itself, or one of its attempts is committed. An attempt is one try at writing a whole
source; a writer that is retried makes several, and at most one of them counts. The ledger keeps no rows: sent rows go
into the topology and staged rows to `Staging`, after the ledger has checked and counted them.

Every batch is checked once: sent rows in `accept`, staged rows in `stage`. Rows of a committed attempt need no second
check in `release`: their source has no other rows, so their offsets and times are those they were staged with.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import pyarrow as pa

from topology.entry.input_guard import InputGuard
from topology.graph.components import DEFAULT_STREAM, Input
from topology.graph.errors import InputError, OffsetGapError, SourceEndedError
from topology.graph.messages import Batch, Time
from topology.journal.image import StreamImage


@dataclass
class _Rows:
    """The rows counted so far and the latest event time among them."""

    count: int = 0
    latest: Time | None = None

    def add(self, rows: pa.RecordBatch, times: tuple[Time, Time] | None) -> None:
        self.count += rows.num_rows
        if times is not None:
            self.latest = times[1] if self.latest is None else max(self.latest, times[1])


@dataclass
class _Source(_Rows):
    """A source counts the rows that have entered the topology; `attempt` is the committed attempt."""

    attempt: str | None = None
    ended: bool = False


class SourceLedger:
    """The sources and attempts of one stream. A refused call changes nothing.

    Any thread may call it. No call waits for anything except `lock`. A caller may hold `lock` around several calls,
    but never while rows wait for room.
    """

    def __init__(self, stream: str, description: Input) -> None:
        self.lock = threading.RLock()
        self._stream = stream
        self._guard = InputGuard(stream, description)
        self._sources: dict[str, _Source] = {}
        self._attempts: dict[tuple[str, str], _Rows] = {}
        self._discarded: tuple[str, ...] = ()  # beginnings of names of attempts
        self._finished = False

    def restore(self, image: StreamImage) -> None:
        """Go on where another ledger of the stream was; only for a new one. Staged rows are staged again."""
        with self.lock:
            if image.schema is not None:
                self._guard.pin(image.schema)
            self._finished = image.finished
            for name, known in image.sources.items():
                if known.announced:
                    self._sources[name] = _Source(known.count, known.latest, known.attempt, known.ended)

    def attempt_rows(self, source: str, attempt: str) -> int:
        """How many rows of an attempt have been staged."""
        with self.lock:
            return self._attempts.get((source, attempt), _Rows()).count

    @property
    def sources(self) -> dict[str, int]:
        """Rows taken so far from each source."""
        with self.lock:
            return {name: source.count for name, source in self._sources.items()}

    def reached(self) -> dict[str, Time | None]:
        """How far each source that has not ended is, in event time or else in rows; None: it has no rows yet.

        A stream of which no source is known, and that is not finished, stands for one.
        """
        with self.lock:
            if not self._sources and not self._finished:
                return {"": None}
            return {
                name: source.latest if source.latest is not None else source.count or None
                for name, source in self._sources.items()
                if not source.ended
            }

    def is_known(self, source: str) -> bool:
        """Whether a source has been announced, has sent rows or has been committed."""
        with self.lock:
            return source in self._sources

    def is_open(self, source: str) -> bool:
        """Whether a source is known, and neither committed nor ended."""
        with self.lock:
            known = self._sources.get(source)
            return known is not None and known.attempt is None and not known.ended

    def is_committed(self, source: str) -> bool:
        """Whether an attempt at a source has been committed."""
        with self.lock:
            known = self._sources.get(source)
            return known is not None and known.attempt is not None

    def is_discarded(self, attempt: str) -> bool:
        """Whether nothing of an attempt is kept."""
        with self.lock:
            return bool(self._discarded) and attempt.startswith(self._discarded)

    def discard(self, attempts: str) -> list[str]:
        """Keep nothing more of attempts whose names begin so; return the sources for which they have staged rows."""
        with self.lock:
            self._discarded = (*self._discarded, attempts)
            return sorted({source for source, attempt in self._attempts if attempt.startswith(attempts)})

    @property
    def schema(self) -> pa.Schema | None:
        """The schema that all rows have; None while it is not known."""
        with self.lock:
            return self._guard.schema

    def pin(self, schema: pa.Schema) -> None:
        """Check a schema and keep it for all rows that follow."""
        with self.lock:
            self._guard.pin(schema)

    def open(self, source: str) -> bool:
        """Announce a source; return whether it is new."""
        with self.lock:
            if not source:
                raise InputError(f"stream '{self._stream}': a source needs a name")
            if source in self._sources:
                return False
            self._require_unfinished()
            self._sources[source] = _Source()
            return True

    def next_offset(self, source: str) -> int:
        """The offset of the next row of a source: the rows that it has sent; 0 if it is not known."""
        with self.lock:
            return self._sources.get(source, _Source()).count

    def new_rows(self, source: str, rows: pa.RecordBatch, offset: int) -> pa.RecordBatch | None:
        """Return those of the rows from `offset` on that are not here already; None if all are.

        What is dropped is not compared with what is here. Rows behind a gap are refused.
        """
        with self.lock:
            known = self._sources.get(source, _Source())
            if known.attempt is not None:
                return rows  # refused by `accept`: a committed source has all its rows
            if offset > known.count:
                raise OffsetGapError.between(self._stream, source, known.count, offset)
            if offset < known.count and offset + rows.num_rows <= known.count:
                return None
            return rows.slice(known.count - offset)

    def accept(self, source: str, rows: pa.RecordBatch) -> Batch:
        """Check the next rows that a source sends, and number them; `record` counts them once they are queued."""
        with self.lock:
            known = self._sources.get(source, _Source())
            self._require_unfinished()
            if known.ended or known.attempt is not None:
                raise SourceEndedError(
                    f"stream '{self._stream}': source '{source}' has ended; it cannot send more rows"
                )
            times = self._guard.check(rows, source, known.count, known.latest)
            return _batch(source, rows, known.count, times)

    def release(self, source: str, rows: pa.RecordBatch, times: tuple[Time, Time] | None) -> Batch:
        """Number the next rows of a committed attempt; `times` are those that `stage` returned for them.

        Allowed after `finish`: rows committed before still enter.
        """
        with self.lock:
            return _batch(source, rows, self._sources[source].count, times)

    def record(self, batch: Batch) -> None:
        """Count a batch that `accept` or `release` made."""
        with self.lock:
            self._sources.setdefault(batch.source, _Source()).add(batch.rows, batch.times)

    def stage(self, source: str, attempt: str, rows: pa.RecordBatch) -> tuple[Time, Time] | None:
        """Check and count the next rows of one attempt; return their time bounds. Attempts are checked separately."""
        with self.lock:
            self._require_unfinished()
            staged = self._attempts.get((source, attempt), _Rows())
            times = self._guard.check(rows, source, staged.count, staged.latest)
            staged.add(rows, times)
            self._attempts[source, attempt] = staged
            return times

    def check(self, source: str, rows: pa.RecordBatch) -> tuple[Time, Time] | None:
        """Check rows of a feed, in any order of time, before it is known where they belong; return their bounds."""
        with self.lock:
            self._require_unfinished()
            return self._guard.check(rows, source, disordered=True)

    def require_unended(self, source: str) -> None:
        """Raise an error if a source cannot have more rows."""
        with self.lock:
            self._require_unfinished()
            known = self._sources.get(source, _Source())
            if known.ended or known.attempt is not None:
                raise SourceEndedError(f"stream '{self._stream}': source '{source}' has ended; it takes no more rows")

    def number(self, source: str, rows: pa.RecordBatch) -> Batch:
        """Number the next rows of a feed, which `check` has seen; `record` counts them once they are queued."""
        with self.lock:
            first = self._sources[source].count
            return _batch(source, rows, first, self._guard.check(rows, source, first, disordered=True))

    def latest(self, source: str) -> Time | None:
        """The greatest event time of a source so far."""
        with self.lock:
            return self._sources.get(source, _Source()).latest

    def commit(self, source: str, attempt: str, rows: int) -> bool:
        """Give a source to one attempt, which must have staged exactly `rows` rows; forget its other attempts.

        Return whether that is new: repeating a commit changes nothing, contradicting one is an error.
        """
        with self.lock:
            known = self._sources.get(source)
            winner = known.attempt if known is not None else None
            if winner == attempt:
                return False
            if winner is not None:
                raise InputError(
                    f"stream '{self._stream}', source '{source}': attempt '{attempt}' cannot be committed, "
                    f"because attempt '{winner}' has been committed already"
                )
            staged = self._attempts.get((source, attempt), _Rows()).count
            if staged != rows:
                raise InputError(
                    f"stream '{self._stream}', source '{source}': attempt '{attempt}' cannot be committed with {rows} "
                    f"rows, because {staged} have arrived"
                )
            self._require_unfinished()
            if known is not None and (known.count or known.ended):
                raise InputError(
                    f"stream '{self._stream}', source '{source}': it has sent rows itself or has ended, "
                    f"so staged rows cannot be committed under its name: use another source name"
                )
            self._sources[source] = _Source(attempt=attempt)
            for key in [key for key in self._attempts if key[0] == source]:
                del self._attempts[key]
            return True

    def end(self, source: str) -> bool:
        """End a source that sends its rows itself; return whether that is new.

        A committed source ends with its last row (`end_committed`), not here.
        """
        with self.lock:
            known = self._sources.get(source)
            if known is None:
                names = ", ".join(f"'{name}'" for name in self._sources) or "none"
                raise InputError(f"stream '{self._stream}' has no source '{source}'; its sources: {names}")
            fresh = known.attempt is None and not known.ended
            known.ended = known.ended or fresh
            return fresh

    def end_committed(self, source: str) -> None:
        """End a committed source: all its rows have entered."""
        with self.lock:
            self._sources[source].ended = True

    def end_all(self) -> list[str]:
        """End every source; return those that had not ended."""
        with self.lock:
            fresh = [name for name, source in self._sources.items() if not source.ended]
            for name in fresh:
                self._sources[name].ended = True
            return fresh

    @property
    def is_finished(self) -> bool:
        """Whether nothing more is accepted, staged or committed."""
        with self.lock:
            return self._finished

    def finish(self) -> bool:
        """Accept, stage and commit nothing more; return whether that is new."""
        with self.lock:
            fresh = not self._finished
            self._finished = True
            return fresh

    def _require_unfinished(self) -> None:
        if self._finished:
            raise SourceEndedError(f"stream '{self._stream}' has been finished; it takes no more rows")


def _batch(source: str, rows: pa.RecordBatch, first: int, times: tuple[Time, Time] | None) -> Batch:
    return Batch(DEFAULT_STREAM, rows, first, source, times, time.time())
