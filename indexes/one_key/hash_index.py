"""A hash table over a window, for equality."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.memory import prefetch
from indexes.one_key.candidates import Probe, Visit, passes
from indexes.one_key.key_index import KeyIndex, Parameter

FEWEST = 16
"""There is always room for so many rows."""

BLOCK = 1024
"""At least so many rows expire together: one element of the list of blocks stands for them."""

GROUP = 32
"""Bands whose memory is fetched together."""

AHEAD = 2
"""Links of a chain that are followed early, to prefetch their targets."""

KEY, POSITION, BACK = 0, 1, 2
"""The columns of the log."""

SAME_RUN = -2
"""Instead of a link back: the row belongs to the same run as the row before it."""


class Table(NamedTuple):
    """The hash table in the form that kernels take. Places count up from 0 and lie in the log modulo its length."""

    log: np.ndarray  # [place & mask, column]: key, position, and the place of an earlier run in the same bucket
    heads: np.ndarray  # by bucket: the place of its latest run, -1 if it never had one


class HashIndex(KeyIndex):
    """A log of rows in order of arrival; the rows of a bucket are linked from the latest back to the oldest.

    For equality only, which PIM-Tree and PanJoin do not cover. A batch arrives sorted by key, so equal keys of a batch
    are neighbours in the log. Such a run is linked once: a key with many rows costs one link per batch, not per row,
    and is read sequentially. A chain ends where a link points before the oldest row held, so expiry only moves that
    border and never unlinks. The log is a ring whose length is a power of two, with one bucket per row of room; it is
    rebuilt when it is too short or eight times too long. Rows expire in blocks of `BLOCK` rows or one batch.

        rows 0.. with keys 7 5 7 | 5 7, both in bucket b

        place       0     1     2     3     4
        key         5     7     7     5     7
        position    1     0     2     3     4
        back        -     0     "     1     3          heads[b] = 4: 7 at 4, 5 at 3, 7 7 from 1 on, 5 at 0

    Cost: O(1) to insert a row, whatever the keys; O(1) for a band of one key, for each row in it, and for each other
    run in the bucket; nothing to expire. A band of more than one key reads every row, O(n): correct, not
    meant for use. Memory: 32 bytes a row in a full ring, 64 in one that has just grown.
    """

    def __init__(self, dimensions: int = 1, *, key: int = 0, first_position: int = 0) -> None:
        super().__init__(dimensions, key=key, first_position=first_position)
        self._table = _make_table(FEWEST)
        # Rows are at the places [_first, _end). A block is its last place and its last position, each plus one.
        self._first = 0
        self._end = 0
        self._blocks: deque[tuple[int, int]] = deque()

    def parameters(self) -> dict[str, Parameter]:
        return {}

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        return self._table.log.nbytes + self._table.heads.nbytes + (self._rows.nbytes if self._rows else 0)

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        held, room = self._end - self._first + len(keys), len(self._table.log)
        if held > room or 8 * held < room > FEWEST:
            table = _make_table(max(FEWEST, 1 << (held - 1).bit_length()))
            _copy(self._table, table, self._first, self._end)
            self._table = table
        _append(self._table, self._end, keys, positions)
        self._end += len(keys)
        last = self._blocks[-1][0] if self._blocks else self._first
        before = self._blocks[-2][0] if len(self._blocks) > 1 else self._first
        if self._blocks and last - before < BLOCK:
            self._blocks.pop()
        self._blocks.append((self._end, self.next_position))

    def _drop(self, below: int) -> None:
        while self._blocks and self._blocks[0][1] <= below:
            self._first = self._blocks.popleft()[0]

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        return [self._visit]

    def _visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        visited: tuple[int, int, int] = _visit_table(
            band, used, positions, ends, probe, self._table, self._first, self._end
        )
        return visited

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        rows = self._table.log[np.arange(self._first, self._end) & (len(self._table.log) - 1)]
        return frozen(rows[:, KEY]), frozen(rows[:, POSITION])

    def check_invariants(self) -> None:
        super().check_invariants()
        log, heads = self._table
        # There are as many buckets as places in the log, a power of two, with room for all rows held.
        assert len(log) == len(heads) == 1 << (len(log) - 1).bit_length() >= self._end - self._first
        # Blocks ascend and cover the places held.
        places = [self._first, *(end for end, _ in self._blocks)]
        assert places == sorted(places)
        assert places[-1] == self._end
        # A block begins with a run, so expiry never cuts a run.
        assert all(log[place & (len(log) - 1), BACK] != SAME_RUN for place in places[:-1])
        # No position of a block lies beyond the block's last.
        keys, positions = self._entries()
        for (begin, _), (end, behind) in zip([(self._first, 0), *self._blocks], self._blocks, strict=False):
            assert (positions[begin - self._first : end - self._first] < behind).all()
        # Following the chains back meets every row once, in its bucket, and later runs first.
        met = np.zeros(len(keys), np.int64)
        for bucket, head in enumerate(heads.tolist()):
            place = head
            while place >= self._first:
                run = place
                while run == place or (run < self._end and log[run & (len(log) - 1), BACK] == SAME_RUN):
                    assert keys[run - self._first] == keys[place - self._first]
                    assert _bucket(keys[run - self._first], len(heads)) == bucket
                    met[run - self._first] += 1
                    run += 1
                earlier = int(log[place & (len(log) - 1), BACK])
                assert earlier < place
                place = earlier
        assert (met == 1).all()


def _make_table(room: int) -> Table:
    return Table(np.empty((room, 3), np.int64), np.full(room, -1, np.int64))


@kernel
def _bucket(key: int, buckets: int) -> int:
    """Twice, fold the upper half of the bits into the lower half and multiply by the golden ratio.

    Once is not enough: for some numbers of buckets, equally spaced keys would crowd into a few of them.
    """
    half, spread = np.uint64(32), np.uint64(0x9E3779B97F4A7C15)
    mixed = np.uint64(key)
    mixed = (mixed ^ (mixed >> half)) * spread
    mixed = (mixed ^ (mixed >> half)) * spread
    return int((mixed >> half) & np.uint64(buckets - 1))


@kernel
def _append(table: Table, end: int, keys: np.ndarray, positions: np.ndarray) -> None:
    """Write rows that ascend by key from place `end` on and link their runs."""
    log, heads = table.log, table.heads
    mask = log.shape[0] - 1
    for i in range(keys.size):
        if i + GROUP < keys.size:
            prefetch(heads, _bucket(keys[i + GROUP], heads.size))
        row = (end + i) & mask
        log[row, KEY] = keys[i]
        log[row, POSITION] = positions[i]
        if i and keys[i] == keys[i - 1]:
            log[row, BACK] = SAME_RUN
        else:
            bucket = _bucket(keys[i], heads.size)
            log[row, BACK] = heads[bucket]
            heads[bucket] = end + i


@kernel
def _copy(old: Table, new: Table, first: int, end: int) -> None:
    """Write the rows at the places [first, end) to the same places of another table and link their runs."""
    old_mask, mask = old.log.shape[0] - 1, new.log.shape[0] - 1
    for place in range(first, end):
        source, row = place & old_mask, place & mask
        new.log[row, KEY] = old.log[source, KEY]
        new.log[row, POSITION] = old.log[source, POSITION]
        if old.log[source, BACK] == SAME_RUN:
            new.log[row, BACK] = SAME_RUN
        else:
            bucket = _bucket(old.log[source, KEY], new.heads.size)
            new.log[row, BACK] = new.heads[bucket]
            new.heads[bucket] = place


@kernel
def _visit_table(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    probe: Probe,
    table: Table,
    first: int,
    end: int,
) -> tuple[int, int, int]:
    """Visit the bands among the rows at the places [first, end); see `candidates.Visit`.

    In groups: the heads, then the first links of all chains, are prefetched before they are read.
    """
    log, heads = table.log, table.heads
    flat = log.reshape(log.size)
    mask = log.shape[0] - 1
    bands = probe.row.size
    places = np.empty(GROUP, np.int64)
    for start in range(band, bands, GROUP):
        group = min(GROUP, bands - start)
        for g in range(group):
            places[g] = _bucket(probe.low[start + g], heads.size)
            prefetch(heads, places[g])
        for g in range(group):
            places[g] = heads[places[g]]
            prefetch(flat, (places[g] & mask) * 3)
        for _ in range(AHEAD):
            for g in range(group):
                if places[g] >= first:
                    places[g] = log[places[g] & mask, BACK]
                    prefetch(flat, (places[g] & mask) * 3)
        for b in range(start, start + group):
            low, high, row = probe.low[b], probe.high[b], probe.row[b]
            needed = used
            place = heads[_bucket(low, heads.size)] if low == high else end - 1
            while place >= first:
                key, back = log[place & mask, KEY], log[place & mask, BACK]
                # A band of one key follows the chain and reads each run; a wider one reads every row back to the first.
                stop = place + 1
                if low == high:
                    while key == low and stop < end and log[stop & mask, BACK] == SAME_RUN:
                        stop += 1
                else:
                    back = place - 1
                if key >= low and key <= high:
                    for met in range(place, stop):
                        position = log[met & mask, POSITION]
                        if passes(probe, row, position):
                            if needed < positions.size:
                                positions[needed] = position
                            needed += 1
                place = back
            if needed > positions.size:
                return b, used, needed
            used = needed
            ends[b] = used
    return bands, used, used
