"""Windows that count the rows of each key separately, as one more dimension of a join.

The live rows of such a window are scattered among the positions, so no range of positions describes them. A range of
**ordinals** does: a row's ordinal is its number among the rows of its side with the same key. With n earlier rows of
its key on the other side, an arriving row may meet those with ordinals from max(0, ceil((n - size) / slide) * slide)
on. So ordinals are stored as keys of a dimension and searched for by intervals; other dimensions search for the
equality itself.

    CountWindow(2, per_key=True) on the left

    left rows    key      a  b  a  a  b            a right row of key a has n = 3: it asks for ordinals from 1 on,
                 ordinal  0  0  1  2  1            and meets the third and the fourth left row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes import Interval, Keys
from operators.protocol.sides import LEFT, RIGHT
from operators.query.windows import CountWindow, Window
from operators.routing.growing_array import GrowingArray
from operators.routing.key_chains import EXPIRED, NONE, KeyTable, make_table, number_rows
from operators.routing.key_numbers import Columns, KeyNumbers

Int64 = npt.NDArray[np.int64]

_GREATEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class KeyedRows:
    """The rows of one side in a step, for windows per key.

    ordinals: the keys of the dimension; invalid where a row has a null or a NaN in its key.
    asked:    the ordinals of the other side that each row may meet; empty for a row without a key. Where the other
              side's window is not per key, all of them.
    first:    the position of the other side from which on rows are live for any key, at each row.
    expired:  positions of this side's rows that expire in the step, ascending by the place.
    places:   for each of them the seq of the row at which it expires: a row of its key, of either side.
    """

    ordinals: Keys
    asked: Interval
    first: Int64
    expired: Int64
    places: Int64


class KeyOrdinals:
    """Numbers the rows of each key on both sides of a join, in the total order.

    windows:  of the left and the right side; those that do not count per key expire nothing here.
    columns:  names of the key's columns on the left and on the right, in the order of the equalities.
    expiring: for each side, whether the rows that expire are listed.

    Rows expire at the first row of their key, of either side, at which they are not live; in a self-join a row has its
    key on the left and its key on the right. A row without a key is never listed.

    Cost: O(1) for a row, amortised. Memory: about 120 bytes and the text of each distinct key, for ever; and 8 bytes
    for each row of a side per key from its oldest live row on. A key that falls silent keeps its last rows live, and
    elements that drop rows in the order of positions must keep all rows after the oldest of them.
    """

    def __init__(
        self,
        windows: tuple[Window, Window],
        columns: tuple[Sequence[str], Sequence[str]],
        expiring: tuple[bool, bool] = (False, False),
    ) -> None:
        # A size of 0: the side's window does not count per key.
        keyed = [
            (window.size, window.slide) if isinstance(window, CountWindow) and window.per_key else (0, 1)
            for window in windows
        ]
        self._sizes, self._slides = np.array(keyed, np.int64).T.copy()
        self._expiring = np.array(expiring, np.bool_)
        self._keys = KeyNumbers(columns)
        self._tables = (make_table(0), make_table(0))
        # For each row the next one of its key, from the oldest live row of the side on.
        self._next = (GrowingArray(np.int64), GrowingArray(np.int64))
        self._live = np.zeros(2, np.int64)
        self._arrived = np.zeros(2, np.int64)

    @property
    def live(self) -> tuple[int, int]:
        """For each side the first position that is live for any key; 0 where its window is not per key."""
        return int(self._live[LEFT]), int(self._live[RIGHT])

    @property
    def keys(self) -> int:
        """Distinct keys so far, on either side."""
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        tables = sum(array.nbytes for table in self._tables for array in table)
        return self._keys.nbytes + tables + sum(each.nbytes for each in self._next)

    def add(self, columns: tuple[Columns, Columns], seqs: tuple[Int64, Int64]) -> tuple[KeyedRows, KeyedRows]:
        """Take a step: for each side the key's columns (none where it has no rows) and the rows' seqs, ascending.

        Equal seqs on both sides are one row in two roles, which is not before itself.
        """
        # Copies, since both must be of one kind for the kernel: Arrow's memory is read-only, other memory is not.
        seqs = (np.array(seqs[LEFT], np.int64), np.array(seqs[RIGHT], np.int64))
        numbers = (
            self._keys.of(LEFT, columns[LEFT], len(seqs[LEFT])),
            self._keys.of(RIGHT, columns[RIGHT], len(seqs[RIGHT])),
        )
        self._make_room(seqs)
        ordinals, lows, firsts = (tuple(np.empty(len(seq), np.int64) for seq in seqs) for _ in range(3))
        expired = (np.empty((len(seqs[LEFT]), 2), np.int64), np.empty((len(seqs[RIGHT]), 2), np.int64))
        used = np.zeros(2, np.int64)
        done = np.zeros(2, np.int64)
        bases = np.array([each.base for each in self._next])
        following = (self._next[LEFT].values, self._next[RIGHT].values)
        while True:
            lacking, needed = number_rows(
                seqs, numbers, self._sizes, self._slides, self._expiring, self._tables, following, bases,
                self._live, self._arrived, done, ordinals, lows, firsts, expired, used,
            )  # fmt: skip
            if lacking == NONE:
                break
            more = [np.empty((needed if side == lacking else 0, 2), np.int64) for side in (LEFT, RIGHT)]
            expired = (
                np.concatenate([expired[LEFT], more[LEFT]]),
                np.concatenate([expired[RIGHT], more[RIGHT]]),
            )
        for side in (LEFT, RIGHT):
            self._next[side].drop_before(int(self._live[side]))
        left, right = (
            _keyed_rows(numbers[side], ordinals[side], lows[side], firsts[side], expired[side][: used[side]])
            for side in (LEFT, RIGHT)
        )
        return left, right

    def check_invariants(self) -> None:
        """Every chain holds exactly the live rows of its key, ascending."""
        self._keys.check_invariants()
        for side in (LEFT, RIGHT):
            if not self._sizes[side]:
                continue
            table, base = self._tables[side], self._next[side].base
            following = self._next[side].values
            linked = []
            for key in range(self.keys if len(table.counts) else 0):
                chain = []
                at = table.oldest[key]
                while at != NONE:
                    chain.append(at)
                    at = following[at - base]
                assert len(chain) == table.counts[key] - table.expired[key]
                assert chain == sorted(chain)
                assert not chain or chain[-1] == table.newest[key]
                linked += chain
            # Rows in no chain are marked, and the first live row is the oldest one in a chain.
            assert sorted(linked) == (np.flatnonzero(following != EXPIRED) + base).tolist()
            assert self._live[side] == min(linked, default=self._arrived[side])

    def _make_room(self, seqs: tuple[Int64, Int64]) -> None:
        room = len(self._tables[LEFT].counts)
        if len(self._keys) > room:
            more = max(len(self._keys), 2 * room) - room
            left, right = (
                KeyTable(*(np.concatenate(pair) for pair in zip(table, make_table(more), strict=True)))
                for table in self._tables
            )
            self._tables = (left, right)
        for side in (LEFT, RIGHT):
            if self._sizes[side]:
                self._next[side].append(np.empty(len(seqs[side]), np.int64))


def _keyed_rows(numbers: Int64, ordinals: Int64, lows: Int64, first: Int64, expired: Int64) -> KeyedRows:
    valid = numbers >= 0
    every = bool(valid.all())
    high = np.full(len(numbers), _GREATEST)
    return KeyedRows(
        Keys(ordinals, None if every else valid),
        Interval(lows, high if every else np.where(valid, high, -1)),
        first,
        expired[:, 0].copy(),
        expired[:, 1].copy(),
    )
