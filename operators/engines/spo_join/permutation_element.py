"""The permutation element: turns the sorted runs of a merge interval into a segment (SPO-Join, section 3.3).

In: for each segment that is due, one sorted run per dimension from the mutable part.
Out: the segment with its permutation array, to the PO-Join element whose turn it is.

It works beside the stream: while it builds, the mutable part still answers probes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from indexes import Permutation, SortedRun, ranks_of
from operators.engines.spo_join.segments import run_of, segment_batch
from operators.engines.spo_join.streams import SEGMENTS
from operators.protocol.stream_ids import outputs_of
from topology import Batch, Bolt, Emit, Origin, Task, TaskContext


@dataclass(frozen=True)
class PermutationElement(Bolt):
    """Builds segments of `dimensions` dimensions for `elements` PO-Join elements, in turn.

    permute: whether segments get a permutation array; elements that turn them into trees need none.
    """

    dimensions: int
    elements: int
    permute: bool = True

    side_streams = frozenset({SEGMENTS.name})

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of((SEGMENTS,))

    def build(self, context: TaskContext) -> Task:
        return PermutationTask(self)


class PermutationTask(Task):
    """Keeps a table of the runs so far, by segment; a complete segment is built and removed.

    The table is the paper's provenance table of the immutable part (section 4.3): runs of different dimensions and
    segments may arrive in any order and are never mixed up.
    """

    def __init__(self, description: PermutationElement) -> None:
        self._dimensions = description.dimensions
        self._elements = description.elements
        self._permute = description.permute and description.dimensions > 1
        self._provenance: dict[tuple[int, int], dict[int, SortedRun]] = {}
        self._built = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        order, dimension, run, pair = run_of(batch)
        runs = self._provenance.setdefault((order.side, order.segment), {})
        assert dimension not in runs, "each dimension sends its run once"
        runs[dimension] = run
        if len(runs) == self._dimensions:
            del self._provenance[order.side, order.segment]
            ordered = [runs[d] for d in range(self._dimensions)]
            along, across = pair
            permutation = Permutation.between(ordered[along], ranks_of(ordered[across])) if self._permute else None
            self._built += 1
            yield Emit(segment_batch(order, ordered, pair, permutation), to=order.segment % self._elements)

    def metrics(self) -> Mapping[str, float]:
        return {"segments_built": float(self._built), "segments_pending": float(len(self._provenance))}
