"""The work queue: rows of both sides in order of arrival, cut into work items for threads (PIM-Tree, section 4.1).

In: steps from the router. Out: the same limits, rows and punctuation, with the rows in batches of one work item each. A
batch's label is the sequence number at which its item ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.engines.shared.steps import Step, StepTask
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import PROBES, STEP
from topology import Batch, Bolt, Emit, Origin, Task, TaskContext


@dataclass(frozen=True)
class WorkQueue(Bolt):
    """Cuts steps into work items of `item_rows` rows, whichever side they belong to.

    Paper: PIM-Tree, section 4.1, figure 5, which calls them tasks. There an item is a few tuples; here it is some
    thousands, because a thread spends some tens of microseconds in Python for each. The paper saves the window
    boundaries when an item is assigned; here they come with the rows, as their live ranges.
    """

    negated: tuple[bool, ...]
    item_rows: int

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(STEP)

    @property
    def note(self) -> str:
        return f"work items of {self.item_rows} rows"

    def build(self, context: TaskContext) -> Task:
        return WorkQueueTask(self)


class WorkQueueTask(StepTask):
    """Keeps nothing from one step to the next except a count of the items."""

    def __init__(self, description: WorkQueue) -> None:
        super().__init__(description.negated)
        self._item_rows = description.item_rows
        self._packed: dict[str, pa.RecordBatch] = {}
        self._items = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self._packed[batch.stream] = batch.rows
        return super().on_batch(batch, origin)

    def on_step(self, step: Step) -> Iterable[Emit]:
        yield Emit(step.limits.to_batch())
        taken = [0, 0]
        for last in item_ends(step, self._item_rows):
            self._items += 1
            for side in (LEFT, RIGHT):
                rows, begin = step.rows[side], taken[side]
                end = 0 if rows is None else int(np.searchsorted(rows.seq, last, side="right"))
                if rows is not None and begin < end:
                    taken[side] = end
                    stream, part = PROBES[side].name, rows.between(begin, end)
                    packed = self._packed[stream].slice(begin, end - begin)
                    yield Emit(Batch(stream, packed, first=part.first, labels=(last,), memo=part))
        self._packed = {}
        yield Emit(step.last)

    def metrics(self) -> Mapping[str, float]:
        return {"work_items": float(self._items)}


def item_ends(step: Step, numbers: int) -> list[int]:
    """The sequence numbers at which an item ends: every so-many-th, and the last."""
    seqs = [rows.seq for rows in step.rows if rows is not None and len(rows)]
    if not seqs:
        return []
    first, last = int(min(each[0] for each in seqs)), int(max(each[-1] for each in seqs))
    return [*range(first + numbers - 1, last, numbers), last]
