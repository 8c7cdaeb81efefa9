"""The collection tree: n-ary mergers that bring the answers of all join cores together (SplitJoin, section 5).

In: matches and punctuation of a few join cores or mergers. Out: their matches, and a punctuation when all have sent it.

The ordering (`orderings`) decides how much a merger holds back. Strict or outer: a child that is ahead waits, and the
answers to rows that all children have answered are emitted together; with strict ordering the root sorts them. Weaker:
answers are passed on as they come, except those of a later group than the open one. The collector tells from the rows
where each answer belongs.

The paper has a tree for each region and merges tuples. Here one tree carries the answers of both regions, as two
streams, and answers are positions: the combiner puts tuples together once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from indexes import Matches, order_rows
from operators.engines.split_join.distribution_tree import node_name, parent, tree_levels
from operators.protocol.answers import matches_batch, matches_of
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of, stream_of
from operators.protocol.streams import answer_streams
from operators.query.orderings import Ordering, is_aligned, open_until
from operators.results.result_order import Answer, WaitingAnswers, merge_answers
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext, TopologyBuilder


@dataclass(frozen=True)
class Merger(Bolt):
    """An n-ary merger. Its children answer every row, also those without matches. Counts are passed on: the collector
    adds them up.

    orders: whether it sorts each row's matches by position. One merger does so for all: marking 300 matches in a bitmap
            and reading them off takes 5 ns each, less than sorting parts at the cores and merging these at every level
            of the tree.
    """

    ordering: Ordering
    counts: bool = False
    orders: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        return "aligns its children" if is_aligned(self.ordering) and not self.counts else "passes on"

    def build(self, context: TaskContext) -> Task:
        children = len(context.origins)
        if self.counts:
            return PassingMerger(children, "none")
        if is_aligned(self.ordering):
            return AligningMerger(children, self.orders)
        return PassingMerger(children, self.ordering)


class AligningMerger(Task):
    """Emits the answers to rows that all children have answered: child by child, or as one in order.

    Merging them row by row at every level would copy every match once per level. Instead the root, which sorts them,
    or the collector does it once.
    """

    def __init__(self, children: int, orders: bool) -> None:
        self._orders = orders
        self._reached = [-1] * children
        self._complete = -1
        self._spoken = [[0, 0] for _ in range(children)]
        self._punctuated = [(0, 0)] * children
        self._waiting = (WaitingAnswers(), WaitingAnswers())
        self._first = [0, 0]

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        side = stream_of(batch.stream).side
        spoken = self._spoken[origin.index]
        assert batch.first <= spoken[side], "a child answers every row"
        spoken[side] = max(spoken[side], batch.end)
        self._waiting[side].append(Answer(origin.index, batch.first, matches_of(batch)))
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        left, right = self._spoken[origin.index]
        self._reached[origin.index] = punctuation.seq
        self._punctuated[origin.index] = (left, right)
        complete = min(self._reached)
        if complete > self._complete:
            self._complete = complete
            # the child that is furthest behind has just answered all rows up to here, and no others
            ends = self._punctuated[self._reached.index(complete)]
            for side in (LEFT, RIGHT):
                first, end = self._first[side], ends[side]
                if end > first:
                    answers = self._waiting[side].take(end)
                    if self._orders:
                        answers = [Answer(0, first, _in_order(answers, first, end))]
                    for answer in answers:
                        yield Emit(matches_batch(side, answer.first, answer.matches))
                    self._first[side] = end
            yield Emit(Punctuation(complete, punctuation.born))

    def blocked(self, origin: Origin) -> bool:
        return self._reached[origin.index] > self._complete

    def check_invariants(self) -> None:
        # complete is what every child has reached
        assert self._complete == min(self._reached)
        for side in (LEFT, RIGHT):
            # what has been sent does not wait
            first = self._waiting[side].first
            assert first is None or first >= self._first[side]
            # no child is behind what has been sent
            assert min(spoken[side] for spoken in self._spoken) >= self._first[side]


def _in_order(answers: Sequence[Answer], first: int, end: int) -> Matches:
    """All answers to the rows at positions [first, end), each row's matches sorted by position."""
    merged = merge_answers(answers, first, end, ordered=False)
    # a single answer still belongs to its sender
    positions = merged.positions.copy() if len(answers) == 1 else merged.positions
    order_rows(positions, merged.offsets)
    return Matches(merged.offsets, positions)


@dataclass(frozen=True)
class _Held:
    """A child's answer to rows up to the sequence number in its label."""

    origin: int
    batch: Batch

    @property
    def last(self) -> int:
        return self.batch.labels[0]


class PassingMerger(Task):
    """Passes answers on as they come, as long as they belong to the open group of the ordering.

    A core's answers carry no sequence numbers, so those since its last punctuation wait for the next one, which follows
    at once. They are passed on with that number as a label, so that the next merger need not wait.
    """

    def __init__(self, children: int, ordering: Ordering) -> None:
        self._ordering = ordering
        self._reached = [-1] * children
        self._complete = -1
        self._unlabelled: list[list[Batch]] = [[] for _ in range(children)]
        self._held: list[_Held] = []

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        if self._ordering == "none":
            yield Emit(batch)
        elif batch.labels:
            self._held.append(_Held(origin.index, batch))
            yield from self._release()
        else:
            self._unlabelled[origin.index].append(batch)

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        for batch in self._unlabelled[origin.index]:
            self._held.append(_Held(origin.index, batch.with_labels(punctuation.seq)))
        self._unlabelled[origin.index] = []
        self._reached[origin.index] = punctuation.seq
        yield from self._release()
        complete = min(self._reached)
        if complete > self._complete:
            yield from self._release(complete)
            self._complete = complete
            yield Emit(Punctuation(complete, punctuation.born))
            yield from self._release()

    def blocked(self, origin: Origin) -> bool:
        """A child that is ahead waits while one of its answers is held back."""
        return self._reached[origin.index] > self._complete and any(held.origin == origin.index for held in self._held)

    def check_invariants(self) -> None:
        # complete is what every child has reached
        assert self._complete == min(self._reached)
        # what is held back lies behind the open group
        assert all(held.last > open_until(self._ordering, self._complete) for held in self._held)

    def _release(self, last: int = -1) -> Iterator[Emit]:
        """Emit the held answers up to sequence number `last`, and up to the end of the open group."""
        limit = max(last, open_until(self._ordering, self._complete))
        going = [held for held in self._held if held.last <= limit]
        self._held = [held for held in self._held if held.last > limit]
        for held in going:
            yield Emit(held.batch)


def add_collection_tree(
    builder: TopologyBuilder, cores: Sequence[str], fanout: int, ordering: Ordering, counts: bool = False
) -> str:
    """Add the mergers, the mirror image of the distribution tree; return the root."""
    levels = tree_levels(len(cores), fanout)
    below = list(cores)
    for level in reversed(range(len(levels))):
        names = [node_name("merger", level, number) for number in range(levels[level])]
        orders = ordering == "strict" and level == 0
        subscriptions = [builder.bolt(name, Merger(ordering, counts, orders)) for name in names]
        for child, name in enumerate(below):
            for stream in answer_streams(counts):
                subscriptions[parent(child, len(below), len(names))].global_grouping(name, stream.name)
        below = names
    return below[0]
