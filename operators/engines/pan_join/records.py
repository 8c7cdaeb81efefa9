"""Results as `<start, end>` records: ranks in a sorted array instead of the rows there (PanJoin, section III-D)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import (
    GROUP,
    NO_BOUNDS,
    NO_ROWS,
    Arrays,
    IndexedArray,
    Interval,
    Live,
    Matches,
    Probe,
    SortedSubwindow,
    Visit,
    collect,
    frozen,
    group_ranks,
    kernel,
    ordered_integers,
    sorted_with_order,
)
from operators.engines.pan_join.commands import Status
from operators.engines.pan_join.streams import RECORDS
from operators.engines.pan_join.subwindow import Subwindow
from operators.protocol.element_rows import ElementRows
from operators.protocol.stream_ids import stream_of
from topology import Batch

MAIN, BUFFER = 0, 1


@dataclass(frozen=True)
class RecordColumn:
    """The matches of a side's rows, from position `first` on, in one array of a subwindow of the other side.

    Row i matches the ranks [start[i], end[i]) of the main array or of the insertion buffer or, where the dimension is
    negated, all other ranks. That is eight bytes per row, however many matches it has.
    """

    side: int
    first: int
    number: int
    part: int
    start: np.ndarray
    end: np.ndarray

    def to_batch(self, status: Status) -> Batch:
        rows = pa.record_batch({"start": pa.array(self.start), "end": pa.array(self.end)})
        labels = (self.number, self.part, *status.labels)
        return Batch(RECORDS[self.side].name, rows, first=self.first, labels=labels)

    @classmethod
    def from_batch(cls, batch: Batch) -> RecordColumn:
        side = stream_of(batch.stream).side
        start, end = (column.to_numpy() for column in batch.rows.columns)
        return cls(side, batch.first, batch.labels[0], batch.labels[1], start, end)


def array_of(subwindow: Subwindow, part: int) -> IndexedArray | None:
    """The main array or the insertion buffer of a subwindow; a full one has no buffer."""
    assert isinstance(subwindow.subindex, SortedSubwindow), "records are ranks in sorted arrays"
    return subwindow.subindex.main if part == MAIN else subwindow.subindex.buffer


def find_records(side: int, rows: ElementRows, held: dict[int, Subwindow]) -> Iterator[RecordColumn]:
    """The records of probe rows of a side in the subwindows they may meet. Cost: O(log n) for each row and array."""
    least, _, _, greatest = rows.live.extent
    (interval,) = rows.intervals
    low, order = sorted_with_order(ordered_integers(interval.low))
    high = frozen(ordered_integers(interval.high)[order])
    for number, subwindow in held.items():
        if subwindow.first >= greatest or subwindow.end <= least:
            continue
        for part in (MAIN, BUFFER):
            array = array_of(subwindow, part)
            if array is not None and array.size:
                start, end = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
                _rank(frozen(order), low, high, array.arrays, start, end)
                yield RecordColumn(side, rows.first, number, part, start, end)


def expand_records(
    records: Sequence[RecordColumn], rows: ElementRows, held: dict[int, Subwindow], limit: int, ordered: bool
) -> Matches | None:
    """The live positions that records stand for, of the given rows; None if more than `limit`. Cost: O(matches)."""
    visits = [_visit_of(record, rows, held[record.number]) for record in records]
    return collect(visits, _probe_of(rows.intervals, rows.live), len(rows), limit, ordered)


def _probe_of(intervals: Sequence[Interval], live: Live) -> Probe:
    row = frozen(np.arange(len(live)))
    negated = frozen(np.array([], np.bool_))
    (interval,) = intervals
    return Probe(row, interval.low, interval.high, live.start, live.end, 0, NO_ROWS, NO_BOUNDS, NO_BOUNDS, negated)


def _visit_of(record: RecordColumn, rows: ElementRows, subwindow: Subwindow) -> Visit:
    array = array_of(subwindow, record.part)
    assert array is not None, "the mirror has what the worker had"
    part = slice(rows.first - record.first, rows.first - record.first + len(rows))
    start, end = frozen(record.start[part]), frozen(record.end[part])
    inside = frozen(array.rows[: array.size])
    base, newest, negated = array.base, subwindow.end - 1, rows.intervals[0].negated

    def visit(band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe) -> tuple[int, int, int]:
        live = probe.start, probe.end
        result: tuple[int, int, int] = _expand(
            band, used, positions, ends, *live, start, end, inside, base, newest, negated
        )
        return result

    return visit


@kernel
def _rank(
    row: np.ndarray, low: np.ndarray, high: np.ndarray, arrays: Arrays, start: np.ndarray, end: np.ndarray
) -> None:
    """The ranks of closed bands that ascend by low, by the row of each."""
    begin = 0
    first, last = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    for band in range(0, low.size, GROUP):
        group = min(GROUP, low.size - band)
        begin = group_ranks(arrays, begin, low, high, band, group, first, last)
        for k in range(group):
            start[row[band + k]] = first[k]
            end[row[band + k]] = last[k]


@kernel
def _expand(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    live_first: np.ndarray,
    live_end: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    rows: np.ndarray,
    base: int,
    newest: int,
    negated: bool,
) -> tuple[int, int, int]:
    """Write the positions that the records from `band` on stand for; see `candidates.Visit`."""
    room = positions.size
    for i in range(band, start.size):
        before = used
        least, most = live_first[i], live_end[i] - 1
        if least <= newest and most >= base and least <= most:
            whole = least <= base and most >= newest
            for part in range(2):
                begin, stop = start[i], end[i]
                if negated:
                    begin, stop = (0, start[i]) if part == 0 else (end[i], rows.size)
                elif part == 0:
                    continue
                if whole and used + stop - begin <= room:
                    for k in range(stop - begin):
                        positions[np.uint64(used + k)] = base + rows[np.uint64(begin + k)]
                    used += stop - begin
                elif whole:
                    used += stop - begin
                else:
                    for rank in range(begin, stop):
                        position = base + rows[np.uint64(rank)]
                        if position >= least and position <= most:
                            if used < room:
                                positions[np.uint64(used)] = position
                            used += 1
        if used > room:
            return i, before, used
        ends[i] = used
    return start.size, used, used
