"""Puts the combinations of a step in result order: by the latest row's place, then by the others' in FROM order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import frozen, kernel, sorted_with_order
from operators.protocol.columns import Int64

_BITS = 62
_FEW = 32
"""Up to so many combinations of one latest row, insertion sort is the fastest."""

_FALLS, _RISES, _SORTED = 0, 1, 2


def result_order(places: Int64, others: Sequence[Int64]) -> Int64 | None:
    """The order of combinations by place, then by the other columns; None if that is how they come.

    Combinations of one role come in the order of their latest rows, so only those of one row are sorted. Where places
    fall, all are: as one number if the columns fit into it, otherwise column by column. No two are equal.

        places 3 3 3 5    other 7 4 9 2        order 1 0 2 3

    Cost: O(n log m) for m combinations of a row, or O(n) to O(n log n) for each column.
    """
    packed = _packed(others, len(places))
    if packed is not None:
        order = np.empty(len(places), np.int64)
        found = _order_rows(frozen(places), frozen(packed), order)
        if found != _FALLS:
            return None if found == _RISES else order
    columns = [places, *others]
    packed = _packed(columns, len(places))
    return np.lexsort(columns[::-1]) if packed is None else sorted_with_order(packed)[1]


def _packed(columns: Sequence[Int64], rows: int) -> Int64 | None:
    """Columns as one number of the same order; None if that needs too many bits. Cost: O(n) for each column."""
    packed: Int64 = np.zeros(rows, np.int64)
    bits = 0
    for column in columns if rows else ():
        low = int(column.min())
        span = (int(column.max()) - low).bit_length()
        bits += span
        if bits > _BITS:
            return None
        packed = (packed << span) | (column - low)
    return packed


@kernel
def _order_rows(places: np.ndarray, packed: np.ndarray, order: np.ndarray) -> int:
    """Order the combinations of each place by `packed`; what had to be done."""
    size = places.size
    for at in range(1, size):
        if places[at] < places[at - 1]:
            return _FALLS
    result = _RISES
    begin = 0
    while begin < size:
        end = begin + 1
        rises = True
        order[begin] = begin
        while end < size and places[end] == places[begin]:
            order[end] = end
            rises &= packed[end] > packed[end - 1]
            end += 1
        if not rises:
            result = _SORTED
            if end - begin <= _FEW:
                for at in range(begin + 1, end):
                    key = packed[at]
                    hole = at
                    while hole > begin and packed[order[hole - 1]] > key:
                        order[hole] = order[hole - 1]
                        hole -= 1
                    order[hole] = at
            else:
                order[begin:end] = begin + np.argsort(packed[begin:end])
        begin = end
    return result
