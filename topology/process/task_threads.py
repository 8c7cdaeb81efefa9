"""A few threads that drive all tasks of a group.

A thread per task would be simpler, but all ready Python threads compete for one interpreter lock: with ten tasks and
two cores, half of the processor time went into passing it around. Here about as many threads as cores take turns over
the tasks that have something to do. Tasks furthest downstream come first: rows under way are finished before new ones
enter, and the backlog stays at the entry, where it makes larger batches.

A task never waits. When there is no room downstream, its unfinished answer is kept, and it continues when there is
room. So a few threads cannot block each other, however the queues fill.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterator

from topology.graph.components import Emit
from topology.graph.errors import StoppedError
from topology.tasks.inbox import Inbox
from topology.tasks.task_loop import TaskCore

MESSAGES_PER_TURN = 8


class DrivenTask:
    """A task that takes turns with others; one thread at a time calls `advance`."""

    def __init__(
        self,
        name: str,
        depth: int,
        core: TaskCore,
        inbox: Inbox,
        send: Callable[[Emit], None],
        room: Callable[[], bool],
        pause: Callable[[], None],
    ) -> None:
        self.name = name
        self.depth = depth
        self.scheduled = False
        self.again = False
        self._core = core
        self._inbox = inbox
        self._send = send
        self._room = room
        self._pause = pause
        self._answer: Iterator[Emit] | None = None
        self._idled = False

    def advance(self) -> bool:
        """Handle a few messages; return whether there is more to do now."""
        more = self._take_turn()
        if not more:
            self._pause()
        return more

    def _take_turn(self) -> bool:
        for _ in range(MESSAGES_PER_TURN):
            if self._answer is None:
                if self._core.finished or not self._room():
                    return False
                found = self._inbox.poll(self._core.blocked)
                if found is not None:
                    self._answer, self._idled = self._core.handle(*found), False
                elif self._idled:
                    return False
                else:
                    self._answer, self._idled = self._core.idle(), True
            for emit in self._answer:
                self._send(emit)
                if not self._room():
                    return False
            self._answer = None
        return True


class TaskThreads:
    """The threads, and the tasks that wait for a thread."""

    def __init__(self, count: int, on_error: Callable[[DrivenTask, BaseException], None]) -> None:
        self._on_error = on_error
        self._ready: list[tuple[int, int, DrivenTask]] = []
        self._number = itertools.count()
        self._lock = threading.Lock()
        self._wanted = threading.Condition(self._lock)
        self._stopped = False
        self._at_work: dict[threading.Thread, DrivenTask] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"interlace-{number}", daemon=True) for number in range(count)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def notify(self, task: DrivenTask) -> None:
        """Schedule a task: a message has arrived for it, or there is room again for its output."""
        with self._lock:
            if task.scheduled:
                task.again = True
            else:
                task.scheduled = True
                self._put(task)
                self._wanted.notify()

    def stop(self, seconds: float) -> list[str]:
        """Let each thread finish its turn and wait for it; return the names of the tasks that did not end in time."""
        with self._lock:
            self._stopped = True
            self._wanted.notify_all()
        others = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in others:
            thread.join(seconds)
        return [self._at_work[thread].name for thread in others if thread.is_alive() and thread in self._at_work]

    def _put(self, task: DrivenTask) -> None:
        heapq.heappush(self._ready, (-task.depth, next(self._number), task))

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._ready and not self._stopped:
                    self._wanted.wait()
                if self._stopped:
                    return
                task = heapq.heappop(self._ready)[2]
                task.again = False
                self._at_work[threading.current_thread()] = task
            more = False
            try:
                more = task.advance()
            except StoppedError:
                pass
            except BaseException as error:
                self._on_error(task, error)
            with self._lock:
                if more or task.again:
                    self._put(task)
                else:
                    task.scheduled = False
