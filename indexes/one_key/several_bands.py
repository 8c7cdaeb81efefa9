"""Probe rows that ask for a union of bands."""

from __future__ import annotations

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.ordered_integers import ordered_integers


def union_of_bands(row: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Closed bands of any number and order, as (row, low, high) by ascending low, those of one row apart.

    Empty ones are left out and overlapping ones of a row become one, so that no key is met twice.
    Bounds are in the keys' own type. Cost: O(n log n).

        row   0     0     0     1           ->  row   1     0     0
        band  1..4  8..9  3..6  0..2        ->  band  0..2  1..6  8..9
    """
    row = np.asarray(row, np.int64)
    low, high = ordered_integers(low), ordered_integers(high)
    some = low <= high
    row, low, high = row[some], low[some], high[some]
    order = np.lexsort((low, row))
    row, low, high = row[order], low[order], high[order]
    if len(row):
        # The greatest end so far of each row's bands: ranks of (row, high) ascend with both.
        rank = np.empty(len(row), np.int64)
        by_end = np.lexsort((high, row))
        rank[by_end] = np.arange(len(row))
        reach = high[by_end][np.maximum.accumulate(rank)]
        begins = np.ones(len(row), np.bool_)
        begins[1:] = (row[1:] != row[:-1]) | (low[1:] > reach[:-1])
        last = np.append(np.flatnonzero(begins)[1:], len(row)) - 1
        row, low, high = row[begins], low[begins], reach[last]
    order = np.argsort(low, kind="stable")
    return frozen(row[order]), frozen(low[order]), frozen(high[order])
