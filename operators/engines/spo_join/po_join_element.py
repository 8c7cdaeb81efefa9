"""The PO-Join element: holds immutable segments and answers probes from them (SPO-Join, section 3.4).

In: steps and merge orders from the router, segments from the permutation elements; the window's state from the shared
cache, where there is one.
Out: the matches of every probe row with the segments held here, then the punctuation.

Segments are dealt round robin over the elements. Which element holds a segment, and when it arrives, does not affect
the result. The router's limits say up to which position the immutable part answers; in the rare case that a segment
below that position has not arrived, the element blocks its input until it has. In the paper, news of what has expired
can reach elements late and then cause false positives. Here every probe row carries its own live range, and the scheme
(`State`) only decides when an element drops an expired segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from indexes import Live, Matches, PermutationOffsetJoin, count_blocks, probe_blocks
from operators.engines.shared.answering import Answering
from operators.engines.shared.steps import Step, StepTask
from operators.engines.shared.work_items import work_through
from operators.engines.spo_join.index_segment import IndexSegment, probe_segments
from operators.engines.spo_join.segments import runs_of, segment_of
from operators.engines.spo_join.streams import SPOStream
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.merge_order import Merge
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import StreamId, outputs_of
from operators.protocol.streams import JoinStream, answer_streams
from topology import Batch, Bolt, Emit, Origin, Task, TaskContext

Immutable = Literal["po-join", "css-tree", "chained"]
"""The structure of a segment. po-join: permutation and offset arrays. css-tree: an immutable B+-tree. chained: a
B+-tree, as a subindex of a chained index. The paper compares with the last two."""

State = Literal["replacement", "round robin", "shared cache"]
"""How an element learns what has expired (section 4.2, in the order of its three strategies). replacement: from the
orders for its own segments, so that a new segment takes the place of the oldest. round robin: from every order to
merge, wherever that segment goes. shared cache: from a cache, to which the window's state is written now and then."""

TREES: Mapping[Immutable, str] = {"css-tree": "ImmutableBPlusTree", "chained": "BPlusTree"}
"""The index, by its name in the catalogue, of a segment that is a tree."""

Segment = PermutationOffsetJoin | IndexSegment


@dataclass(frozen=True)
class POJoinElement(Bolt):
    """One share of the immutable part of both windows.

    probe_threads: threads that share the segments for each probe; they live only while it is answered.
    """

    negated: tuple[bool, ...]
    ordered: bool
    router: str = "router"
    immutable: Immutable = "po-join"
    state: State = "round robin"
    probe_threads: int = 1
    counts: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        threads = f", {self.probe_threads} threads" if self.probe_threads > 1 else ""
        return f"state: {self.state}{threads}"

    def build(self, context: TaskContext) -> Task:
        return POJoinTask(self, context.task, context.parallelism)


@dataclass(frozen=True)
class _Held:
    number: int
    segment: Segment


class POJoinTask(StepTask):
    """Keeps its segments of each side in position order."""

    def __init__(self, description: POJoinElement, task: int, parallelism: int) -> None:
        super().__init__(description.negated)
        self._description = description
        self._ordered = description.ordered
        self._router = description.router
        self._task = task
        self._parallelism = parallelism
        self._held: tuple[list[_Held], list[_Held]] = ([], [])
        self._unsettled: tuple[dict[int, Merge], dict[int, Merge]] = ({}, {})
        self._cached = Limits()
        self._answering = Answering()

    def on_other(self, stream: StreamId, batch: Batch) -> Iterable[Emit]:
        match stream.kind:
            case JoinStream.MERGE:
                order = Merge.from_batch(batch)
                own = order.segment % self._parallelism == self._task
                if own:
                    self._tick_off(order)
                if self._description.state == "round robin" or (own and self._description.state == "replacement"):
                    self._let_go(self._limits)
            case SPOStream.SEGMENTS:
                order, segment = self._segment(batch)
                held = self._held[order.side]
                held.append(_Held(order.segment, segment))
                held.sort(key=lambda each: each.number)
                self._tick_off(order)
            case SPOStream.STATE:
                self._cached = Limits.from_batch(batch)
        return ()

    def blocked(self, origin: Origin) -> bool:
        """Block the router while a segment that the next step needs is still being built."""
        if origin.component != self._router:
            return False
        # the handover passes the end of a segment only after its order has arrived, so unsettled orders are waited for
        return any(
            order.end <= self._limits.handover[side]
            for side in (LEFT, RIGHT)
            for order in self._unsettled[side].values()
        )

    def on_step(self, step: Step) -> Iterable[Emit]:
        yield from self._answering.answer(step, self._probe, self._count if step.limits.counting else None)
        if self._description.state == "shared cache":
            # the cache may be ahead of this element, which then still needs segments that have expired elsewhere
            live = np.minimum(step.limits.live, self._cached.live)
            self._let_go(Limits(live=(int(live[LEFT]), int(live[RIGHT]))))

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

    def _segment(self, batch: Batch) -> tuple[Merge, Segment]:
        immutable = self._description.immutable
        if immutable == "po-join":
            return segment_of(batch)
        order, runs = runs_of(batch)
        return order, IndexSegment(TREES[immutable], order.first, runs, self._description.negated)

    def _let_go(self, limits: Limits) -> None:
        """Drop the segments all of whose rows have expired."""
        for side in (LEFT, RIGHT):
            held = self._held[side]
            while held and held[0].segment.end_position <= limits.live[side]:
                del held[0]

    def _tick_off(self, order: Merge) -> None:
        """A segment and its order arrive by different paths, in either order: the second one settles the segment."""
        if self._unsettled[order.side].pop(order.segment, None) is None:
            self._unsettled[order.side][order.segment] = order

    def _asked(self, side: int, rows: ElementRows) -> tuple[list[Segment], Live]:
        """The segments that answer rows of a side, and the live positions in them."""
        handover = self._limits.handover[1 - side]
        segments = [each.segment for each in self._held[1 - side] if each.segment.end_position <= handover]
        return segments, Live(rows.live.start, np.minimum(rows.live.end, handover))

    def _shared_out(self, segments: Sequence[Segment]) -> list[Sequence[Segment]]:
        """One share of the segments per thread, of neighbours, so that the shares' answers are in position order."""
        threads = max(1, min(self._description.probe_threads, len(segments)))
        ends = [len(segments) * number // threads for number in range(threads + 1)]
        return [segments[begin:end] for begin, end in pairwise(ends)]

    def _count(self, side: int, rows: ElementRows) -> Int64:
        segments, live = self._asked(side, rows)

        def count(share: Sequence[Segment]) -> Int64:
            blocks = [each for each in share if isinstance(each, PermutationOffsetJoin)]
            counts = count_blocks(blocks, rows.intervals, live)
            for each in share:
                if isinstance(each, IndexSegment):
                    counts += each.count(rows.intervals, live)
            return counts

        first, *others = work_through(self._shared_out(segments), count, self._description.probe_threads)
        return sum(others, first)

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        segments, live = self._asked(side, rows)

        def probe(share: Sequence[Segment]) -> Matches | None:
            trees = [each for each in share if isinstance(each, IndexSegment)]
            if trees:
                return probe_segments(most, trees, rows.intervals, live, ordered=self._ordered)
            blocks = [each for each in share if isinstance(each, PermutationOffsetJoin)]
            return probe_blocks(most, blocks, rows.intervals, live, ordered=self._ordered)

        shares = self._shared_out(segments)
        if len(shares) == 1:
            return probe(segments)
        answers = work_through(shares, probe, len(shares))
        found = [answer for answer in answers if answer is not None]
        if len(found) < len(answers) or sum(len(answer.positions) for answer in found) > most:
            return None
        return Matches.concat_by_row(found)
