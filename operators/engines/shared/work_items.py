"""A queue of work items that the threads of one process share (PIM-Tree, section 4.1)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class _State(Enum):
    """Of a work item, by the paper's names."""

    AVAILABLE = auto()
    ACTIVE = auto()
    COMPLETED = auto()


@dataclass
class _Entry(Generic[T, R]):
    item: T
    state: _State = _State.AVAILABLE
    result: list[R] = field(default_factory=list)


class WorkItems(Generic[T, R]):
    """Work items in order. A thread takes the next one when it is free; results leave in order, from the head only.

    The caller is one of the threads. The others live only during a call of `work`, so none is left over when the owner
    is stopped or fails. Starting one takes less than a tenth of a millisecond, and no more are started than there are
    items.

        items a b c d, two threads      a active   b active      c available   d available
        b is done first                 a active   b completed   c active      d available     nothing may leave
        then a                          a completed              c active      d active        a and b may leave
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._entries: deque[_Entry[T, R]] = deque(_Entry(item) for item in items)
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
        """Complete all items, or as many as make the results weigh `most`, and the first in any case.

        An error that `work` raises, in whatever thread, is raised here when all threads have ended.
        """
        available = sum(entry.state is _State.AVAILABLE for entry in self._entries)
        others = [
            threading.Thread(target=self._work, args=(work, weigh, most), name=f"interlace-work-{number}", daemon=True)
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
        """Remove the completed items at the head, and return each with its result."""
        while self._entries and self._entries[0].state is _State.COMPLETED:
            entry = self._entries.popleft()
            (result,) = entry.result
            self._weight -= weigh(result)
            yield entry.item, result

    def put_first(self, items: Iterable[T]) -> None:
        """Put items in front of all others."""
        self._entries.extendleft([_Entry(item) for item in items][::-1])

    def replace(self, parts_of: Callable[[T], Iterable[T]]) -> None:
        """Replace each item that is not completed by its parts, in order. No call of `work` may be under way."""
        entries: deque[_Entry[T, R]] = deque()
        for entry in self._entries:
            if entry.state is _State.AVAILABLE:
                entries.extend(_Entry(part) for part in parts_of(entry.item))
            else:
                entries.append(entry)
        self._entries = entries

    def _work(self, work: Callable[[T], R], weigh: Callable[[R], int], most: int) -> None:
        try:
            while (entry := self._take(most)) is not None:
                result = work(entry.item)
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


def work_through(items: Iterable[T], work: Callable[[T], R], threads: int) -> list[R]:
    """The result of each item, in order, by so many threads."""
    queue: WorkItems[T, R] = WorkItems(items)
    queue.work(work, threads)
    return [result for _, result in queue.completed()]
