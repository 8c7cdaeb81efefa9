"""The keys of filtering dimensions, written by several threads."""

from __future__ import annotations

import threading

import numpy as np

from indexes.kernels.row_columns import RowColumns


class SharedRowColumns(RowColumns):
    """A ring of rows that arrive in any order of positions, from any thread.

    One thread writes at a time. A reader takes `values` once and works on that array. If the ring was resized
    meanwhile, rows may be only in the new array, so a reader whose array is no longer `values` at the end must read
    again.
    """

    def __init__(self, columns: int, first_position: int) -> None:
        super().__init__(columns)
        self._end = first_position
        self._writing = threading.Lock()

    def append(self, first: int, columns: list[np.ndarray], below: int) -> None:
        """Add rows at positions first, first + 1, ...; rows from `below` on stay. Cost: O(rows) amortised."""
        with self._writing:
            end = max(self._end, first + len(columns[0]))
            held = end - below
            room = self.mask + 1
            if held > room or held * 8 < room > 16:
                self._resize(max(16, 1 << (2 * held - 1).bit_length() - 1), below, self._end)
            self._end = end
            # A late row that has expired has lost its place: a newer row may be there.
            late = min(max(below - first, 0), len(columns[0]))
            places = np.arange(first + late, first + len(columns[0])) & self.mask
            for d, column in enumerate(columns):
                self.values[d, places] = column[late:]
