"""The main job: which racks of data centre R draw less power but more cooling than racks of S?

Query Q1 of SPO-Join on generated readings, over the last million readings of each centre, in this process. Measures
throughput at full speed, then latency at half that rate.

    python -m examples.datacentre               about twenty seconds on two cores
    python -m examples.datacentre --ray         the same on Ray
    python -m examples.datacentre --noise 5     some 280 matches per reading instead of 3
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np
import pyarrow as pa

from examples.kernel_compilation import show_compilation
from examples.progress_line import ProgressLine
from examples.result_reader import ResultReader
from operators import CountWindow, RunningJoin, StreamJoin
from topology import LocalRuntime, Runtime

Q1 = "SELECT R.id, S.id FROM R, S WHERE R.power < S.power AND R.cool > S.cool"
STREAMS = ("R", "S")
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


def send(running: RunningJoin, first: int, rows: int, noise: float) -> None:
    """Send the next readings of both centres; waits while the join is not ready for more."""
    for seed, stream in enumerate(STREAMS, start=1):
        running.send(stream, readings(first, rows, noise, seed))


def compile_kernels(join: StreamJoin, slide: int, noise: float) -> None:
    """Run the join on five slides: enough to use every kernel, so that nothing is compiled while measuring.

    Without the setting, Python would run the kernels of the first rows while they are compiled in the background. The
    first run compiles, later runs load the machine code from disk.
    """
    os.environ["INTERLACE_KERNELS"] = "compiled"
    with show_compilation(), join.launch(LocalRuntime(), sources={name: [name] for name in STREAMS}) as running:
        for first in range(0, 5 * slide, BATCH_ROWS):
            send(running, first, min(BATCH_ROWS, 5 * slide - first), noise)
        running.finish()
        for _ in running.results():
            pass


def all_read(running: RunningJoin, reader: ResultReader, rows: int) -> bool:
    """Whether the reader has the results of so many readings, except the last one, which the gate holds."""
    metrics = running.metrics()
    emitted, answered = metrics.total("results", "collector"), metrics.total("answered", "collector")
    return answered >= rows - 1 and reader.results >= emitted


def send_at_full_speed(
    running: RunningJoin, rows: int, noise: float, reader: ResultReader, progress: ProgressLine
) -> float:
    """Send as fast as the join takes readings; return tuples per second, up to the last reading's results."""
    started = time.monotonic()
    for first in range(0, rows, BATCH_ROWS):
        send(running, first, min(BATCH_ROWS, rows - first), noise)
        progress.show()
    while not all_read(running, reader, len(STREAMS) * rows):
        time.sleep(0.01)
        progress.show()
    progress.close()
    return len(STREAMS) * rows / (time.monotonic() - started)


def send_at_rate(
    running: RunningJoin, first: int, rate: float, seconds: float, noise: float, reader: ResultReader
) -> None:
    """Send a batch of each centre whenever one is due.

    A row that is sent late, because the join was not ready, counts from when it was due.
    """
    interval = len(STREAMS) * BATCH_ROWS / rate
    started = time.monotonic() + interval
    for number in range(max(1, round(seconds / interval))):
        due = started + number * interval
        time.sleep(max(0.0, due - time.monotonic()))
        reader.sent(first + number * BATCH_ROWS, due)
        send(running, first + number * BATCH_ROWS, BATCH_ROWS, noise)


def run(join: StreamJoin, runtime: Runtime, options: argparse.Namespace) -> None:
    """Measure throughput, then latency, on one running join."""
    with join.launch(runtime, sources={name: [name] for name in STREAMS}) as running:
        reader = ResultReader(running)
        readings_sent = f"{len(STREAMS) * options.rows:,} readings in batches of {BATCH_ROWS:,}"
        print(f"Throughput: {readings_sent}, as fast as the join takes them")
        progress = ProgressLine(running, reader, len(STREAMS) * options.rows, options.window)
        rate = send_at_full_speed(running, options.rows, options.noise, reader, progress)
        matches = reader.results / (len(STREAMS) * options.rows)
        print(f"  {rate:,.0f} tuples/s, {reader.results:,} matches ({matches:.1f} per reading)")
        busiest = max(running.metrics().tasks, key=lambda task: task.busy_seconds)
        print(f"  busiest element: {busiest.component}[{busiest.task}], {busiest.busy_seconds:.1f} s of work")
        if reader.first is not None:
            print(f"  the first pairs: {reader.first.slice(0, 3).to_pylist()}")

        print(f"\nLatency: {rate / 2:,.0f} readings/s (half of that) in the same batches for {options.seconds:g} s")
        send_at_rate(running, options.rows, rate / 2, options.seconds, options.noise, reader)
        running.finish()
        reader.wait()
    p50, p99 = reader.latency(50, 99)
    print(f"  p50 {1000 * p50:,.1f} ms, p99 {1000 * p99:,.1f} ms, from sending a reading to reading its matches")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Inequality join of two generated streams over sliding windows.")
    parser.add_argument("--rows", type=int, default=4_000_000, help="readings of each centre (default 4,000,000)")
    parser.add_argument("--window", type=int, default=1_000_000, help="readings in each window (default 1,000,000)")
    parser.add_argument("--slide", type=int, default=100_000, help="readings that expire together (default 100,000)")
    parser.add_argument("--noise", type=float, default=0.05, help="how loosely cooling follows power (default 0.05)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to measure latency (default 5)")
    parser.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    options = parser.parse_args(arguments)

    join = StreamJoin.from_sql(Q1, window=CountWindow(options.window, options.slide))
    print(f"{Q1}\nover the last {options.window:,} readings of each stream, {options.slide:,} expiring at a time\n")
    compile_kernels(join, options.slide, options.noise)
    runtime: Runtime = LocalRuntime()
    if options.ray:
        from topology import RayRuntime

        print("Starting Ray and one actor per task")
        runtime = RayRuntime()
    run(join, runtime, options)
    print(
        "\nTry next: python -m examples.datacentre --noise 5    about a hundred times the matches"
        "\n          python -m examples.datacentre --ray        the same join as Ray actors"
        "\n          python -m examples.spark_join              fed from Spark DataFrames"
        "\n          python -m benchmarks spo-q1 --quick        beside DuckDB and Polars"
    )


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # show each line at once, also in a pipe
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)
