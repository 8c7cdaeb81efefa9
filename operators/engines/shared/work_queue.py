"""The work queue: rows of both sides in the order of their arrival, cut into tasks for threads (PIM-Tree, section 4.1).

`WorkQueue` is the element that cuts. In: steps from the router. Out: the same limits, rows and punctuation, the rows in
batches of one task each; a batch's label is the sequence number with which its task ends.

`TaskQueue` is the queue that threads of one process share: each takes the next task when it is free, and results leave
from the head only.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from operators.engines.shared.steps import Step, StepTask
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import PROBES, STEP
from topology import Batch, Bolt, Emit, Origin, Task, TaskContext

T = TypeVar("T")
R = TypeVar("R")

@dataclass(frozen=True)
class WorkQueue(Bolt):
    """Cuts steps into tasks of `task_rows` rows, whichever side they belong to.

    Paper: PIM-Tree, section 4.1, figure 5. There a task is a few tuples; here it is some thousands, because a thread
    spends some tens of microseconds in Python for each. The window boundaries, which the paper saves when a task is
    assigned, come with the rows: they are their live ranges.
    """

    negated: tuple[bool, ...]
    task_rows: int

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(STEP)

    @property
    def note(self) -> str:
        return f"tasks of {self.task_rows} rows"

    def build(self, context: TaskContext) -> Task:
        return WorkQueueTask(self)


class WorkQueueTask(StepTask):
    """Keeps nothing from one step to the next but counts."""

    def __init__(self, description: WorkQueue) -> None:
        super().__init__(description.negated)
        self._task_rows = description.task_rows
        self._packed: dict[str, pa.RecordBatch] = {}
        self._tasks = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self._packed[batch.stream] = batch.rows
        return super().on_batch(batch, origin)

    def on_step(self, step: Step) -> Iterable[Emit]:
        yield Emit(step.limits.to_batch())
        taken = [0, 0]
        for last in self._ends(step):
            self._tasks += 1
            for side in (LEFT, RIGHT):
                rows, begin = step.rows[side], taken[side]
                end = 0 if rows is None else int(np.searchsorted(rows.seq, last, side="right"))
                if rows is not None and begin < end:
                    taken[side] = end
                    stream, part = PROBES[side].name, rows.between(begin, end)
                    packed = self._packed[stream].slice(begin, end - begin)
                    yield Emit(Batch(stream, packed, first=part.first, labels=(last,), memo=part))
        self._packed = {}
        yield Emit(step.last)

    def metrics(self) -> Mapping[str, float]:
        return {"tasks": float(self._tasks)}

    def _ends(self, step: Step) -> list[int]:
        """The sequence numbers that end a task: every so many, and the last."""
        seqs = [rows.seq for rows in step.rows if rows is not None and len(rows)]
        if not seqs:
            return []
        first, last = int(min(each[0] for each in seqs)), int(max(each[-1] for each in seqs))
        return [*range(first + self._task_rows - 1, last, self._task_rows), last]


class _State(Enum):
    """Of a task in the queue, as the paper calls them."""

    AVAILABLE = auto()
    ACTIVE = auto()
    COMPLETED = auto()


@dataclass
class _Entry(Generic[T, R]):
    task: T
    state: _State = _State.AVAILABLE
    result: list[R] = field(default_factory=list)


class TaskQueue(Generic[T, R]):
    """Tasks in order, worked on by several threads at once; what is completed leaves in order, too.

    The caller is one of the threads. The others live as long as a call of `work` and not longer, so none is left over
    when the owner is stopped or fails: to start one takes less than a tenth of a millisecond, and no more are started
    than there are tasks.

        tasks a b c d, two threads      a active   b active      c available   d available
        b is done first                 a active   b completed   c active      d available     nothing may leave
        then a                          a completed              c active      d active        a and b may leave
    """

    def __init__(self, tasks: Iterable[T]) -> None:
        self._entries: deque[_Entry[T, R]] = deque(_Entry(task) for task in tasks)
        self._lock = threading.Lock()  # guards what is below, and the entries' states
        self._weight = 0
        self._error: BaseException | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def work(
        self,
        work: Callable[[T], R],
        threads: int,
        weigh: Callable[[R], int] = lambda result: 0,
        most: int = 1,
    ) -> None:
        """Complete all tasks, or as many as make the results weigh `most`, and the first in any case.

        What `work` raises, in whatever thread, is raised here when all threads have ended.
        """
        available = sum(entry.state is _State.AVAILABLE for entry in self._entries)
        others = [
            threading.Thread(target=self._work, args=(work, weigh, most), name=f"interlace-task-{number}", daemon=True)
            for number in range(1, min(threads, available))
        ]
        for other in others:
            other.start()
        self._work(work, weigh, most)
        for other in others:
            other.join()
        if self._error is not None:
            raise self._error

    def completed(self, weigh: Callable[[R], int] = lambda result: 0) -> Iterator[tuple[T, R]]:
        """Remove the tasks from the head that are completed, and return each with its result."""
        while self._entries and self._entries[0].state is _State.COMPLETED:
            entry = self._entries.popleft()
            (result,) = entry.result
            self._weight -= weigh(result)
            yield entry.task, result

    def put_first(self, tasks: Iterable[T]) -> None:
        """Put tasks in front of all others."""
        self._entries.extendleft([_Entry(task) for task in tasks][::-1])

    def _work(self, work: Callable[[T], R], weigh: Callable[[R], int], most: int) -> None:
        try:
            while (entry := self._take(most)) is not None:
                result = work(entry.task)
                with self._lock:
                    entry.result.append(result)
                    entry.state = _State.COMPLETED
                    self._weight += weigh(result)
        except BaseException as error:
            with self._lock:
                self._error = self._error or error

    def _take(self, most: int) -> _Entry[T, R] | None:
        with self._lock:
            if self._error is not None:
                return None
            for number, entry in enumerate(self._entries):
                if entry.state is _State.AVAILABLE:
                    if number and self._weight >= most:
                        return None
                    entry.state = _State.ACTIVE
                    return entry
            return None


def work_through(tasks: Iterable[T], work: Callable[[T], R], threads: int) -> list[R]:
    """The result of each task, in order, by so many threads."""
    queue: TaskQueue[T, R] = TaskQueue(tasks)
    queue.work(work, threads)
    return [result for _, result in queue.completed()]
