"""Whether a topology that has failed starts again, and when.

Any failure may have passed when the workers start again: a process was killed, a node was lost. One that comes back at
the same place will come back for ever. So failures in a row are counted, and only progress begins the count anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topology.graph.graph import TaskName

MOST_FAILURES = 5
"""So many failures in a row, without progress of the journal, end a topology."""

MOST_TASK_ERRORS = 3
"""The same for errors of a task's code: its rows are the same when they come again."""

LONG_RUN_SECONDS = 60.0
"""A topology that has run so long has got past the place of its last failure, unless a task's code failed."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 10.0


@dataclass(frozen=True)
class Cause:
    """Why a life of the workers ended; `in_task`: the code of a task raised an error."""

    text: str
    task: TaskName | None
    in_task: bool = False


class Recovery:
    """Counts failures, and judges by the journal's progress whether they are at one place.

    count: how often the topology has been started again.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self._now = now
        self._in_a_row = 0
        self._last: Cause | None = None
        self._progress = (0, 0)
        self._began = now()

    def note(self, progress: tuple[int, int] | None) -> None:
        """Take in how much had happened when a life began: of everything, and of results that were dealt with.

        More rows may come in before each failure of a task's code, so for these only the results count.
        """
        if progress is None:
            return
        kind = int(self._last is not None and self._last.in_task)
        if progress[kind] > self._progress[kind]:
            self._in_a_row = min(self._in_a_row, 1)
        self._progress = progress
        self._began = self._now()

    def pause_after(self, cause: Cause) -> float | None:
        """Seconds to wait before the workers start again; None: they do not."""
        if not cause.in_task and self._now() - self._began > LONG_RUN_SECONDS:
            self._in_a_row = 0
        self._last = cause
        self._in_a_row += 1
        if self._in_a_row > (MOST_TASK_ERRORS if cause.in_task else MOST_FAILURES):
            return None
        self.count += 1
        if self._in_a_row == 1:
            return 0.0
        return float(min(FIRST_PAUSE_SECONDS * 2 ** (self._in_a_row - 2), LONGEST_PAUSE_SECONDS))
