"""Which element stores a row of one side, by its key, and which elements a probe row has to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from indexes import Interval, Keys, frozen, kernel
from operators.protocol.columns import Int64

Int32 = npt.NDArray[np.int32]

SLOTS = 64
"""A cell that several elements own is dealt in so many parts, or one for each element if they are more."""

NOWHERE = -1

_NO_BOUNDS: np.ndarray = np.empty(0, np.int64)

_ODD, _OTHER_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_HIGH_BITS = np.uint64(32)


class Coordinate(Enum):
    """What decides where a row belongs: its key, in either order, a hash or a block of it, or the row's position."""

    RISING = "ranges of keys"
    FALLING = "ranges of keys, in reverse order"
    HASHED = "hashes of keys"
    BLOCK = "blocks of keys"
    POSITION = "positions"


@dataclass(frozen=True)
class SideMap:
    """Cells of consecutive coordinates, each owned by one element or by several with consecutive numbers.

    Cells follow each other as elements do. So an interval of keys, which meets consecutive cells, is asked for in
    consecutive elements. Several elements own a cell whose keys are too many for one; its rows are dealt to them by
    position, and a probe row asks all of them.

        three elements; 5 is a frequent key     cells     below 3 | 3 and 4 | 5    | above 5
                                                owners    0       | 1       | 1, 2 | 2
        the key 4 is stored in 1; the interval [2, 3] asks 0 and 1, the interval [5, 9] asks 1 and 2

    dimension:  whose keys decide.
    coordinate: what of them.
    elements:   how many there are.
    bounds:     the least coordinate of every cell but the first, ascending; equal ones leave a cell empty.
    dealt:      the element of each part of each cell, ascending.
    """

    dimension: int
    coordinate: Coordinate
    elements: int
    bounds: np.ndarray
    dealt: Int32

    @classmethod
    def whole(cls, dimension: int, elements: int) -> SideMap:
        """One cell, in the first element."""
        return cls(dimension, Coordinate.RISING, elements, _NO_BOUNDS, np.zeros((1, SLOTS), np.int32))

    @classmethod
    def in_turn(cls, elements: int) -> SideMap:
        """Rows are dealt to all elements by position, and every element is asked."""
        slots = max(SLOTS, elements)
        dealt = (np.arange(slots) * elements // slots).astype(np.int32)[None, :]
        return cls(0, Coordinate.POSITION, elements, _NO_BOUNDS, dealt)

    @classmethod
    def even_hashes(cls, dimension: int, elements: int) -> SideMap:
        """As many cells as elements, each with an equal part of the hashes."""
        least, count = int(np.iinfo(np.int64).min), 1 << 64
        bounds = np.array([least + count * number // elements for number in range(1, elements)], np.int64)
        dealt = np.repeat(np.arange(elements, dtype=np.int32)[:, None], SLOTS, axis=1)
        return cls(dimension, Coordinate.HASHED, elements, bounds, dealt)

    def stores(self, keys: Sequence[Keys], positions: Int64) -> Int32:
        """The element that stores each row; NOWHERE for rows that nothing matches. Cost: O(rows)."""
        cells = self._cells(coordinates(keys[self.dimension].values, self.coordinate))
        stored = self._first[cells]
        if self._is_shared:
            slots = (positions.astype(np.uint64) * _ODD >> _HIGH_BITS) % np.uint64(self.dealt.shape[1])
            stored = self.dealt[cells, slots.astype(np.int64)]
        return stored_if_valid(stored, keys)

    def asks(self, intervals: Sequence[Interval]) -> tuple[Int32, Int32]:
        """The first and the last element that may hold what each row matches; none if first > last. Cost: O(rows)."""
        asked = intervals[self.dimension]
        low, high = asked.low, asked.high
        if self.coordinate is Coordinate.HASHED:
            cells = self._cells(coordinates(low, self.coordinate))
            # an equality as it is computed in floats may be satisfied by several keys, whose hashes are anywhere
            first = np.where(low == high, self._first[cells], 0)
            last = np.where(low == high, self._last[cells], self.elements - 1)
        else:
            ends = (high, low) if self.coordinate is Coordinate.FALLING else (low, high)
            first, last = (
                table[self._cells(coordinates(end, self.coordinate))]
                for table, end in zip((self._first, self._last), ends, strict=True)
            )
        return asked_of_some(first, last, intervals)

    def check_invariants(self) -> None:
        # one cell more than bounds, which ascend
        assert len(self.dealt) == len(self.bounds) + 1
        assert (np.diff(self.bounds) >= 0).all() if self.bounds.dtype == np.float64 else True
        # owners are elements, and ascend within a cell and from cell to cell
        assert ((self.dealt >= 0) & (self.dealt < self.elements)).all()
        assert (np.diff(self.dealt.ravel()) >= 0).all()

    @cached_property
    def _first(self) -> Int32:
        return np.ascontiguousarray(self.dealt[:, 0])

    @cached_property
    def _last(self) -> Int32:
        return np.ascontiguousarray(self.dealt[:, -1])

    @cached_property
    def _is_shared(self) -> bool:
        return bool((self._first != self._last).any())

    def _cells(self, values: np.ndarray) -> Int64:
        if not len(self.bounds):
            return np.zeros(len(values), np.int64)
        cells = np.empty(len(values), np.int64)
        # before the other side has rows, intervals are empty and of either type
        _count_bounds(frozen(values, self.bounds.dtype), frozen(self.bounds), cells)
        return cells


class Placement(Protocol):
    """Where the rows of a side are stored, and where rows of the other side ask; see `SideMap`."""

    @property
    def dimension(self) -> int:
        """The dimension whose keys decide."""

    @property
    def coordinate(self) -> Coordinate:
        """What of them."""

    @property
    def elements(self) -> int:
        """How many elements there are."""

    def stores(self, keys: Sequence[Keys], positions: Int64) -> Int32:
        """The element that stores each row; NOWHERE for rows that nothing matches."""

    def asks(self, intervals: Sequence[Interval]) -> tuple[Int32, Int32]:
        """The first and the last element that may hold what each row matches; number `elements` is 0 again."""

    def check_invariants(self) -> None:
        """Assert what always holds."""


def stored_if_valid(elements: npt.NDArray[Any], keys: Sequence[Keys]) -> Int32:
    """NOWHERE for rows without a valid key in some dimension, which nothing matches."""
    for each in keys:
        if each.valid is not None:
            elements = np.where(each.valid, elements, NOWHERE)
    return elements.astype(np.int32, copy=False)


def asked_of_some(
    first: npt.NDArray[Any], last: npt.NDArray[Any], intervals: Sequence[Interval]
) -> tuple[Int32, Int32]:
    """No elements for rows with an empty interval, which match nothing."""
    for each in intervals:
        if not each.negated:
            empty = each.low > each.high
            if empty.any():
                first, last = np.where(empty, 1, first), np.where(empty, 0, last)
    return first.astype(np.int32, copy=False), last.astype(np.int32, copy=False)


def coordinates(values: np.ndarray, coordinate: Coordinate) -> np.ndarray:
    """What decides where keys belong. Cost: O(keys).

    An integer and the same number as a float have the same hash, as their column types may differ between the sides.
    """
    if coordinate in (Coordinate.RISING, Coordinate.POSITION):
        return values
    if coordinate is Coordinate.FALLING:
        return -values if values.dtype == np.float64 else ~values
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
    bits = (bits ^ bits >> np.uint64(32)) * _ODD
    hashed: np.ndarray = ((bits ^ bits >> np.uint64(29)) * _OTHER_ODD).view(np.int64)
    return hashed


@kernel
def _count_bounds(values: np.ndarray, bounds: np.ndarray, cells: Int64) -> None:
    """The number of bounds that are at most each value: by comparing with all where they are few."""
    few = bounds.size <= 32
    for row in range(values.size):
        value = values[row]
        if few:
            count = 0
            for each in range(bounds.size):
                count += bounds[each] <= value
        else:
            count, end = 0, bounds.size
            while count < end:
                middle = (count + end) // 2
                if bounds[middle] <= value:
                    count = middle + 1
                else:
                    end = middle
        cells[row] = count
