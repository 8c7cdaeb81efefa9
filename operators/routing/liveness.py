"""Which rows are live: the state of a window, in the router.

`Liveness` finds for each arriving row the first live position of a side. Everything downstream works on positions. So
this is the only place that computes a window's definition (docs/semantics.md, Windows), and expiry is exact in every
element at no further cost.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.query.windows import CountWindow, TimeWindow, Window
from operators.routing.growing_array import GrowingArray

Int64 = npt.NDArray[np.int64]
Times = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_INT64 = np.iinfo(np.int64)


class CountLiveness:
    """Liveness in a count window: arithmetic on the number of rows before.

    missing: rows of the side before position 0. Where a slide ends depends on the number of all rows.
    """

    def __init__(self, window: CountWindow, missing: int = 0) -> None:
        self._window = window
        self._missing = missing

    def append(self, times: Times) -> None:
        """Rows arrived on this side; a count window only needs their number, which the caller has."""

    def first(self, before: Int64, times: Times) -> Int64:
        """First live position for rows with `before` rows of this side before them; at most `before`."""
        size, slide = self._window.size, self._window.slide
        # ceil((n - size) / slide) * slide
        expired = -((size - before - self._missing) // slide) * slide - self._missing
        return np.minimum(np.maximum(expired, 0), before)


class TimeLiveness:
    """Liveness in a time window: keeps the sorted times of the side's live rows and searches them.

    kind:   the type of the side's event times.
    factor: times come in a unit that is so many times finer.
    """

    def __init__(self, window: TimeWindow, kind: pa.DataType | None, factor: int = 1) -> None:
        self._size, self._slide = window.in_unit_of(kind, factor)
        self._times = GrowingArray(np.float64 if isinstance(self._size, float) else np.int64)
        self._expired = 0  # rows below this position have expired

    def append(self, times: Times) -> None:
        """Add the times of a step's rows of this side, and drop those that earlier steps found expired.

        Every row of the step, of either side, comes after the rows of earlier steps, so none needs them again.
        """
        self._times.drop_before(self._expired)
        self._times.append(times)

    def first(self, before: Int64, times: Times) -> Int64:
        """First live position for rows of those times with `before` rows of this side before them; at most `before`.

        Both ascend. One step may take any number of calls, such as one for each side, in any order.
        """
        if not len(times):
            return np.empty(0, dtype=np.int64)
        known: Times = self._times.values
        if self._slide is not None:
            found = self._first_of_slide(times, known)
        elif known.dtype == np.int64:
            found = np.searchsorted(known, _saturating(times, -int(self._size)), side="left")
        else:
            found = self._first_within(times, known)
        first = np.minimum(found + self._times.base, before)
        self._expired = max(self._expired, int(first[-1]))
        return first

    def _first_of_slide(self, times: Times, known: Times) -> Int64:
        size, slide = self._size, self._slide
        assert slide is not None
        if times.dtype != np.int64:
            return np.searchsorted(known, (np.floor((times - size) / slide) + 1) * slide, side="left")
        whole_size, whole_slide = int(size), int(slide)
        margin = whole_size + whole_slide
        if _INT64.min + margin < times[0] and times[-1] < _INT64.max - margin:
            return np.searchsorted(known, ((times - whole_size) // whole_slide + 1) * whole_slide, side="left")
        # At the ends of int64 the start of the slide may lie beyond them: Python's integers have no ends.
        starts = [((int(time) - whole_size) // whole_slide + 1) * whole_slide for time in times]
        return np.array([bisect_left(known, start) for start in starts], dtype=np.int64)

    def _first_within(self, times: Times, known: Times) -> Int64:
        """The first known time y with float64 t - y <= size.

        The bound t - size is rounded, so the first guess may be off by some equal times. Skip these, one distinct time
        at a go, until the condition as written holds on one side of the border and fails on the other.
        """
        size = self._size
        with np.errstate(invalid="ignore"):  # infinite times: inf - inf is NaN, which is not within
            guess = np.searchsorted(known, times - size, side="left")
            while True:
                too_late = guess > 0
                too_late[too_late] = times[too_late] - known[guess[too_late] - 1] <= size
                if not too_late.any():
                    break
                guess[too_late] = np.searchsorted(known, known[guess[too_late] - 1], side="left")
            while True:
                too_early = guess < len(known)
                too_early[too_early] = ~(times[too_early] - known[guess[too_early]] <= size)
                if not too_early.any():
                    break
                guess[too_early] = np.searchsorted(known, known[guess[too_early]], side="right")
        return guess


class UnboundedLiveness:
    """Liveness in an unbounded window: every earlier row is live."""

    def append(self, times: Times) -> None:
        """Rows arrived on this side; none of them expires."""

    def first(self, before: Int64, times: Times) -> Int64:
        """First live position for rows with `before` rows of this side before them: 0."""
        return np.zeros(len(before), dtype=np.int64)


Liveness = CountLiveness | TimeLiveness | UnboundedLiveness


def liveness(window: Window, event_time: pa.DataType | None, missing: int = 0, factor: int = 1) -> Liveness:
    """Make the state of a window over the rows of a side, of which the first `missing` ones have expired before.

    event_time: the type of the side's event times, which come in a unit that is `factor` times finer.

    The live rows of a count window per key are scattered: `routing.key_ordinals` finds them, and here every row counts
    as live.
    """
    if isinstance(window, TimeWindow):
        return TimeLiveness(window, event_time, factor)
    if isinstance(window, CountWindow) and not window.per_key:
        return CountLiveness(window, missing)
    return UnboundedLiveness()


def _saturating(times: Times, offset: int) -> Times:
    """Add an offset to times, for an offset of zero or less, stopping at the smallest int64."""
    lowest = _INT64.min - offset
    if times[0] >= lowest:
        return times + offset
    if times[-1] <= lowest:
        return np.full(len(times), _INT64.min)
    return np.where(times >= lowest, times, lowest) + offset
