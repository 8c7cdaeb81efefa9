"""The inputs of a topology, bound to files: which columns are read, as what types, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from interlace.files.csv_columns import headless
from interlace.files.errors import FileError, did_you_mean
from interlace.files.sorting import in_time_order, order_of
from interlace.files.tables import Table

if TYPE_CHECKING:
    from interlace.foreground.notes import Notes

UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True)
class InputRows:
    """The rows of one input stream, from one file.

    columns:    those that are read, with the types that are sent.
    event_time: the column that orders the rows; None: the number of the row.
    disordered: rows may come out of order: the join sorts them within the bound that it was given.
    is_sorted:  the user says that the file is sorted: it is not looked at beforehand.
    """

    stream: str
    table: Table
    columns: pa.Schema
    event_time: str | None
    disordered: bool = False
    is_sorted: bool = False

    def batches(self, notes: Notes, directory: str) -> Iterator[pa.RecordBatch]:
        """The rows in the order in which they are to be sent; `directory` takes what does not fit into memory."""
        column = self.event_time
        if column is None or self.disordered or self.is_sorted or not self.table.can_reread:
            return self._cast()
        with notes.work(f"checking the order of {self.table.path}", self.table.rows) as show:
            order = order_of(self._narrowed(column)._cast(), column, lambda rows: show(rows, ""))
        self.table.rows = order.rows
        if order.in_order:
            return self._cast()
        notes.say(f"'{self.table.path}' is not in the order of {column}: sorting it")
        if order.untimed:
            notes.say(f"{order.untimed:,} rows have no event time and take no part in the join")
        return in_time_order(self._cast(), column, directory)

    def _cast(self) -> Iterator[pa.RecordBatch]:
        for batch in self.table.batches(self.columns.names):
            yield batch if batch.schema.equals(self.columns) else batch.cast(self.columns)

    def _narrowed(self, column: str) -> InputRows:
        return replace(self, columns=pa.schema([self.columns.field(column)]))


def require_columns(role: str, table: Table, needed: Sequence[str]) -> None:
    """Refuse names that the file does not have; the message suggests others."""
    missing = next((name for name in needed if name not in table.schema.names), None)
    if missing is None:
        return
    if table.is_headless:
        raise FileError(headless(table.path, table.schema.names))
    names = table.schema.names
    listed = ", ".join(names[:40]) + (f", .. ({len(names)} in all)" if len(names) > 40 else "")
    of = "" if role == table.path else f" ({role})"
    raise FileError(
        f"'{table.path}'{of} has no column '{missing}'{did_you_mean(missing, names)}\nits columns: {listed}"
    )


def read_schema(table: Table, columns: Sequence[str]) -> pa.Schema:
    """The schema of some columns, in the order of the file."""
    return pa.schema([table.schema.field(name) for name in table.schema.names if name in set(columns)])


def with_common_times(inputs: Sequence[InputRows]) -> list[InputRows]:
    """The inputs with event times of one type, where that loses nothing: dates and times of different units."""
    kinds = {rows.columns.field(rows.event_time).type for rows in inputs if rows.event_time is not None}
    common = _common_time(kinds)
    if common is None:
        return list(inputs)
    return [replace(rows, columns=_with_type(rows.columns, rows.event_time, common)) for rows in inputs]


def time_columns(schemas: Mapping[str, pa.Schema]) -> dict[str, list[str]]:
    """The columns of each stream that hold times."""
    return {
        stream: [each.name for each in schema if pa.types.is_timestamp(each.type) or pa.types.is_date(each.type)]
        for stream, schema in schemas.items()
    }


def _common_time(kinds: set[pa.DataType]) -> pa.DataType | None:
    if len(kinds) < 2:
        return None
    if all(pa.types.is_integer(kind) for kind in kinds):
        return pa.int64()
    stamps = [kind for kind in kinds if pa.types.is_timestamp(kind)]
    zoned = {kind.tz is not None for kind in stamps}
    dates = all(kind in stamps or pa.types.is_date(kind) for kind in kinds)
    if not stamps or not dates or len(zoned) > 1 or (zoned == {True} and len(stamps) < len(kinds)):
        return None
    return pa.timestamp(max((kind.unit for kind in stamps), key=UNITS.index), stamps[0].tz)


def _with_type(schema: pa.Schema, column: str | None, kind: pa.DataType) -> pa.Schema:
    if column is None:
        return schema
    return schema.set(schema.get_field_index(column), pa.field(column, kind))
