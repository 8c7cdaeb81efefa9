"""The main job: which racks of data centre R draw less power but more cooling than racks of S?

Query Q1 of SPO-Join on generated readings, over the last million readings of each centre, in this process.

    python -m examples.datacentre               some ten seconds on two cores
    python -m examples.datacentre --ray         the same on Ray
    python -m examples.datacentre --noise 5     some 280 matches per reading instead of 3
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from operators import CountWindow, RunningJoin, StreamJoin
from topology import LocalRuntime, Runtime

Q1 = "SELECT R.id, S.id FROM R, S WHERE R.power < S.power AND R.cool > S.cool"
BATCH_ROWS = 10_000


def readings(first: int, rows: int, noise: float, seed: int) -> pa.RecordBatch:
    """Readings of one centre: cooling follows power, up to some noise."""
    rng = np.random.default_rng((seed, first))
    power = rng.uniform(0, 10_000, rows)
    return pa.record_batch(
        {
            "id": np.arange(first, first + rows),
            "power": power,
            "cool": power + rng.normal(0, noise, rows),
        }
    )


def feed(running: RunningJoin, rows: int, noise: float) -> None:
    """Send the readings of both centres, batch by batch; waits whenever the join is not ready for more."""
    for first in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - first)
        running.send("R", readings(first, count, noise, seed=1))
        running.send("S", readings(first, count, noise, seed=2))
    running.finish()


class ProgressLine:
    """One line on the terminal that tells how far the job is; a line every few seconds where there is no terminal."""

    def __init__(self, running: RunningJoin, total: int, window: int) -> None:
        self._running = running
        self._total = total
        self._window = window
        self._terminal = sys.stderr.isatty()
        self._started = self._shown = time.monotonic()
        self._before = 0.0
        self.results = 0

    def show(self, force: bool = False) -> None:
        """Print, at most five times a second."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._terminal else 5.0) and not force:
            return
        metrics = self._running.metrics()
        done = metrics.total("answered", "collector")
        rate = (done - self._before) / max(now - self._shown, 1e-9)
        fill = metrics.total("left_live", "router") / self._window
        p50, p99 = metrics.latency(50, 99)
        line = (
            f"{done / self._total:4.0%}  {rate:>9,.0f} tuples/s  {self.results:>11,} matches  "
            f"latency p50 {1000 * p50:,.0f} ms  p99 {1000 * p99:,.0f} ms  window {fill:4.0%} full"
        )
        print(f"\r\x1b[K{line}" if self._terminal else line, end="" if self._terminal else "\n", file=sys.stderr)
        sys.stderr.flush()
        self._shown, self._before = now, done

    def close(self) -> None:
        """Leave the line standing."""
        if self._terminal:
            print(file=sys.stderr)


def in_background(action: Callable[[], None]) -> threading.Thread:
    """Start a thread that ends with the program."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def main() -> None:
    parser = argparse.ArgumentParser(description="Inequality join of two generated streams over sliding windows.")
    parser.add_argument("--rows", type=int, default=4_000_000, help="readings of each centre (default 4,000,000)")
    parser.add_argument("--window", type=int, default=1_000_000, help="readings in each window (default 1,000,000)")
    parser.add_argument("--slide", type=int, default=100_000, help="readings that expire together (default 100,000)")
    parser.add_argument("--noise", type=float, default=0.05, help="how loosely cooling follows power (default 0.05)")
    parser.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    options = parser.parse_args()

    runtime: Runtime = LocalRuntime()
    if options.ray:
        from topology import RayRuntime

        runtime = RayRuntime()
    join = StreamJoin.from_sql(Q1, window=CountWindow(options.window, options.slide))
    print(f"{Q1}\nover the last {options.window:,} readings of each stream, {options.slide:,} expiring at a time\n")

    started = time.monotonic()
    with join.launch(runtime, sources={"R": ["R"], "S": ["S"]}) as running:
        progress = ProgressLine(running, 2 * options.rows, options.window)
        feeding = in_background(lambda: feed(running, options.rows, options.noise))
        first: pa.RecordBatch | None = None
        for batch in running.results():
            first = first or batch
            progress.results += batch.num_rows
            progress.show()
        feeding.join()
        progress.show(force=True)
        progress.close()
        seconds = time.monotonic() - started
        metrics = running.metrics()

    print(
        f"\n{2 * options.rows:,} readings joined in {seconds:.1f} s: {2 * options.rows / seconds:,.0f} tuples/s, "
        f"{progress.results:,} matches ({progress.results / (2 * options.rows):.1f} per reading)"
    )
    busiest = max(metrics.tasks, key=lambda task: task.busy_seconds)
    print(f"busiest element: {busiest.component}[{busiest.task}], {busiest.busy_seconds:.1f} s of work")
    if first is not None:
        print(f"the first pairs: {first.slice(0, 3).to_pylist()}")
    print(
        "\nNext: python -m examples.datacentre --noise 5    about a hundred times the matches"
        "\n      python -m examples.datacentre --ray        the same join as Ray actors"
        "\n      python -m examples.spark_join              fed from Spark DataFrames"
        "\n      python -m benchmarks spo-q1 --quick        beside DuckDB and Polars"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)
