"""The answers of elements as Arrow: the matches of probe rows, or their number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Matches
from operators.protocol.columns import Int64, values_of
from operators.protocol.streams import COUNTS, MATCHES
from topology import Batch, UnpackedBatch

POSITIONS = pa.large_list(pa.int64())


@dataclass(frozen=True, slots=True)
class AnsweredRows:
    """The matches of probe rows, as `UnpackedBatch` carries them.

    rows: the positions of the probe rows; None: they are consecutive.
    """

    matches: Matches
    rows: Int64 | None = None

    @property
    def num_rows(self) -> int:
        """The number of probe rows."""
        return len(self.matches)

    @property
    def nbytes(self) -> int:
        """Bytes of offsets and positions."""
        named = 0 if self.rows is None else self.rows.nbytes
        return self.matches.offsets.nbytes + self.matches.positions.nbytes + named

    def to_arrow(self) -> pa.RecordBatch:
        """Pack as a column of lists, and if need be one of the rows, without copying."""
        offsets, positions = self.matches.offsets, self.matches.positions
        values = pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(positions)])
        lists = pa.Array.from_buffers(POSITIONS, len(self.matches), [None, pa.py_buffer(offsets)], children=[values])
        return pa.record_batch({"positions": lists} | _rows_column(self.rows))


def matches_batch(side: int, first: int, matches: Matches, rows: Int64 | None = None) -> Batch:
    """The matches of the probe rows of `side` from position `first` on, packed only if they leave the process.

    rows: the positions of the probe rows, where they are not consecutive.
    """
    return UnpackedBatch(MATCHES[side].name, AnsweredRows(matches, rows), first=first)


def matches_of(batch: Batch) -> Matches:
    """Unpack the matches of a batch, unless it still carries them."""
    if isinstance(batch.memo, AnsweredRows):
        return batch.memo.matches
    lists = batch.rows.column(0)
    rows = len(lists)
    offsets = np.frombuffer(lists.buffers()[1], np.int64, count=rows + 1, offset=8 * lists.offset)
    positions = values_of(lists.values)[offsets[0] : offsets[-1]]
    return Matches(offsets - offsets[0] if offsets[0] else offsets, positions)


def answered_rows(batch: Batch) -> Int64 | None:
    """The positions of the rows that a batch of matches or counts answers; None: consecutive ones from `first` on."""
    if isinstance(batch.memo, AnsweredRows):
        return batch.memo.rows
    return values_of(batch.rows.column(1)) if batch.rows.num_columns > 1 else None


def counts_batch(side: int, first: int, counts: Int64, rows: Int64 | None = None) -> Batch:
    """Pack the number of matches of each probe row of `side` from position `first` on, or at the positions `rows`."""
    packed = pa.record_batch({"count": pa.array(counts)} | _rows_column(rows))
    return Batch(COUNTS[side].name, packed, first=first)


def counts_of(batch: Batch) -> Int64:
    """Unpack the numbers of matches of a batch."""
    return values_of(batch.rows.column(0))


def _rows_column(rows: Int64 | None) -> dict[str, pa.Array]:
    return {} if rows is None else {"row": pa.array(rows)}
