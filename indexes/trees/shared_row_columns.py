"""The keys of dimensions that only filter, written by several threads."""

from __future__ import annotations

import threading

import numpy as np

from indexes.kernels.row_columns import RowColumns


class SharedRowColumns(RowColumns):
    """A ring of rows that come in any order of their positions, from any thread.

    One thread writes at a time. A reader takes `values` once and works on it: what it may ask for is
    there or, if the ring moved meanwhile, is only in the new array. So a reader whose array is no longer
    `values` when it is done must read again; the ring moves when its room doubles or halves.
    """

    def __init__(self, columns: int, first_position: int) -> None:
        super().__init__(columns)
        self._end = first_position
        self._writing = threading.Lock()

    def append(self, first: int, columns: list[np.ndarray], below: int) -> None:
        """Rows at positions first, first + 1, ...; those from `below` on must stay. Cost: O(rows) amortised."""
        with self._writing:
            end = max(self._end, first + len(columns[0]))
            held = end - below
            room = self.mask + 1
            if held > room or held * 8 < room > 16:
                self._resize(max(16, 1 << (2 * held - 1).bit_length() - 1), below, self._end)
            self._end = end
            # A late row that has expired has no place any more: a newer one may be there.
            late = min(max(below - first, 0), len(columns[0]))
            places = np.arange(first + late, first + len(columns[0])) & self.mask
            for d, column in enumerate(columns):
                self.values[d, places] = column[late:]
