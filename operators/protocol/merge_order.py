"""The router's order to make a segment of the immutable part."""

from __future__ import annotations

from dataclasses import dataclass

from operators.protocol.columns import NO_ROWS
from topology import Batch


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
