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
    """The matches of consecutive probe rows, as `UnpackedBatch` carries them."""

    matches: Matches

    @property
    def num_rows(self) -> int:
        """The number of probe rows."""
        return len(self.matches)

    @property
    def nbytes(self) -> int:
        """Bytes of offsets and positions."""
        return self.matches.offsets.nbytes + self.matches.positions.nbytes

    def to_arrow(self) -> pa.RecordBatch:
        """Pack as one column of lists, without copying."""
        offsets, positions = self.matches.offsets, self.matches.positions
        values = pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(positions)])
        lists = pa.Array.from_buffers(POSITIONS, len(self.matches), [None, pa.py_buffer(offsets)], children=[values])
        return pa.record_batch([lists], names=["positions"])


def matches_batch(side: int, first: int, matches: Matches) -> Batch:
    """The matches of the probe rows of `side` from position `first` on, packed only if they leave the process."""
    return UnpackedBatch(MATCHES[side].name, AnsweredRows(matches), first=first)


def matches_of(batch: Batch) -> Matches:
    """Unpack the matches of a batch, unless it still carries them."""
    if isinstance(batch.memo, AnsweredRows):
        return batch.memo.matches
    lists = batch.rows.column(0)
    rows = len(lists)
    offsets = np.frombuffer(lists.buffers()[1], np.int64, count=rows + 1, offset=8 * lists.offset)
    positions = values_of(lists.values)[offsets[0] : offsets[-1]]
    return Matches(offsets - offsets[0] if offsets[0] else offsets, positions)


def counts_batch(side: int, first: int, counts: Int64) -> Batch:
    """Pack the number of matches of each probe row of `side` from position `first` on."""
    return Batch(COUNTS[side].name, pa.record_batch({"count": pa.array(counts)}), first=first)


def counts_of(batch: Batch) -> Int64:
    """Unpack the numbers of matches of a batch."""
    return values_of(batch.rows.column(0))
