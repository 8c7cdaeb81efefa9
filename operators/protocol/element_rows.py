"""The rows of a step as elements see them: keys to store, and what each row may meet on the other side.

Elements work on keys, intervals and positions only (see `indexes`). The router has resolved types, expressions and
windows before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from indexes import Interval, Keys, Live
from operators.protocol.columns import Int64, array_of, keys_of, values_of
from operators.protocol.streams import PROBES, probes_of
from topology import Batch, UnpackedBatch


@dataclass(frozen=True)
class ElementRows:
    """Consecutive rows of one side, the first at position `first`.

    keys:      what is stored of each row, one column per dimension.
    intervals: the keys of the other side that each row matches, per dimension.
    live:      the positions of the other side that each row may meet.
    """

    first: int
    seq: Int64
    keys: tuple[Keys, ...]
    intervals: tuple[Interval, ...]
    live: Live

    def __len__(self) -> int:
        return len(self.live)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.seq)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        held = self.seq.nbytes + self.live.start.nbytes + self.live.end.nbytes
        for keys, interval in zip(self.keys, self.intervals, strict=True):
            held += keys.values.nbytes + interval.low.nbytes + interval.high.nbytes
        return held

    def to_arrow(self) -> pa.RecordBatch:
        """Pack as a record batch; arrays without nulls are not copied."""
        columns: dict[str, pa.Array] = {}
        for index, (keys, interval) in enumerate(zip(self.keys, self.intervals, strict=True)):
            columns[f"key{index}"] = array_of(keys)
            columns[f"low{index}"] = pa.array(interval.low, from_pandas=False)
            columns[f"high{index}"] = pa.array(interval.high, from_pandas=False)
        columns |= {"first": pa.array(self.live.start), "end": pa.array(self.live.end), "seq": pa.array(self.seq)}
        return pa.record_batch(columns)

    def to_batch(self, side: int, born: float = 0.0) -> Batch:
        """The probe rows of a side, packed only if they leave the process."""
        return UnpackedBatch(PROBES[side].name, self, first=self.first, born=born)

    @classmethod
    def from_batch(cls, batch: Batch, negated: Sequence[bool]) -> ElementRows:
        """Unpack, unless the batch still carries its rows. `negated[d]`: dimension d is negated."""
        if isinstance(batch.memo, ElementRows):
            return batch.memo
        rows = batch.rows
        keys = tuple(keys_of(rows.column(f"key{index}")) for index in range(len(negated)))
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


def of_dimension(probes: Batch, side: int, dimension: int) -> Batch:
    """The probe rows of a batch with the keys and intervals of one dimension, which is number 0 in it."""
    own = [f"key{dimension}", f"low{dimension}", f"high{dimension}", "first", "end", "seq"]
    part = probes.rows.select(own).rename_columns(["key0", "low0", "high0", "first", "end", "seq"])
    return Batch(probes_of(side, dimension).name, part, first=probes.first, born=probes.born)
