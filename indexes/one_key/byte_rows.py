"""Byte strings by position, for as long as they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.long_keys import LongKeys


class ByteRows:
    """The leads and bytes of consecutive rows, in three arrays with room to grow.

    Row p is number p - first_position: lead[p], data[ends[p]:ends[p + 1]]. Dead rows go when they are
    more than half of all, so a row is moved at most twice for each time it is appended.
    """

    def __init__(self, first_position: int = 0) -> None:
        self.first_position = first_position
        self._rows = 0
        self._dead = 0
        self._lead = np.empty(16, np.int64)
        self._ends = np.zeros(17, np.int64)
        self._data = np.empty(64, np.uint8)

    @property
    def end_position(self) -> int:
        return self.first_position + self._rows

    @property
    def nbytes(self) -> int:
        return int(self._lead.nbytes + self._ends.nbytes + self._data.nbytes)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Leads, ends and bytes, as a kernel takes them."""
        return frozen(self._lead), frozen(self._ends), frozen(self._data)

    def append(self, keys: LongKeys) -> None:
        """Cost: O(rows + bytes) amortised."""
        rows, used = self._rows, int(self._ends[self._rows])
        begin, end = int(keys.offsets[0]), int(keys.offsets[-1])
        self._lead = _with_room(self._lead, rows, rows + len(keys))
        self._ends = _with_room(self._ends, rows + 1, rows + len(keys) + 1)
        self._data = _with_room(self._data, used, used + end - begin)
        self._lead[rows : rows + len(keys)] = keys.lead
        self._ends[rows + 1 : rows + len(keys) + 1] = keys.offsets[1:] + (used - begin)
        self._data[used : used + end - begin] = keys.data[begin:end]
        self._rows += len(keys)

    def expire(self, below: int) -> None:
        """Positions < `below` will never be asked for again. Cost: O(1) amortised per row and byte."""
        self._dead = min(max(self._dead, below - self.first_position), self._rows)
        if self._dead * 2 <= self._rows or not self._dead:
            return
        dead, gone = self._dead, int(self._ends[self._dead])
        used = int(self._ends[self._rows])
        self._rows -= dead
        self._lead = _with_room(self._lead[dead : dead + self._rows], self._rows, self._rows)
        ends = self._ends[dead : dead + self._rows + 1] - gone
        self._ends = _with_room(ends, self._rows + 1, self._rows + 1)
        self._data = _with_room(self._data[gone:used], used - gone, used - gone)
        self.first_position += dead
        self._dead = 0

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: O(rows + bytes)."""
        return {
            "first": np.array([self.first_position, self._dead], np.int64),
            "lead": self._lead[: self._rows].copy(),
            "ends": self._ends[: self._rows + 1].copy(),
            "data": self._data[: self._ends[self._rows]].copy(),
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: O(rows + bytes)."""
        first, dead = (int(number) for number in snapshot["first"])
        rows = cls(first)
        rows.append(LongKeys(snapshot["lead"], snapshot["data"], snapshot["ends"]))
        rows._dead = dead
        return rows

    def check_invariants(self) -> None:
        # Ends ascend from 0 and stay within the bytes.
        assert self._ends[0] == 0
        assert (np.diff(self._ends[: self._rows + 1]) >= 0).all()
        assert self._ends[self._rows] <= len(self._data)
        # At most half of the rows are dead.
        assert self._dead * 2 <= self._rows


def _with_room(array: np.ndarray, used: int, needed: int) -> np.ndarray:
    """An array with the same first `used` elements, room for `needed`, and no more than four times that."""
    if needed <= len(array) <= max(4 * needed, 64) and array.base is None:
        return array
    room = np.empty(max(2 * needed, 16), array.dtype)
    room[:used] = array[:used]
    return room
