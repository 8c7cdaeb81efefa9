"""Compiles kernels in a thread of its own, one after the other, while their Python form answers."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Hashable

Job = Callable[[], bool]
"""Compiles a kernel for some types; False: another process is doing it, so ask again."""

_PAUSE_SECONDS = 0.05
"""Between two looks at what another process is compiling."""


class BackgroundCompiler:
    """A queue of jobs and, while there are any, a thread.

    The program's end waits for the job under way, because machine code must not be generated while the process is taken
    down; so does a fork, because the child would never see the end of that job. The other jobs are dropped.
    """

    def __init__(self) -> None:
        self._jobs: dict[Hashable, Job] = {}
        self._failed: set[Hashable] = set()
        self._changing = threading.Lock()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        atexit.register(self.stop)
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._after_fork_in_child
        )

    @property
    def busy(self) -> bool:
        """Whether jobs are left."""
        return bool(self._jobs)

    def failed(self, key: Hashable) -> bool:
        """Whether the job of that key has raised an error."""
        return key in self._failed

    def request(self, key: Hashable, job: Job) -> None:
        """Have a job done, unless one with the same key is waiting. Cost: O(1)."""
        with self._changing:
            self._jobs.setdefault(key, job)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="kernel-compiler", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Wait until no job is left, or the thread has died."""
        while (thread := self._thread) is not None and thread.is_alive():
            thread.join()

    def stop(self) -> None:
        """Drop all jobs but the one under way, and wait for that."""
        with self._changing:
            self._jobs.clear()
        self.wait()

    def _run(self) -> None:
        while (entry := self._next()) is not None:
            key, job = entry
            done = True
            with self._working:
                try:
                    done = job()
                except Exception:  # whoever calls the kernel next compiles it, and gets the error
                    self._failed.add(key)
            with self._changing:
                if self._jobs.pop(key, None) is not None and not done:
                    self._jobs[key] = job  # behind the others
            if not done:
                time.sleep(_PAUSE_SECONDS)

    def _next(self) -> tuple[Hashable, Job] | None:
        with self._changing:
            entry = next(iter(self._jobs.items()), None)
            if entry is None:
                self._thread = None
            return entry

    def _before_fork(self) -> None:
        self._working.acquire()
        self._changing.acquire()

    def _after_fork(self) -> None:
        self._changing.release()
        self._working.release()

    def _after_fork_in_child(self) -> None:
        self._jobs, self._thread = {}, None  # the thread is gone
        self._after_fork()


COMPILER = BackgroundCompiler()
