"""The handle of a running join: that of its topology, which also knows the types of both streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from operators.bounds.condition_types import check_condition
from operators.explanation import Explanation, explain
from operators.intake.late_rows import LATE, Reason, late_schema
from operators.protocol.sides import LEFT, RIGHT
from operators.query.errors import PredicateError, WindowError
from operators.routing.liveness import liveness
from topology import Endpoint, InputGuard, Metrics, RunningTopology, SchemaError, log

if TYPE_CHECKING:
    from operators.join import StreamJoin


class RunningJoin(RunningTopology):
    """Send rows to the streams, read result rows; see `RunningTopology`.

    The first rows of a stream fix its schema. What the types of the two streams do not allow is refused then, before
    anything has changed.
    """

    def __init__(self, running: RunningTopology, join: StreamJoin) -> None:
        super().__init__(running.topology)
        self.join = join
        self._running = running
        self._schemas: dict[str, pa.Schema] = {}

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The schemas of the streams that have sent rows or been pinned."""
        return dict(self._schemas)

    def explain(self) -> Explanation:
        """What runs and why, and what has been observed so far."""
        return explain(self.join, self._schemas, self.metrics())

    def result_schema(self) -> pa.Schema:
        """The columns of the results; those of a stream that has sent nothing yet have type null."""
        assert self.join.selection is not None
        left, right = (self._schemas.get(self._stream(side)) for side in (LEFT, RIGHT))
        return self.join.selection.result_schema((left, right))

    def late(self, timeout: float | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows that take no part in the join: stream, source, offset, event_time, reason.

        They come as the gate meets them: of each source in the order of offsets. Nobody has to read them: what is
        unread waits, on disk beyond a bound, and is dropped when the join is stopped. `timeout`: as for `results`.
        """
        return self.results(LATE, timeout)

    def late_schema(self) -> pa.Schema:
        """The columns of `late`; event_time has type null while no stream has sent anything."""
        kinds = [self._event_time_type(stream, schema) for stream, schema in self._schemas.items()]
        return late_schema(kinds[0] if kinds else pa.null())

    def sink_schema(self, sink: str) -> pa.Schema:
        """The columns of the results or of `late`."""
        return self.late_schema() if sink == LATE else self.result_schema()

    def warn_of_late_rows(self) -> None:
        """Say in the log how many rows took no part so far, and why; nothing if there are none."""
        metrics = self.metrics()
        counts = {reason.text: int(metrics.total(reason.metric)) for reason in Reason}
        total = sum(counts.values())
        if total:
            shown = ", ".join(f"{count} {text}" for text, count in counts.items() if count)
            log.warning("%d rows take no part in the join: %s; collect_with_late() or late() shows them", total, shown)

    def pin(self, stream: str, schema: pa.Schema) -> None:
        """Fix the schema of a stream before its rows come; raises `SchemaError` if the join cannot use it."""
        description = self.topology.require_input(stream)
        if stream not in self._schemas:
            InputGuard(stream, description).pin(schema)  # a guard of its own: only its judgement is wanted
            self._check_types({**self._schemas, stream: schema})
        self._running.pin(stream, schema)
        self._schemas[stream] = schema

    def metrics(self) -> Metrics:
        return self._running.metrics()

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        return self._running.endpoint(stream, control)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self._running.commit(stream, source, attempt, rows)

    def stop(self) -> None:
        self._running.stop()

    def _open(self, stream: str, source: str) -> None:
        self._running.open(stream, source)

    def _send(self, stream: str, source: str, rows: pa.RecordBatch) -> None:
        if stream not in self._schemas:
            self.pin(stream, rows.schema)
        self._running.send(stream, rows, source)

    def _finish(self, stream: str, source: str | None) -> None:
        self._running.finish(stream, source)

    def _results(self, sink: str, timeout: float | None) -> Iterator[pa.RecordBatch]:
        return self._running.results(sink, timeout)

    def _event_time_type(self, stream: str, schema: pa.Schema) -> pa.DataType:
        column = self.join.event_time_of(stream)
        return pa.int64() if column is None else schema.field(column).type

    def _stream(self, side: int) -> str:
        role = self.join.roles[side]
        return (self.join.streams or {}).get(role, role)

    def _check_types(self, schemas: dict[str, pa.Schema]) -> None:
        """Refuse types that the windows or the comparisons between the two streams do not allow."""
        join = self.join
        kinds: list[pa.DataType | None] = []
        for side in (LEFT, RIGHT):
            schema = schemas.get(self._stream(side))
            if schema is None:
                return
            column = join.event_time_of(self._stream(side))
            kinds.append(None if column is None else schema.field(column).type)
            try:
                liveness(join.windows[side], kinds[-1])
            except WindowError as error:
                raise SchemaError(f"stream '{self._stream(side)}': {error}") from error
        if kinds[LEFT] != kinds[RIGHT]:
            shown = [f"'{self._stream(side)}' has {kinds[side] or 'row numbers'}" for side in (LEFT, RIGHT)]
            raise SchemaError(f"event times of different types cannot be merged: {', '.join(shown)}: cast one of them")
        left, right = (schemas[self._stream(side)] for side in (LEFT, RIGHT))
        try:
            check_condition(join.condition, join.wheres, (left, right))
            self.join.selection.result_schema((left, right))  # type: ignore[union-attr]
        except PredicateError as error:
            raise SchemaError(f"streams '{self._stream(LEFT)}' and '{self._stream(RIGHT)}': {error}") from error


def conformed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Results in the columns of `schema`; those that were not known when the rows were made are null."""
    if rows.schema.names == schema.names:
        return rows.cast(schema)
    known = rows.schema.names
    columns = [
        rows.column(field.name).cast(field.type) if field.name in known else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.record_batch(columns, schema=schema)
