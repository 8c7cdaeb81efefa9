"""The selected columns of one side's live rows, by position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.results.pair_runs import PairRuns
from operators.results.payload_columns import PayloadColumn, payload_column
from operators.results.text_settling import Texts

Int64 = npt.NDArray[np.int64]


class PayloadStore:
    """Append rows at consecutive positions, take any, drop the oldest; columns of any Arrow type."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._columns = [payload_column(field.name, field.type) for field in schema]
        self._base = 0
        self._end = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self._columns)

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows at the next positions."""
        for column, array in zip(self._columns, rows.columns, strict=True):
            column.append(array)
        self._end += rows.num_rows

    def take(self, positions: Int64, nullable: bool = False) -> list[pa.Array]:
        """The columns at the given positions; if nullable, null at each position of -1. Cost: O(positions) each."""
        return [self._take(number, positions, nullable) for number in range(len(self._columns))]

    def take_column(self, name: str, positions: Int64, nullable: bool = False) -> pa.Array:
        """One column at the given positions; if nullable, null at each position of -1. Cost: O(positions)."""
        return self._take(self.schema.get_field_index(name), positions, nullable)

    def take_runs(self, name: str, side: int, runs: PairRuns) -> pa.Array:
        """One column of pairs in which these rows are of a side. Cost: O(pairs)."""
        number = self.schema.get_field_index(name)
        if not len(runs):
            return pa.nulls(0, self.schema.field(number).type)
        return self._columns[number].take_runs(side, runs)

    def texts(self, name: str) -> Texts:
        """A column of strings or binary, in place, valid until the next change. Cost: O(1)."""
        return self._columns[self.schema.get_field_index(name)].texts()

    def _take(self, number: int, positions: Int64, nullable: bool) -> pa.Array:
        kind = self.schema.field(number).type
        if not len(positions):
            return pa.nulls(0, kind)
        missing = positions < 0 if nullable else None
        if missing is not None and missing.all():
            return pa.nulls(len(positions), kind)
        column: PayloadColumn = self._columns[number]
        return column.take(positions, missing if missing is not None and missing.any() else None)

    def drop_before(self, position: int) -> None:
        """Forget the rows at positions below `position`."""
        self._base = max(self._base, min(position, self._end))
        for column in self._columns:
            column.drop_before(self._base)
