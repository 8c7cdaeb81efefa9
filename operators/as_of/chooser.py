"""Chooses a right row for each left row, step by step, where later rows may be better: the state of `choosing`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.as_of.backward import BackwardChooser
from operators.as_of.choosing import FORWARD, NEAREST, Heap, Known, Records, choose, leave_out_certain
from operators.as_of.rows import NONE, Chosen, Int64, Rows, Scale, Times, grown, renumber
from operators.query.as_of import AsOf
from topology import Time

FEWEST = 64
"""Records, heap entries and keys for which there is always room."""


class Chooser:
    """Takes the rows of both sides in the total order, in direction forward or nearest; see `choosing` for how.

    kind:  the type of the event times.
    times: the type of their numbers.

    Cost: O(log waiting) for a left row, O(1) for a right row and for each left row that it may change, amortised.
    Memory: 100 bytes for each key, and for each left row whose choice is not certain.
    """

    def __init__(self, settings: AsOf, kind: pa.DataType | None) -> None:
        scale = Scale.of(kind)
        self.times: npt.DTypeLike = scale.times
        self._bounds = (scale.lowest, scale.highest)
        self._tolerance = scale.tolerance(settings, kind)
        self._direction = FORWARD if settings.direction == "forward" else NEAREST
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
        renumber(self._records.left[records], left)
        for array in (self._records.right[records], self._known.last, self._known.first_of_time, self._known.before):
            renumber(array, right)

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
        self._records = grown(self._records, self._used + rows, self.times)
        self._heap = grown(self._heap, self._heaped + 2 * (self.waiting + rows), self.times)
        self._known = grown(self._known, keys, self.times)


def make_chooser(settings: AsOf, kind: pa.DataType | None) -> BackwardChooser | Chooser:
    """The chooser of a direction, for event times of a type."""
    return BackwardChooser(settings, kind) if settings.direction == "backward" else Chooser(settings, kind)
