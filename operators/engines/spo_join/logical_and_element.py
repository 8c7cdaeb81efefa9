"""The logical-AND element: intersects the predicate elements' results (SPO-Join, sections 3.2 and 4.3).

In: from each predicate element, the sort orders of blocks of the mutable part and, for the steps assigned to this
element, the rank ranges of each probe row.
Out: the matches of every probe row with the mutable part, then the punctuation.

The answers of the predicate elements arrive at different times. As in the paper, a provenance table keeps them by step
until all predicates have answered, so answers of different steps are never combined. A PO-Join segment intersects
ranges in different orders, so each block is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from indexes import Live, Matches, PermutationOffsetJoin, Ranges, SortedRun
from operators.engines.shared.answering import Answering
from operators.engines.shared.steps import Step
from operators.engines.spo_join.bit_intersection import bit_intersection
from operators.engines.spo_join.hash_intersection import hash_intersection
from operators.engines.spo_join.predicate_element import LIVE
from operators.engines.spo_join.streams import SPOStream
from operators.protocol.columns import Int64, values_of
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of, stream_of
from operators.protocol.streams import MATCHES, JoinStream
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext

Intersection = Literal["permutation", "bit array", "hash set"]
"""How the predicates' results are intersected. permutation: as in a PO-Join segment. bit array: a bit for each row that
a predicate found, and a logical AND, as in the paper. hash set: a hash table of rows, with which the paper compares."""

INTERSECTIONS = {"bit array": bit_intersection, "hash set": hash_intersection}

BlockName = tuple[int, int, int]
"""A block of the mutable part: (side, first position, rows)."""


@dataclass(frozen=True)
class LogicalAndElement(Bolt):
    """Joins the ranges of all dimensions for its share of the steps."""

    negated: tuple[bool, ...]
    ordered: bool
    intersection: Intersection = "permutation"

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(MATCHES)

    @property
    def note(self) -> str:
        return f"intersection by {self.intersection}"

    def build(self, context: TaskContext) -> Task:
        return LogicalAndTask(self, len(context.origins))


@dataclass
class _Answer:
    """The messages of one predicate element about one step."""

    limits: Limits | None = None
    orders: dict[BlockName, Int64] = field(default_factory=dict)
    ranges: dict[BlockName, Ranges] = field(default_factory=dict)
    rows: list[ElementRows | None] = field(default_factory=lambda: [None, None])


class LogicalAndTask(Task):
    """The provenance table, and the blocks of the mutable part as permutations."""

    def __init__(self, description: LogicalAndElement, inputs: int) -> None:
        self._description = description
        self._provenance: dict[int, dict[int, _Answer]] = {}
        self._speaking = [_Answer() for _ in range(inputs)]
        self._reached = [-1] * inputs
        self._blocks: dict[BlockName, PermutationOffsetJoin] = {}
        self._made: Counter[str] = Counter()  # intersections, of a step's rows with a block, by how they were made
        self._answering = Answering()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        answer = self._speaking[origin.index]
        kind = stream_of(batch.stream).kind
        if kind is JoinStream.LIMITS:
            answer.limits = Limits.from_batch(batch)
            return ()
        side, _, first, rows = batch.labels
        if kind is SPOStream.BLOCKS:
            answer.orders[side, first, rows] = values_of(batch.rows.column(0))
        elif first == LIVE:
            live_first, live_end, seq = (values_of(column) for column in batch.rows.columns)
            answer.rows[side] = ElementRows(batch.first, seq, (), (), Live(live_first, live_end))
        else:
            start, stop = (values_of(column) for column in batch.rows.columns)
            answer.ranges[1 - side, first, rows] = (start, stop)
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        answers = self._provenance.setdefault(punctuation.seq, {})
        answers[origin.index] = self._speaking[origin.index]
        self._speaking[origin.index] = _Answer()
        self._reached[origin.index] = punctuation.seq
        if len(answers) == len(self._reached):
            del self._provenance[punctuation.seq]
            yield from self._answer([answers[index] for index in sorted(answers)], punctuation)

    def blocked(self, origin: Origin) -> bool:
        """An element that is ahead waits: the table holds at most one step."""
        return self._reached[origin.index] > min(self._reached)

    def metrics(self) -> Mapping[str, float]:
        made = {f"intersections:{way}": float(number) for way, number in self._made.items()}
        return {"blocks": float(len(self._blocks)), "provenance": float(len(self._provenance)), **made}

    def check_invariants(self) -> None:
        # a step leaves the table when the last predicate has answered
        assert all(len(answers) < len(self._reached) for answers in self._provenance.values())
        for block in self._blocks.values():
            block.check_invariants()

    def _answer(self, answers: list[_Answer], last: Punctuation) -> Iterator[Emit]:
        limits = answers[0].limits
        assert limits is not None, "the first predicate element passes the limits on"
        self._update_blocks(answers, limits)
        rows = answers[0].rows
        step = Step(limits, (rows[LEFT], rows[RIGHT]), last)
        starts = [0 if each is None else each.first for each in rows]

        def probe(side: int, piece: ElementRows, most: int) -> Matches | None:
            part = slice(piece.first - starts[side], piece.first - starts[side] + len(piece))
            return self._intersect(side, piece, part, answers, limits, most)

        yield from self._answering.answer(step, probe)

    def _update_blocks(self, answers: list[_Answer], limits: Limits) -> None:
        """Add the new blocks, which replace those they were merged from; drop blocks that have been handed over."""
        for name in answers[0].orders:
            side, first, rows = name
            for other in [each for each in self._blocks if each[0] == side]:
                if first <= other[1] and other[1] + other[2] <= first + rows:
                    del self._blocks[other]
            runs = [_ranks_as_run(answer.orders[name], rows) for answer in answers]
            self._blocks[name] = PermutationOffsetJoin(first, runs)
        for side, first, rows in list(self._blocks):
            if first + rows <= limits.handover[side]:
                del self._blocks[side, first, rows]

    def _intersect(
        self, side: int, rows: ElementRows, part: slice, answers: list[_Answer], limits: Limits, most: int
    ) -> Matches | None:
        live = Live(np.maximum(rows.live.start, limits.handover[1 - side]), rows.live.end)
        found, parts = 0, []
        for name in sorted(name for name in self._blocks if name[0] == 1 - side):
            ranges = [(answer.ranges[name][0][part], answer.ranges[name][1][part]) for answer in answers]
            matches = self._match(self._blocks[name], ranges, live, most - found)
            if matches is None:
                return None
            found += len(matches.positions)
            parts.append(matches)
        return Matches.concat_by_row(parts) if parts else Matches.empty(len(rows))

    def _match(self, block: PermutationOffsetJoin, ranges: list[Ranges], live: Live, limit: int) -> Matches | None:
        negated, ordered = self._description.negated, self._description.ordered
        if self._description.intersection != "permutation":
            intersection = INTERSECTIONS[self._description.intersection]
            self._made[self._description.intersection] += 1
            return intersection(limit, block, ranges, negated, live, ordered=ordered)
        self._made["permutation"] += 1
        return block.match(ranges, negated, live, ordered=ordered, limit=limit)


def _ranks_as_run(order: Int64, rows: int) -> SortedRun:
    """A run whose keys are their own ranks: the predicate elements, which have the real keys, found the ranges."""
    return SortedRun(np.arange(len(order)), order, rows)
