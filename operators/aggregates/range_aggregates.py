"""Aggregates over ranges of sorted blocks: what each needs of a block, and its column over the blocks of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import Live, ordered_integers
from operators.aggregates.exact_sums import Halves
from operators.aggregates.finished_sums import FinishedSums
from operators.aggregates.number_column import NumberColumn, Numbers, as_column, word_types, words_of
from operators.aggregates.prefix_sums import PrefixSums, Ranks, rounded_sums
from operators.aggregates.range_extremes import NOWHERE, RankedValues
from operators.aggregates.sorted_block import Part, SortedBlock
from operators.protocol.columns import Int64
from operators.query.select_items import AggregateFunction, AggregateItem
from operators.values.aggregate_types import has_ticks, is_number

Met = Sequence[tuple[SortedBlock, Ranks]]
"""The blocks of a window, and the ranks that each probe row meets in them."""

_SIGN = np.uint64(1 << 63)


class RangeAggregate(ABC):
    """One aggregate. It is asked for the parts of blocks, and then for its column over them."""

    @abstractmethod
    def part(self, values: pa.Array, order: npt.NDArray[np.int32]) -> Part:
        """What a block needs: its values by row, and the row of each rank. Cost: O(rows)."""

    @abstractmethod
    def over(self, met: Met, number: int, live: Live) -> pa.Array | None:
        """The column for probe rows, from part `number` of each block; None: the matches must be listed."""

    def drop_before(self, position: int) -> None:  # noqa: B027
        """Forget what the rows below a position hold beside the blocks."""


def range_aggregate(item: AggregateItem, kind: pa.DataType) -> RangeAggregate | None:
    """The form of an aggregate of values of a type that needs no list of matches; None if there is none."""
    numeric = is_number(kind) or has_ticks(kind)
    match item.function:
        case AggregateFunction.COUNT:
            return _Counted()
        case AggregateFunction.SUM | AggregateFunction.AVG if pa.types.is_floating(kind):
            return _SummedFloats(item, kind)
        case AggregateFunction.SUM | AggregateFunction.AVG if numeric:
            return _SummedWords(item, kind)
        case AggregateFunction.MIN | AggregateFunction.MAX if numeric and not pa.types.is_decimal(kind):
            return _Least(kind, item.function is AggregateFunction.MAX)
    return None


class _Counted(RangeAggregate):
    def part(self, values: pa.Array, order: npt.NDArray[np.int32]) -> Part:
        if pa.types.is_floating(values.type):
            _, valid = words_of(values)  # NaN is no value
        else:
            valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
        return PrefixSums.of_words([], valid, order, signed=False)

    def over(self, met: Met, number: int, live: Live) -> pa.Array | None:
        totals = _totals(met, number, live)
        assert totals is not None, "counts always have running sums"
        return pa.array(totals[0][:, 0])


class _SummedWords(RangeAggregate):
    def __init__(self, item: AggregateItem, kind: pa.DataType) -> None:
        self._finished = FinishedSums(item, kind)
        self._signed = kind != pa.uint64()
        self._digits = 2 * len(word_types(kind))

    def part(self, values: pa.Array, order: npt.NDArray[np.int32]) -> Part:
        words, valid = words_of(values)
        return PrefixSums.of_words(words, valid, order, signed=self._signed)

    def over(self, met: Met, number: int, live: Live) -> pa.Array | None:
        totals = _totals(met, number, live, self._digits)
        assert totals is not None, "words always have running sums"
        terms, *digits = (np.ascontiguousarray(column) for column in totals[0].T)
        return self._finished.of_words(
            [Halves(low, high, terms) for low, high in zip(digits[::2], digits[1::2], strict=True)]
        )


class _SummedFloats(RangeAggregate):
    def __init__(self, item: AggregateItem, kind: pa.DataType) -> None:
        self._finished = FinishedSums(item, kind)

    def part(self, values: pa.Array, order: npt.NDArray[np.int32]) -> Part:
        (floats,), valid = words_of(values)
        return PrefixSums.of_floats(floats, valid, order)

    def over(self, met: Met, number: int, live: Live) -> pa.Array | None:
        found = _totals(met, number, live)
        if found is None:
            return None
        totals, base = found
        return self._finished.of_floats(rounded_sums(totals, base), totals[:, 0])


class _Least(RangeAggregate):
    """The least, or the greatest as the least in the opposite order."""

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        self._greatest = greatest
        self._values = NumberColumn(kind)

    def part(self, values: pa.Array, order: npt.NDArray[np.int32]) -> Part:
        self._values.append(values)
        (words,), valid = words_of(values)
        ordered = _as_integers(words)[order]
        return RankedValues.of(~ordered if self._greatest else ordered, order, None if valid is None else valid[order])

    def over(self, met: Met, number: int, live: Live) -> pa.Array | None:
        best, places = np.zeros(len(live), np.int64), np.full(len(live), NOWHERE, np.int64)
        for block, ranks in met:
            part = block.parts[number]
            assert isinstance(part, RankedValues), "values always have ranks"
            part.improve(block.first, block.rows, ranks, live, best, places)
        (words,) = self._values.words
        missing = places == NOWHERE
        found = words[np.where(missing, 0, places - self._values.base)] if len(words) else np.zeros_like(best)
        return as_column(found.astype(words.dtype, copy=False), missing, self._values.kind)

    def drop_before(self, position: int) -> None:
        self._values.drop_before(position)


def _as_integers(words: Numbers) -> Int64:
    """Integers that compare as the words do; zeros of either sign are equal."""
    if words.dtype == np.uint64:
        return (words ^ _SIGN).view(np.int64)
    return ordered_integers(words)


def _totals(met: Met, number: int, live: Live, digits: int = 0) -> tuple[Int64, int] | None:
    """For each probe row the number of values and the sums of their digits, and the limb of the first digit.

    digits: how many there are at least. None if a block has no running sums, or if they need too many digits together.
    """
    found = [(block, ranks, block.parts[number]) for block, ranks in met]
    parts = [(block, ranks, part) for block, ranks, part in found if isinstance(part, PrefixSums)]
    if len(parts) < len(found):
        return None
    used = [part for _, _, part in parts if part.end > part.base]
    base, end = min((part.base for part in used), default=0), max((part.end for part in used), default=digits)
    if end - base > _MOST_COLUMNS:
        return None
    totals = np.zeros((len(live), 1 + end - base), np.int64)
    for block, ranks, part in parts:
        part.add(block.order, block.first, block.rows, ranks, live, base, totals)
    return totals, base


_MOST_COLUMNS = 24
"""Digits of sums over blocks whose floats differ in size."""
