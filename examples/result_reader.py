"""Reads the results of a join in a thread of its own and measures how long each took."""

from __future__ import annotations

import threading
import time

import numpy as np
import pyarrow as pa

from operators import RunningJoin


class ResultReader:
    """Counts results; those whose later reading was sent after `sent` was first called count towards the latency.

    A pair's latency runs from the moment its later reading was due to be sent until the pair has been read. The ids
    of both streams grow in step, so the greater id of a pair tells when its later reading was due.
    """

    def __init__(self, running: RunningJoin) -> None:
        self._running = running
        self._firsts: list[int] = []
        self._due: list[float] = []
        self._latencies: list[float] = []
        self._pairs: list[int] = []
        self._error: BaseException | None = None
        self.results = 0
        self.first: pa.RecordBatch | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def sent(self, first: int, due: float) -> None:
        """Note that the readings from id `first` on are due at the monotonic time `due`; call before sending them."""
        self._due.append(due)
        self._firsts.append(first)

    def wait(self) -> None:
        """Wait until all results have been read; raises what made reading fail."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def latency(self, *percentiles: float) -> tuple[float, ...]:
        """Seconds within which these percentages of the measured pairs were read; call after `wait`."""
        if not self._latencies:
            return tuple(float("nan") for _ in percentiles)
        order = np.argsort(self._latencies)
        cumulated = np.cumsum(np.array(self._pairs)[order])
        places = np.searchsorted(cumulated, np.array(percentiles) / 100 * cumulated[-1])
        return tuple(np.array(self._latencies)[order][places].tolist())

    def _read(self) -> None:
        try:
            for batch in self._running.results():
                now = time.monotonic()
                self.first = self.first or batch
                self.results += batch.num_rows
                if self._firsts:
                    self._measure(batch, now)
        except BaseException as error:
            self._error = error

    def _measure(self, batch: pa.RecordBatch, now: float) -> None:
        later = np.maximum(batch.column(0).to_numpy(), batch.column(1).to_numpy())
        batches = np.searchsorted(self._firsts, later, side="right") - 1  # -1: sent before measuring began
        for number, pairs in enumerate(np.bincount(batches + 1)[1:].tolist()):
            if pairs:
                self._latencies.append(now - self._due[number])
                self._pairs.append(pairs)
