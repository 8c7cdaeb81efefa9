"""Keys in the order of arrival, to find expired rows in a structure ordered by key."""

from __future__ import annotations

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.radix_sort import sorted_with_order

FEWEST = 16


class ArrivalKeys:
    """A ring that keeps the key of the row at position p at `p & mask`, if the row is held.

    A structure ordered by key needs key and position to remove a row, but expiry names positions only. The room is a
    power of two. It doubles when the rows do not fit, and shrinks when they would fit eight times.

        put keys 20 30 30 at positions 6 5 7     room 4: [_, 30, 20, 30]
        take(5, 7) -> keys 20 30, positions 6 5
    """

    def __init__(self) -> None:
        self._keys = np.empty(FEWEST, np.int64)
        self._held = np.zeros(FEWEST, np.bool_)

    @property
    def nbytes(self) -> int:
        return int(self._keys.nbytes + self._held.nbytes)

    def put(self, keys: np.ndarray, positions: np.ndarray, below: int, end: int) -> None:
        """Add rows; these and all held before lie in [below, end). Cost: O(rows) amortised."""
        room, span = len(self._keys), end - below
        if span > room or 8 * span < room > FEWEST:
            old_keys, old_held, old_room = self._keys, self._held, room
            room = max(FEWEST, 1 << (span - 1).bit_length())
            self._keys = np.empty(room, np.int64)
            self._held = np.zeros(room, np.bool_)
            old = np.arange(below, min(end, below + old_room))
            self._keys[old & (room - 1)] = old_keys[old & (old_room - 1)]
            self._held[old & (room - 1)] = old_held[old & (old_room - 1)]
        _put(self._keys, self._held, keys, positions)

    def take(self, first: int, below: int) -> tuple[np.ndarray, np.ndarray]:
        """Remove the rows at [first, below) and return their keys and positions, ascending by both.

        Rows before `first` are gone already. Cost: O(n) for each digit in which the keys differ.
        """
        # Rows that were never held take no room, so the ring may be shorter than the range that expires.
        places = np.arange(first, min(below, first + len(self._keys))) & (len(self._keys) - 1)
        held = np.flatnonzero(self._held[places])
        keys, order = sorted_with_order(frozen(self._keys[places[held]]))
        self._held[places] = False
        return keys, frozen(held[order] + first)


@kernel
def _put(ring: np.ndarray, held: np.ndarray, keys: np.ndarray, positions: np.ndarray) -> None:
    mask = ring.size - 1
    for i in range(keys.size):
        place = positions[i] & mask
        ring[place] = keys[i]
        held[place] = True
