"""Windows: which rows of a side a newly arrived row of the other side may meet.

A window is a description. `Liveness` is its working part in the router: for each arriving row it finds the first live
position of the other side. Everything downstream works on positions, so this is the only place where a window's
definition (design, section 3) is computed, and expiry is exact in every element for free.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.durations import Duration, checked_duration, in_unit, written
from operators.errors import DurationError, WindowError
from operators.growing_array import GrowingArray

Int64 = npt.NDArray[np.int64]
Times = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class CountWindow:
    """The last `size` rows of a stream; with a slide, expiry happens `slide` rows at a time.

    With n rows of the side before the arriving row, positions from max(0, ceil((n - size) / slide) * slide) are live.
    """

    size: int
    slide: int = 1

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("slide", self.slide)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise WindowError(f"CountWindow: {name} must be a whole number of 1 or more, not {value!r}")


@dataclass(frozen=True)
class TimeWindow:
    """The rows of the last `size` of event time; with a slide, expiry happens at multiples of `slide`.

    Sizes are timedeltas, text such as "10 min", or numbers in the event-time column's own unit. An arriving row with
    time t meets rows y with t - y.time <= size or, with a slide, y.time >= (floor((t - size) / slide) + 1) * slide.
    """

    size: Duration
    slide: Duration | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _checked("size", self.size))
        if self.slide is not None:
            object.__setattr__(self, "slide", _checked("slide", self.slide))
            if not self.slide:
                raise WindowError(f"TimeWindow: slide must be positive, not {self.slide!r}")

    def __repr__(self) -> str:
        given = [self.size] if self.slide is None else [self.size, self.slide]
        shown = (repr(written(each)) if isinstance(each, timedelta) else repr(each) for each in given)
        return f"TimeWindow({', '.join(shown)})"

    def in_unit_of(self, kind: pa.DataType | None) -> tuple[int | float, int | float | None]:
        """Return size and slide as numbers in the unit of an event-time column (None: row numbers)."""
        try:
            size = in_unit(self.size, kind)
            slide = None if self.slide is None else in_unit(self.slide, kind)
        except DurationError as error:
            raise DurationError(f"TimeWindow: {error}") from None
        if kind is not None and pa.types.is_floating(kind):
            return float(size), None if slide is None else float(slide)
        if slide is None:
            return int(size // 1), None  # whole times differ by whole numbers
        if size % 1 or slide % 1:
            raise WindowError(
                f"{self!r}: size and slide must be whole numbers of the event time's unit "
                f"({'rows' if kind is None else kind}): use multiples of it, or a finer unit"
            )
        return int(size), int(slide)


Window = CountWindow | TimeWindow


class CountLiveness:
    """Liveness in a count window: arithmetic on the number of rows before."""

    def __init__(self, window: CountWindow) -> None:
        self._window = window

    def append(self, times: Times) -> None:
        """Rows arrived on this side; a count window only needs their number, which the caller has."""

    def first(self, before: Int64, times: Times) -> Int64:
        """First live position for arriving rows with `before` rows of this side before them."""
        size, slide = self._window.size, self._window.slide
        expired = -((size - before) // slide) * slide  # ceil((n - size) / slide) * slide
        return np.maximum(expired, 0)


class TimeLiveness:
    """Liveness in a time window: keeps the times of the side's live rows, which are sorted, and searches them."""

    def __init__(self, window: TimeWindow, kind: pa.DataType | None) -> None:
        self._size, self._slide = window.in_unit_of(kind)
        self._times = GrowingArray(np.float64 if isinstance(self._size, float) else np.int64)

    def append(self, times: Times) -> None:
        """Add the times of rows that arrived on this side."""
        self._times.append(times)

    def first(self, before: Int64, times: Times) -> Int64:
        """First live position for arriving rows of those times; forgets what can no longer be live."""
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
        self._times.drop_before(int(first[-1]))  # arriving times do not decrease, nor does what they find
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

        The bound t - size is rounded, so the first guess may be off by some equal times: step over them, a distinct
        time at a go, until the condition as written holds on one side of the border and fails on the other.
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


Liveness = CountLiveness | TimeLiveness


def liveness(window: Window, event_time: pa.DataType | None) -> Liveness:
    """Make the working part of a window."""
    if isinstance(window, CountWindow):
        return CountLiveness(window)
    return TimeLiveness(window, event_time)


def _saturating(times: Times, offset: int) -> Times:
    """Add an offset to times, for an offset of zero or less, stopping at the smallest int64."""
    if times[0] >= _INT64.min - offset:
        return times + offset
    return np.where(times >= _INT64.min - offset, times, _INT64.min - offset) + offset


def _checked(name: str, value: Duration) -> int | float | timedelta:
    try:
        length = checked_duration(value)
    except DurationError as error:
        raise DurationError(f"TimeWindow: {name}: {error}") from None
    if length < (timedelta(0) if isinstance(length, timedelta) else 0):  # type: ignore[operator]
        raise WindowError(f"TimeWindow: {name} must be zero or more, not {value!r}")
    return length
