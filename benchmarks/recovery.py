"""What survival costs: query Q1 with its state on disk beside the same join without, and the time to go on.

Both run on the same readings, embedded in one process, over windows of a million readings of each side; results are
compared row by row before a figure is printed. `ours` keeps its state, the peer does not.

- throughput: tuples/s of both sides, from the first batch after the windows are full to the last result read;
- bytes:      what was written to the disk for each row, while the log was trimmed as results were acknowledged;
- restart:    seconds from the launch after a kill, with full windows, to the first result that is new.

The same on Ray, with the time from the death of a process to the next result: see `recovery_on_ray`.

The disk decides some of this: TMPDIR says which.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.q1_run import STREAMS, Reader, Readings, Throughput, launched, send_all, throughput
from benchmarks.ray_processes import processor_seconds
from benchmarks.recovery_on_ray import BATCH, run_on_ray
from topology import LocalRuntime

WINDOW, QUICK_WINDOW = 1_000_000, 100_000
MEASURED = {1_000: 500_000, 10_000: 2_000_000}
REPEATS = 3


def run(quick: bool) -> dict[str, Any]:
    """Measure all cases."""
    data = Readings()
    window = QUICK_WINDOW if quick else WINDOW
    rows: list[dict[str, Any]] = []
    for batch, measured in MEASURED.items():
        rows.append(_cost(data, window, measured // 5 if quick else measured, batch, 1 if quick else REPEATS))
    rows.append(_restart(window))
    measured = MEASURED[BATCH] // (10 if quick else 1)
    rows += run_on_ray(data, window, measured, 1 if quick else REPEATS)
    return {"name": "recovery", "rows": rows}


def _cost(data: Readings, window: int, measured: int, batch: int, repeats: int) -> dict[str, Any]:
    print(f"batches of {batch:,}, windows of {window:,}, {measured:,} readings of each side measured")
    kept: list[Throughput] = []
    plain: list[Throughput] = []
    written = 0
    for _ in range(repeats):
        plain.append(_once(data, window, measured, batch, LocalRuntime()))
        with tempfile.TemporaryDirectory() as state:
            before = _written()
            kept.append(_once(data, window, measured, batch, LocalRuntime(state=state)))
            written = _written() - before
    ours, peer = (max(runs, key=lambda each: each.rate) for runs in (kept, plain))
    if not ours.results.equals(peer.results):
        raise AssertionError("the results with a state differ from those without")
    row = {
        "case": f"throughput batch={batch}",
        "ours": ours.rate,
        "peers": {"without state": peer.rate},
        "ratio": ours.rate / peer.rate,
        "bytes_per_row": written / (2 * (window + measured)),
        "processor_us": [1e6 * ours.processor, 1e6 * peer.processor],
    }
    print(
        f"  with state {ours.rate:,.0f} rows/s, without {peer.rate:,.0f}, ratio {row['ratio']:.2f}; "
        f"{row['bytes_per_row']:.0f} bytes written per row; "
        f"{1e6 * ours.processor:.2f} and {1e6 * peer.processor:.2f} us of processor time per row"
    )
    return row


def _once(data: Readings, window: int, measured: int, batch: int, runtime: LocalRuntime) -> Throughput:
    with launched(window, runtime) as running:
        return throughput(running, data, window, measured, batch, processor_seconds)


def _written() -> int:
    """Bytes that this process has written so far."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("wchar"):
            return int(line.split()[1])
    raise AssertionError("Linux counts what a process writes")


def _restart(window: int) -> dict[str, Any]:
    """Fill the windows in another process, kill it, and launch again here."""
    with tempfile.TemporaryDirectory() as state:
        filler = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.recovery", state, str(window)], stdout=subprocess.PIPE, text=True
        )
        assert filler.stdout is not None
        filler.stdout.readline()
        filler.kill()
        filler.wait()
        filler.stdout.close()
        data = Readings()
        end = window + 20_000
        began = time.perf_counter()
        with launched(window, LocalRuntime(state=state)) as running:
            launched_after = time.perf_counter() - began
            pairs: list[tuple[pa.RecordBatch, ...]] = list(data.batches(window, end, 10_000))
            for pair in pairs:
                for stream, rows in zip(STREAMS, pair, strict=True):
                    running.send(stream, rows, offset=running.next_offset(stream, stream))
            next(running.results())
            seconds = time.perf_counter() - began
    print(f"restart with full windows: launch {launched_after:.2f} s, first new result {seconds:.2f} s")
    return {"case": f"restart window={window}", "ours": seconds, "peers": {}, "ratio": None}


def _fill(state: str, window: int) -> None:
    """Fill the windows and acknowledge all results, then wait to be killed."""
    data = Readings()
    with launched(window, LocalRuntime(state=state)) as running:
        reader = Reader(running)
        send_all(running, data, 0, window, 10_000)
        reader.wait_for(2 * window - 1)
        print("filled", flush=True)
        time.sleep(3600)


if __name__ == "__main__":
    _fill(sys.argv[1], int(sys.argv[2]))
