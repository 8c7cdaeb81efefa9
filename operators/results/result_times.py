"""The event times of results, for joins whose results are a stream of a topology."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from operators.protocol.columns import Int64
from operators.protocol.sides import LEFT, RIGHT
from operators.results.result_kinds import NOBODY, AnyResults
from operators.routing.growing_array import GrowingArray
from topology import Time, Times, event_times

EVENT_TIME = "event_time"
"""The column of results that holds their event time."""

_LEAST: dict[np.dtype[Any], Time] = {np.dtype(np.int64): np.iinfo(np.int64).min, np.dtype(np.float64): -np.inf}


class ResultTimes:
    """Keeps the event times of the rows that may still be part of a result, by side and position.

    of: the side whose row gives a result its time; None: the row that is its place, which is the later row of a pair.
    """

    def __init__(self, of: int | None) -> None:
        self._of = of
        self._times: list[GrowingArray | None] = [None, None]
        self._type: pa.DataType | None = None
        self._dtype: np.dtype[Any] = np.dtype(np.int64)
        self._reached: Time | None = None

    def append(self, side: int, times: pa.Array) -> None:
        """Add rows of a side at the next positions."""
        values, _ = event_times(times)
        own = self._times[side]
        if own is None:
            own = self._times[side] = GrowingArray(values.dtype)
            self._dtype = values.dtype
            self._type = times.type
        own.append(values)

    def reach(self, side: int, end: int) -> None:
        """Note that the rows of a side before position `end` are complete."""
        own = self._times[side]
        if own is not None and end > own.base:
            last = own.values[end - 1 - own.base].item()
            self._reached = last if self._reached is None else max(self._reached, last)

    def drop_before(self, side: int, position: int) -> None:
        """Forget the rows of a side below a position."""
        own = self._times[side]
        if own is not None:
            own.drop_before(position)

    @property
    def promise(self) -> Time | None:
        """No result that follows has an earlier time; None if nothing is complete.

        Times of one side are in order, so the first row that is kept is the earliest that a result can show.
        """
        own = None if self._of is None else self._times[self._of]
        if own is None or not len(own) or self._reached is None:
            return self._reached
        first: Time = own.values[0].item()
        return min(first, self._reached)

    def of(self, results: AnyResults) -> pa.Array:
        """The event times of results. Cost: O(results)."""
        if self._of is not None:
            times = self._at(self._of, (results.left, results.right)[self._of])
        else:
            left, right = results.places or (results.left, results.right)
            times = self._later(left, right)
        return times_as_column(times, self._type)

    def _later(self, left: Int64, right: Int64) -> Times:
        """The time of the later of two rows; where there is neither, the latest of all."""
        times: Times = np.maximum(self._at(LEFT, left), self._at(RIGHT, right))
        nowhere = (left == NOBODY) & (right == NOBODY)
        if nowhere.any():
            assert self._reached is not None, "rows that never expire come at the end"
            times[nowhere] = self._reached
        return times

    def _at(self, side: int, positions: Int64) -> Times:
        """The times at positions of a side; the earliest of all times where there is no row."""
        own, there = self._times[side], positions != NOBODY
        times: Times = np.full(len(positions), _LEAST[self._dtype], self._dtype)
        if own is not None:
            times[there] = own.values[positions[there] - own.base]
        return times


def times_as_column(times: Times, kind: pa.DataType | None) -> pa.Array:
    """Event times as numbers in the type of their column, the inverse of `event_times`; integers as int64."""
    assert kind is not None, "a result has a row"
    if pa.types.is_floating(kind):
        return pa.array(times, pa.float64()).cast(kind)
    whole = pa.array(times, pa.int64())
    if pa.types.is_integer(kind):
        return whole
    return whole.view(kind) if kind.bit_width == 64 else whole.cast(pa.int32()).view(kind)
