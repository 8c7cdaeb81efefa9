"""PanJoin's BI-Sort: each subwindow is a sorted array with an insertion buffer and an index array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes.kernels.columns import Interval, Live, frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import ordered_integers
from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.band_filter import all_pass, keep_passing
from indexes.one_key.candidates import Probe, live_of, passes
from indexes.one_key.key_index import Parameter
from indexes.one_key.subwindows import Subindex, SubwindowIndex
from indexes.pan.indexed_array import AHEAD, Arrays, IndexedArray, group_ranks
from indexes.pan.rebounding_search import GROUP
from indexes.pan.records import Records

ROWS_PER_PARTITION = 64
"""Rows of the main array per partition, unless `partitions` is given."""


class BISort(SubwindowIndex):
    """Buffered Indexed Sort: PanJoin, sections III-D to III-F.

    A subwindow consists of a sorted main array, an insertion buffer of at most `buffer` rows that is merged into it
    when full, and an index array that samples the main array at the bounds of its `partitions`. A batch of `buffer`
    rows or more is merged at once. A probe batch searches samples and keys in ascending order, and each search begins
    where the one before it ended (`rebounding_search`).

    A band is a range of ranks, `<start, end>`, however many rows it holds: `records` gives these ranges, and `count`
    adds up their lengths without enumerating. Equality is a band of one key, an inequality a band with an open end,
    and `!=` a record labelled `negated`.

    Cost: a merge moves up to the whole subwindow, O(n) for each buffer or batch; a probe takes O(log d)
    for a band d rows after the one before it, and O(1) for each row met.

    Where we depart: the buffer is sorted as well. In the paper rows come one by one and each probe scans the buffer.
    Here they come as sorted batches, so merging a batch into a small array costs no more than sorting it there, and a
    probe searches instead of reading `buffer` keys. So the buffer can be larger than the paper's 1,024. It is merged
    for good when its subwindow is full. Merging is in place, so the main array is no larger than the subwindow. The
    samples are a fixed number of rows apart (see `IndexedArray`, which works an example). There are no threads and no
    mirror of the main array here.

        subwindow=8, buffer=3       insert 50 20 40 10    main 10 20 40 50
                                    insert 30 45          main 10 20 40 50           buffer 30 45
                                    insert 25 15          main 10 20 30 40 45 50     buffer 15 25
        records of 20..45           main <1, 5>, buffer <1, 2>: five rows
    """

    def __init__(
        self,
        subwindow: int,
        buffer: int = 1024,
        partitions: int | None = None,
        dimensions: int = 1,
        *,
        key: int = 0,
        first_position: int = 0,
    ) -> None:
        super().__init__(subwindow, dimensions, key=key, first_position=first_position)
        if subwindow >= 2**31:
            raise ValueError(f"BISort: subwindow must be less than 2^31 rows, not {subwindow}; use a smaller one")
        check_whole_number("BISort", "buffer", buffer, least=0)
        check_whole_number("BISort", "partitions", partitions, optional=True)
        self.buffer = buffer
        self.partitions = max(1, subwindow // ROWS_PER_PARTITION) if partitions is None else partitions

    def parameters(self) -> dict[str, Parameter]:
        return {"subwindow": self.subwindow, "buffer": self.buffer, "partitions": self.partitions}

    def _open(self, previous: Subindex | None) -> Subindex:
        return SortedSubwindow(self.subwindow, self.buffer, self.partitions)

    def _seal(self, full: Subindex) -> Subindex:
        assert isinstance(full, SortedSubwindow)
        full.merge_buffer()
        full.buffer = None
        return full

    def records(self, interval: Interval) -> list[Records]:
        """The matches of an interval as ranges of ranks: records of each main array, oldest first, and of the buffer.

        They include expired rows and are valid until the next insert. Cost: O(probes * log n) for each subwindow,
        however many rows are met.
        """
        self._check_one_dimension()
        low, high = ordered_integers(interval.low), ordered_integers(interval.high)
        order = np.argsort(low)
        return self._ranked(frozen(order), frozen(low[order]), frozen(high[order]), interval.negated)

    def count(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """Cost: O(log n) for each probe row and subwindow, and O(matches) in subwindows that are partly live for it.

        With more than one dimension, as `probe`.
        """
        if self.dimensions > 1:
            return super().count(intervals, live)
        alive = Live(*live_of(live, self._below))
        total = np.zeros(len(live), np.int64)
        for records in self.records(intervals[0]):
            total += records.live_counts(alive)
        return total

    def _check_one_dimension(self) -> None:
        if self.dimensions > 1:
            raise ValueError(
                f"BISort: records need one dimension, and this index filters by {self.dimensions - 1} others; use probe"
            )

    def _ranked(self, row: np.ndarray, low: np.ndarray, high: np.ndarray, negated: bool) -> list[Records]:
        result = []
        for subindex in self.subindexes:
            assert isinstance(subindex, SortedSubwindow)
            for part in subindex.parts:
                start, end = np.empty(len(row), np.int64), np.empty(len(row), np.int64)
                _rank(low, high, part.arrays, start, end)
                rows = frozen(part.rows[: part.size])
                result.append(Records(row, start, end, negated, rows, part.base, subindex.newest))
        return result


class SortedSubwindow(Subindex):
    """Main array and insertion buffer of one subwindow; a full subwindow has no buffer."""

    def __init__(self, subwindow: int, buffer: int, partitions: int) -> None:
        self.subwindow = subwindow
        self.main = IndexedArray(subwindow, max(2, -(-subwindow // partitions)))
        self.buffer: IndexedArray | None = IndexedArray(min(buffer, subwindow), ROWS_PER_PARTITION)
        self.newest = -1

    @property
    def parts(self) -> list[IndexedArray]:
        """The arrays that hold rows."""
        return [part for part in (self.main, self.buffer) if part is not None and part.size]

    @property
    def nbytes(self) -> int:
        return self.main.nbytes + (self.buffer.nbytes if self.buffer is not None else 0)

    def add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Cost: O(buffer), or O(n) when the buffer is full or the batch is no smaller than it."""
        buffer = self.buffer
        assert buffer is not None, "a full subwindow takes no more rows"
        base = int(positions[0]) // self.subwindow * self.subwindow
        self.main.base = buffer.base = base
        self.newest = int(positions.max())
        rows = (positions - base).astype(np.int32)
        if len(keys) >= buffer.capacity:
            self.main.merge(keys, rows)
            return
        if buffer.size + len(keys) > buffer.capacity:
            self.merge_buffer()
        buffer.merge(keys, rows)

    def merge_buffer(self) -> None:
        """Merge the buffer into the main array. Cost: O(n)."""
        if self.buffer is not None and self.buffer.size:
            size = self.buffer.size
            self.main.merge(self.buffer.keys[:size], self.buffer.rows[:size])
            self.buffer.size = 0

    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """Cost: O(log n) for each band at most, O(1) for each row in it."""
        buffer = self.buffer.arrays if self.buffer is not None else NOTHING
        return _visit(band, used, positions, ends, probe, self.main.arrays, buffer, self.newest)

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [part.entries() for part in (self.main, self.buffer) if part is not None]
        return np.concatenate([keys for keys, _ in parts]), np.concatenate([positions for _, positions in parts])

    def check_invariants(self) -> None:
        # Both parts are sorted and sampled.
        for part in self.parts:
            part.check_invariants()
        # The parts together never hold more than the subwindow.
        assert sum(part.size for part in self.parts) <= self.subwindow


NOTHING = IndexedArray(0, 2).arrays
"""Stands for the buffer of a subwindow without one."""


@kernel
def _rank(low: np.ndarray, high: np.ndarray, arrays: Arrays, start: np.ndarray, end: np.ndarray) -> None:
    """The ranks [start, end) of closed bands that ascend by low."""
    begin = 0
    first = np.empty(GROUP, np.int64)
    last = np.empty(GROUP, np.int64)
    for band in range(0, low.size, GROUP):
        group = min(GROUP, low.size - band)
        begin = group_ranks(arrays, begin, low, high, band, group, first, last)
        for k in range(group):
            start[band + k] = first[k]
            end[band + k] = last[k]


@kernel
def _write(rows: np.ndarray, base: int, start: int, end: int, positions: np.ndarray, used: int) -> int:
    """Write the rows at ranks [start, end) as far as there is room. Returns the new `used`."""
    if end - start <= AHEAD and used + AHEAD <= positions.size:
        for i in range(AHEAD):
            positions[np.uint64(used + i)] = base + rows[np.uint64(start + i)]
    else:
        for i in range(min(end - start, positions.size - used)):
            positions[np.uint64(used + i)] = base + rows[np.uint64(start + i)]
    return used + end - start


@kernel
def _candidates(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    main: Arrays,
    buffer: Arrays,
) -> tuple[int, int, int]:
    """Write the rows in the bands from `band` on, up to the first band that does not fit.

    Returns (that band, used, `used` that it needs).
    """
    # Fields of a tuple are counted references: reading them once keeps the counting out of the loop.
    rows, buffer_rows, buffered, base = main.rows, buffer.rows, buffer.size, main.base
    start, end = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    buffer_start, buffer_end = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    begin = 0
    buffer_begin = 0
    for first in range(band, low.size, GROUP):
        group = min(GROUP, low.size - first)
        begin = group_ranks(main, begin, low, high, first, group, start, end)
        if buffered:
            buffer_begin = group_ranks(buffer, buffer_begin, low, high, first, group, buffer_start, buffer_end)
        for k in range(group):
            before = used
            used = _write(rows, base, start[k], end[k], positions, used)
            if buffered:
                used = _write(buffer_rows, base, buffer_start[k], buffer_end[k], positions, used)
            if used > positions.size:
                return first + k, before, used
            ends[first + k] = used
    return low.size, used, used


@kernel
def _passing(
    low: np.ndarray, high: np.ndarray, arrays: Arrays, positions: np.ndarray, used: int, probe: Probe, band: int
) -> int:
    """Write the rows of one band that pass, as far as there is room, and count the rest. Returns the new `used`."""
    start, end = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    group_ranks(arrays, 0, low, high, band, 1, start, end)
    for rank in range(start[0], end[0]):
        position = arrays.base + arrays.rows[rank]
        if passes(probe, probe.row[band], position):
            if used < positions.size:
                positions[used] = position
            used += 1
    return used


@kernel
def _visit(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    probe: Probe,
    main: Arrays,
    buffer: Arrays,
    newest: int,
) -> tuple[int, int, int]:
    low, high = probe.low, probe.high
    if all_pass(probe, main.base, newest):
        return _candidates(band, used, positions, ends, low, high, main, buffer)
    while True:
        begin, first = used, band
        band, used, _ = _candidates(first, used, positions, ends, low, high, main, buffer)
        used = keep_passing(probe, first, band, begin, positions, ends)
        if band == low.size:
            return band, used, used
        # The candidates of this band do not all fit, but those that pass may.
        before = used
        used = _passing(low, high, main, positions, used, probe, band)
        used = _passing(low, high, buffer, positions, used, probe, band)
        if used > positions.size:
            return band, before, used
        ends[band] = used
        band += 1
