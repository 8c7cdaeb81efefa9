"""The promise of a source out of order: no row earlier than its greatest time so far less its bound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topology import Time, Times

_LEAST = -(2**63)
_MOST_APART = 2**64 - 1


class Promise:
    """Decides row by row which rows of a source break its promise.

    A row is late if it is earlier than the greatest time before it less the bound. So the decision depends on the
    source's own sequence of times alone, not on how it is cut into batches. Integers are exact up to the limits of
    int64; floats are compared as written, in float64.

        bound 2, times 1 4 2 1 7 5 4: the greatest before them are - 1 4 4 4 7 7, so 1 (less than 2) and 4 (less than
        5) are late; the promise is 5
    """

    def __init__(self, bound: Time, latest: Time | None = None) -> None:
        self.bound = bound
        self._latest = latest

    @property
    def latest(self) -> Time | None:
        """The greatest time so far."""
        return self._latest

    @property
    def time(self) -> Time | None:
        """Any row earlier than this will be late; None before the first row."""
        if self._latest is None or isinstance(self._latest, float):
            return None if self._latest is None else self._latest - self.bound
        return max(_LEAST, self._latest - int(self.bound))

    def rescaled(self, factor: int) -> Promise:
        """The same promise in a unit that is `factor` times finer; only for whole times."""
        return Promise(self.bound * factor, None if self._latest is None else self._latest * factor)

    def late(self, times: Times) -> npt.NDArray[np.bool_] | None:
        """Take the next times of the source; return a mask of the late ones, None if none is. Cost: O(rows)."""
        greatest = np.maximum.accumulate(times)
        if self._latest is not None:
            np.maximum(greatest, self._latest, out=greatest)
        if len(greatest):
            self._latest = greatest[-1].item()
        late: npt.NDArray[np.bool_]
        if times.dtype == np.int64:
            # no time exceeds the greatest, so the difference is exact as an unsigned number
            late = (greatest - times).view(np.uint64) > np.uint64(min(int(self.bound), _MOST_APART))
        else:
            with np.errstate(over="ignore"):  # below all floats lies -inf: nothing is late then
                late = times < greatest - float(self.bound)
        return late if late.any() else None
