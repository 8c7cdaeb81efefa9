"""What may enter: the checks on one input, made before anything changes.

The guard pins the schema, numbers the rows of each physical source, and refuses a source whose event time goes
backwards (unless the input is declared as disordered) or that has ended.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import pyarrow as pa

from topology.graph.components import DEFAULT_STREAM, Input
from topology.graph.errors import InputError, OutOfOrderError, SchemaError, SourceEndedError
from topology.graph.event_time import check_event_time, event_times, first_backwards
from topology.graph.messages import Batch, Time


@dataclass
class _Source:
    rows: int = 0
    latest: Time | None = None
    ended: bool = False
    committed: bool = False  # all its rows are staged; nobody may add to them


class InputGuard:
    """Checks what arrives on one input. A refused batch leaves no trace.

    Any thread may call it; no call waits for anything but the lock, which is never held while rows wait for room.
    """

    def __init__(self, stream: str, description: Input) -> None:
        self.stream = stream
        self.schema = description.schema
        self.lock = threading.RLock()
        self._description = description
        self._sources: dict[str, _Source] = {}
        self._attempts: dict[tuple[str, str], _Source] = {}
        self._finished = False
        if description.schema is not None:
            self._check_schema(description.schema)

    @property
    def sources(self) -> dict[str, int]:
        """Rows taken so far from each source."""
        with self.lock:
            return {name: source.rows for name, source in self._sources.items()}

    def open(self, source: str) -> bool:
        """Announce a source; return whether it is new."""
        with self.lock:
            self._check_unfinished()
            if not source:
                raise InputError(f"stream '{self.stream}': a source needs a name")
            if source in self._sources:
                return False
            self._sources[source] = _Source()
            return True

    def is_open(self, source: str) -> bool:
        """Whether a source has been announced, and is neither committed nor ended."""
        with self.lock:
            known = self._sources.get(source)
            return known is not None and not (known.committed or known.ended)

    def pin(self, schema: pa.Schema) -> None:
        """Check a schema and keep it for all that follows."""
        with self.lock:
            self._fit(schema)
            self.schema = self.schema or schema

    def check(self, rows: pa.RecordBatch, source: str, committed: bool = False) -> Batch:
        """Check the next rows of a source and number them; `record` counts them when they are on their way.

        committed: the rows come from the staging area, which may still deliver when the stream has been finished.
        """
        with self.lock:
            known = self._sources.get(source, _Source())
            if not committed:
                self._check_unfinished()
                if known.ended or known.committed:
                    raise SourceEndedError(
                        f"stream '{self.stream}': source '{source}' has ended; it cannot send more rows"
                    )
            times = self._check_rows(rows, source, known)
            return Batch(DEFAULT_STREAM, rows, known.rows, source, times, time.time())

    def record(self, batch: Batch) -> None:
        """Count a batch that `check` made."""
        with self.lock:
            _advance(self._sources.setdefault(batch.source, _Source()), batch.rows, batch.times)

    def stage(self, rows: pa.RecordBatch, source: str, attempt: str) -> None:
        """Check and count the next rows of one attempt at writing a source."""
        with self.lock:
            self._check_unfinished()
            known = self._attempts.get((source, attempt), _Source())
            _advance(known, rows, self._check_rows(rows, source, known))
            self._attempts[source, attempt] = known

    def claim(self, source: str) -> bool:
        """Give a source to a committed attempt, whole: it must not have sent rows itself. Return whether it is new."""
        with self.lock:
            self._check_unfinished()
            known = self._sources.get(source)
            if known is not None and (known.rows or known.ended):
                raise InputError(
                    f"stream '{self.stream}', source '{source}': it has sent rows itself or has ended, "
                    f"so staged rows cannot be committed under its name: use another source name"
                )
            self._sources[source] = _Source(committed=True)
            for key in [key for key in self._attempts if key[0] == source]:
                del self._attempts[key]
            return known is None

    def finish(self) -> bool:
        """Take nothing more from outside; return whether that is new."""
        with self.lock:
            first = not self._finished
            self._finished = True
            return first

    def end(self, source: str | None, committed: bool = False) -> list[str]:
        """Mark one source, or all, as ended; return those that were not before.

        A committed source ends when its last row has been delivered, and not before.
        """
        with self.lock:
            if source is not None and source not in self._sources:
                known = ", ".join(f"'{name}'" for name in self._sources) or "none"
                raise InputError(f"stream '{self.stream}' has no source '{source}'; its sources: {known}")
            names = list(self._sources) if source is None else [source]
            fresh = [
                name
                for name in names
                if not self._sources[name].ended and (committed or not self._sources[name].committed)
            ]
            for name in fresh:
                self._sources[name].ended = True
            return fresh

    def _check_unfinished(self) -> None:
        if self._finished:
            raise SourceEndedError(f"stream '{self.stream}' has been finished; it takes no more rows")

    def _check_rows(self, rows: pa.RecordBatch, source: str, known: _Source) -> tuple[Time, Time] | None:
        """Check schema and event time; the schema is pinned only if both are right."""
        self._fit(rows.schema)
        times = self._times(rows, source, known)
        self.schema = self.schema or rows.schema
        return times

    def _fit(self, schema: pa.Schema) -> None:
        if self.schema is None:
            self._check_schema(schema)
        elif not schema.equals(self.schema):
            self._check_names(schema)
            raise SchemaError(f"stream '{self.stream}': {_difference(self.schema, schema)}")

    def _check_schema(self, schema: pa.Schema) -> None:
        self._check_names(schema)
        if self._description.event_time is not None:
            check_event_time(self.stream, schema, self._description.event_time)
        if self._description.check is not None:
            self._description.check(schema)

    def _check_names(self, schema: pa.Schema) -> None:
        repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
        if repeated:
            raise SchemaError(f"stream '{self.stream}': column '{repeated[0]}' appears more than once: rename it")

    def _times(self, rows: pa.RecordBatch, source: str, known: _Source) -> tuple[Time, Time] | None:
        """The time bounds of a batch, None if no row has a time; raises where time goes backwards."""
        if rows.num_rows == 0:
            return None
        column = self._description.event_time
        if column is None:
            return known.rows, known.rows + rows.num_rows - 1
        times, valid = event_times(rows.column(column))
        timed = times if valid is None else times[valid]
        if not len(timed):
            return None
        if self._description.disordered:
            return timed.min().item(), timed.max().item()
        found = first_backwards(times, valid, known.latest)
        if found is not None:
            row, before, after = found
            raise OutOfOrderError(
                f"stream '{self.stream}', source '{source}': '{column}' goes backwards at row {known.rows + row} "
                f"({before} is followed by {after}): sort each source by '{column}', declare how far its rows may be "
                f"out of order (out_of_order= of a join), or send them as separate sources"
            )
        return timed[0].item(), timed[-1].item()


def _advance(known: _Source, rows: pa.RecordBatch, times: tuple[Time, Time] | None) -> None:
    known.rows += rows.num_rows
    if times is not None:
        known.latest = times[1]


def _difference(expected: pa.Schema, actual: pa.Schema) -> str:
    missing = [name for name in expected.names if name not in actual.names]
    extra = [name for name in actual.names if name not in expected.names]
    changed = [
        f"'{name}' is {actual.field(name).type}, expected {expected.field(name).type}"
        for name in expected.names
        if name in actual.names and not actual.field(name).type.equals(expected.field(name).type)
    ]
    parts = []
    if missing:
        parts.append(f"column {', '.join(repr(name) for name in missing)} is missing")
    if extra:
        parts.append(f"column {', '.join(repr(name) for name in extra)} is not expected")
    parts += changed
    if not parts:
        parts.append(f"columns must come in the order {', '.join(expected.names)} and with the same nullability")
    return "wrong schema: " + "; ".join(parts)
