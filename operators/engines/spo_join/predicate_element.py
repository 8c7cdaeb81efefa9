"""The predicate element: one dimension of the mutable part of both windows (SPO-Join, section 3.2).

In: the dimension's keys and intervals, and orders to merge, from the router.
Out: to every logical-AND element the sort order of each new block of rows; to the one that the step is assigned to, the
range of that order which each probe row's interval covers; to the permutation elements, the sorted run of a segment
that is due.

The paper sends a bit array per probe row, as long as the mutable window. A range of ranks carries the same information
in eight bytes per block: the order it refers to is sent once per block, and a block takes part in a logarithmic number
of merges. Blocks are formed by row counts alone (`TieredRuns`), so all predicate elements have the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from indexes import TieredRuns, prepare_kernels
from operators.engines.shared.steps import Step, StepTask
from operators.engines.spo_join.segments import run_batch
from operators.engines.spo_join.streams import BLOCKS, RANGES, RUNS
from operators.protocol.merge_order import Merge
from operators.protocol.sides import LEFT, RIGHT, SIDES
from operators.protocol.stream_ids import StreamId, outputs_of
from operators.protocol.streams import LIMITS
from topology import Batch, Bolt, Emit, Task, TaskContext, stable_hash

LIVE = -1
"""In place of a block's position: the batch holds the live ranges of the probe rows instead of ranks."""

WRITTEN = (0, 1)
"""The pair that segments permute: a predicate element does not know how selective the others are."""


@dataclass(frozen=True)
class PredicateElement(Bolt):
    """Evaluates dimension number `dimension`; `written`: the dimension as text, for the plan."""

    dimension: int
    written: str
    negated: bool
    logical_elements: int
    permutations: int

    side_streams = frozenset({RUNS.name})

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of((LIMITS, BLOCKS, RANGES, RUNS))

    @property
    def note(self) -> str:
        return self.written

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return PredicateTask(self)


class PredicateTask(StepTask):
    """One single-dimension `TieredRuns` per side."""

    def __init__(self, description: PredicateElement) -> None:
        super().__init__((description.negated,))
        self._description = description
        self._indexes = tuple(TieredRuns(1, tail_rows=0) for _ in SIDES)
        self._announced: tuple[set[tuple[int, int]], set[tuple[int, int]]] = (set(), set())

    def on_other(self, stream: StreamId, batch: Batch) -> Iterable[Emit]:
        order = Merge.from_batch(batch)
        (run,) = self._indexes[order.side].freeze(order.first, order.end)
        batch = run_batch(order, self._description.dimension, run, WRITTEN)
        yield Emit(batch, to=order.segment % self._description.permutations)

    def on_step(self, step: Step) -> Iterable[Emit]:
        if self._description.dimension == 0:
            yield Emit(step.limits.to_batch())
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            self._indexes[side].expire(step.limits.handover[side])
            if rows is not None and len(rows):
                self._indexes[side].insert(rows.keys)
            yield from self._announce(side)
        drawn = draw(step.last.seq, self._description.logical_elements)
        for side in (LEFT, RIGHT):
            yield from self._ranges(step, side, drawn)
        yield Emit(step.last)

    def metrics(self) -> Mapping[str, float]:
        return {"index_bytes": float(sum(index.nbytes for index in self._indexes))}

    def check_invariants(self) -> None:
        for index in self._indexes:
            index.check_invariants()

    def _announce(self, side: int) -> Iterator[Emit]:
        """Emit the sort order of the blocks that are new since the last step."""
        blocks = {(block.first_position, block.rows): block for block in self._indexes[side].blocks}
        for (first, rows), block in blocks.items():
            if (first, rows) not in self._announced[side]:
                order = pa.record_batch({"row": pa.array(block.runs[0].order)})
                labels = (side, self._description.dimension, first, rows)
                yield Emit(Batch(BLOCKS.name, order, first=first, labels=labels))
        self._announced[side].clear()
        self._announced[side].update(blocks)

    def _ranges(self, step: Step, side: int, drawn: int) -> Iterator[Emit]:
        rows = step.rows[side]
        if rows is None or not len(rows):
            return
        dimension = self._description.dimension
        if dimension == 0:
            live = {"first": rows.live.start, "end": rows.live.end, "seq": rows.seq}
            header = pa.record_batch({name: pa.array(values) for name, values in live.items()})
            yield Emit(Batch(RANGES.name, header, first=rows.first, labels=(side, dimension, LIVE, 0)), to=drawn)
        for block in self._indexes[1 - side].blocks:
            start, stop = block.runs[0].ranges(rows.intervals[0])
            ranks = pa.record_batch({"start": pa.array(start), "stop": pa.array(stop)})
            labels = (side, dimension, block.first_position, block.rows)
            yield Emit(Batch(RANGES.name, ranks, first=rows.first, labels=labels), to=drawn)


def draw(seq: int, elements: int) -> int:
    """The logical-AND element to which the step that ends with `seq` is assigned: by hash, as in the paper."""
    return int(stable_hash([pa.array([seq])])[0] % elements)
