"""The live rows of one role of a join of several streams: their place, keys, columns, and which of them are live."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Keys
from operators.bounds.dimension_keys import key_maker
from operators.intake.gate_task import SEQ
from operators.intake.time_unit import in_units, time_column
from operators.protocol.columns import Int64, values_of
from operators.query.expressions import Expression
from operators.query.multi_condition import Link
from operators.query.windows import Window
from operators.results.payload_store import PayloadStore
from operators.routing.growing_array import GrowingArray
from operators.routing.liveness import Liveness, liveness
from operators.values.evaluation import evaluate
from topology import Batch, Times, event_times

Bool = npt.NDArray[np.bool_]

MISSING = 0
"""The key of rows that have none, where these meet each other; rows that have this key are found with them."""


class RoleWindow:
    """Rows by position, from the first that a later row may meet.

    number:  the role.
    links:   the links of the role, by their number in the condition; each gives a row a key.
    columns: chooses, from a schema, the columns that results or residuals need.
    """

    def __init__(
        self,
        number: int,
        window: Window,
        event_time: str | None,
        links: Mapping[int, Link],
        filter_: Expression | None,
        columns: Callable[[pa.Schema], list[str]],
    ) -> None:
        self.number = number
        self.links = links
        self.schema: pa.Schema | None = None
        self.base = self.end = 0
        self._window = window
        self._event_time = event_time
        self._filter = filter_
        self._columns = columns
        self._missing = 0
        self._seqs = GrowingArray(np.int64)
        self._passing = GrowingArray(np.bool_)
        self._keys: dict[int, tuple[GrowingArray, GrowingArray]] = {}
        self._makers: dict[int, Callable[[pa.RecordBatch], Keys]] = {}
        self._times: GrowingArray | None = None
        self._liveness: Liveness | None = None
        self._store: PayloadStore | None = None
        self._shown: list[str] = []

    @property
    def live(self) -> int:
        """The number of rows that are kept."""
        return self.end - self.base

    @property
    def time_type(self) -> pa.DataType:
        """The type of the event time, in the unit of the gate."""
        assert self.schema is not None, "known with the first rows"
        return self.schema.field(time_column(self.schema, self._event_time)).type

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        keys = sum(values.nbytes + valid.nbytes for values, valid in self._keys.values())
        return keys + self._seqs.nbytes + (0 if self._store is None else self._store.nbytes)

    def append(self, batch: Batch) -> None:
        """Take the next rows; the first batch, which may be empty, tells the schema. Cost: O(rows) per link."""
        rows = batch.rows
        if self.schema is None:
            self._begin(rows.schema, batch.first)
        assert batch.first - self._missing == self.end, "the gate numbers the rows of a stream without gaps"
        assert self._liveness is not None
        assert self._store is not None
        assert self._times is not None
        times, _ = event_times(rows.column(time_column(rows.schema, self._event_time)))
        self._liveness.append(times)
        self._times.append(times)
        self._seqs.append(values_of(rows.column(SEQ)))
        self._passing.append(self._passes(rows))
        for link, make in self._makers.items():
            keys = make(rows)
            if link not in self._keys:
                self._keys[link] = (GrowingArray(keys.values.dtype, self.base), GrowingArray(np.bool_, self.base))
            self._keys[link][0].append(keys.values)
            self._keys[link][1].append(keys.mask())
        self._store.append(rows.select(self._shown))
        self.end += rows.num_rows

    def between(self, first_seq: int, end_seq: int) -> tuple[int, int]:
        """The positions of the rows with sequence numbers in [first, end)."""
        found = self.base + np.searchsorted(self._seqs.values, [first_seq, end_seq])
        return int(found[0]), int(found[1])

    def before(self, seqs: Int64) -> Int64:
        """How many rows of the role, by position, come before each sequence number. Cost: a search each."""
        return self.base + np.searchsorted(self._seqs.values, seqs)

    def first_live(self, before: Int64, times: Times) -> Int64:
        """The first live position at rows of these times, with so many rows of the role before them; both ascend."""
        assert self._liveness is not None, "asked when every role has a schema"
        return self._liveness.first(before, times)

    def seqs(self, positions: Int64) -> Int64:
        """The sequence numbers at positions."""
        found: Int64 = self._seqs.values[positions - self.base]
        return found

    def times(self, positions: Int64) -> Times:
        """The event times at positions."""
        assert self._times is not None, "a position has a row"
        found: Times = self._times.values[positions - self.base]
        return found

    def passing(self, positions: Int64) -> Bool:
        """Whether the rows at positions satisfy the role's filter."""
        found: Bool = self._passing.values[positions - self.base]
        return found

    def keys(self, link: int, positions: Int64 | slice) -> Keys:
        """The keys of a link at positions, or in a range of them."""
        values, valid = self._keys[link]
        at = slice(positions.start - self.base, positions.stop - self.base) if isinstance(positions, slice) else (
            positions - self.base
        )  # fmt: skip
        # a copy, because a later append may move the rows
        flags = valid.values[at]
        return Keys(values.values[at].copy(), None if flags.all() else flags.copy())

    def stored_keys(self, link: int, part: slice) -> Keys:
        """As `keys`, for an index; rows that fail the filter have none, so that nothing finds them."""
        keys = self.indexed_keys(link, part)
        passing = self._passing.values[part.start - self.base : part.stop - self.base]
        return keys if passing.all() else Keys(keys.values, keys.mask() & passing)

    def indexed_keys(self, link: int, part: slice) -> Keys:
        """As `keys`, for an index; where rows without a key meet each other, their key is `MISSING`."""
        keys = self.keys(link, part)
        if keys.valid is None or not self.links[link].null_safe:
            return keys
        return Keys(np.where(keys.valid, keys.values, keys.values.dtype.type(MISSING)), None)

    def column(self, name: str, positions: Int64) -> pa.Array:
        """A column at positions. Cost: O(positions)."""
        assert self._store is not None, "a position has a row"
        return self._store.take_column(name, positions)

    def drop_before(self, position: int) -> None:
        """Forget the rows below a position."""
        self.base = max(self.base, min(position, self.end))
        arrays = [self._seqs, self._passing, *(each for pair in self._keys.values() for each in pair)]
        for array in [*arrays, *([] if self._times is None else [self._times])]:
            array.drop_before(self.base)
        if self._store is not None:
            self._store.drop_before(self.base)

    def first_time(self) -> int | float | None:
        """The event time of the first row that is kept; None if there is none."""
        if self._times is None or not len(self._times):
            return None
        first: int | float = self._times.values[0].item()
        return first

    def check_invariants(self) -> None:
        # every row that is kept has a place, keys and a flag
        assert len(self._seqs) == len(self._passing) == self.live
        for values, valid in self._keys.values():
            assert len(values) == len(valid) == self.live
            assert values.base == self.base

    def _begin(self, schema: pa.Schema, missing: int) -> None:
        """Learn the schema; after a restart, `missing` rows came before, which have expired."""
        self.schema = schema
        self._missing = missing
        kind = None if self._event_time is None else schema.field(self._event_time).type
        self._liveness = liveness(self._window, kind, missing, in_units(kind, self.time_type))
        floating = kind is not None and pa.types.is_floating(kind)
        self._times = GrowingArray(np.float64 if floating else np.int64)
        self._shown = self._columns(schema)
        self._store = PayloadStore(pa.schema([schema.field(name) for name in self._shown]))
        for number, link in self.links.items():
            side = link.side(self.number)
            column = schema.get_field_index(link.dimension.column(side))
            self._makers[number] = _maker(link, side, column, schema.field(column).type)

    def _passes(self, rows: pa.RecordBatch) -> Bool:
        if self._filter is None:
            return np.ones(rows.num_rows, np.bool_)
        found = evaluate(self._filter, lambda column: rows.column(column.name), rows.num_rows)
        passing: Bool = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
        return passing


def _maker(link: Link, side: int, column: int, kind: pa.DataType) -> Callable[[pa.RecordBatch], Keys]:
    make = key_maker(link.dimension, side, kind)
    return lambda rows: make(rows.column(column))
