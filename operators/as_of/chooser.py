"""Chooses a right row for each left row, step by step: holds the state of the kernel in `choosing`, and makes room."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.as_of.choosing import (
    BACKWARD,
    FORWARD,
    NEAREST,
    NONE,
    Heap,
    Known,
    Records,
    Rows,
    Times,
    choose,
    leave_out_certain,
)
from operators.query.as_of import AsOf
from operators.query.durations import in_unit
from topology import Time

Int64 = npt.NDArray[np.int64]

_DIRECTIONS = {"backward": BACKWARD, "forward": FORWARD, "nearest": NEAREST}
FEWEST = 64
"""Records, heap entries and keys for which there is always room."""


@dataclass(frozen=True)
class Chosen:
    """Left rows, and the right row of each or -1, by position, in the order of the results.

    times:  of the left rows.
    places: the times of the rows at which the choices became certain.
    """

    left: Int64
    right: Int64
    times: Times
    places: Times


class Chooser:
    """Takes the rows of both sides in the total order; see `choosing` for how.

    kind:  the type of the event times.
    times: the type of their numbers.

    Cost: O(log waiting) for a left row, O(1) for a right row and for each left row that it may change, amortised.
    Memory: 100 bytes for each key, and for each left row whose choice is not certain.
    """

    def __init__(self, settings: AsOf, kind: pa.DataType | None) -> None:
        floats = kind is not None and pa.types.is_floating(kind)
        self.times: npt.DTypeLike = np.float64 if floats else np.int64
        least, greatest = (-np.inf, np.inf) if floats else (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
        self._bounds = (self._time(least), self._time(greatest))
        self._tolerance = self._bounds[0] if settings.tolerance is None else self._negative(settings, kind)
        self._direction = _DIRECTIONS[settings.direction]
        self._strict = settings.strict
        self._known = Known.empty(FEWEST, self.times)
        self._records = Records.empty(FEWEST, self.times)
        self._heap = Heap.empty(2 * FEWEST, self.times)
        self._used = self._heaped = 0
        self._certain = 0
        self._now = self._bounds[0]

    @property
    def waiting(self) -> int:
        """Left rows whose choice is not certain."""
        return self._used - self._certain

    @property
    def now(self) -> Time:
        """The time of the last row: no choice that follows becomes certain earlier."""
        found: Time = self._now.item()
        return found

    @property
    def earliest(self) -> Time:
        """No left row of a result that follows has an earlier time."""
        waiting = self._records.time[: self._used][~self._records.certain[: self._used]]
        return min(self.now, waiting.min().item()) if len(waiting) else self.now

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for group in (self._known, self._records, self._heap) for array in group)

    def take(self, left: Rows, right: Rows, keys: int) -> Chosen:
        """Take a step and return the left rows that are certain now. `keys`: the number of distinct keys so far."""
        self._make_room(len(left.seqs), keys)
        found = np.empty(self.waiting + len(left.seqs), np.int64)
        places = np.empty(len(found), self.times)
        self._used, self._heaped, count = choose(
            left, right, self._known, self._records, self._used, self._heap, self._heaped, self._direction,
            self._strict, self._tolerance, *self._bounds, found, places,
        )  # fmt: skip
        self._now = max([self._now, *(rows.times[-1] for rows in (left, right) if len(rows.times))])
        self._certain += count
        return self._chosen(found[:count], places[:count])

    def end(self) -> Chosen:
        """The left rows that still wait, in their order: nothing comes that could change their choice."""
        rest = np.flatnonzero(~self._records.certain[: self._used])
        self._records.certain[rest] = True
        self._certain = self._used
        return self._chosen(rest, np.full(len(rest), self._now, self.times))

    def held(self) -> tuple[Int64, Int64]:
        """The positions of left and of right rows that may still be part of a result, each once, ascending."""
        waiting = ~self._records.certain[: self._used]
        chosen = self._records.right[: self._used][waiting]
        kept = np.unique(np.concatenate([chosen, *self._of_keys()]))
        return self._records.left[: self._used][waiting], kept[kept != NONE]

    def renumber(self, left: Int64, right: Int64) -> None:
        """Take new positions: the rows that were at these positions are now at 0, 1, 2, ...; others are gone."""
        records = slice(0, self._used)
        for array, kept in (
            (self._records.left[records], left),
            (self._records.right[records], right),
            (self._known.last, right),
            (self._known.first_of_time, right),
            (self._known.before, right),
        ):
            places = np.minimum(np.searchsorted(kept, array), max(len(kept) - 1, 0))
            array[:] = np.where(kept[places] == array, places, NONE) if len(kept) else NONE

    def check_invariants(self) -> None:
        """Every waiting record with a limit is in the heap, and no list holds a record twice."""
        waiting = np.flatnonzero(~self._records.certain[: self._used])
        assert len(waiting) == self.waiting
        limited = {int(record) for record in waiting if self._records.limit[record] < self._bounds[1]}
        assert limited <= set(self._heap.records[: self._heaped].tolist())
        assert not len(waiting) or (self._records.limit[waiting] >= self._now).all()

    def _of_keys(self) -> tuple[Int64, ...]:
        """The right rows that left rows still to come may take."""
        known = self._known
        if self._direction == FORWARD:
            return (known.first_of_time[known.last_time == self._now],)
        return (known.last, known.before) if self._strict else (known.last,)

    def _chosen(self, found: Int64, places: Times) -> Chosen:
        records = self._records
        return Chosen(records.left[found], records.right[found], records.time[found], places)

    def _make_room(self, rows: int, keys: int) -> None:
        """Make room for new records and keys; first leave out records that are certain, if they are most of all."""
        if self._used + rows > len(self._records.left) and 2 * self._certain > self._used:
            self._used, self._heaped = leave_out_certain(
                self._known, self._records, self._used, self._heap, self._bounds[1]
            )
            self._certain = 0
        self._records = self._grown(self._records, self._used + rows)
        self._heap = self._grown(self._heap, self._heaped + 2 * (self.waiting + rows))
        self._known = self._grown(self._known, keys)

    def _grown(self, group: Any, size: int) -> Any:
        """The same arrays with room for at least `size` elements."""
        room = len(group[0])
        if size <= room:
            return group
        more = type(group).empty(max(size, 2 * room) - room, self.times)
        return type(group)(*map(np.concatenate, zip(group, more, strict=True)))

    def _negative(self, settings: AsOf, kind: pa.DataType | None) -> Any:
        assert settings.tolerance is not None
        exact: Fraction = in_unit(settings.tolerance, kind)
        if self.times is np.float64:
            return -np.float64(exact)
        # whole times differ by whole numbers, so rounding down changes nothing
        return np.int64(-min(int(exact // 1), np.iinfo(np.int64).max))

    def _time(self, value: float) -> Any:
        return np.array(value, self.times)[()]
