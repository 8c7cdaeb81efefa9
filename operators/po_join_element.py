"""The PO-Join element: holds immutable segments and answers probes from them (SPO-Join, section 3.4).

In: steps and merge orders from the router, segments from the permutation elements.
Out: the matches of every probe row with the segments held here, then the punctuation.

Segments are dealt round robin over the elements. Which element holds a segment, and when it arrives, has no influence
on the result: the router's limits say up to which position the immutable part answers, and the element takes no further
steps (its input waits) in the rare case that a segment below that position has not arrived. The paper's two
schemes for telling the elements what has expired, counts and a shared cache, can both be late and then give false
positives; here every probe row carries its own live range instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Live, Matches, PermutationOffsetJoin, probe_blocks
from operators.element_rows import LEFT, RIGHT, SIDES, ElementRows, Merge
from operators.segments import segment_of
from operators.steps import Answering, Step, StepTask
from topology import Batch, Bolt, Emit, Origin, Task, TaskContext


@dataclass(frozen=True)
class POJoinElement(Bolt):
    """One share of the immutable part of both windows."""

    negated: tuple[bool, ...]
    ordered: bool
    router: str = "router"

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {f"matches.{side}": None for side in SIDES}

    def build(self, context: TaskContext) -> Task:
        return POJoinTask(self, context.task, context.parallelism)


@dataclass(frozen=True)
class _Held:
    number: int
    segment: PermutationOffsetJoin


class POJoinTask(StepTask):
    """Keeps its segments of each side in position order."""

    def __init__(self, description: POJoinElement, task: int, parallelism: int) -> None:
        super().__init__(description.negated)
        self._ordered = description.ordered
        self._router = description.router
        self._task = task
        self._parallelism = parallelism
        self._held: tuple[list[_Held], list[_Held]] = ([], [])
        self._unsettled: tuple[dict[int, Merge], dict[int, Merge]] = ({}, {})
        self._answering = Answering()

    def on_other(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        if batch.stream == "merge":
            order = Merge.from_batch(batch)
            if order.segment % self._parallelism == self._task:
                self._tick_off(order)
        else:
            order, segment = segment_of(batch)
            held = self._held[order.side]
            held.append(_Held(order.segment, segment))
            held.sort(key=lambda each: each.number)
            self._tick_off(order)
        return ()

    def blocked(self, origin: Origin) -> bool:
        """The router waits while a segment that the next step needs is still being made."""
        if origin.component != self._router:
            return False
        # the handover passes the end of a segment only after its order has come: what is unsettled is awaited
        return any(
            order.end <= self._limits.handover[side]
            for side in (LEFT, RIGHT)
            for order in self._unsettled[side].values()
        )

    def on_step(self, step: Step) -> Iterable[Emit]:
        yield from self._answering.answer(step, self._probe)
        for side in (LEFT, RIGHT):
            held = self._held[side]
            while held and held[0].segment.end_position <= step.limits.live[side]:
                del held[0]

    def metrics(self) -> Mapping[str, float]:
        segments = [each.segment for held in self._held for each in held]
        return {
            "segments": float(len(segments)),
            "segment_rows": float(sum(segment.rows for segment in segments)),
            "index_bytes": float(sum(segment.nbytes for segment in segments)),
        }

    def check_invariants(self) -> None:
        for held in self._held:
            for each in held:
                # a segment is here because its number says so
                assert each.number % self._parallelism == self._task
                each.segment.check_invariants()
            # segments are in position order and do not overlap
            ends = [each.segment.end_position for each in held]
            starts = [each.segment.first_position for each in held]
            assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))

    def _tick_off(self, order: Merge) -> None:
        """A segment and its order come by different ways, either first: the second of them settles it."""
        if self._unsettled[order.side].pop(order.segment, None) is None:
            self._unsettled[order.side][order.segment] = order

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        handover = self._limits.handover[1 - side]
        live = Live(rows.live.first, np.minimum(rows.live.end, handover))
        segments = [each.segment for each in self._held[1 - side] if each.segment.end_position <= handover]
        return probe_blocks(most, segments, rows.intervals, live, ordered=self._ordered)
