"""The index-join element: threads that share one index per side (PIM-Tree, section 4).

In: work items from the work queue.
Out: the matches of every item's rows and its punctuation, in the order of the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import numpy as np
import pyarrow as pa

from indexes import Keys, Matches, WindowIndex, prepare_kernels
from operators.engines.shared.answering import Answering
from operators.engines.shared.index_setting import IndexSetting, index_note
from operators.engines.shared.live_sample import LiveSample
from operators.engines.shared.steps import Step
from operators.engines.shared.store_and_probe import summed
from operators.engines.shared.work_items import work_through
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT, SIDES
from operators.protocol.stream_ids import outputs_of, stream_of
from operators.protocol.streams import JoinStream, answer_streams
from topology import Batch, Bolt, Emit, Facts, Origin, Punctuation, Task, TaskContext


@dataclass(frozen=True)
class IndexJoinElement(Bolt):
    """Both windows, each in one index that all `threads` insert into and probe.

    Paper: PIM-Tree, section 4.1. There every thread probes with an item's tuples and then inserts them; a tuple whose
    insert has not finished is found by a linear search from the "edge tuple", the first that is not indexed, to the end
    of the window. Here all threads insert a step's rows, and then all probe. So every row is indexed before anyone
    probes, each probe row carries its live range, and nothing is searched linearly. Threads wait for each other twice
    per step, which has some 100,000 rows under load. A PIMTree's merge holds neither phase up: it goes on beside them,
    if need be for several steps, in a thread of the index (section 4.2).

    An index with `concurrent_inserts` takes rows from several threads, but as few as keep all busy: a large batch costs
    less per row than several small ones. Any other index takes a side's rows from one thread, the two sides at the same
    time; all threads probe it.
    """

    negated: tuple[bool, ...]
    ordered: bool
    setting: IndexSetting
    threads: int
    counts: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        return f"{self.threads} {'thread' if self.threads == 1 else 'threads'}; {index_note(self.setting)}"

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return IndexJoinTask(self)


class IndexJoinTask(Task):
    """Owns the two indexes. It uses threads, but only while it handles one message."""

    def __init__(self, description: IndexJoinElement) -> None:
        self._description = description
        self._limits = Limits()
        self._items: dict[int, list[ElementRows | None]] = {}
        self._indexes: list[WindowIndex | None] = [None, None]
        self._stored = [0, 0]
        self.setting = description.setting
        self._answering = Answering(threads=description.threads)
        self._sample = LiveSample()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        stream = stream_of(batch.stream)
        if stream.kind is JoinStream.LIMITS:
            self._limits = Limits.from_batch(batch)
        else:
            (last,) = batch.labels
            rows = ElementRows.from_batch(batch, self._description.negated)
            self._items.setdefault(last, [None, None])[stream.side] = rows
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        items = [
            Step(self._limits, (rows[LEFT], rows[RIGHT]), Punctuation(last, punctuation.born))
            for last, rows in self._items.items()
        ]
        self._items = {}
        parts: list[list[ElementRows]] = [[rows for item in items if (rows := item.rows[side])] for side in (0, 1)]
        self._insert(parts, parts)
        yield from self._answering.answer_all(items, self._probe, self._count if self._limits.counting else None)
        if not items or items[-1].last.seq != punctuation.seq:
            yield Emit(punctuation)
        self._expire(self._limits.live)

    def metrics(self) -> Mapping[str, float]:
        chosen = {f"index:{type(index).__name__}": 1.0 for index in self._indexes if index is not None}
        return {
            "left_stored": float(self._stored[LEFT]),
            "right_stored": float(self._stored[RIGHT]),
            "index_bytes": float(sum(index.nbytes for index in self._indexes if index is not None)),
            **summed(*(index.counters() for index in self._indexes if index is not None)),
            **chosen,
        }

    def details(self) -> Facts:
        """How selective the comparisons are now (see `LiveSample`), and which index each side has and would get now."""
        indexes = {}
        for side, name in enumerate(SIDES):
            index, seen = self._indexes[side], self._sample.observed(side, self.setting.rows[side])
            if index is not None and seen is not None:
                now = self.setting.choice(side, seen)
                indexes[name] = {"has": type(index).__name__, "now": now.index, "reason": now.reason}
        return {"selectivity": self._sample.details(), "index": indexes} if indexes else {}

    def check_invariants(self) -> None:
        # work items come in the order of their ends
        assert list(self._items) == sorted(self._items)
        for index in self._indexes:
            if index is not None:
                index.check_invariants()

    def _insert(self, parts: Sequence[Sequence[ElementRows]], probing: Sequence[Sequence[ElementRows]]) -> None:
        """Store rows of both sides, in parts that follow each other, before any row probes."""
        threads_of_a_side = -(-self._description.threads // max(1, sum(map(bool, parts))))
        inserts = []
        for side in (LEFT, RIGHT):
            newest = [rows[side][-1] if rows[side] else None for rows in (parts, probing)]
            self._sample.note(side, *newest)
            if parts[side]:
                probes = probing[1 - side]
                index = self._indexes[side] or self._make(side, parts[side][0], probes[0] if probes else None)
                self._indexes[side] = index
                self._stored[side] += sum(map(len, parts[side]))
                shares = threads_of_a_side if index.concurrent_inserts else 1
                inserts.append([(index, share) for share in _shared_out(parts[side], shares)])
        # the sides in turn, so that blocking merges fall together and are done by two threads
        turns = [insert for turn in zip_longest(*inserts) for insert in turn if insert is not None]
        work_through(turns, _store, self._description.threads)

    def _make(self, side: int, rows: ElementRows, probes: ElementRows | None) -> WindowIndex:
        """The index for a side, chosen with the first rows to store and to probe it."""
        return self.setting.make(side, rows.keys, None if probes is None else probes.intervals)

    def _expire(self, live: tuple[int, int]) -> None:
        for side in (LEFT, RIGHT):
            index = self._indexes[side]
            if index is not None:
                index.expire(live[side])

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        index = self._indexes[1 - side]
        if index is None:
            return Matches.empty(len(rows))
        return index.probe_within(most, rows.intervals, rows.live, ordered=self._description.ordered)

    def _count(self, side: int, rows: ElementRows) -> Int64:
        index = self._indexes[1 - side]
        return np.zeros(len(rows), np.int64) if index is None else index.count(rows.intervals, rows.live)


def _shared_out(parts: Sequence[ElementRows], shares: int) -> list[Sequence[ElementRows]]:
    """Consecutive parts together, in so many shares, or one for each part if there are fewer."""
    ends = [len(parts) * share // shares for share in range(shares + 1)]
    return [parts[begin:end] for begin, end in pairwise(ends) if begin < end]


def _store(insert: tuple[WindowIndex, Sequence[ElementRows]]) -> None:
    """Insert consecutive rows into an index."""
    index, parts = insert
    # one large batch is cheaper to insert than several small ones
    keys = [Keys.joined(column) for column in zip(*(rows.keys for rows in parts), strict=True)]
    if index.concurrent_inserts:
        index.insert_at(parts[0].first, keys)
    else:
        index.insert(keys)
