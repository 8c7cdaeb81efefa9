"""Sums and means as the columns of a result, from exact sums of words or from sums of floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from operators.aggregates.exact_sums import LOW, Halves
from operators.aggregates.number_column import as_column
from operators.protocol.columns import Int64
from operators.query.errors import JoinError
from operators.query.select_items import AggregateFunction, AggregateItem
from operators.values.aggregate_types import aggregate_type

_GREATEST_DECIMAL = 10**38 - 1


class FinishedSums:
    """Makes the column of `sum` or `avg` of values of a type."""

    def __init__(self, item: AggregateItem, kind: pa.DataType) -> None:
        self._item = item
        self._kind = kind
        self._mean = item.function is AggregateFunction.AVG
        self._type = aggregate_type(item, kind)

    def of_floats(self, sums: np.ndarray, counts: Int64) -> pa.Array:
        """The column of sums of so many floats each. Cost: O(rows)."""
        if self._mean:
            sums = sums / np.maximum(counts, 1)
        return pa.array(sums, mask=counts == 0)

    def of_words(self, halves: list[Halves]) -> pa.Array:
        """The column of the sums of each word of the values; raises JoinError for one that does not fit its type."""
        counts = halves[0].terms
        return self._decimals(halves, counts) if pa.types.is_decimal(self._kind) else self._integers(halves[0], counts)

    def _integers(self, halves: Halves, counts: Int64) -> pa.Array:
        high = halves.high + (halves.low >> 32)
        beyond = np.flatnonzero((high < -(2**31)) | (high >= 2**31))
        if self._mean:
            means = ((high << 32) | (halves.low & LOW)).astype(np.float64)
            for row in beyond.tolist():
                means[row] = float((int(high[row]) << 32) + (int(halves.low[row]) & LOW))
            return self.of_floats(means, counts)
        if len(beyond):
            raise self._too_large(int(counts[beyond[0]]))
        sums = (high << 32) | (halves.low & LOW)
        return as_column(sums, counts == 0, self._type)

    def _decimals(self, halves: list[Halves], counts: Int64) -> pa.Array:
        limbs = [part for each in halves for part in (each.low, each.high)]
        for number in range(3):
            limbs[number + 1] = limbs[number + 1] + (limbs[number] >> 32)
            limbs[number] = limbs[number] & LOW
        low, high = limbs[0] | limbs[1] << 32, limbs[3]
        large = np.flatnonzero(np.abs(high) >= (_GREATEST_DECIMAL >> 96) - 1).tolist()
        if self._mean:
            unit = 10**self._kind.scale
            exact = [_whole(limbs, row) for row in range(len(counts))]
            return self.of_floats(np.array([_nearest(Fraction(each, unit)) for each in exact]), counts)
        for row in large:
            if abs(_whole(limbs, row)) > _GREATEST_DECIMAL:
                raise self._too_large(int(counts[row]))
        words = np.empty((len(counts), 2), np.int64)
        words[:, 0], words[:, 1] = low, limbs[2] | high << 32
        present = None if counts.all() else pa.py_buffer(np.packbits(counts > 0, bitorder="little"))
        return pa.Array.from_buffers(self._type, len(counts), [present, pa.py_buffer(words)])

    def _too_large(self, matches: int) -> JoinError:
        if pa.types.is_integer(self._type):
            remedy = f"write {self._item.function}(CAST({self._item.argument!r} AS DECIMAL(38, 0)))"
        else:
            remedy = f"cast {self._item.argument!r} to float64"
        return JoinError(
            f"aggregate '{self._item.name}': a sum of {matches} values does not fit its type {self._type}: {remedy}"
        )


def _whole(limbs: list[Int64], row: int) -> int:
    return sum(int(limb[row]) << 32 * number for number, limb in enumerate(limbs))


def _nearest(value: Fraction) -> float:
    return value.numerator / value.denominator
