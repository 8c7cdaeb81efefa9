"""Result rows from positions: the payload of both sides, and the columns selected from it."""

from __future__ import annotations

import pyarrow as pa

from operators.protocol.columns import Int64
from operators.protocol.sides import LEFT, RIGHT
from operators.query.expressions import Column, Expression
from operators.query.kinds import Kind
from operators.results.absent_side import evaluate_beside_nothing
from operators.results.pair_runs import PairRuns
from operators.results.payload_store import PayloadStore
from operators.results.result_kinds import AnyResults
from operators.results.text_settling import Texts
from operators.values.evaluation import evaluate
from operators.values.selection import Selection


class ResultRows:
    """Holds the payload of the rows that may still be part of a result."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._stores: list[PayloadStore | None] = [None, None]
        # Of a side without rows so far, columns selected by name are shown as nulls; those of a `*` are unknown.
        self._shown = [selection.columns(side, pa.schema([])) for side in (LEFT, RIGHT)]
        self._nullable = selection.kind is not Kind.INNER
        self._computed_items = selection.computed
        self._counted = selection.counted
        self._aggregated = selection.aggregated

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(store.nbytes for store in self._stores if store is not None)

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema] | None:
        """The payload's columns of each side; None as long as a side has no rows."""
        left, right = self._stores
        return None if left is None or right is None else (left.schema, right.schema)

    def append(self, side: int, payload: pa.RecordBatch) -> None:
        """Add rows of a side at the next positions."""
        store = self._stores[side]
        if store is None:
            store = self._stores[side] = PayloadStore(payload.schema)
            self._shown[side] = self._selection.columns(side, payload.schema)
        store.append(payload)

    def drop_before(self, side: int, position: int) -> None:
        """Forget the rows of a side below a position."""
        store = self._stores[side]
        if store is not None:
            store.drop_before(position)

    def keep(self, side: int, positions: Int64) -> None:
        """Keep these rows of a side, which get positions 0, 1, 2, ..., and forget all others. Cost: O(positions)."""
        store = self._stores[side]
        if store is not None:
            kept = self._stores[side] = PayloadStore(store.schema)
            kept.append(pa.record_batch(store.take(positions), schema=store.schema))

    def taken(self, pairs: tuple[Int64, Int64], column: Column) -> pa.Array:
        """The values of a column for pairs of left and right positions. Cost: O(pairs)."""
        side = self._selection.roles.index(column.stream or "")
        return self._store(side).take_column(column.name, pairs[side])

    def texts(self, side: int, column: str) -> Texts:
        """A column of strings or binary, in place, valid until the next change. Cost: O(1)."""
        return self._store(side).texts(column)

    def _store(self, side: int) -> PayloadStore:
        store = self._stores[side]
        assert store is not None, "a pair has a row on either side"
        return store

    def of(self, results: AnyResults) -> pa.RecordBatch:
        """The rows to show. Cost: O(results) per column."""
        columns: list[tuple[int, str, pa.Array]] = []
        for side in (LEFT, RIGHT):
            for each in self._shown[side]:
                columns.append((each.place, each.name, self._column(side, each.column, results)))
        for item in self._computed_items:
            columns.append((item.place, item.name, self._computed(item.expression, results)))
        counted = self._counted
        if counted is not None:
            columns.append((counted.place, counted.name, pa.array(results.matches)))
        for aggregated, values in zip(self._aggregated, results.aggregates, strict=True):
            columns.append((aggregated.place, aggregated.name, values))
        columns.sort(key=lambda column: column[0])
        if not columns:  # rows without columns still count
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(results), pa.struct([])))
        return pa.record_batch([array for _, _, array in columns], names=[name for _, name, _ in columns])

    def _computed(self, expression: Expression, results: AnyResults) -> pa.Array:
        def column(wanted: Column) -> pa.Array:
            side = self._selection.roles.index(wanted.stream or "")
            return self._column(side, wanted.name, results)

        for role, store in zip(self._selection.roles, self._stores, strict=True):
            if store is None:
                return evaluate_beside_nothing(expression, column, role, len(results))
        return evaluate(expression, column)

    def _column(self, side: int, name: str, results: AnyResults) -> pa.Array:
        """A column of a side's rows, null where there is no row."""
        store = self._stores[side]
        if store is None:
            return pa.nulls(len(results))
        if isinstance(results, PairRuns):
            return store.take_runs(name, side, results)
        return store.take_column(name, results.right if side else results.left, nullable=self._nullable)
