"""Windows: which rows of a side are live for an arriving row of the other side.

These are descriptions, with the formulas of docs/semantics.md; `routing.liveness` computes them. In the formulas, n is
the number of rows of the side before the arriving row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from indexes import check_whole_number
from operators.query.durations import Duration, checked_duration, in_unit, written
from operators.query.errors import DurationError, WindowError


@dataclass(frozen=True)
class CountWindow:
    """The last `size` rows of a stream; with a slide, expiry happens `slide` rows at a time.

    Positions from max(0, ceil((n - size) / slide) * slide) on are live.

    per_key: count the rows of each key separately: the last `size` rows with the arriving row's key are live. The key
             is the columns in the condition's equalities between plain columns.
    """

    size: int
    slide: int = 1
    per_key: bool = False

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("slide", self.slide)):
            check_whole_number("CountWindow", name, value, error=WindowError)
            if value >= 2**62:
                raise WindowError(f"CountWindow: no stream has {value} rows: write UnboundedWindow() to keep all rows")
        if not isinstance(self.per_key, bool):
            raise WindowError(f"CountWindow: per_key must be True or False, not {self.per_key!r}")

    @classmethod
    def tumbling(cls, size: int, per_key: bool = False) -> CountWindow:
        """Blocks of `size` rows: the slide is the size, so a block expires as a whole."""
        return cls(size, size, per_key)

    @property
    def rows(self) -> int | None:
        """The greatest number of live rows, if known."""
        return None if self.per_key else self.size

    def __repr__(self) -> str:
        name = "CountWindow"
        given = [str(self.size)]
        if self.slide == self.size > 1:
            name = "CountWindow.tumbling"
        elif self.slide != 1:
            given.append(str(self.slide))
        return f"{name}({', '.join([*given, 'per_key=True'] if self.per_key else given)})"


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

    @classmethod
    def tumbling(cls, size: Duration) -> TimeWindow:
        """Spans of `size` from a multiple of `size` to the next: the slide is the size."""
        return cls(size, size)

    @classmethod
    def interval(cls, before: Duration, after: Duration) -> tuple[TimeWindow, TimeWindow]:
        """The windows of an interval join, ``left.ts BETWEEN right.ts - before AND right.ts + after``, ends included.

        A left row meets right rows that came up to `after` earlier; a right row meets left rows that came up to
        `before` earlier. The windows alone express the whole interval, unless a bound is negative: it becomes a window
        of 0 on its side, and the condition must state the interval as well.
        """
        windows = []
        bounds = []
        for name, value in (("before", before), ("after", after)):
            try:
                bounds.append(checked_duration(value))
            except DurationError as error:
                raise DurationError(f"TimeWindow.interval: {name}: {error}") from None
            zero = timedelta(0) if isinstance(bounds[-1], timedelta) else 0
            windows.append(cls(max(bounds[-1], zero)))
        if isinstance(bounds[0], timedelta) != isinstance(bounds[1], timedelta):
            raise WindowError(
                f"TimeWindow.interval: before is {before!r} and after {after!r}: give both a unit, or neither"
            )
        if bounds[0] < -bounds[1]:  # type: ignore[operator]
            raise WindowError(
                f"TimeWindow.interval: no row lies {_shown(before)} before another and {_shown(after)} after it: "
                f"before + after must be zero or more"
            )
        return windows[0], windows[1]

    @property
    def rows(self) -> int | None:
        """The greatest number of live rows, if known."""
        return None

    def in_unit_of(self, kind: pa.DataType | None, factor: int = 1) -> tuple[int | float, int | float | None]:
        """Return size and slide as numbers in the unit of an event-time column (None: row numbers).

        factor: of a unit that is so many times finer.
        """
        try:
            size = in_unit(self.size, kind) * factor
            slide = None if self.slide is None else in_unit(self.slide, kind) * factor
        except DurationError as error:
            raise DurationError(f"{self!r}: {error}") from None
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

    def __repr__(self) -> str:
        if self.slide == self.size and isinstance(self.slide, timedelta) == isinstance(self.size, timedelta):
            return f"TimeWindow.tumbling({_shown(self.size)})"
        given = [self.size] if self.slide is None else [self.size, self.slide]
        return f"TimeWindow({', '.join(map(_shown, given))})"


@dataclass(frozen=True)
class UnboundedWindow:
    """All earlier rows of a stream: none expires, and memory grows with every row."""

    @property
    def rows(self) -> int | None:
        """The greatest number of live rows, if known."""
        return None


Window = CountWindow | TimeWindow | UnboundedWindow


def _checked(name: str, value: Duration) -> int | float | timedelta:
    try:
        length = checked_duration(value)
    except DurationError as error:
        raise DurationError(f"TimeWindow: {name}: {error}") from None
    if length < (timedelta(0) if isinstance(length, timedelta) else 0):  # type: ignore[operator]
        raise WindowError(f"TimeWindow: {name} must be zero or more, not {value!r}")
    return length


def _shown(value: Duration) -> str:
    return repr(written(value)) if isinstance(value, timedelta) else repr(value)
