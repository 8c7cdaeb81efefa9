"""The collector: joins what the elements found into result rows, in result order.

In: payload rows and limits from the router, matches from every element that answers probes. Each of them punctuates;
what lies below the smallest punctuation is complete. An input that is ahead of the others is left waiting.
Out: result rows, then the punctuation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from indexes import Matches
from operators.element_rows import LEFT, RIGHT, SIDES, Int64, Limits, matches_of, values_of
from operators.gate import SEQ
from operators.payload_store import PayloadStore
from operators.result_order import merge_answers, pair_up
from operators.selection import Selected, Selection
from topology import DEFAULT_STREAM, Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext

Ordering = Literal["strict", "outer"]
"""strict: by the later row, then by the earlier row. outer: by the later row only."""

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
        return f"{self.ordering} order"

    def build(self, context: TaskContext) -> Task:
        return CollectorTask(self, context.origins)


class _Answers:
    """The matches that one element has sent for one side, in order of the probe rows."""

    def __init__(self) -> None:
        self._parts: deque[Matches] = deque()
        self.rows = 0

    def append(self, matches: Matches) -> None:
        self._parts.append(matches)
        self.rows += len(matches)

    def take(self, rows: int) -> Matches:
        """Remove the answers to the next `rows` probe rows; a row not spoken of has no matches."""
        parts = []
        while rows and self._parts:
            part = self._parts.popleft()
            if len(part) > rows:
                cut = part.offsets[rows]
                self._parts.appendleft(Matches(part.offsets[rows:] - cut, part.positions[cut:]))
                part = Matches(part.offsets[: rows + 1], part.positions[:cut])
            rows -= len(part)
            self.rows -= len(part)
            parts.append(part)
        if rows or not parts:
            parts.append(Matches.empty(rows))
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *(len(part.positions) for part in parts)])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
        return Matches(np.concatenate([*offsets, starts[-1:]]), np.concatenate([part.positions for part in parts]))


class CollectorTask(Task):
    """Holds the answers until all elements have spoken."""

    def __init__(self, description: Collector, origins: tuple[Origin, ...]) -> None:
        self._description = description
        self._reached = [-1] * len(origins)
        self._complete = -1
        self._answers = {
            origin.index: (_Answers(), _Answers()) for origin in origins if origin.component != description.router
        }
        self._stores: list[PayloadStore | None] = [None, None]
        self._shown: list[list[Selected]] = [[], []]
        self._seq: tuple[deque[Int64], deque[Int64]] = (deque(), deque())
        self._first = [0, 0]
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
            answers = self._answers[origin.index][side]
            assert batch.first == self._first[side] + answers.rows, "answers come in the order of the probe rows"
            answers.append(matches_of(batch))
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        self._reached[origin.index] = punctuation.seq
        if origin.index not in self._answers:
            self._router_reached.append(punctuation.seq)
        complete = min(self._reached)
        if complete > self._complete:
            self._complete = complete
            yield from self._emit(complete, punctuation.born)
            yield Emit(Punctuation(complete, punctuation.born))

    def blocked(self, origin: Origin) -> bool:
        return self._reached[origin.index] > self._complete

    def metrics(self) -> Mapping[str, float]:
        return {
            "results": float(self._emitted),
            "answered": float(self._complete + 1),
            "payload_bytes": float(sum(store.nbytes for store in self._stores if store is not None)),
        }

    def _take_payload(self, side: int, batch: Batch) -> None:
        rows = batch.rows
        self._seq[side].append(values_of(rows.column(SEQ)))
        payload = rows.select([name for name in rows.schema.names if name != SEQ])
        store = self._stores[side]
        if store is None:
            store = self._stores[side] = PayloadStore(payload.schema)
            self._shown[side] = self._description.selection.columns(side, payload.schema)
        store.append(payload)

    def _emit(self, complete: int, born: float) -> Iterator[Emit]:
        """Send the results of the probe rows up to sequence number `complete`."""
        description = self._description
        ordered = description.ordering == "strict"
        seqs = (self._take_seq(LEFT, complete), self._take_seq(RIGHT, complete))
        firsts = (self._first[LEFT], self._first[RIGHT])
        merged = []
        for side in (LEFT, RIGHT):
            answers = [each[side].take(len(seqs[side])) for each in self._answers.values()]
            merged.append(merge_answers(answers, ordered))
            self._first[side] += len(seqs[side])
        left, right = pair_up(seqs, firsts, (merged[LEFT], merged[RIGHT]), ordered)
        for start in range(0, len(left), RESULT_ROWS):
            part = slice(start, start + RESULT_ROWS)
            rows = self._rows(left[part], right[part])
            yield Emit(Batch(DEFAULT_STREAM, rows, first=self._emitted, born=born))
            self._emitted += rows.num_rows
        self._forget(complete)

    def _take_seq(self, side: int, complete: int) -> Int64:
        """Remove the sequence numbers of the probe rows up to `complete`."""
        queue, taken = self._seq[side], []
        while queue and queue[0][0] <= complete:
            seq = queue.popleft()
            count = int(np.searchsorted(seq, complete, side="right"))
            if count < len(seq):
                queue.appendleft(seq[count:])
            taken.append(seq[:count])
        return np.concatenate(taken) if taken else np.empty(0, np.int64)

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
                    store.drop_before(min(limits.live[side], self._first[side]))
