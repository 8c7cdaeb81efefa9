"""The router's order to make a segment of the immutable part."""

from __future__ import annotations

from dataclasses import dataclass

from operators.protocol.columns import NO_ROWS
from operators.protocol.streams import MERGE
from topology import Batch


@dataclass(frozen=True)
class Merge:
    """Make segment number `segment` of a side from the rows at positions [first, end)."""

    side: int
    segment: int
    first: int
    end: int

    def to_batch(self) -> Batch:
        return Batch(MERGE.name, NO_ROWS, labels=(self.side, self.segment, self.first, self.end))

    @classmethod
    def from_batch(cls, batch: Batch) -> Merge:
        return cls(*batch.labels)
