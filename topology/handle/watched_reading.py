"""A reading in a notebook: while it waits for rows, a line in the cell says for what."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from topology.handle.live_line import SHOWN_AFTER_SECONDS, LiveLine
from topology.handle.results import Reading


class WatchedReading(Reading):
    """A reading that shows what `tell` returns once a wait has become long."""

    def __init__(self, reading: Reading, tell: Callable[[], str]) -> None:
        self._reading = reading
        self._line = LiveLine(tell, after=0)

    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        began = time.monotonic()
        short = SHOWN_AFTER_SECONDS if timeout is None else min(timeout, SHOWN_AFTER_SECONDS)
        found = self._reading.next(short)
        if found is None and not self._reading.finished and timeout != short:
            left = None if timeout is None else max(0.0, began + timeout - time.monotonic())
            with self._line:
                found = self._reading.next(left)
        self.finished = self._reading.finished
        return found

    def acknowledge(self, number: int) -> None:
        self._reading.acknowledge(number)

    def close(self) -> None:
        self._reading.close()
