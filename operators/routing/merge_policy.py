"""When the mutable part of a window is merged into the immutable part (SPO-Join, section 3.3).

Exactness does not depend on it: every probe row carries its own live range, so a segment may hold rows of any number of
slides. The policy only trades the cost of probing a large mutable part against the number of segments to probe.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import numpy as np
import pyarrow as pa

from operators.query.durations import Duration, checked_duration
from operators.query.errors import DurationError, JoinError
from operators.query.windows import CountWindow, TimeWindow, Window
from operators.routing.liveness import Times

TimeUnit = tuple[pa.DataType | None, int]
"""The type of a side's event times, and of how many times finer a unit they come."""

SMALLEST_SEGMENT = 4096
"""Below this, a segment costs more to look at than its rows do in the mutable part."""

Merging = Literal["adaptive", "slide", "sub-interval"]
"""adaptive: whole slides together, up to a quarter of the window. slide: each slide is a segment. sub-interval: each
slide is divided into one segment per PO-Join element. The last two are the paper's. They need slides (`has_slides`), of
rows or of time, and pay off where a window slides by many rows at a time."""


def has_slides(window: Window) -> bool:
    """Whether a window slides by a fixed number of rows or by a fixed time."""
    counted = isinstance(window, CountWindow) and not window.per_key
    return counted or (isinstance(window, TimeWindow) and window.slide is not None)


def check_merge_time(interval: Duration, window: Window | None = None) -> None:
    """Refuse a merge interval that is no time, or that does not fit the window, if that is known."""
    try:
        length = checked_duration(interval)
    except DurationError as error:
        raise JoinError(f"SPOJoin: merge_interval: {error}") from None
    if not length:
        raise JoinError(f"SPOJoin: merge_interval must be more than {interval!r}")
    if window is not None and not (isinstance(window, TimeWindow) and isinstance(window.size, timedelta)):
        raise JoinError(
            f"SPOJoin: merge_interval={interval!r} is a time, and {window} is not measured in times with a unit: give "
            "a number of rows"
        )


@dataclass(frozen=True)
class MergePolicy:
    """How many rows make a segment.

    interval: the fixed number; None: a fraction of the live rows, for windows whose number of rows is unknown.
    slide:    the time that segments cover, in place of a number of rows: a segment ends where the next multiple begins.
    parts:    of how many equal parts of a slide each is a segment of its own.
    lag:      how many further rows must have arrived before probes turn from the mutable part to the segment. Until
              then the mutable part answers for it, so nothing waits for a merge unless building the segment takes
              longer than that many rows need to arrive. None: half of the segment's rows.
    """

    interval: int | None
    lag: int | None = None
    slide: Duration | None = None
    parts: int = 1

    @classmethod
    def of(
        cls, window: Window, interval: int | str | timedelta | None, elements: int, merging: Merging = "adaptive"
    ) -> MergePolicy:
        """The policy for a window, for so many PO-Join elements.

        The paper merges at each slide or, where a slide is most of the window, at each slide divided by the elements.
        The adaptive policy puts whole slides together: every probe row searches every segment, so few are better.
        """
        if isinstance(interval, str | timedelta):
            return cls(None, slide=interval)
        if interval is not None:
            return cls(interval)
        if isinstance(window, TimeWindow) and merging != "adaptive":
            return cls(None, slide=window.slide, parts=1 if merging == "slide" else elements)
        if not isinstance(window, CountWindow) or window.per_key:
            return cls(None)
        size, slide = window.size, window.slide
        if merging != "adaptive":
            return cls(slide if merging == "slide" else -(-slide // elements))
        if slide > size // 2:
            slide = -(-slide // elements)
        slides = max(1, -(-size // (4 * slide)))
        return cls(max(SMALLEST_SEGMENT, slides * slide))

    def rows(self, live: int) -> int:
        """Rows of the next segment, when `live` rows of the side are live."""
        return self.interval if self.interval is not None else max(SMALLEST_SEGMENT, live // 8)

    def lag_of(self, rows: int) -> int:
        """Rows that may arrive while a segment of so many rows is built."""
        return rows // 2 if self.lag is None else self.lag


NEVER = MergePolicy(np.iinfo(np.int64).max)
"""The policy of engines without an immutable part."""


class MergeSchedule:
    """The segments of one side: which have been ordered, and from where on probes use them."""

    def __init__(self, policy: MergePolicy) -> None:
        self._policy = policy
        self._ordered = 0
        self._segments = 0
        self._pending: deque[tuple[int, int]] = deque()  # (end of a segment, rows that must have arrived)
        self._handover = 0
        self._cuts: deque[int] = deque()  # ends of segments of time that have not been ordered
        self._latest: int | float | None = None  # the interval of time that the last row lies in

    def note(self, first: int, times: Times, unit: TimeUnit | None) -> None:
        """Rows at the positions from `first` on arrive; where an interval of time begins, a segment ends.

        unit: of the times, where there are any.
        """
        if self._policy.slide is None or not len(times):
            return
        assert unit is not None, "rows have times"
        intervals = self._intervals(times, unit)
        before = intervals[0] if self._latest is None else self._latest
        self._latest = intervals[-1]
        begins = intervals != np.concatenate([[before], intervals[:-1]])
        self._cuts.extend((first + np.flatnonzero(begins)).tolist())

    def _intervals(self, times: Times, unit: TimeUnit) -> Times:
        """The number of the interval that each time lies in; a rounded one only moves the end of a segment."""
        assert self._policy.slide is not None
        slide, _ = TimeWindow(self._policy.slide).in_unit_of(*unit)
        parts = self._policy.parts
        if times.dtype != np.int64:
            with np.errstate(all="ignore"):
                return np.floor(times / (slide / parts))
        whole = min(max(1, int(slide)), 1 << 62)
        parts = min(parts, whole)
        return times // whole * parts + times % whole * parts // whole

    def handover(self, arrived: int) -> int:
        """The position below which the immutable part answers probes, when `arrived` rows have arrived."""
        while self._pending and self._pending[0][1] <= arrived:
            self._handover = self._pending.popleft()[0]
        return self._handover

    def due(self, arrived: int, live_from: int) -> list[tuple[int, int, int]]:
        """The segments that are due now, as (number, first position, end)."""
        orders: list[tuple[int, int, int]] = []
        while True:
            if self._policy.slide is not None:
                end = self._cuts.popleft() if self._cuts else arrived + 1
                rows = end - self._ordered
            else:
                rows = self._policy.rows(arrived - live_from)
                end = self._ordered + rows
            if end > arrived:
                return orders
            orders.append((self._segments, self._ordered, end))
            self._pending.append((end, end + self._policy.lag_of(rows)))
            self._segments += 1
            self._ordered = end
