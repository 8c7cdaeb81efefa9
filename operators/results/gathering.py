"""Gathering payload: byte strings of some rows, and values of the rows of runs (`pair_runs`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from indexes import array_at, frozen, kernel
from operators.protocol.columns import Int64

POSITION_BYTES = 8


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


@kernel
def gather_runs(
    side: int,
    run: int,
    skipped: int,
    sides: npt.NDArray[np.uint8],
    later: Int64,
    sources: Int64,
    ends: Int64,
    values: npt.NDArray[Any],
    base: int,
    gathered: npt.NDArray[Any],
) -> None:
    """Write the values of a side's rows, from pair number `skipped` of a run on. Cost: O(pairs)."""
    at = np.uint64(0)
    while at < np.uint64(gathered.size):
        count = min(np.uint64(ends[run + 1] - ends[run] - skipped), np.uint64(gathered.size) - at)
        if sides[run] == side:
            value = values[later[run] - base]
            for k in range(count):
                gathered[at + k] = value
        else:
            earlier = array_at(sources[run] + POSITION_BYTES * skipped, count, later)
            for k in range(count):
                gathered[at + k] = values[np.uint64(earlier[k] - base)]
        at += count
        skipped = 0
        run += 1


@kernel
def positions_of_runs(
    side: int,
    run: int,
    skipped: int,
    sides: npt.NDArray[np.uint8],
    later: Int64,
    sources: Int64,
    ends: Int64,
    positions: Int64,
) -> None:
    """As `gather_runs`, but the positions themselves."""
    at = np.uint64(0)
    while at < np.uint64(positions.size):
        count = min(np.uint64(ends[run + 1] - ends[run] - skipped), np.uint64(positions.size) - at)
        if sides[run] == side:
            for k in range(count):
                positions[at + k] = later[run]
        else:
            earlier = array_at(sources[run] + POSITION_BYTES * skipped, count, later)
            for k in range(count):
                positions[at + k] = earlier[k]
        at += count
        skipped = 0
        run += 1
