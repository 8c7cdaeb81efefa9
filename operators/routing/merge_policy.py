"""When the mutable part of a window is merged into the immutable part (SPO-Join, section 3.3).

Exactness does not depend on it: every probe row carries its own live range, so a segment may hold rows of any number of
slides. The policy only trades the cost of probing a large mutable part against the number of segments to probe.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from operators.query.windows import CountWindow, Window

SMALLEST_SEGMENT = 4096
"""Below this, a segment costs more to look at than its rows do in the mutable part."""

Merging = Literal["adaptive", "slide", "sub-interval"]
"""adaptive: whole slides together, up to a quarter of the window. slide: each slide is a segment. sub-interval: each
slide is divided into one segment per PO-Join element. The last two are the paper's. They need slides that are counted
in rows (`has_counted_slides`), and pay off where a window slides by many rows at a time."""


def has_counted_slides(window: Window) -> bool:
    """Whether a window slides by a fixed number of rows; windows of time, per key and unbounded ones do not."""
    return isinstance(window, CountWindow) and not window.per_key


@dataclass(frozen=True)
class MergePolicy:
    """How many rows make a segment.

    interval: the fixed number; None: a fraction of the live rows, for windows whose number of rows is unknown.
    lag:      how many further rows must have arrived before probes turn from the mutable part to the segment. Until
              then the mutable part answers for it, so nothing waits for a merge unless building the segment takes
              longer than that many rows need to arrive. None: half of the segment's rows.
    """

    interval: int | None
    lag: int | None = None

    @classmethod
    def of(cls, window: Window, interval: int | None, elements: int, merging: Merging = "adaptive") -> MergePolicy:
        """The policy for a window, for so many PO-Join elements.

        The paper merges at each slide or, where a slide is most of the window, at each slide divided by the elements.
        The adaptive policy puts whole slides together: every probe row searches every segment, so few are better.
        """
        if interval is not None:
            return cls(interval)
        if not has_counted_slides(window):
            return cls(None)
        assert isinstance(window, CountWindow)
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

    def handover(self, arrived: int) -> int:
        """The position below which the immutable part answers probes, when `arrived` rows have arrived."""
        while self._pending and self._pending[0][1] <= arrived:
            self._handover = self._pending.popleft()[0]
        return self._handover

    def due(self, arrived: int, live_from: int) -> list[tuple[int, int, int]]:
        """The segments that are due now, as (number, first position, end)."""
        orders: list[tuple[int, int, int]] = []
        while True:
            rows = self._policy.rows(arrived - live_from)
            end = self._ordered + rows
            if end > arrived:
                return orders
            orders.append((self._segments, self._ordered, end))
            self._pending.append((end, end + self._policy.lag_of(rows)))
            self._segments += 1
            self._ordered = end
