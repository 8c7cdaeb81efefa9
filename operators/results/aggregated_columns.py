"""The aggregates of a join: for each its values by position, and what they give over the matches of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Matches
from operators.aggregates.exact_sums import count_valid, sum_floats, sum_words
from operators.aggregates.extremes import NONE, extreme_places
from operators.aggregates.finished_sums import FinishedSums
from operators.aggregates.number_column import ALL_VALID, NumberColumn, as_column
from operators.protocol.columns import Int64
from operators.query.select_items import AggregateFunction, AggregateItem
from operators.results.payload_store import PayloadStore
from operators.results.unmatched import Bool
from operators.values.aggregate_types import aggregate_type, has_ticks, is_number
from operators.values.evaluation import evaluate
from operators.values.takeable_types import from_takeable, takeable_type, to_takeable


class AggregatedColumns:
    """Takes the payload of the side whose rows are matched; aggregates over them."""

    def __init__(self, items: Sequence[AggregateItem]) -> None:
        self._items = items
        self._columns: list[AggregatedColumn | None] = [None] * len(items)
        self._known = False

    def append(self, payload: pa.RecordBatch) -> None:
        """Add rows at the next positions. Cost: O(rows)."""
        for number, item in enumerate(self._items):
            if item.argument is None:
                continue
            values = evaluate(item.argument, lambda column: payload.column(column.name))
            if pa.types.is_dictionary(values.type):
                values = values.cast(values.type.value_type)
            column = self._columns[number]
            if column is None:
                column = self._columns[number] = aggregated_column(item, values.type)
            column.append(values)

    def drop_before(self, position: int) -> None:
        """Forget the rows below a position."""
        for column in self._columns:
            if column is not None:
                column.drop_before(position)

    def over(self, matches: Matches, counts: Int64) -> tuple[pa.Array, ...]:
        """The aggregates over the matches of each row.

        counts: the number of matches of each row, some of which may not be listed if only counts are asked for.
        Cost: O(rows + matches) for each aggregate; values that are not numbers are sorted.
        """
        return tuple(
            pa.array(counts) if item.argument is None else _over(item, column, matches)
            for item, column in zip(self._items, self._columns, strict=True)
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self._columns if column is not None)


def _over(item: AggregateItem, column: AggregatedColumn | None, matches: Matches) -> pa.Array:
    if column is not None:
        return column.over(matches)
    if item.function is AggregateFunction.COUNT:  # no row has come that could match
        return pa.array(np.zeros(len(matches), np.int64))
    return pa.nulls(len(matches), pa.float64() if item.function is AggregateFunction.AVG else pa.null())


class AggregatedColumn(ABC):
    """One aggregate: append values at consecutive positions, drop the oldest, aggregate over matches."""

    @abstractmethod
    def append(self, values: pa.Array) -> None: ...

    @abstractmethod
    def drop_before(self, position: int) -> None: ...

    @abstractmethod
    def over(self, matches: Matches) -> pa.Array: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...


def aggregated_column(item: AggregateItem, kind: pa.DataType) -> AggregatedColumn:
    """The holder for an aggregate of values of a type."""
    numeric = is_number(kind) or has_ticks(kind)
    match item.function:
        case AggregateFunction.COUNT:
            return _Count(kind if numeric else pa.bool_())
        case AggregateFunction.SUM | AggregateFunction.AVG if numeric:
            return _Sum(item, kind)
        case AggregateFunction.MIN | AggregateFunction.MAX if numeric and not pa.types.is_decimal(kind):
            return _NumberExtreme(kind, item.function is AggregateFunction.MAX)
    return _Extreme(item, kind)


class _Numbers(AggregatedColumn):
    """Aggregates over numbers and times."""

    def __init__(self, kind: pa.DataType) -> None:
        self._numbers = NumberColumn(kind)

    def append(self, values: pa.Array) -> None:
        self._numbers.append(values)

    def drop_before(self, position: int) -> None:
        self._numbers.drop_before(position)

    @property
    def nbytes(self) -> int:
        return self._numbers.nbytes


class _Count(_Numbers):
    def append(self, values: pa.Array) -> None:
        if values.type != self._numbers.kind:  # only whether there is a value counts
            values = pc.if_else(values.is_valid(), True, pa.scalar(None, pa.bool_()))
        super().append(values)

    def over(self, matches: Matches) -> pa.Array:
        valid = self._numbers.valid
        return pa.array(count_valid(matches, valid, self._numbers.base) if len(valid) else matches.counts())


class _Sum(_Numbers):
    """Sums and means: exact for integers and decimals, rounded once for floats."""

    def __init__(self, item: AggregateItem, kind: pa.DataType) -> None:
        super().__init__(kind)
        self._finished = FinishedSums(item, kind)

    def over(self, matches: Matches) -> pa.Array:
        numbers = self._numbers
        if pa.types.is_floating(numbers.kind):
            sums, counts = sum_floats(matches, numbers.words[0], numbers.valid, numbers.base)
            return self._finished.of_floats(sums, counts)
        signed = [False] * len(numbers.words)
        signed[-1] = numbers.kind != pa.uint64()
        halves = [
            sum_words(matches, word.view(np.int64), numbers.valid, numbers.base, signed=each)
            for word, each in zip(numbers.words, signed, strict=True)
        ]
        return self._finished.of_words(halves)


class _NumberExtreme(_Numbers):
    """The least or greatest of numbers and times of one word."""

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        super().__init__(kind)
        self._greatest = greatest

    def over(self, matches: Matches) -> pa.Array:
        numbers = self._numbers
        (values,) = numbers.words
        places = extreme_places(matches, values, numbers.valid, numbers.base, greatest=self._greatest)
        missing = places == NONE
        found = values[np.where(missing, 0, places)] if len(values) else np.zeros(len(places), values.dtype)
        return as_column(found, missing, numbers.kind)


class _Extreme(AggregatedColumn):
    """The least or greatest of other values: those that match are ranked."""

    def __init__(self, item: AggregateItem, kind: pa.DataType) -> None:
        self._kind = aggregate_type(item, kind)
        self._greatest = item.function is AggregateFunction.MAX
        self._store = PayloadStore(pa.schema([("value", kind)]))

    def append(self, values: pa.Array) -> None:
        self._store.append(pa.record_batch([values], schema=self._store.schema))

    def drop_before(self, position: int) -> None:
        self._store.drop_before(position)

    @property
    def nbytes(self) -> int:
        return self._store.nbytes

    def over(self, matches: Matches) -> pa.Array:
        met = np.unique(matches.positions)
        if not len(met) or pa.types.is_null(self._kind):
            return pa.nulls(len(matches), self._kind)
        found = self._store.take_column("value", met)
        values = to_takeable(found, takeable_type(found.type))
        ranks, valid = _ranks(values)
        numbered = Matches(matches.offsets, np.searchsorted(met, matches.positions))
        places = extreme_places(numbered, ranks, valid, 0, greatest=self._greatest)
        return from_takeable(values.take(pa.array(places, mask=places == NONE)), found.type)


def _ranks(values: pa.Array) -> tuple[Int64, Bool]:
    """A number for each value that compares as the value does, and which are there; empty if all are."""
    kind = values.type
    if pa.types.is_fixed_size_binary(kind):  # Arrow ranks neither these nor narrow decimals
        values = values.cast(pa.binary())
    elif pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        values = values.cast(pa.decimal128(kind.precision, kind.scale))
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else ALL_VALID
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False)
    return ranks.astype(np.int64), valid
