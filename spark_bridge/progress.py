"""Shows how far things are: of a feed a bar in a notebook or on a terminal, otherwise one line at the end, on stderr.

In a notebook other long waits show a line, too, with the event time that has been reached and who is waiting for whom.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Self, TextIO

from topology import Handle, InterlaceError, LiveLine, in_notebook

EVERY_SECONDS = 0.2
BAR = 24


def with_waits(line: str, running: Handle) -> str:
    """Add to a line how far the event time is and who is waiting for whom, where that is known."""
    try:
        reached, waits = running.event_time_reached(), running.waiting_for()
    except InterlaceError:
        return line  # the call that waits raises what has gone wrong
    return ", ".join(part for part in (line, f"event time {reached}" if reached else "", waits) if part)


def waiting_line(line: str, running: Handle) -> LiveLine:
    """A line for the cell of a notebook, while the block inside it waits."""
    return LiveLine(lambda: with_waits(line, running))


class FeedProgress:
    """Shows how many partitions and rows have been staged.

    partitions: how many there are; None: nobody knows before the end.
    reports:    its `value` gets one row count per finished partition.
    running:    what is fed; in a notebook the line also says for whom it waits.
    """

    def __init__(
        self,
        stream: str,
        partitions: int | None,
        reports: Any,
        shown: bool,
        out: TextIO | None = None,
        running: Handle | None = None,
    ) -> None:
        self._running = running
        self._stream = stream
        self._partitions = partitions
        self._reports = reports
        self._in_cell = shown and in_notebook()
        self._shown = shown and not self._in_cell
        self._out = out or sys.stderr
        self._live = self._shown and self._out.isatty()
        self._started = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"progress of {stream}", daemon=True)
        self._cell = LiveLine(self._cell_line, self._share, after=0)

    def __enter__(self) -> Self:
        if self._in_cell:
            self._cell.__enter__()
        if self._live:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._in_cell:
            self._cell.__exit__(kind, error, trace)
        if self._live:
            self._thread.join()
            self._out.write(f"\r\x1b[K{self._line()}\n")
        elif self._shown and error is None:
            self._out.write(f"{self._line()}\n")
        if self._shown:
            self._out.flush()

    def _run(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            self._out.write(f"\r\x1b[K{self._line()}")
            self._out.flush()

    def _cell_line(self) -> str:
        return self._line() if self._running is None else with_waits(self._line(), self._running)

    def _share(self) -> float:
        return 0.0 if self._partitions is None else len(self._reports.value) / max(1, self._partitions)

    def _line(self) -> str:
        counts = list(self._reports.value)
        done, rows = len(counts), sum(counts)
        seconds = time.monotonic() - self._started
        if self._partitions is None:
            if not self._over.is_set():
                return f"feeding {self._stream}: {seconds:,.0f} s"
            return f"feeding {self._stream}: {done:,} partitions, {_rate(rows, seconds)}"
        filled = int(BAR * self._share())
        bar = f"[{'#' * filled}{'.' * (BAR - filled)}] " if self._live else ""
        return f"feeding {self._stream}: {bar}{done:,}/{self._partitions:,} partitions, {_rate(rows, seconds)}"


def _rate(rows: int, seconds: float) -> str:
    return f"{rows:,} rows, {rows / max(seconds, 1e-3):,.0f} rows/s"
