"""Query Q1 at a set rate: latency at a rate that is held, and the greatest rate that is held in small batches.

The latency of a batch runs from the moment it is due to the moment its last result is read. Both streams have a batch
due at the same moments. The last reading of S passes the gate only when the next batch of R has come, so the latency of
half of the batches includes the time between two of them: 20 ms at 100,000 rows/s in batches of 1,000.

A rate is held if, at the end of a few seconds, results are read as soon as at the beginning: over the last quarter of
the batches the median latency, less the time between two batches, is below 100 ms. A system that is 4 % too slow is
behind by more than that after 3 seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.q1_run import Reader, Readings, send_all, send_at_rate
from operators import RunningJoin

BEHIND_SECONDS = 0.1


@dataclass(frozen=True)
class Paced:
    """Latencies at the steady rate in seconds, the rate held in small batches, and the results of the comparable part.

    compared: the readings of each side whose results are in `results`, the same in every run.
    """

    p50: float
    p99: float
    held: float
    results: pa.Table
    compared: int


@dataclass(frozen=True)
class Plan:
    """What a paced run does: the window it fills, the steady rate, and the search for the greatest rate."""

    window: int
    rate: int
    batch: int
    seconds: float
    small: int
    lowest: int
    trial_seconds: float
    bisections: int


class PacedRun:
    """Feeds one running join, phase after phase."""

    def __init__(self, running: RunningJoin, data: Readings, plan: Plan) -> None:
        self._running = running
        self._data = data
        self._plan = plan
        self._reader = Reader(running)
        self._sent = 0

    def measure(self) -> Paced:
        plan = self._plan
        send_all(self._running, self._data, 0, plan.window, plan.batch)
        self._sent = plan.window
        self._reader.wait_for(2 * plan.window - 1)
        kept = self._reader.take().batches
        latencies = self._at_rate(plan.rate, plan.batch, plan.seconds, kept)
        settled = latencies[:, latencies.shape[1] // 8 :]
        p50, p99 = np.percentile(settled[~np.isnan(settled)], (50, 99))
        compared = self._sent
        results = pa.Table.from_batches(kept, self._running.result_schema())
        return Paced(float(p50), float(p99), self._greatest_held(), results, compared)

    def _greatest_held(self) -> float:
        """Double the rate until it is not held, then bisect."""
        held, rate = 0.0, float(self._plan.lowest)
        while self._holds(rate):
            held, rate = rate, 2 * rate
        if not held:
            while rate > 1_000 and not self._holds(rate / 2):
                rate /= 2
            held = rate / 2
        missed = rate
        for _ in range(self._plan.bisections):
            middle = (held + missed) / 2
            if self._holds(middle):
                held = middle
            else:
                missed = middle
        return held

    def _holds(self, rate: float) -> bool:
        latencies = self._at_rate(rate, self._plan.small, self._plan.trial_seconds)
        last = latencies[:, -latencies.shape[1] // 4 :]
        interval = 2 * self._plan.small / rate
        behind = float(np.median(last[~np.isnan(last)])) - interval
        print(f"    {rate:>10,.0f} rows/s in batches of {self._plan.small}: {1000 * behind:,.0f} ms", flush=True)
        return behind < BEHIND_SECONDS

    def _at_rate(
        self, rate: float, batch: int, seconds: float, kept: list[pa.RecordBatch] | None = None
    ) -> npt.NDArray[np.float64]:
        """The latencies of the batches of R and of S; NaN for batches without a result. Waits for all results."""
        batches = max(8, int(seconds * rate / (2 * batch)))
        first, self._sent = self._sent, self._sent + batches * batch
        began = send_at_rate(self._running, self._data, first, self._sent, batch, rate)
        self._reader.wait_for(2 * self._sent - 1)
        read = self._reader.take()
        if kept is not None:
            kept += read.batches
        at = read.last_read(first, self._sent, batch)
        latencies: npt.NDArray[np.float64] = np.where(
            at > 0, at - began - np.arange(batches) * 2 * batch / rate, np.nan
        )
        return latencies[:, :-1]  # the last batch of S waits for a batch of R that is not sent

    def finish(self) -> None:
        self._running.finish()
        self._reader.join()
