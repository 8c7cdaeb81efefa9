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
import time
from collections.abc import Callable, Iterator
from functools import partial

from topology.graph.components import Emit, Task
from topology.graph.errors import StoppedError
from topology.tasks.inbox import Inbox
from topology.tasks.metrics import TaskCounters
from topology.tasks.task_loop import TaskCore

TURN_SECONDS = 0.005
"""After this time a turn ends, so that no task keeps a thread from the others."""

BRIEF_SECONDS = 0.0005
"""A turn goes on for this long even when a task downstream is ready: many small messages are passed on together. A task
whose last turn was shorter is expected to end the next one as soon."""

LIGHT_BYTES = 64 * 1024
"""A task with fewer bytes waiting is done sooner than another thread would have taken the interpreter lock."""


GUARD_SECONDS = 0.02
"""How often an idle thread looks for work that nobody woke it for, while another thread is at work."""


class DrivenTask:
    """A task that takes turns with others; one thread at a time calls `advance`."""

    def __init__(
        self,
        name: str,
        depth: float,
        core: TaskCore,
        inbox: Inbox,
        send: Callable[[Emit], None],
        room: Callable[[], bool],
        pause: Callable[[], None],
        counters: TaskCounters,
    ) -> None:
        self.name = name
        self.depth = depth
        self.scheduled = False
        self.again = False
        self.stalled = False
        self.is_brief = False
        self._core = core
        self._inbox = inbox
        self._send = send
        self._room = room
        self.pause = pause
        self._counters = counters
        self._answer: Iterator[Emit] | None = None
        self._idled = False
        self._started = False
        self._tick: float | None = None

    def tick(self, seconds: float) -> None:
        """Have the task called with the time before its next message; a tick that waits is replaced by a later one."""
        self._tick = seconds

    def watch(self, seen: Callable[[Emit], None]) -> None:
        """Have every action shown to somebody before it is sent."""
        send = self._send

        def seen_and_sent(emit: Emit) -> None:
            seen(emit)
            send(emit)

        self._send = seen_and_sent

    def exchange(self, task: Task) -> None:
        """Go on with another task of the same component, which has the state of this one; between two messages."""
        assert self._answer is None, "the task is in the middle of an answer"
        self._core.exchange(task)

    @property
    def core(self) -> TaskCore:
        """What calls the task."""
        return self._core

    @property
    def is_between_messages(self) -> bool:
        """Whether nothing is left of an answer."""
        return self._answer is None

    @property
    def has_work(self) -> bool:
        """Whether a message waits for it, or it is in the middle of an answer."""
        return self._answer is not None or not self._inbox.is_empty

    @property
    def is_light(self) -> bool:
        """Whether little waits for it."""
        return self._inbox.nbytes < LIGHT_BYTES

    def advance(self, is_deeper_ready: Callable[[], bool]) -> bool:
        """Take a turn: handle messages as long as they are brief; return whether there is more to do now."""
        began = time.perf_counter()
        more = self._take_turn(began, is_deeper_ready)
        if not more:
            self.pause()
        self.is_brief = time.perf_counter() - began < BRIEF_SECONDS
        return more

    def step(self) -> bool:
        """Handle one message, or what is left of one; return whether there may be more to do now."""
        if self._answer is None:
            if self._core.finished or not self._has_room():
                return False
            # Every task is idle once before its first message, whatever waits for it already.
            if self._started and self._tick is not None:
                tick, self._tick = self._tick, None
                self._answer, self._idled = self._core.tick(tick), False
            elif self._started and (found := self._inbox.poll(self._core.blocked)) is not None:
                self._answer, self._idled = self._core.handle(*found), False
            elif self._idled:
                return False
            else:
                self._answer, self._idled, self._started = self._core.idle(), True, True
        for emit in self._answer:
            self._send(emit)
            if not self._has_room():
                return False
        self._answer = None
        return True

    def _take_turn(self, began: float, is_deeper_ready: Callable[[], bool]) -> bool:
        while self.step():
            spent = time.perf_counter() - began
            if spent > TURN_SECONDS or (spent > BRIEF_SECONDS and is_deeper_ready()):
                return True
        return False

    def _has_room(self) -> bool:
        """Whether there is room downstream; if not, the task is `stalled` until it is told of room."""
        if not self._room():
            self.stalled = True
            if not self._room():  # it may have appeared before the flag was up
                self._counters.blocked_since = self._counters.blocked_since or time.perf_counter()
                return False
        if self._counters.blocked_since:
            self._counters.blocked_seconds += time.perf_counter() - self._counters.blocked_since
            self._counters.blocked_since = 0.0
        return True


class TaskThreads:
    """The threads, and the tasks that wait for a thread."""

    def __init__(self, count: int, on_error: Callable[[DrivenTask, BaseException], None]) -> None:
        self._on_error = on_error
        self._ready: list[tuple[float, int, DrivenTask]] = []
        self._number = itertools.count()
        self._lock = threading.Lock()
        self._wanted = threading.Condition(self._lock)
        self._stopped = False
        self._at_work: dict[int, DrivenTask] = {}  # by the thread that works on it
        self._guards = 0
        self._asleep = 0
        self._threads = [
            threading.Thread(target=self._work, name=f"interlace-{number}", daemon=True) for number in range(count)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def notify(self, task: DrivenTask) -> None:
        """Schedule a task: a message has arrived for it, or there is room again for its output.

        A thread of ours in a brief turn that schedules a light task takes it itself, when its turn ends: waking another
        thread would cost more than the task, and the two would compete for the interpreter lock. Should the turn be
        long for once, a guard takes the task.
        """
        with self._lock:
            if task.scheduled:
                task.again = True
            else:
                task.scheduled = True
                self._put(task)
                by = self._at_work.get(threading.get_ident())
                if by is None or not by.is_brief or not task.is_light:
                    self._wanted.notify()

    def notify_of_room(self, task: DrivenTask) -> None:
        """As `notify`, if the task waits for room."""
        if task.stalled:
            task.stalled = False
            self.notify(task)

    def stop(self, seconds: float) -> list[str]:
        """Let each thread finish its turn and wait for it; return the names of the tasks that did not end in time."""
        with self._lock:
            self._stopped = True
            self._wanted.notify_all()
        others = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in others:
            thread.join(seconds)
        busy = {thread.ident or 0 for thread in others if thread.is_alive()}
        return [task.name for thread, task in self._at_work.items() if thread in busy]

    @property
    def ready(self) -> list[str]:
        """The names of the tasks that wait for a thread."""
        return [task.name for _, _, task in self._ready]

    def step(self, number: int) -> None:
        """Instead of threads: let one of the ready tasks, by its place among them, handle one message.

        A simulation chooses. What is scheduled is what threads would find, so a task
        that nobody wakes stands still here, too.
        """
        self._ready[number], self._ready[-1] = self._ready[-1], self._ready[number]
        _, _, task = self._ready.pop()
        task.again = False
        more = task.step()
        if not more:
            task.pause()
        with self._lock:
            if more or task.again:
                self._put(task)
            else:
                task.scheduled = False

    def at_work_for(self, thread: int) -> DrivenTask | None:
        """The task that a thread drives now."""
        return self._at_work.get(thread)

    def _is_deeper_ready(self, place: float) -> bool:
        """Whether a task further downstream than this place waits for a thread; a glance, without the lock."""
        try:
            return self._ready[0][0] < place
        except IndexError:  # there is none, or another thread has just taken it
            return False

    def _put(self, task: DrivenTask) -> None:
        heapq.heappush(self._ready, (-task.depth, next(self._number), task))

    def _work(self) -> None:
        this = threading.get_ident()
        while True:
            with self._lock:
                task = self._next()
                if task is None:
                    return
                task.again = False
                self._at_work[this] = task
            more = False
            try:
                more = task.advance(partial(self._is_deeper_ready, -task.depth))
            except StoppedError:
                pass
            except BaseException as error:
                self._on_error(task, error)
            with self._lock:
                del self._at_work[this]
                if more or task.again:
                    self._put(task)
                else:
                    task.scheduled = False

    def _next(self) -> DrivenTask | None:
        """Wait for the most urgent task; None when stopped. While a thread is at work, another one is on guard."""
        while not self._stopped:
            if self._ready:
                if self._asleep and not self._guards:
                    self._wanted.notify()
                return heapq.heappop(self._ready)[2]
            if self._at_work:
                self._guards += 1
                self._wanted.wait(GUARD_SECONDS)
                self._guards -= 1
            else:
                self._asleep += 1
                self._wanted.wait()
                self._asleep -= 1
        return None
