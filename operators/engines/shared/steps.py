"""Steps: an element takes the rows between two punctuations together and answers them together.

The router sends a step as limits, rows of either side, punctuation. An element stores the rows of both sides and then
probes. That is exact, because each probe row carries the positions that it may meet.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import StreamId, stream_of
from operators.protocol.streams import JoinStream
from topology import Batch, Emit, Origin, Punctuation, Task


@dataclass(frozen=True)
class Step:
    """The messages between two punctuations, with the one that ends it."""

    limits: Limits
    rows: tuple[ElementRows | None, ElementRows | None]
    last: Punctuation

    def split(self, seq: int) -> tuple[Step, Step]:
        """The rows up to and including sequence number `seq`, and the others."""
        before: list[ElementRows | None] = []
        after: list[ElementRows | None] = []
        for rows in self.rows:
            cut = 0 if rows is None else int(np.searchsorted(rows.seq, seq, side="right"))
            before.append(rows.between(0, cut) if rows is not None and cut else None)
            after.append(rows.between(cut, len(rows)) if rows is not None and cut < len(rows) else None)
        return (
            Step(self.limits, (before[LEFT], before[RIGHT]), Punctuation(seq, self.last.born)),
            Step(self.limits, (after[LEFT], after[RIGHT]), self.last),
        )

    @property
    def middle(self) -> int | None:
        """The sequence number in the middle of the rows; None when there is nothing to split."""
        seqs = [rows.seq for rows in self.rows if rows is not None and len(rows)]
        if not seqs:
            return None
        low, high = int(min(each[0] for each in seqs)), int(max(each[-1] for each in seqs))
        return None if low == high else (low + high) // 2

    @property
    def size(self) -> int:
        """Rows of the larger side."""
        return max((len(rows) for rows in self.rows if rows is not None), default=0)


class StepTask(Task):
    """A task that is fed by the router and answers a step at a time. `negated[d]`: dimension d is negated."""

    def __init__(self, negated: Sequence[bool]) -> None:
        self._negated = negated
        self._limits = Limits()
        self._rows: list[ElementRows | None] = [None, None]

    @abstractmethod
    def on_step(self, step: Step) -> Iterable[Emit]:
        """Store and answer the rows of a step; emit its punctuation last."""

    def on_other(self, stream: StreamId, batch: Batch) -> Iterable[Emit]:
        """Take a batch that is not part of a step; only elements with further inputs override this."""
        raise AssertionError(f"{type(self).__name__} takes no {batch.stream}")

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        stream = stream_of(batch.stream)
        match stream.kind:
            case JoinStream.PROBES:
                self._rows[stream.side] = ElementRows.from_batch(batch, self._negated)
            case JoinStream.LIMITS:
                self._limits = Limits.from_batch(batch)
            case _:
                return self.on_other(stream, batch)
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        step = Step(self._limits, (self._rows[LEFT], self._rows[RIGHT]), punctuation)
        self._rows = [None, None]
        return self.on_step(step)
