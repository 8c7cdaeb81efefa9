"""The limits of a step: what is live, and where the immutable part ends."""

from __future__ import annotations

from dataclasses import dataclass

from operators.protocol.columns import NO_ROWS
from operators.protocol.streams import LIMITS
from topology import Batch


@dataclass(frozen=True)
class Limits:
    """Two positions per side that hold from this step on.

    handover: the immutable part answers for rows below it, the mutable part for the others. So every probe row that
              follows meets each stored row exactly once.
    live:     rows below it have expired.
    counting: elements answer with the number of each probe row's matches instead of the matches.
    """

    handover: tuple[int, int] = (0, 0)
    live: tuple[int, int] = (0, 0)
    counting: bool = False

    def to_batch(self) -> Batch:
        return Batch(LIMITS.name, NO_ROWS, labels=(*self.handover, *self.live, int(self.counting)))

    @classmethod
    def from_batch(cls, batch: Batch) -> Limits:
        left_handover, right_handover, left_live, right_live, counting = batch.labels
        return cls((left_handover, right_handover), (left_live, right_live), bool(counting))
