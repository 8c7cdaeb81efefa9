"""What the router sends to the processing elements, and what they answer, as Arrow.

Elements work on keys, intervals and positions only (see `indexes`): types, expressions and windows end at the router.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from indexes import Interval, Keys, Live
from operators.protocol.columns import Int64, keys_of, values_of
from topology import Batch


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
