"""The clock of the tasks that ask for ticks: tasks have none of their own."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Mapping

from topology.graph.graph import TaskName


class Ticker:
    """A thread that tells each task the time at its interval, first at once.

    A task that is busy is told when it has a turn; it gets the latest time once, and not all that it has missed.
    """

    def __init__(self, intervals: Mapping[TaskName, float], tick: Callable[[TaskName, float], None]) -> None:
        self._intervals = dict(intervals)
        self._tick = tick
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticks", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        due = [(began, name) for name in self._intervals]
        while not self._stopped.wait(max(0.0, due[0][0] - time.monotonic())):
            at, name = due[0]
            self._tick(name, time.time())
            heapq.heapreplace(due, (max(at + self._intervals[name], time.monotonic()), name))
