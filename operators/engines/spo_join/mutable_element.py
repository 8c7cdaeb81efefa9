"""The mutable element of the fused plan: all predicates of the mutable part in one place.

In: steps and merge orders from the router.
Out: the matches of every probe row with rows that are not in the immutable part yet, then the punctuation. When a
segment is due, the sorted runs of its rows, one per dimension.

It does the work of the decomposed plan's predicate and logical-AND elements without sending ranges between processes.
It is the cheaper plan as long as one core keeps up with the mutable part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Choice, Live, Matches, TieredRuns, prepare_kernels
from operators.engines.shared.answering import Answering
from operators.engines.shared.live_sample import LiveSample, pair_now
from operators.engines.shared.selectivity import SelectivePairs
from operators.engines.shared.steps import Step, StepTask
from operators.engines.spo_join.segments import run_batch
from operators.engines.spo_join.streams import RUNS
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.merge_order import Merge
from operators.protocol.sides import LEFT, RIGHT, SIDES
from operators.protocol.stream_ids import StreamId, outputs_of
from operators.protocol.streams import answer_streams
from topology import Batch, Bolt, Emit, Facts, Task, TaskContext

CHOICE = Choice("TieredRuns", "it holds sorted runs already, so merging into the immutable part needs no sorting")


@dataclass(frozen=True)
class MutableElement(Bolt):
    """Holds the mutable part of both windows; deals merged runs to `permutations` permutation elements in turn."""

    negated: tuple[bool, ...]
    ordered: bool
    permutations: int = 1
    counts: bool = False

    side_streams = frozenset({RUNS.name})

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of((*answer_streams(self.counts), RUNS))

    @property
    def note(self) -> str:
        several = "; segments permute the two most selective dimensions of the first rows"
        return str(CHOICE) + (several if len(self.negated) > 2 else "")

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return MutableTask(self)


class MutableTask(StepTask):
    """One `TieredRuns` per side."""

    def __init__(self, description: MutableElement) -> None:
        super().__init__(description.negated)
        self._description = description
        self._indexes = tuple(TieredRuns(len(description.negated)) for _ in SIDES)
        self._pairs = SelectivePairs(description.negated)
        self._answering = Answering()
        self._sample = LiveSample()

    def on_other(self, stream: StreamId, batch: Batch) -> Iterable[Emit]:
        order = Merge.from_batch(batch)
        for dimension, run in enumerate(self._indexes[order.side].freeze(order.first, order.end)):
            packed = run_batch(order, dimension, run, self._pairs.pair(order.side))
            yield Emit(packed, to=order.segment % self._description.permutations)

    def on_step(self, step: Step) -> Iterable[Emit]:
        self._pairs.observe(step.rows)
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            self._indexes[side].expire(step.limits.handover[side])
            if rows is not None and len(rows):
                self._sample.note(side, rows, rows)
                self._indexes[side].insert(rows.keys)
        return self._answering.answer(step, self._probe, self._count if step.limits.counting else None)

    def metrics(self) -> Mapping[str, float]:
        pairs = {
            f"{name}_{place}_dimension": float(dimension)
            for side, name in enumerate(SIDES)
            for place, dimension in zip(("first", "second"), self._pairs.pair(side), strict=True)
        }
        return {"index_bytes": float(sum(index.nbytes for index in self._indexes)), **pairs}

    def details(self) -> Facts:
        """How selective the comparisons are now (see `LiveSample`), and which are indexed and would be now."""
        shares = self._sample.details()
        negated = self._description.negated
        indexed = {
            name: {"has": list(self._pairs.pair(side)), "now": list(pair_now(shares[name], negated))}
            for side, name in enumerate(SIDES)
            if name in shares
        }
        return {"selectivity": shares, "indexed": indexed} if indexed else {}

    def check_invariants(self) -> None:
        for index in self._indexes:
            index.check_invariants()

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        """Probe the other side's rows from the handover on; the immutable part answers for those below."""
        index = self._indexes[1 - side]
        if index.is_empty:
            return Matches.empty(len(rows))
        return index.probe_within(most, rows.intervals, self._live(side, rows), ordered=self._description.ordered)

    def _count(self, side: int, rows: ElementRows) -> Int64:
        return self._indexes[1 - side].count(rows.intervals, self._live(side, rows))

    def _live(self, side: int, rows: ElementRows) -> Live:
        return Live(np.maximum(rows.live.start, self._limits.handover[1 - side]), rows.live.end)
