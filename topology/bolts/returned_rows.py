"""What the function of a bolt returns, as batches of its output streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from topology.entry.frames import Rows, arrow_table, frame_kind
from topology.graph.components import DEFAULT_STREAM, Emit
from topology.graph.errors import InputError, ReturnedRowsError
from topology.graph.messages import Batch

ROWS_TOGETHER = 4096
"""Single rows that a function yields leave together, in batches of at most this many."""

Returned: TypeAlias = Any
"""None, rows of any kind, a dict of values (one row), `side(...)`, or an iterable of these."""

RETURNS = (
    "None, a record batch, a table or another frame, a dict of columns, a dict of values (one row), "
    "il.side(stream, rows), or an iterable of these"
)


@dataclass(frozen=True)
class SideRows:
    """Rows for another stream than the default one; `side` makes them."""

    stream: str
    rows: Rows


def side(stream: str, rows: Rows) -> SideRows:
    """Send rows to a side output: return or yield this from the function of a bolt that declares the stream.

    >>> import interlace as il
    >>> @il.bolt(side_outputs=["odd"])
    ... def evens(rows):
    ...     numbers = rows["x"].to_numpy()
    ...     yield rows.filter(pa.array(numbers % 2 == 0))
    ...     yield il.side("odd", rows.filter(pa.array(numbers % 2 == 1)))
    """
    return SideRows(stream, rows)


class ReturnedRows:
    """Checks what one task's function returns, and numbers the rows of each stream.

    A stream without a declared schema has that of its first rows; later rows are cast to it if no value changes.
    """

    def __init__(self, component: str, outputs: Mapping[str, pa.Schema | None]) -> None:
        self._component = component
        self._declared = {stream for stream, schema in outputs.items() if schema is not None}
        self._schemas = dict(outputs)
        self._sent = dict.fromkeys(outputs, 0)

    def emits(self, returned: Returned, born: float = 0.0, dicts_are_rows: bool = False) -> Iterator[Emit]:
        """Yield the rows as actions; empty batches are left out.

        dicts_are_rows: every dict is one row, whatever its values are.
        """
        for stream, rows in self._pieces(returned, dicts_are_rows):
            for batch in self._fitted(stream, rows).to_batches():
                if batch.num_rows:
                    yield Emit(Batch(stream, batch, first=self._sent[stream], born=born))
                    self._sent[stream] += batch.num_rows

    def state(self) -> dict[str, Any]:
        """The streams' schemas and numbers of rows, as plain values."""
        known = {stream: schema.empty_table() for stream, schema in self._schemas.items() if schema is not None}
        return {"sent": self._sent, "schemas": known}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._sent.update(state["sent"])
        self._schemas.update({stream: empty.schema for stream, empty in state["schemas"].items()})

    def _pieces(self, returned: Returned, dicts_are_rows: bool) -> Iterator[tuple[str, Rows]]:
        """Take apart what was returned; single rows that follow each other are put together."""
        waiting: list[Mapping[str, Any]] = []
        stream = DEFAULT_STREAM
        for to, rows in self._flat(returned):
            is_one = isinstance(rows, Mapping) and (dicts_are_rows or _is_row(rows))
            if waiting and (to != stream or not is_one or len(waiting) == ROWS_TOGETHER):
                yield stream, waiting
                waiting = []
            stream = to
            if is_one:
                waiting.append(rows)
            else:
                yield to, rows
        if waiting:
            yield stream, waiting

    def _flat(self, returned: Returned) -> Iterator[tuple[str, Rows]]:
        if returned is None:
            return
        if isinstance(returned, SideRows):
            if returned.stream not in self._schemas:
                known = ", ".join(f"'{name}'" for name in self._schemas)
                raise ReturnedRowsError(
                    f"bolt '{self._component}' returned rows for stream '{returned.stream}', which it does not "
                    f"declare: add side_outputs=['{returned.stream}'] to il.bolt(...); declared: {known}"
                )
            yield returned.stream, returned.rows
        elif isinstance(returned, Mapping) or (not isinstance(returned, list | tuple) and frame_kind(returned)):
            yield DEFAULT_STREAM, returned
        elif isinstance(returned, Iterable) and not isinstance(returned, str | bytes | pa.Array | pa.ChunkedArray):
            for piece in returned:
                yield from self._flat(piece)
        else:
            raise ReturnedRowsError(
                f"bolt '{self._component}' returned {_described(returned)}; it must return {RETURNS}"
            )

    def _fitted(self, stream: str, rows: Rows) -> pa.Table:
        where = f"bolt '{self._component}', stream '{stream}'"
        schema = self._schemas[stream]
        open_types = schema is None or (stream not in self._declared and pa.null() in schema.types)
        try:
            table = arrow_table(where, rows, _without_nulls(schema) if schema is not None and open_types else schema)
        except InputError as error:
            raise ReturnedRowsError(f"{error}") from None
        if schema is None or open_types:
            schema = self._schemas[stream] = _completed(schema, table.schema)
        if table.schema.equals(schema):
            return table
        missing = [name for name in schema.names if name not in table.schema.names]
        extra = [name for name in table.schema.names if name not in schema.names]
        if missing or extra:
            raise ReturnedRowsError(
                f"{where}: returned columns {', '.join(table.schema.names)}; expected {', '.join(schema.names)}"
            )
        try:
            return table.select(schema.names).cast(schema)
        except (pa.ArrowException, ValueError) as error:
            raise ReturnedRowsError(
                f"{where}: the rows do not fit the schema of the stream ({error}): declare schema= with the types "
                f"that all rows fit"
            ) from None


def _without_nulls(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if not pa.types.is_null(field.type)])


def _completed(schema: pa.Schema | None, later: pa.Schema) -> pa.Schema:
    """A schema whose columns without any value so far take the types of later rows."""
    if schema is None:
        return later
    found = {name: later.field(name) for name in later.names if later.names.count(name) == 1}
    return pa.schema(
        [found.get(field.name, field) if pa.types.is_null(field.type) else field for field in schema], schema.metadata
    )


def _is_row(rows: Mapping[str, Any]) -> bool:
    """Whether a dict is one row: none of its values is a column."""
    return bool(rows) and not any(map(_may_be_column, rows.values()))


def _may_be_column(value: object) -> bool:
    return isinstance(value, list | tuple | range) or (
        hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping | set | frozenset | pa.Scalar)
    )


def _described(value: object) -> str:
    shown = repr(value)
    return f"{type(value).__name__}: {shown if len(shown) <= 60 else shown[:57] + '...'}"
