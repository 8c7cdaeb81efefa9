"""What leaves a part whose inside is free: the same rows, cut alike, in every life.

Inside a join, elements and collector go on as they can. Only the rows that come out between two marks are a function of
the steps, and not how they are cut into batches, nor where watermarks stand among them. But a task outside may see how
they are cut: groupings choose by batches. So rows are cut here by their number since the last mark, and the last
watermark follows them.

A new life fills the windows again with rows that were there before the snapshot (`Component.durable`, a join's gate).
What comes out of that has come out before. It is all that comes between the snapshot and the next mark, and is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from topology.graph.components import Emit
from topology.graph.messages import Batch, End, Punctuation, Restore, StepEnd, Watermark

CUT_ROWS = 1 << 16
"""The rows of a batch that leaves, except the last before a mark."""


class Leaving:
    """Between the last task of a part and those outside.

    sent: the rows that have left.
    """

    def __init__(self, cut_rows: int = CUT_ROWS) -> None:
        self.sent = 0
        self._cut_rows = cut_rows
        self._held: list[Batch] = []
        self._rows = 0
        self._promise: Watermark | None = None
        self._fills_again = False
        self._ended = False

    def passed(self, actions: Iterable[Emit]) -> Iterator[Emit]:
        """What leaves of a task's actions; the rest is held until it is complete."""
        for emit in actions:
            message = emit.message
            if isinstance(message, Batch | Watermark) and (self._fills_again or self._ended):
                continue
            if isinstance(message, Batch):
                yield from self._take(message)
            elif isinstance(message, Watermark):
                self._promise = message
            elif not isinstance(message, Punctuation):
                yield from self.rest()
                self._ended |= isinstance(message, End) and not message.source
                yield emit

    def rest(self) -> Iterator[Emit]:
        """What is held, before a mark."""
        if self._rows:
            yield self._cut(self._rows)
        promise, self._promise = self._promise, None
        if promise is not None:
            yield Emit(promise)

    def reach(self, mark: object) -> None:
        """A mark goes by, and all before it has left."""
        if isinstance(mark, Restore):
            self._fills_again = True
        elif isinstance(mark, StepEnd):
            self._fills_again = False

    def state(self) -> list[int]:
        """What a new life goes on from: the rows that have left, and whether those are all."""
        return [self.sent, int(self._ended)]

    def resume(self, state: list[int]) -> None:
        """Go on from a state; what has left before does not leave again."""
        self.sent, ended = state
        self._ended = bool(ended)

    def check_invariants(self) -> None:
        # what is held is what has been counted, and no whole batch
        assert self._rows == sum(batch.num_rows for batch in self._held) < self._cut_rows

    def _take(self, batch: Batch) -> Iterator[Emit]:
        if self._held and not self._held[0].rows.schema.equals(batch.rows.schema):
            yield self._cut(self._rows)
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._rows += batch.num_rows
        while self._rows >= self._cut_rows:
            yield self._cut(self._cut_rows)

    def _cut(self, count: int) -> Emit:
        """The first rows of those that are held."""
        held, rows = self._held, [batch.rows for batch in self._held]
        whole = rows[0] if len(rows) == 1 else pa.concat_batches(rows)
        first = self.sent
        self.sent += count
        self._rows -= count
        self._held = [held[-1].with_rows(whole.slice(count))] if self._rows else []
        born = min((batch.born for batch in held if batch.born), default=0.0)
        return Emit(Batch(held[0].stream, whole.slice(0, count), first, born=born))
