"""What the router sends to the processing elements, and what they answer, as Arrow.

Elements work on keys, intervals and positions only (see `indexes`): types, expressions and windows end at the router.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import Interval, Keys, Live, Matches
from topology import Batch

LEFT, RIGHT = 0, 1
SIDES = ("left", "right")

Int64 = npt.NDArray[np.int64]

POSITIONS = pa.large_list(pa.int64())

NO_ROWS = pa.record_batch([pa.array([], pa.bool_())], names=["nothing"])
"""Carries a batch whose labels say it all."""


@dataclass(frozen=True)
class ElementRows:
    """Consecutive rows of one side: their keys, to be stored, and what each may meet on the other side."""

    first: int
    seq: Int64
    keys: tuple[Keys, ...]
    intervals: tuple[Interval, ...]
    live: Live

    def __len__(self) -> int:
        return len(self.live)

    def to_arrow(self) -> pa.RecordBatch:
        """Pack as a record batch; arrays without nulls are not copied."""
        columns: dict[str, pa.Array] = {}
        for index, (keys, interval) in enumerate(zip(self.keys, self.intervals, strict=True)):
            mask = None if keys.valid is None else ~keys.valid
            columns[f"key{index}"] = pa.array(keys.values, mask=mask, from_pandas=False)
            columns[f"low{index}"] = pa.array(interval.low, from_pandas=False)
            columns[f"high{index}"] = pa.array(interval.high, from_pandas=False)
        columns |= {"first": pa.array(self.live.start), "end": pa.array(self.live.end), "seq": pa.array(self.seq)}
        return pa.record_batch(columns)

    @classmethod
    def from_batch(cls, batch: Batch, negated: Sequence[bool]) -> ElementRows:
        """Unpack, unless the batch still carries what it was packed from; `negated` says which dimensions are."""
        if isinstance(batch.memo, ElementRows):
            return batch.memo
        rows = batch.rows
        keys = tuple(_keys(rows.column(f"key{index}")) for index in range(len(negated)))
        intervals = tuple(
            Interval(values_of(rows.column(f"low{index}")), values_of(rows.column(f"high{index}")), negated[index])
            for index in range(len(negated))
        )
        live = Live(values_of(rows.column("first")), values_of(rows.column("end")))
        return cls(batch.first, values_of(rows.column("seq")), keys, intervals, live)

    def between(self, start: int, stop: int) -> ElementRows:
        """The rows from number `start` to before `stop` of this batch."""
        part = slice(start, stop)
        return ElementRows(
            self.first + start,
            self.seq[part],
            tuple(Keys(keys.values[part], None if keys.valid is None else keys.valid[part]) for keys in self.keys),
            tuple(Interval(one.low[part], one.high[part], one.negated) for one in self.intervals),
            Live(self.live.start[part], self.live.end[part]),
        )


@dataclass(frozen=True)
class Limits:
    """What holds from here on, per side: rows below `live` are dead, rows below `handover` are the immutable part's.

    Every probe that follows meets a row exactly once: at the element that holds it on its side of the handover.

    counting: only the number of each probe row's matches is wanted.
    """

    handover: tuple[int, int] = (0, 0)
    live: tuple[int, int] = (0, 0)
    counting: bool = False

    def to_batch(self) -> Batch:
        return Batch("limits", NO_ROWS, labels=(*self.handover, *self.live, int(self.counting)))

    @classmethod
    def from_batch(cls, batch: Batch) -> Limits:
        left_handover, right_handover, left_live, right_live, counting = batch.labels
        return cls((left_handover, right_handover), (left_live, right_live), bool(counting))


@dataclass(frozen=True)
class Merge:
    """The order to make an immutable segment, number `segment` of its side, of the positions [first, end)."""

    side: int
    segment: int
    first: int
    end: int

    def to_batch(self) -> Batch:
        return Batch("merge", NO_ROWS, labels=(self.side, self.segment, self.first, self.end))

    @classmethod
    def from_batch(cls, batch: Batch) -> Merge:
        return cls(*batch.labels)


def matches_batch(side: int, first: int, matches: Matches) -> Batch:
    """Pack the matches of the probe rows of `side` that start at position `first`."""
    buffers = [None, pa.py_buffer(matches.offsets)]
    values = pa.Array.from_buffers(pa.int64(), len(matches.positions), [None, pa.py_buffer(matches.positions)])
    lists = pa.Array.from_buffers(POSITIONS, len(matches), buffers, children=[values])
    rows = pa.record_batch([lists], names=["positions"])
    return Batch(f"matches.{SIDES[side]}", rows, first=first, memo=matches)


def matches_of(batch: Batch) -> Matches:
    """Unpack the matches of a batch, unless it still carries them."""
    if isinstance(batch.memo, Matches):
        return batch.memo
    lists = batch.rows.column(0)
    rows = len(lists)
    offsets = np.frombuffer(lists.buffers()[1], np.int64, count=rows + 1, offset=8 * lists.offset)
    positions = values_of(lists.values)[offsets[0] : offsets[-1]]
    return Matches(offsets - offsets[0] if offsets[0] else offsets, positions)


def answer_streams(counts: bool) -> dict[str, pa.Schema | None]:
    """What an element that answers probes sends out."""
    return {f"{kind}.{side}": None for kind in (["matches", "counts"] if counts else ["matches"]) for side in SIDES}


def counts_batch(side: int, first: int, counts: Int64) -> Batch:
    """Pack the numbers of matches of the probe rows of `side` that start at position `first`."""
    return Batch(f"counts.{SIDES[side]}", pa.record_batch({"count": pa.array(counts)}), first=first)


def counts_of(batch: Batch) -> Int64:
    """Unpack the numbers of matches of a batch."""
    return values_of(batch.rows.column(0))


_STORAGE = {pa.int64().id: (np.int64, 8), pa.float64().id: (np.float64, 8), pa.int32().id: (np.int32, 4)}


def values_of(array: pa.Array) -> npt.NDArray[np.int64]:
    """The values of an int64 or float64 array as a view of Arrow's memory, nulls or not."""
    code, width = _STORAGE[array.type.id]
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, dtype=code)
    return np.frombuffer(data, dtype=code, count=len(array), offset=array.offset * width)


def _keys(array: pa.Array) -> Keys:
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return Keys(values_of(array), valid)
