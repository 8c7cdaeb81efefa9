"""Puts the combinations of a step in result order: by the latest row's place, then by the others' in FROM order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import sorted_with_order
from operators.protocol.columns import Int64

_BITS = 62


def result_order(places: Int64, others: Sequence[Int64], latest: Int64) -> Int64:
    """The order of combinations by place, then by the others' sequence numbers, then by the role of the latest row.

    Where all of this fits into one number, that is sorted; otherwise column by column. Cost: O(n) or O(n log n) each.
    """
    columns = [places, *others, latest]
    if not len(places):
        return np.empty(0, np.int64)
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low for column, low in zip(columns, lows, strict=True)]
    if sum(span.bit_length() for span in spans) > _BITS:
        return np.lexsort(columns[::-1])
    packed = np.zeros(len(places), np.int64)
    for column, low, span in zip(columns, lows, spans, strict=True):
        packed = (packed << span.bit_length()) | (column - low)
    if np.all(packed[1:] >= packed[:-1]):
        return np.arange(len(packed))
    _, order = sorted_with_order(packed)
    return order
