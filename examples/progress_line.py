"""One line on the terminal that shows how far a join has come."""

from __future__ import annotations

import sys
import time

from examples.result_reader import ResultReader
from operators import RunningJoin


class ProgressLine:
    """Overwrites itself on a terminal; elsewhere prints a new line every two seconds."""

    def __init__(self, running: RunningJoin, reader: ResultReader, total: int, window: int) -> None:
        self._running = running
        self._reader = reader
        self._total = total
        self._window = window
        self._terminal = sys.stderr.isatty()
        self._shown = time.monotonic()
        self._before = 0.0

    def show(self, force: bool = False) -> None:
        """Print, at most five times a second."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._terminal else 2.0) and not force:
            return
        metrics = self._running.metrics()
        done = metrics.total("answered", "collector")
        rate = (done - self._before) / max(now - self._shown, 1e-9)
        fill = metrics.total("left_live", "router") / self._window
        line = (
            f"  {done / self._total:4.0%}  {rate:>9,.0f} tuples/s  {self._reader.results:>11,} matches  "
            f"window {fill:4.0%} full"
        )
        print(f"\r\x1b[K{line}" if self._terminal else line, end="" if self._terminal else "\n", file=sys.stderr)
        sys.stderr.flush()
        self._shown, self._before = now, done

    def close(self) -> None:
        """Show the final state and leave the line."""
        self.show(force=True)
        if self._terminal:
            print(file=sys.stderr)
