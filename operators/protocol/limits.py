"""The limits of a step: what is live, and where the immutable part ends."""

from __future__ import annotations

from dataclasses import dataclass

from operators.protocol.columns import NO_ROWS
from topology import Batch


@dataclass(frozen=True)
class Limits:
    """What holds from here on, per side: rows below `live` are dead, rows below `handover` are the immutable part's.

    Every probe that follows meets a row exactly once: at the element that holds it on its side of the handover.

    counting: only the number of each probe row's matches is wanted.
    """

    handover: tuple[int, int] = (0, 0)
    live: tuple[int, int] = (0, 0)
    counting: bool = False

    def to_batch(self) -> Batch:
        return Batch("limits", NO_ROWS, labels=(*self.handover, *self.live, int(self.counting)))

    @classmethod
    def from_batch(cls, batch: Batch) -> Limits:
        left_handover, right_handover, left_live, right_live, counting = batch.labels
        return cls((left_handover, right_handover), (left_live, right_live), bool(counting))
