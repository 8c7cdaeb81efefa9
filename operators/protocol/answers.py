"""The answers of elements as Arrow: the matches of probe rows, or their number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from indexes import Matches
from operators.protocol.columns import Int64, values_of
from operators.protocol.streams import COUNTS, MATCHES
from topology import Batch

POSITIONS = pa.large_list(pa.int64())


def matches_batch(side: int, first: int, matches: Matches) -> Batch:
    """Pack the matches of the probe rows of `side` from position `first` on, without copying."""
    buffers = [None, pa.py_buffer(matches.offsets)]
    values = pa.Array.from_buffers(pa.int64(), len(matches.positions), [None, pa.py_buffer(matches.positions)])
    lists = pa.Array.from_buffers(POSITIONS, len(matches), buffers, children=[values])
    rows = pa.record_batch([lists], names=["positions"])
    return Batch(MATCHES[side].name, rows, first=first, memo=matches)


def matches_of(batch: Batch) -> Matches:
    """Unpack the matches of a batch, unless it still carries them."""
    if isinstance(batch.memo, Matches):
        return batch.memo
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
