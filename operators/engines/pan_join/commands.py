"""The commands of PanJoin's manager to its workers: create, insert, probe, expire (PanJoin, section III-A).

Each command is a small frozen object that travels as one batch, in a stream of its own: numbers in the labels, rows as
Arrow columns. A worker takes commands in the order in which they were emitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from indexes import Interval, Keys, Live
from operators.engines.pan_join.streams import CREATE, EXPIRE, INSERT, PROBE
from operators.protocol.columns import NO_ROWS, array_of, keys_of, values_of
from operators.protocol.element_rows import ElementRows
from operators.protocol.stream_ids import StreamId
from topology import Batch


@dataclass(frozen=True)
class Create:
    """Open subwindow `number` of a side, for the positions [first, first + capacity)."""

    side: int
    number: int
    first: int
    capacity: int

    def to_batch(self) -> Batch:
        return Batch(CREATE.name, NO_ROWS, labels=(self.side, self.number, self.first, self.capacity))

    @classmethod
    def from_batch(cls, batch: Batch) -> Create:
        return cls(*batch.labels)


@dataclass(frozen=True)
class Insert:
    """Store rows, at the positions from `first` on, in a subwindow."""

    side: int
    number: int
    first: int
    keys: tuple[Keys, ...]

    def to_batch(self) -> Batch:
        rows = pa.record_batch({f"key{index}": array_of(keys) for index, keys in enumerate(self.keys)})
        return Batch(INSERT.name, rows, first=self.first, labels=(self.side, self.number), memo=self)

    @classmethod
    def from_batch(cls, batch: Batch) -> Insert:
        """Unpack, unless the batch still carries the command."""
        if isinstance(batch.memo, Insert):
            return batch.memo
        side, number = batch.labels
        return cls(side, number, batch.first, tuple(keys_of(column) for column in batch.rows.columns))


@dataclass(frozen=True)
class Probe:
    """Find the matches of a side's rows in the other side's subwindows. The rows come without their keys."""

    side: int
    rows: ElementRows

    def to_batch(self, stream: StreamId = PROBE) -> Batch:
        rows = self.rows
        columns: dict[str, pa.Array] = {}
        for index, interval in enumerate(rows.intervals):
            columns[f"low{index}"] = pa.array(interval.low, from_pandas=False)
            columns[f"high{index}"] = pa.array(interval.high, from_pandas=False)
        columns |= {"first": pa.array(rows.live.start), "end": pa.array(rows.live.end), "seq": pa.array(rows.seq)}
        return Batch(stream.name, pa.record_batch(columns), first=rows.first, labels=(self.side,), memo=self)

    @classmethod
    def from_batch(cls, batch: Batch, negated: Sequence[bool]) -> Probe:
        """Unpack, unless the batch still carries the command. `negated[d]`: dimension d is negated."""
        if isinstance(batch.memo, Probe):
            return batch.memo
        rows = batch.rows
        intervals = tuple(
            Interval(values_of(rows.column(f"low{index}")), values_of(rows.column(f"high{index}")), one)
            for index, one in enumerate(negated)
        )
        live = Live(values_of(rows.column("first")), values_of(rows.column("end")))
        (side,) = batch.labels
        return cls(side, ElementRows(batch.first, values_of(rows.column("seq")), (), intervals, live))


@dataclass(frozen=True)
class Expire:
    """Drop a subwindow: no later probe row may meet any of its rows."""

    side: int
    number: int

    def to_batch(self) -> Batch:
        return Batch(EXPIRE.name, NO_ROWS, labels=(self.side, self.number))

    @classmethod
    def from_batch(cls, batch: Batch) -> Expire:
        return cls(*batch.labels)


@dataclass(frozen=True)
class Status:
    """A worker's status, sent with each reply: its subwindows of the other side, at the time of the probe.

    newest_full, oldest_empty: 1 or 0. The paper's manager needs these; here it derives them from positions.
    """

    subwindows: int = 0
    rows: int = 0
    newest_full: int = 0
    oldest_empty: int = 0

    @property
    def labels(self) -> tuple[int, ...]:
        return (self.subwindows, self.rows, self.newest_full, self.oldest_empty)
