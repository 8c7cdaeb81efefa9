"""The keys of filtering dimensions, by position."""

from __future__ import annotations

import numpy as np


class RowColumns:
    """A ring of the last rows' keys: position p sits at `p & mask`.

    The room is a power of two. It doubles when the rows from the oldest still needed to the newest do not fit, and
    shrinks when they would fit eight times. Resizing makes a new array, so a reader that holds the old one keeps
    reading the same rows.

        room 4, rows 5 6 7 held:  [_, 5, 6, 7]     row 8 takes the place of row 4
    """

    def __init__(self, columns: int) -> None:
        self.values = np.empty((columns, 16), np.int64)

    @property
    def mask(self) -> int:
        return int(self.values.shape[1]) - 1

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    def append(self, first: int, columns: list[np.ndarray], below: int) -> None:
        """Add rows at positions first, first + 1, ...; rows from `below` on stay. Cost: O(rows) amortised."""
        rows = len(columns[0])
        held = first + rows - below
        room = self.mask + 1
        if held > room or held * 8 < room > 16:
            self._resize(max(16, 1 << (2 * held - 1).bit_length() - 1), max(below, 0), first)
        begin = first & self.mask
        until_end = min(rows, self.mask + 1 - begin)
        for d, column in enumerate(columns):
            self.values[d, begin : begin + until_end] = column[:until_end]
            self.values[d, : rows - until_end] = column[until_end:]

    def at(self, positions: np.ndarray) -> np.ndarray:
        """The keys at these positions, [column, position]. Cost: O(positions)."""
        return self.values[:, positions & self.mask]

    def _resize(self, room: int, below: int, end: int) -> None:
        positions = np.arange(max(below, end - self.mask - 1), end)
        values = np.empty((len(self.values), room), np.int64)
        values[:, positions & (room - 1)] = self.at(positions)
        self.values = values
