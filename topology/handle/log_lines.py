"""What a topology tells people in words: lines of its log, each with the task that it comes from.

`CollectedLines` stands in every process that has tasks: it takes what the logger `interlace` says, and on a cluster
also what users' code logs and prints. A line that repeats is counted, not kept again. `LogLines` keeps the last lines
of a topology, numbered, for whoever asks.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from topology.graph.graph import TaskName

KEPT_LINES = 2000
"""Lines of a topology that are kept; older ones are forgotten."""

COLLECTED_LINES = 200
"""Different lines that a process keeps until they are fetched; the rest is only counted."""

MOST_LETTERS = 4000
"""A longer line is cut."""


@dataclass(frozen=True)
class LogLine:
    """One line, or several that are alike.

    number:   in the order in which a topology's lines came together.
    at:       seconds since 1970, of the first.
    level:    as in `logging`: INFO (also for what code has printed), WARNING (also for standard error), ERROR, ...
    worker:   the process; empty for an embedded topology.
    repeated: how often it came.
    topology: the name under which the topology runs.
    """

    at: float
    level: str
    text: str
    component: str = ""
    task: int | None = None
    worker: str = ""
    repeated: int = 1
    number: int = 0
    topology: str = ""

    def __str__(self) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(self.at))
        place = f"{self.component}[{self.task}]" if self.component else "-"
        often = f" ({self.repeated} times)" if self.repeated > 1 else ""
        return f"{clock} {self.level:<7} {place} {self.text}{often}"


class LogLines:
    """The last lines of one topology; any thread may add and read.

    topology: its name.
    first:    the number of the first line.
    """

    def __init__(self, topology: str = "", first: int = 0) -> None:
        self._topology = topology
        self._lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._next = first
        self._lock = threading.Lock()

    def add(self, lines: Iterable[LogLine], worker: str = "") -> None:
        """Keep lines of a process."""
        with self._lock:
            for line in lines:
                place = worker or line.worker
                self._lines.append(replace(line, number=self._next, worker=place, topology=self._topology))
                self._next += 1

    def after(self, number: int) -> tuple[LogLine, ...]:
        """The lines after this number, oldest first; -1: all that are kept."""
        with self._lock:
            return tuple(line for line in self._lines if line.number > number)


class CollectedLines(logging.Handler):
    """Collects the lines of one process until somebody fetches them.

    task_of: the task that a thread works for, by the thread's number; None: for none.
    """

    def __init__(self, task_of: Callable[[int], TaskName | None]) -> None:
        super().__init__(logging.INFO)
        self._task_of = task_of
        self._lines: dict[tuple[str, str, TaskName | None], LogLine] = {}
        self._left_out = 0
        self._own = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.note(record.levelname, self.format(record), record.thread or 0)
        except Exception:
            self.handleError(record)

    def note(self, level: str, text: str, thread: int) -> None:
        """Take a line that a thread has written."""
        task = self._task_of(thread)
        key = (level, text[:MOST_LETTERS], task)
        with self._own:
            known = self._lines.get(key)
            if known is not None:
                self._lines[key] = replace(known, repeated=known.repeated + 1)
            elif len(self._lines) >= COLLECTED_LINES:
                self._left_out += 1
            else:
                component, number = task or ("", None)
                self._lines[key] = LogLine(time.time(), level, key[1], component, number)

    def fetch(self) -> list[LogLine]:
        """Return the lines since the last call."""
        with self._own:
            found, self._lines = list(self._lines.values()), {}
            left_out, self._left_out = self._left_out, 0
        if left_out:
            found.append(LogLine(time.time(), "WARNING", f"{left_out} more lines of this process are left out"))
        return found


class TaskNames(logging.Filter):
    """Names the place of records of the logger `interlace`: `%(topology)s`, `%(component)s` and `%(task)s` in a format.

    They are empty for what no task of a topology in this process has logged.
    """

    def __init__(self, topology: str, task_of: Callable[[int], TaskName | None]) -> None:
        super().__init__()
        self._topology = topology
        self._task_of = task_of

    def filter(self, record: logging.LogRecord) -> bool:
        task = self._task_of(record.thread or 0)
        if task is not None:
            record.topology, (record.component, record.task) = self._topology, task
        elif not hasattr(record, "topology"):
            record.topology = record.component = record.task = ""
        return True


class PrintedLines(io.TextIOBase):
    """Stands in for standard output or error: passes everything on, and has each whole line collected.

    Whoever asks for its file, its encoding or whether it is a terminal is asking the real one.
    """

    def __init__(self, out: TextIO, level: str, lines: CollectedLines) -> None:
        self._out = out
        self._level = level
        self._lines = lines
        self._begun: dict[int, str] = {}

    def write(self, text: str) -> int:
        thread = threading.get_ident()
        *whole, begun = (self._begun.pop(thread, "") + text).split("\n")
        if begun:
            self._begun[thread] = begun[:MOST_LETTERS]
        for line in whole:
            if line.strip():
                self._lines.note(self._level, line, thread)
        self._out.write(text)
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def fileno(self) -> int:
        return self._out.fileno()

    def isatty(self) -> bool:
        return self._out.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._out.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._out.errors

    @property
    def newlines(self) -> Any:  # type: ignore[override]
        return self._out.newlines

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def collect_output(lines: CollectedLines) -> None:
    """Collect what code in this process logs, from INFO on, and prints from now on; only for processes of our own.

    As in a program that has not set up logging, warnings of others than Interlace also go to standard error.
    """
    root = logging.getLogger()
    if not root.handlers:
        shown = logging.StreamHandler(sys.stderr)
        shown.setLevel(logging.WARNING)
        shown.addFilter(lambda record: record.name.partition(".")[0] != "interlace")
        root.addHandler(shown)
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
    lines.addFilter(lambda record: record.name.partition(".")[0] != "ray")
    root.addHandler(lines)
    sys.stdout = PrintedLines(sys.stdout, "INFO", lines)
    sys.stderr = PrintedLines(sys.stderr, "WARNING", lines)
