"""Rows that expire one by one, which only rows of windows per key do."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from operators.protocol.columns import Int64, values_of
from operators.protocol.streams import EXPIRED
from topology import Batch


@dataclass(frozen=True)
class ExpiredRows:
    """Rows of one side that expire.

    positions: their positions.
    places:    for each, the sequence number of the row at which it expires; ascending.
    live:      no row below this position is live.
    """

    positions: Int64
    places: Int64
    live: int

    def to_batch(self, side: int) -> Batch:
        rows = pa.record_batch({"position": pa.array(self.positions), "place": pa.array(self.places)})
        return Batch(EXPIRED[side].name, rows, labels=(self.live,))

    @classmethod
    def from_batch(cls, batch: Batch) -> ExpiredRows:
        positions, places = (values_of(column) for column in batch.rows.columns)
        return cls(positions, places, batch.labels[0])
