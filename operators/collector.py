"""The collector: joins what the elements found into result rows, in the order that the user asked for.

In: payload rows and limits from the router, matches from every element that answers probes. Each of them punctuates;
what lies below the smallest punctuation is complete, and is sent in order. Where the ordering is strict or outer that
is all, and an input that is ahead of the others is left waiting. Where it is weaker, the answers to rows of the group
that is open go out as they come, as soon as the payload is there.
Out: result rows, then the punctuation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.element_rows import LEFT, RIGHT, SIDES, Int64, Limits, matches_of, values_of
from operators.gate import SEQ
from operators.orderings import Ordering, is_aligned, open_until
from operators.payload_store import PayloadStore
from operators.result_order import Answer, WaitingAnswers, later_rows, merge_answers, pair_up
from operators.selection import Selected, Selection
from topology import DEFAULT_STREAM, Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext

RESULT_ROWS = 1 << 18
"""The most rows of one result batch."""


@dataclass(frozen=True)
class Collector(Bolt):
    """Shows the selected columns of both sides."""

    selection: Selection
    ordering: Ordering = "strict"
    router: str = "router"

    @property
    def note(self) -> str:
        return f"order: {self.ordering}"

    def build(self, context: TaskContext) -> Task:
        return CollectorTask(self, context.origins)


@dataclass(frozen=True)
class _Step:
    """The sequence numbers of consecutive rows of one side, the first at position `first`, and when they came in."""

    first: int
    seq: Int64
    born: float


class _ProbeRows:
    """The rows of one side whose results are not complete."""

    def __init__(self) -> None:
        self._steps: deque[_Step] = deque()
        self.first = 0

    def append(self, step: _Step) -> None:
        self._steps.append(step)

    def end(self, seq: int) -> int:
        """The position after the last row with a sequence number of at most `seq`."""
        end = self.first
        for step in self._steps:
            rows = len(step.seq) if step.seq[-1] <= seq else int(np.searchsorted(step.seq, seq, side="right"))
            end = step.first + rows
            if rows < len(step.seq):
                break
        return end

    def born(self, position: int) -> float:
        """When the row at a position came in."""
        return next(step.born for step in self._steps if position < step.first + len(step.seq))

    def take(self, end: int) -> Int64:
        """Remove the rows before position `end` and return their sequence numbers."""
        taken = []
        while self._steps and self._steps[0].first < end:
            step = self._steps.popleft()
            rows = end - step.first
            if rows < len(step.seq):
                self._steps.appendleft(_Step(end, step.seq[rows:], step.born))
            taken.append(step.seq[:rows])
        self.first = end
        return np.concatenate(taken) if taken else np.empty(0, np.int64)


class CollectorTask(Task):
    """Holds the answers until they may be sent."""

    def __init__(self, description: Collector, origins: tuple[Origin, ...]) -> None:
        self._description = description
        self._ordering = description.ordering
        self._router = next(origin.index for origin in origins if origin.component == description.router)
        self._reached = [-1] * len(origins)
        self._complete = -1
        self._waiting = (WaitingAnswers(), WaitingAnswers())
        self._probes = (_ProbeRows(), _ProbeRows())
        self._stores: list[PayloadStore | None] = [None, None]
        self._shown: list[list[Selected]] = [[], []]
        self._limits: deque[Limits] = deque()
        self._router_reached: deque[int] = deque()
        self._emitted = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        kind, _, name = batch.stream.partition(".")
        if kind == "limits":
            self._limits.append(Limits.from_batch(batch))
        elif kind == "payload":
            self._take_payload(SIDES.index(name), batch)
        else:
            side = SIDES.index(name)
            assert batch.first >= self._probes[side].first, "an element has punctuated before it had answered"
            self._waiting[side].append(Answer(origin.index, batch.first, matches_of(batch)))
            return self._emit_open()
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        self._reached[origin.index] = punctuation.seq
        if origin.index == self._router:
            self._router_reached.append(punctuation.seq)
        yield from self._emit_open()
        complete = min(self._reached)
        if complete > self._complete:
            yield from self._emit_complete(complete, punctuation.born)
            yield Emit(Punctuation(complete, punctuation.born))
            yield from self._emit_open()

    def blocked(self, origin: Origin) -> bool:
        """An input waits while it is ahead and what it has said cannot be sent.

        The router may run ahead where answers need not wait for each other, only for their payload: it is kept back by
        the slowest element, whose inbox is bounded.
        """
        if self._reached[origin.index] <= self._complete:
            return False
        if is_aligned(self._ordering):
            return True
        return any(waiting.holds(origin.index) for waiting in self._waiting)

    def metrics(self) -> Mapping[str, float]:
        return {
            "results": float(self._emitted),
            "answered": float(self._complete + 1),
            "payload_bytes": float(sum(store.nbytes for store in self._stores if store is not None)),
        }

    def check_invariants(self) -> None:
        # complete is what every input has reached
        assert self._complete == min(self._reached)
        for side in (LEFT, RIGHT):
            # nothing waits that could have been sent
            first = self._waiting[side].first
            assert first is None or first >= self._probes[side].end(self._passing)

    @property
    def _passing(self) -> int:
        """The last sequence number whose results may be sent as they are found: the group is open, the payload here."""
        return min(open_until(self._ordering, self._complete), self._reached[self._router])

    def _take_payload(self, side: int, batch: Batch) -> None:
        rows = batch.rows
        if rows.num_rows:
            self._probes[side].append(_Step(batch.first, values_of(rows.column(SEQ)), batch.born))
        payload = rows.select([name for name in rows.schema.names if name != SEQ])
        store = self._stores[side]
        if store is None:
            store = self._stores[side] = PayloadStore(payload.schema)
            self._shown[side] = self._description.selection.columns(side, payload.schema)
        store.append(payload)

    def _emit_open(self) -> Iterator[Emit]:
        """Send the answers that need not wait for other elements, as each came; their payload must be here."""
        if is_aligned(self._ordering):
            return
        for side in (LEFT, RIGHT):
            probes = self._probes[side]
            for answer in self._waiting[side].take(probes.end(self._passing)):
                if len(answer.matches.positions):
                    later = later_rows(answer.first, answer.matches)
                    pairs = (later, answer.matches.positions)
                    left, right = pairs if side == LEFT else pairs[::-1]
                    yield from self._emit(left, right, probes.born(answer.first))

    def _emit_complete(self, complete: int, born: float) -> Iterator[Emit]:
        """Send the results of the probe rows up to sequence number `complete`, but for those that have gone ahead."""
        self._complete = complete
        ordered = self._ordering == "strict"
        firsts = (self._probes[LEFT].first, self._probes[RIGHT].first)
        seqs, merged = [], []
        for side in (LEFT, RIGHT):
            end = self._probes[side].end(complete)
            seqs.append(self._probes[side].take(end))
            merged.append(merge_answers(self._waiting[side].take(end), firsts[side], end, ordered))
        left, right = pair_up((seqs[LEFT], seqs[RIGHT]), firsts, (merged[LEFT], merged[RIGHT]), ordered)
        yield from self._emit(left, right, born)
        self._forget(complete)

    def _emit(self, left: Int64, right: Int64, born: float) -> Iterator[Emit]:
        for start in range(0, len(left), RESULT_ROWS):
            part = slice(start, start + RESULT_ROWS)
            rows = self._rows(left[part], right[part])
            yield Emit(Batch(DEFAULT_STREAM, rows, first=self._emitted, born=born))
            self._emitted += rows.num_rows

    def _rows(self, left: Int64, right: Int64) -> pa.RecordBatch:
        columns: list[tuple[int, str, pa.Array]] = []
        for side, positions in ((LEFT, left), (RIGHT, right)):
            store = self._stores[side]
            assert store is not None, "a match has a row on either side"
            taken = dict(zip(store.schema.names, store.take(positions), strict=True))
            columns += [(each.place, each.name, taken[each.column]) for each in self._shown[side]]
        columns.sort(key=lambda column: column[0])
        return pa.record_batch([array for _, _, array in columns], names=[name for _, name, _ in columns])

    def _forget(self, complete: int) -> None:
        """Drop the payload that no later probe can meet: as the limits of the last complete step say."""
        while self._router_reached and self._router_reached[0] <= complete:
            self._router_reached.popleft()
            limits = self._limits.popleft()
            for side in (LEFT, RIGHT):
                store = self._stores[side]
                if store is not None:
                    store.drop_before(min(limits.live[side], self._probes[side].first))
