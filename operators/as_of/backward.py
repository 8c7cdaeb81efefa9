"""Chooses, for each left row, the last right row of its key up to its event time.

What a left row takes is known when it comes: only right rows of the same time that come after it may take its place.
So the rows that wait all have the time of the last row, and the first row of a later time makes them certain, in their
order. It takes no heap (see `choosing`), only a list for each key of the rows that wait.

    key a       left    a4      a6           right   a3  a5  a5'
    total order a3 a4 a5 a5' a6 b7           a4 takes a3 and is certain at a5, the first row after time 4;
                                             a6 takes a5', the last of time 5, and is certain at b7
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import kernel
from operators.as_of.rows import (
    HIDDEN,
    NONE,
    Chosen,
    Int64,
    Rows,
    Scale,
    Times,
    earliest_within,
    grown,
    none,
    renumber,
)
from operators.query.as_of import AsOf
from topology import Time

FEWEST = 64
"""Keys and rows that wait for which there is always room."""


class Last(NamedTuple):
    """What is known of each key: its last right row, the last one before that one's time, and the times of both.

    head: the newest of its left rows that wait.
    """

    row: Int64
    time: Times
    before: Int64
    before_time: Times
    head: Int64

    @classmethod
    def empty(cls, size: int, kind: npt.DTypeLike) -> Last:
        return cls(none(size), none(size, kind), none(size), none(size, kind), none(size))


class Waiting(NamedTuple):
    """The left rows that wait: position, key, the right row so far, and the one before in the list of the key."""

    left: Int64
    key: Int64
    right: Int64
    following: Int64

    @classmethod
    def empty(cls, size: int, kind: npt.DTypeLike) -> Waiting:
        return cls(none(size), none(size), none(size), none(size))


class BackwardChooser:
    """Takes the rows of both sides in the total order; as `Chooser`, in direction backward.

    Cost: O(1) for a row, and for each left row of the same time and key that a right row changes.
    Memory: 40 bytes for each key, 32 for each left row of the last time.
    """

    def __init__(self, settings: AsOf, kind: pa.DataType | None) -> None:
        scale = Scale.of(kind)
        self.times: npt.DTypeLike = scale.times
        self.waiting = 0
        self._lowest = scale.lowest
        self._tolerance = scale.tolerance(settings, kind)
        self._strict = settings.strict
        self._last = Last.empty(FEWEST, self.times)
        self._rows = Waiting.empty(FEWEST, self.times)
        self._now = scale.lowest

    @property
    def now(self) -> Time:
        """The time of the last row: no choice that follows becomes certain earlier."""
        found: Time = self._now.item()
        return found

    @property
    def earliest(self) -> Time:
        """No left row of a result that follows has an earlier time."""
        return self.now

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for group in (self._last, self._rows) for array in group)

    def take(self, left: Rows, right: Rows, keys: int) -> Chosen:
        """Take a step and return the left rows that are certain now. `keys`: the number of distinct keys so far."""
        most = self.waiting + len(left.seqs)
        self._rows = grown(self._rows, most, self.times)
        self._last = grown(self._last, keys, self.times)
        chosen = Chosen(np.empty(most, np.int64), np.empty(most, np.int64), *np.empty((2, most), self.times))
        count, self.waiting = choose_backward(
            left, right, self._last, self._rows, self.waiting, self._now, self._strict, self._tolerance, self._lowest,
            chosen,
        )  # fmt: skip
        self._now = max([self._now, *(rows.times[-1] for rows in (left, right) if len(rows.times))])
        return Chosen(chosen.left[:count], chosen.right[:count], chosen.times[:count], chosen.places[:count])

    def end(self) -> Chosen:
        """The left rows that still wait, in their order: nothing comes that could change their choice."""
        count, self.waiting = self.waiting, 0
        self._last.head.fill(NONE)
        now = np.full(count, self._now, self.times)
        return Chosen(self._rows.left[:count].copy(), self._rows.right[:count].copy(), now, now)

    def held(self) -> tuple[Int64, Int64]:
        """The positions of left and of right rows that may still be part of a result, each once, ascending."""
        last = (self._last.row, self._last.before) if self._strict else (self._last.row,)
        kept = np.unique(np.concatenate([self._rows.right[: self.waiting], *last]))
        return self._rows.left[: self.waiting].copy(), kept[kept != NONE]

    def renumber(self, left: Int64, right: Int64) -> None:
        """Take new positions: the rows that were at these positions are now at 0, 1, 2, ...; others are gone."""
        own = slice(0, self.waiting)
        renumber(self._rows.left[own], left)
        for array in (self._rows.right[own], self._last.row, self._last.before):
            renumber(array, right)

    def check_invariants(self) -> None:
        """The list of each key holds its rows that wait, each once."""
        rows = self._rows
        listed = []
        for key, head in enumerate(self._last.head.tolist()):
            while head != NONE:
                assert rows.key[head] == key
                listed.append(head)
                head = int(rows.following[head])
        assert sorted(listed) == np.flatnonzero(rows.key[: self.waiting] != NONE).tolist()


@kernel
def choose_backward(  # type: ignore[no-untyped-def]
    left, right, last, rows, waiting, now, strict, tolerance, lowest, chosen
):
    """Take a step. Return how many left rows became certain, and how many wait.

    waiting, now: how many rows wait, and their time; there is room for all left rows of the step.
    tolerance:    as a negative distance; `lowest`: none.
    """
    # Named once: each access to a part of a tuple in the loop would count references.
    left_seqs, left_times, left_keys = left.seqs, left.times, left.keys
    right_seqs, right_times, right_keys = right.seqs, right.times, right.keys
    last_row, last_time, before, before_time, head = last.row, last.time, last.before, last.before_time, last.head
    waiting_left, waiting_key, waiting_right, following = rows.left, rows.key, rows.right, rows.following
    chosen_left, chosen_right, chosen_times, places = chosen.left, chosen.right, chosen.times, chosen.places
    at_left = at_right = count = 0
    while at_left < len(left_seqs) or at_right < len(right_seqs):
        is_left = at_right == len(right_seqs) or (
            at_left < len(left_seqs) and left_seqs[at_left] < right_seqs[at_right]
        )
        time = left_times[at_left] if is_left else right_times[at_right]
        if waiting > 0 and time > now:
            for record in range(waiting):
                chosen_left[count], chosen_right[count] = waiting_left[record], waiting_right[record]
                chosen_times[count], places[count] = now, time
                count += 1
                if waiting_key[record] != NONE:
                    head[waiting_key[record]] = NONE
            waiting = 0
        now = time
        if is_left:
            key = left_keys[at_left]
            if key != HIDDEN:
                row = NONE
                following[waiting] = NONE
                if key != NONE:
                    row, row_time = last_row[key], last_time[key]
                    if strict and row != NONE and row_time == time:
                        row, row_time = before[key], before_time[key]
                    if row != NONE and row_time < earliest_within(time, tolerance, lowest):
                        row = NONE
                    following[waiting] = head[key]
                    head[key] = waiting
                waiting_left[waiting], waiting_key[waiting] = left.first + at_left, key
                waiting_right[waiting] = row
                waiting += 1
            at_left += 1
        else:
            key = right_keys[at_right]
            if key >= 0:
                row = right.first + at_right
                if not strict:
                    record = head[key]
                    while record != NONE:
                        waiting_right[record] = row
                        record = following[record]
                if strict and time != last_time[key]:
                    before[key] = last_row[key]
                    before_time[key] = last_time[key]
                last_row[key] = row
                last_time[key] = time
            at_right += 1
    return count, waiting
