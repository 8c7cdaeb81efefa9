"""A numpy array that grows at the end and is forgotten from the front, at constant cost per element."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_SMALLEST = 1024


class GrowingArray:
    """Elements at positions base, base + 1, ...; the live ones are contiguous in memory.

    Cost: `append` and `drop_before` are amortised O(1) per element; at most half of the memory is unused.
    """

    def __init__(self, dtype: npt.DTypeLike, base: int = 0) -> None:
        """Empty; the first element will be at position `base`."""
        self._buffer: npt.NDArray[Any] = np.empty(_SMALLEST, dtype=dtype)
        self._start = 0
        self._end = 0
        self._base = base

    @property
    def base(self) -> int:
        """The position of the first element kept."""
        return self._base

    @property
    def values(self) -> npt.NDArray[Any]:
        """The elements kept, as a view that is valid until the next change."""
        return self._buffer[self._start : self._end]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._buffer.nbytes

    def __len__(self) -> int:
        return self._end - self._start

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add elements at the end."""
        if self._end + len(values) > len(self._buffer):
            self._make_room(len(values))
        self._buffer[self._end : self._end + len(values)] = values
        self._end += len(values)

    def drop_before(self, position: int) -> None:
        """Forget the elements at positions below `position`."""
        gone = min(max(0, position - self._base), len(self))
        self._start += gone
        self._base += gone

    def _make_room(self, more: int) -> None:
        needed = len(self) + more
        capacity = len(self._buffer)
        if needed > capacity // 2 or capacity > 8 * needed:
            capacity = max(_SMALLEST, 2 * needed)
        fresh = np.empty(capacity, dtype=self._buffer.dtype)
        fresh[: len(self)] = self.values
        self._buffer, self._start, self._end = fresh, 0, len(self)
