"""Gathering byte strings from a contiguous buffer."""

from __future__ import annotations

import numpy as np

from indexes import frozen, kernel


def gather_bytes(data: np.ndarray, ends: np.ndarray, rows: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """The offsets and bytes of some rows, where row i is ``data[ends[i] - base : ends[i + 1] - base]``.

    Cost: O(rows + bytes).
    """
    ends, rows = frozen(ends), frozen(rows)
    offsets = np.empty(len(rows) + 1, np.int64)
    _measure(ends, rows, offsets)
    gathered = np.empty(offsets[-1], np.uint8)
    _copy(frozen(data), ends, rows, base, offsets, gathered)
    return offsets, gathered


@kernel
def _measure(ends: np.ndarray, rows: np.ndarray, offsets: np.ndarray) -> None:
    total = 0
    offsets[0] = 0
    for i in range(rows.size):
        total += ends[rows[i] + 1] - ends[rows[i]]
        offsets[i + 1] = total


@kernel
def _copy(
    data: np.ndarray, ends: np.ndarray, rows: np.ndarray, base: int, offsets: np.ndarray, gathered: np.ndarray
) -> None:
    for i in range(rows.size):
        begin = ends[rows[i]] - base
        first = offsets[i]
        for byte in range(offsets[i + 1] - first):
            gathered[first + byte] = data[begin + byte]
