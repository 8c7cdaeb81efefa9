"""What choosers take and return, and what both of them do: see `backward` and `chooser`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import kernel
from operators.query.as_of import AsOf
from operators.query.durations import in_unit

Int64 = npt.NDArray[np.int64]
Times = npt.NDArray[np.int64] | npt.NDArray[np.float64]

NONE = -1
"""No row, no record, no key."""

HIDDEN = -2
"""The key of a left row that does not appear at all."""


class Rows(NamedTuple):
    """The rows of one side in a step: their numbers in the total order, times, keys, and the first one's position."""

    seqs: Int64
    times: Times
    keys: Int64
    first: int


class Chosen(NamedTuple):
    """Left rows, and the right row of each or -1, by position, in the order of the results.

    times:  of the left rows.
    places: the times of the rows at which the choices became certain.
    """

    left: Int64
    right: Int64
    times: Times
    places: Times


class Scale(NamedTuple):
    """How event times are counted: the type of their numbers, and the least and the greatest of these."""

    times: type[np.int64] | type[np.float64]
    lowest: Any
    highest: Any

    @classmethod
    def of(cls, kind: pa.DataType | None) -> Scale:
        """The one of a type of event times."""
        if kind is not None and pa.types.is_floating(kind):
            return cls(np.float64, np.float64(-np.inf), np.float64(np.inf))
        ends = np.iinfo(np.int64)
        return cls(np.int64, np.int64(ends.min), np.int64(ends.max))

    def tolerance(self, settings: AsOf, kind: pa.DataType | None) -> Any:
        """The tolerance as a negative distance; the lowest time if there is none."""
        if settings.tolerance is None:
            return self.lowest
        exact: Fraction = in_unit(settings.tolerance, kind)
        if self.times is np.float64:
            return -np.float64(exact)
        # whole times differ by whole numbers, so rounding down changes nothing
        return np.int64(-min(int(exact // 1), np.iinfo(np.int64).max))


def none(size: int, kind: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """So many times nothing."""
    return np.full(size, NONE, kind)


def grown(group: Any, size: int, times: npt.DTypeLike) -> Any:
    """The same arrays with room for at least `size` elements."""
    room = len(group[0])
    if size <= room:
        return group
    more = type(group).empty(max(size, 2 * room) - room, times)
    return type(group)(*map(np.concatenate, zip(group, more, strict=True)))


def renumber(positions: Int64, kept: Int64) -> None:
    """Replace the positions in `kept`, which ascend, by their places there, and all others by NONE."""
    if not len(kept):
        positions[:] = NONE
        return
    places = np.minimum(np.searchsorted(kept, positions), len(kept) - 1)
    positions[:] = np.where(kept[places] == positions, places, NONE)


@kernel
def earliest_within(time, away, lowest):  # type: ignore[no-untyped-def]
    """The time that is so far before another; `away` is a negative distance, `lowest` where there is no bound."""
    # Compiled code may assume that nothing overflows, so it is asked beforehand.
    if away == lowest:
        return lowest
    return lowest if time < lowest - away else time + away
