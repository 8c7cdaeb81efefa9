"""Gives the results of a join one schema.

While a stream has sent no rows, the collector does not know its types. Outer joins and counts emit rows even then:
columns of the absent side that are selected by name have type null, and those of a `*` are missing. The handle may know
more: a stream's schema can be pinned without rows, as `collect` and Spark's feed do. So the handle fills in what is
missing, in every batch from the first for which both schemas are known.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from topology import Reading


class SteadyReading(Reading):
    """A reading whose rows have one schema as soon as `known` returns it; before, they come as they are."""

    def __init__(self, reading: Reading, known: Callable[[], pa.Schema | None]) -> None:
        self._reading = reading
        self._known = known
        self._schema: pa.Schema | None = None

    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        found = self._reading.next(timeout)
        self.finished = self._reading.finished
        if found is None:
            return None
        if self._schema is None:
            self._schema = self._known()
        first, rows = found
        return found if self._schema is None else (first, conformed(rows, self._schema))

    def acknowledge(self, number: int) -> None:
        self._reading.acknowledge(number)

    def close(self) -> None:
        self._reading.close()


def conformed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Results in the columns of `schema`; those that were not known when the rows were made are null."""
    if rows.schema.equals(schema):
        return rows
    names = rows.schema.names
    columns = [_column(rows.column(field.name) if field.name in names else None, rows, field) for field in schema]
    return pa.record_batch(columns, schema=schema)


def _column(known: pa.Array | None, rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if known is None or pa.types.is_null(known.type):
        return pa.nulls(rows.num_rows, field.type)
    return known if known.type.equals(field.type) else known.cast(field.type)
