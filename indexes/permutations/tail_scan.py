"""Compares every probe row with each of a few rows, in compiled loops: for rows too young to be worth sorting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes.kernels.columns import Interval, Keys, Live, Matches, frozen
from indexes.kernels.compiled import kernel

_ALL_VALID = frozen(np.empty(0, np.bool_))


def scan_tail(columns: Sequence[Keys], first_position: int, intervals: Sequence[Interval], live: Live) -> Matches:
    """All matches of the probe rows with the rows at `first_position` and after, in order.

    Cost: O(probes * rows * dimensions) in time, a byte for each pair in space.
    """
    met = np.empty((len(live), len(columns[0])), np.bool_)
    _mark_live(live.start, live.end, first_position, met)
    for keys, interval in zip(columns, intervals, strict=True):
        valid = _ALL_VALID if keys.valid is None else keys.valid
        _unmark_others(keys.values, valid, interval.low, interval.high, interval.negated, met)
    offsets = np.empty(len(live) + 1, np.int64)
    positions = np.empty(_count_marks(met, offsets), np.int64)
    _list_marks(met, first_position, positions)
    return Matches(offsets, positions)


@kernel
def _mark_live(start: np.ndarray, end: np.ndarray, first_position: int, met: np.ndarray) -> None:
    for probe in range(met.shape[0]):
        low, high = start[probe] - first_position, end[probe] - first_position
        for row in range(met.shape[1]):
            met[probe, row] = (row >= low) & (row < high)


@kernel
def _unmark_others(
    keys: np.ndarray, valid: np.ndarray, lows: np.ndarray, highs: np.ndarray, negated: bool, met: np.ndarray
) -> None:
    """Keep the marks of pairs that one dimension allows; there is no branch in the inner loop, so it is vectorised."""
    for probe in range(met.shape[0]):
        low, high = lows[probe], highs[probe]
        for row in range(met.shape[1]):
            met[probe, row] &= ((keys[row] >= low) & (keys[row] <= high)) != negated
    if valid.size:
        for probe in range(met.shape[0]):
            for row in range(met.shape[1]):
                met[probe, row] &= valid[row]


@kernel
def _count_marks(met: np.ndarray, offsets: np.ndarray) -> int:
    """Fill in where each probe row's matches begin; return their number."""
    total = 0
    for probe in range(met.shape[0]):
        offsets[probe] = total
        for row in range(met.shape[1]):
            total += met[probe, row]
    offsets[met.shape[0]] = total
    return total


@kernel
def _list_marks(met: np.ndarray, first_position: int, positions: np.ndarray) -> None:
    at = 0
    if positions.size:
        for probe in range(met.shape[0]):
            for row in range(met.shape[1]):
                if met[probe, row]:
                    positions[at] = first_position + row
                    at += 1
