"""The index-join element: threads that share one index per side (PIM-Tree, section 4).

In: tasks from the work queue. Out: the matches of every task's rows and its punctuation, in the order of the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import numpy as np
import pyarrow as pa

from indexes import EVERYWHERE, Keys, Matches, WindowIndex
from operators.engines.index_join.key_share import KeyShare
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.steps import MOST_MATCHES, Step, answer_counts
from operators.engines.shared.work_queue import TaskQueue, work_through
from operators.protocol.answers import matches_batch
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of, stream_of
from operators.protocol.streams import JoinStream, answer_streams
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext


@dataclass(frozen=True)
class IndexJoinElement(Bolt):
    """Both windows, each in one index that all `threads` insert into and probe.

    Paper: PIM-Tree, section 4.1. There every thread probes a task's tuples and then inserts them; a tuple whose insert
    has not been finished is found by a linear search from the "edge tuple", the first that is not indexed, to the end
    of the window. Here all threads insert a step's rows and then all probe: between the two there is no row that is
    not indexed, and what a probe row may meet is in its live range. Threads wait for each other twice per step, which
    has some 100,000 rows under load, and nothing is searched linearly.

    An index with `concurrent_inserts` takes rows from several threads, but as few as keep all busy: a large batch costs
    less per row than several small ones. Any other index takes a side's rows from one thread, the two sides at the same
    time; all threads probe it.
    """

    negated: tuple[bool, ...]
    ordered: bool
    setting: IndexSetting
    threads: int
    counts: bool = False
    dividing: int | None = None

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        choices = dict.fromkeys(str(self.setting.choice(side)) for side in (LEFT, RIGHT))
        return f"{self.threads} {'thread' if self.threads == 1 else 'threads'}; {' | '.join(choices)}"

    def build(self, context: TaskContext) -> Task:
        share = None
        if context.parallelism > 1:
            assert self.dividing is not None, "only an equality divides the work"
            share = KeyShare(context.task, context.parallelism, self.dividing)
        return IndexJoinTask(self, share=share)


Answer = list[tuple[int, ElementRows, Matches]]
"""The matches of a task: side, rows of that side, their matches."""


class IndexJoinTask(Task):
    """Owns the two indexes. It uses threads, as no other task does, but only while it handles one message.

    most:  the matches that may be held before they are sent; a task with more is cut in two.
    share: which keys are stored and searched for here; None: all.
    """

    def __init__(
        self, description: IndexJoinElement, most: int = MOST_MATCHES, share: KeyShare | None = None
    ) -> None:
        self._description = description
        self._share = share
        self._most = most
        self._piece = 1 << 20
        self._limits = Limits()
        self._tasks: dict[int, list[ElementRows | None]] = {}
        self._indexes: list[WindowIndex | None] = [None, None]
        self._stored = [0, 0]

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        stream = stream_of(batch.stream)
        if stream.kind is JoinStream.LIMITS:
            self._limits = Limits.from_batch(batch)
        else:
            (last,) = batch.labels
            rows = ElementRows.from_batch(batch, self._description.negated)
            rows = rows if self._share is None else self._share.own(rows)
            self._tasks.setdefault(last, [None, None])[stream.side] = rows
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        tasks = [
            Step(self._limits, (rows[LEFT], rows[RIGHT]), Punctuation(last, punctuation.born))
            for last, rows in self._tasks.items()
        ]
        self._tasks = {}
        self._insert(tasks)
        yield from self._answer_counts(tasks) if self._limits.counting else self._answer(tasks)
        if not tasks or tasks[-1].last.seq != punctuation.seq:
            yield Emit(punctuation)
        for side in (LEFT, RIGHT):
            index = self._indexes[side]
            if index is not None:
                index.expire(self._limits.live[side])

    def metrics(self) -> Mapping[str, float]:
        chosen = {f"index:{type(index).__name__}": 1.0 for index in self._indexes if index is not None}
        return {"left_stored": float(self._stored[LEFT]), "right_stored": float(self._stored[RIGHT]), **chosen}

    def check_invariants(self) -> None:
        # tasks come in the order of their ends
        assert list(self._tasks) == sorted(self._tasks)
        for index in self._indexes:
            if index is not None:
                index.check_invariants()

    def _insert(self, tasks: Sequence[Step]) -> None:
        """Store the rows of all tasks; nobody probes meanwhile."""
        parts: list[list[ElementRows]] = [[rows for task in tasks if (rows := task.rows[side])] for side in (0, 1)]
        threads_of_a_side = -(-self._description.threads // max(1, sum(map(bool, parts))))
        inserts = []
        for side in (LEFT, RIGHT):
            if parts[side]:
                index = self._indexes[side] or self._make(side, parts)
                self._indexes[side] = index
                self._stored[side] += sum(self._own(rows) for rows in parts[side])
                shares = threads_of_a_side if index.concurrent_inserts else 1
                inserts.append([(index, share) for share in _shared_out(parts[side], shares)])
        # the sides in turn, so that their merges fall together and are done by two threads
        turns = [insert for turn in zip_longest(*inserts) for insert in turn if insert is not None]
        work_through(turns, _store, self._description.threads)

    def _own(self, rows: ElementRows) -> int:
        """How many of the rows belong to this element."""
        return len(rows) if self._share is None else int(rows.keys[self._share.dimension].mask().sum())

    def _make(self, side: int, parts: list[list[ElementRows]]) -> WindowIndex:
        probes = parts[1 - side]
        return self._description.setting.make(side, parts[side][0].keys, probes[0].intervals if probes else None)

    def _answer(self, tasks: Sequence[Step]) -> Iterator[Emit]:
        """Probe with the rows of all tasks; send what is completed from the head of the queue."""
        queue: TaskQueue[Step, Answer | None] = TaskQueue(self._cut(tasks))
        while len(queue):
            queue.work(self._probe, self._description.threads, _found, self._most)
            for task, answer in queue.completed(_found):
                size = _size(task)
                if answer is None:
                    middle = task.middle
                    assert middle is not None, "a single row is answered whole"
                    self._piece = max(1, size // 2)
                    queue.put_first(task.split(middle))
                    break
                if 4 * _found(answer) < self._most and 2 * size > self._piece:
                    self._piece *= 2
                for side, rows, matches in answer:
                    yield Emit(matches_batch(side, rows.first, matches))
                yield Emit(task.last)

    def _answer_counts(self, tasks: Sequence[Step]) -> Iterator[Emit]:
        """As `_answer`, but with counts, of which there are never too many."""
        answers = work_through(tasks, lambda task: list(answer_counts(task, self._count)), self._description.threads)
        for answer in answers:
            yield from answer

    def _count(self, side: int, rows: ElementRows) -> Int64:
        index = self._indexes[1 - side]
        return np.zeros(len(rows), np.int64) if index is None else index.count(rows.intervals, rows.live)

    def _cut(self, tasks: Sequence[Step]) -> Iterator[Step]:
        """Cut the tasks that would have too many matches if they have as many as those before."""
        todo = list(reversed(tasks))
        while todo:
            task = todo.pop()
            middle = task.middle
            if _size(task) > self._piece and middle is not None:
                todo += reversed(task.split(middle))
            else:
                yield task

    def _probe(self, task: Step) -> Answer | None:
        """The matches of a task's rows, None if they are too many; a single row's never are."""
        left = EVERYWHERE if task.middle is None else self._most
        answer: Answer = []
        for side in (LEFT, RIGHT):
            rows = task.rows[side]
            if rows is not None and len(rows):
                index = self._indexes[1 - side]
                matches: Matches | None = Matches.empty(len(rows))
                if index is not None:
                    matches = index.probe_within(left, rows.intervals, rows.live, ordered=self._description.ordered)
                if matches is None:
                    return None
                left -= len(matches.positions)
                answer.append((side, rows, matches))
        return answer


def _found(answer: Answer | None) -> int:
    return 0 if answer is None else sum(len(matches.positions) for _, _, matches in answer)


def _size(task: Step) -> int:
    return max((len(rows) for rows in task.rows if rows is not None), default=0)


def _shared_out(parts: Sequence[ElementRows], shares: int) -> list[Sequence[ElementRows]]:
    """Consecutive parts together, so that so many shares come out of it, or all that there are."""
    ends = [len(parts) * share // shares for share in range(shares + 1)]
    return [parts[begin:end] for begin, end in pairwise(ends) if begin < end]


def _store(insert: tuple[WindowIndex, Sequence[ElementRows]]) -> None:
    """Insert consecutive rows into an index."""
    index, parts = insert
    keys = parts[0].keys if len(parts) == 1 else _joined(parts)
    if index.concurrent_inserts:
        index.insert_at(parts[0].first, keys)
    else:
        index.insert(keys)


def _joined(parts: Sequence[ElementRows]) -> tuple[Keys, ...]:
    """The keys of consecutive parts as one batch's, which is cheaper to insert."""
    columns = []
    for column in zip(*(rows.keys for rows in parts), strict=True):
        nulls = any(keys.valid is not None for keys in column)
        valid = np.concatenate([keys.mask() for keys in column]) if nulls else None
        columns.append(Keys(np.concatenate([keys.values for keys in column]), valid))
    return tuple(columns)
