"""The checks on the rows of one input: the schema, and that event time does not go backwards within a source."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from topology.graph.components import Input
from topology.graph.errors import OutOfOrderError, SchemaError
from topology.graph.event_time import check_event_time, event_times, first_backwards, time_bounds
from topology.graph.messages import Time


class InputGuard:
    """Checks rows against one input's description and keeps its schema. A refused batch changes nothing.

    Not thread-safe: `SourceLedger` calls it under its lock.
    """

    def __init__(self, stream: str, description: Input) -> None:
        self.stream = stream
        self.schema = description.schema
        self._description = description
        if description.schema is not None:
            self._check_schema(description.schema)

    def pin(self, schema: pa.Schema) -> None:
        """Check a schema and keep it: every later batch must have it."""
        self._fit(schema)
        self.schema = self.schema or schema

    def check(
        self,
        rows: pa.RecordBatch,
        source: str,
        first: int = 0,
        latest: Time | None = None,
        disordered: bool | None = None,
    ) -> tuple[Time, Time] | None:
        """Check a batch and return its smallest and largest event time, or None if no row has one.

        The first batch that passes pins the schema.

        first:      the offset of the batch's first row in its source.
        latest:     the latest event time in the source before this batch; None if there is none.
        disordered: whether event time may go backwards; None: as the input's description says.
        """
        self._fit(rows.schema)
        may_fall = self._description.disordered if disordered is None else disordered
        times = self._times(rows, source, first, latest, may_fall)
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
        repeated = sorted(name for name, count in Counter(schema.names).items() if count > 1)
        if repeated:
            raise SchemaError(f"stream '{self.stream}': column '{repeated[0]}' appears more than once: rename it")

    def _times(
        self, rows: pa.RecordBatch, source: str, first: int, latest: Time | None, may_fall: bool
    ) -> tuple[Time, Time] | None:
        column = self._description.event_time
        if column is None or not rows.num_rows or may_fall:
            return time_bounds(rows, column, first)
        times, valid = event_times(rows.column(column))
        timed = times if valid is None else times[valid]
        if not len(timed):
            return None
        found = first_backwards(times, valid, latest)
        if found is not None:
            row, before, after = found
            raise OutOfOrderError(
                f"stream '{self.stream}', source '{source}': '{column}' goes backwards at row {first + row} "
                f"({before} is followed by {after}): sort each source by '{column}', declare how far its rows may be "
                f"out of order (out_of_order= of a join), or send them as separate sources"
            )
        return timed[0].item(), timed[-1].item()


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
