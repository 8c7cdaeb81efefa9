"""Windows over event time: which rows belong together, and when they are complete.

A window is a half-open span [start, end). It is complete when the watermark has reached its end: no row of it follows.
A description says which windows rows belong to; `WindowedTask` holds the rows. Spans are measured in the unit of the
event-time column, or given as a `timedelta`.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topology.bolts.row_groups import Codes, KeyValue
from topology.graph.errors import TopologyError
from topology.graph.event_time import Times
from topology.graph.messages import Time

Span = int | float | datetime.timedelta
RowNumbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}


@dataclass(frozen=True)
class Window:
    """A complete window, as the code of a bolt sees it.

    start, end: numbers where the event time is a number, otherwise Arrow scalars of the column's type. An output column
                made of `end` is an event time for bolts downstream; `start` is too early for them.
    key:        the key of its rows; None if the bolt has no key.
    """

    start: Any
    end: Any
    key: KeyValue = None


@dataclass(frozen=True)
class Complete:
    """A complete window in numbers, and the rows in it by number, in the order of event time."""

    start: Time
    end: Time
    rows: RowNumbers


@dataclass(frozen=True)
class Windowing(ABC):
    """Divides rows into windows by the event time in `column`."""

    column: str
    spans: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise TopologyError(f"{type(self).__name__} needs the name of the event-time column, not {self.column!r}")
        for name in self.spans:
            span: Any = getattr(self, name)
            zero: Any = datetime.timedelta(0) if isinstance(span, datetime.timedelta) else 0
            if isinstance(span, bool) or not isinstance(span, Span) or not span > zero:
                raise TopologyError(
                    f"{type(self).__name__}({name}={span!r}): it must be a number above 0, in the unit of "
                    f"'{self.column}', or a timedelta"
                )

    def in_unit(self, kind: pa.DataType) -> tuple[Time, ...]:
        """Return the spans as numbers in the unit of a column of this type."""
        return tuple(_in_unit(getattr(self, name), kind, f"{type(self).__name__}({name}=...)") for name in self.spans)

    @abstractmethod
    def is_late(self, times: Times, spans: tuple[Time, ...], time: Time) -> Mask:
        """Say for each row whether all its windows are complete at a watermark of `time`."""

    @abstractmethod
    def earliest_end(self, earliest: Time, spans: tuple[Time, ...], done: Time | None) -> Time:
        """Return a time before which no window of rows from `earliest` on is complete that was not so at `done`."""

    @abstractmethod
    def complete(
        self, times: Times, codes: Codes, spans: tuple[Time, ...], done: Time | None, until: Time | None
    ) -> Iterator[Complete]:
        """Yield the windows that are complete at `until` (None: all) and were not at `done`, by end and start.

        times: of all rows that are held, sorted. codes: their keys; a window has rows of one key.
        """

    @abstractmethod
    def needed(self, times: Times, codes: Codes, spans: tuple[Time, ...], until: Time) -> tuple[Mask, Time | None]:
        """Say for each row whether a window needs it that is not complete at `until`, and when the first of these is.

        None: no row is needed.
        """


class FixedWindows(Windowing):
    """Windows of one size that begin at all multiples of a number; as spans: (size, that number)."""

    def is_late(self, times: Times, spans: tuple[Time, ...], time: Time) -> Mask:
        size, every = spans
        return np.asarray(_end(_last_index(times, every), size, every) <= time)

    def earliest_end(self, earliest: Time, spans: tuple[Time, ...], done: Time | None) -> Time:
        size, every = spans
        end: Time = _end(_first_index(earliest, size, every, done), size, every)
        return end

    def complete(
        self, times: Times, codes: Codes, spans: tuple[Time, ...], done: Time | None, until: Time | None
    ) -> Iterator[Complete]:
        size, every = spans
        row = 0
        index: Time | None = None
        while row < len(times):
            soonest = _first_index(times[row].item(), size, every, done)
            index = soonest if index is None else max(index + 1, soonest)
            start, end = index * every, _end(index, size, every)
            if until is not None and end > until:
                return
            low, high = np.searchsorted(times, (start, end))
            for members in _by_code(codes, np.arange(low, high)):
                yield Complete(start, end, members)
            row = int(np.searchsorted(times, (index + 1) * every))

    def needed(self, times: Times, codes: Codes, spans: tuple[Time, ...], until: Time) -> tuple[Mask, Time | None]:
        found = ~self.is_late(times, spans, until)
        return found, self.earliest_end(times[found][0].item(), spans, until) if found.any() else None


@dataclass(frozen=True)
class Tumbling(FixedWindows):
    """Windows of one size, one behind the other: [0, size), [size, 2 size), ...

    >>> import interlace as il
    >>> il.Tumbling("ts", 60)
    Tumbling(column='ts', size=60)
    """

    size: Span
    spans = ("size",)

    def in_unit(self, kind: pa.DataType) -> tuple[Time, ...]:
        (size,) = super().in_unit(kind)
        return size, size


@dataclass(frozen=True)
class Sliding(FixedWindows):
    """Windows of one size that begin at all multiples of `every`; a row is in as many as cover its time.

    >>> import interlace as il
    >>> il.Sliding("ts", size=60, every=20)
    Sliding(column='ts', size=60, every=20)
    """

    size: Span
    every: Span
    spans = ("size", "every")

    def in_unit(self, kind: pa.DataType) -> tuple[Time, ...]:
        size, every = super().in_unit(kind)
        if every > size:
            raise TopologyError(
                f"Sliding: every={self.every!r} is longer than size={self.size!r}, so rows between two windows would "
                f"be lost: choose every <= size"
            )
        return size, every


@dataclass(frozen=True)
class Sessions(Windowing):
    """Rows of one key that follow each other in less than `gap`; a session ends `gap` after its last row.

    >>> import interlace as il
    >>> il.Sessions("ts", gap=1800).gap
    1800
    """

    gap: Span
    spans = ("gap",)

    def is_late(self, times: Times, spans: tuple[Time, ...], time: Time) -> Mask:
        return np.asarray(times + spans[0] <= time)

    def earliest_end(self, earliest: Time, spans: tuple[Time, ...], done: Time | None) -> Time:
        return earliest + spans[0]

    def complete(
        self, times: Times, codes: Codes, spans: tuple[Time, ...], done: Time | None, until: Time | None
    ) -> Iterator[Complete]:
        order, firsts, lasts = self._sessions(times, codes, spans[0])
        ends = times[order[lasts]] + spans[0]
        starts = times[order[firsts]]
        for number in np.lexsort((codes[order[firsts]], starts, ends)).tolist():
            if until is not None and ends[number] > until:
                return
            members = order[firsts[number] : lasts[number] + 1]
            yield Complete(starts[number].item(), ends[number].item(), members)

    def needed(self, times: Times, codes: Codes, spans: tuple[Time, ...], until: Time) -> tuple[Mask, Time | None]:
        order, firsts, lasts = self._sessions(times, codes, spans[0])
        ends = times[order[lasts]] + spans[0]
        found = np.zeros(len(times), dtype=np.bool_)
        found[order] = np.repeat(ends > until, lasts - firsts + 1)
        return found, ends[ends > until].min().item() if found.any() else None

    def _sessions(self, times: Times, codes: Codes, gap: Time) -> tuple[RowNumbers, RowNumbers, RowNumbers]:
        """Return the rows by key and time, and where in that order each session begins and ends."""
        order = np.argsort(codes, kind="stable")
        if not len(order):
            return order, order, order
        begins = np.flatnonzero((np.diff(codes[order]) != 0) | (np.diff(times[order]) >= gap)) + 1
        firsts = np.concatenate(([0], begins))
        return order, firsts, np.concatenate((begins - 1, [len(order) - 1]))


def _in_unit(span: Span, kind: pa.DataType, what: str) -> Time:
    if isinstance(span, datetime.timedelta):
        micros = span // datetime.timedelta(microseconds=1)
        per: int | None = None
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind):
            if kind.unit == "ns":
                return micros * 1000
            per = _MICROSECONDS[kind.unit]
        elif pa.types.is_date(kind):
            per = 1000 if pa.types.is_date64(kind) else 86_400_000_000
        if per is None or micros % per:
            raise TopologyError(f"{what}: {span} is no whole number of units of an event time of type {kind}")
        return micros // per
    if pa.types.is_floating(kind):
        return float(span)
    if span != int(span):
        raise TopologyError(f"{what}: {span} is no whole number, as the event times of type {kind} are")
    return int(span)


def _end(index: Any, size: Time, every: Time) -> Any:
    """Where windows end, by their index.

    With times in floats a window still ends exactly where the next begins, or later: no row is between two windows, and
    with tumbling windows none is in two.
    """
    following = (index + 1) * every
    if size == every:
        return following
    end = index * every + size
    return np.maximum(end, following) if isinstance(index, np.ndarray) else max(end, following)


def _last_index(times: Times, every: Time) -> Times:
    """The index of the last window that begins at or before each time, exact in floats too."""
    index: Any = times // every
    if index.dtype.kind == "f":
        index = np.where(index * every > times, index - 1, index)
        index = np.where((index + 1) * every <= times, index + 1, index)
    return index


def _first_index(earliest: Time, size: Time, every: Time, done: Time | None) -> Time:
    """The index of the first window that ends after a time and after `done`."""
    latest = earliest if done is None else max(earliest, done)
    index = (latest - size) // every - 1  # not too great, also where floats are rounded
    while _end(index, size, every) <= latest:
        index += 1
    return index


def _by_code(codes: Codes, rows: RowNumbers) -> Iterator[RowNumbers]:
    """Divide rows by key; keys in the order of their numbers."""
    if not len(rows):
        return
    ordered = rows[np.argsort(codes[rows], kind="stable")]
    yield from np.split(ordered, np.flatnonzero(np.diff(codes[ordered])) + 1)
