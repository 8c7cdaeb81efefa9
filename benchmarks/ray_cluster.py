"""Query Q1 on Ray beside the same join embedded in one process: throughput, processor time, latency, small batches.

Both run on the same readings with default settings, over windows of a million readings of each side. Before a figure is
printed, the results of both runs are compared, row by row. `ours` is Ray, the peer is the embedded runtime.

- throughput: tuples/s of both sides, from the first batch after the windows are full to the last result read;
- processor:  microseconds of processor time per tuple, meanwhile: of this process; on Ray also of all workers and of
              Ray's own processes, because the cluster is started here;
- latency:    from the moment a batch is due to its last result read (`paced_q1`);
- held:       the greatest rate in batches of 100 rows that is held without falling behind (`paced_q1`);
- launch:     seconds from launch to the first result. Warm: the cluster runs and the kernels are compiled. Cold: the
              launch starts the cluster, and the directory of compiled kernels is empty. Python's own compilation is
              done before, as an installation does it;
- memory:     of the largest worker before rows: resident, and its share (`ray_processes`).

On Ray the processes are printed, with their tasks and the bytes that crossed between them. If no probe rows crossed,
the elements ran beside the router, and no ratio is printed.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import ray

import indexes
import operators
import topology
from benchmarks.paced_q1 import Paced, PacedRun, Plan
from benchmarks.q1_run import Readings, Throughput, first_result, launched, throughput
from benchmarks.ray_processes import Crossed, Processes, crossed, memory_of, processes_of, processor_seconds
from topology import LocalRuntime, RayRuntime, Runtime

WINDOW, QUICK_WINDOW = 1_000_000, 100_000
MEASURED = {1_000: 1_000_000, 10_000: 2_000_000}
"""Readings of each side that are measured, by batch size."""

REPEATS = 2
"""Machines are shared and noisy: the best of this many runs counts, on both runtimes."""

FULL = Plan(WINDOW, 100_000, 1_000, 8.0, 100, 20_000, 4.0, 4)
QUICK = Plan(QUICK_WINDOW, 100_000, 1_000, 2.0, 100, 20_000, 1.0, 2)
COLD = "cold"
EMBEDDED = "embedded"


@dataclass(frozen=True)
class Observed:
    """A run at full speed, and what it looked like from outside."""

    measured: Throughput
    processes: Processes
    crossed: Crossed


def modes() -> dict[str, Runtime]:
    """The ways to run on Ray, by name."""
    return {"ray": RayRuntime(), "ray with TLS": RayRuntime(tls=True)}


def start_cluster() -> None:
    ray.init(
        address="local",
        num_cpus=max(2, os.cpu_count() or 1),
        include_dashboard=False,
        object_store_memory=80 * 1024 * 1024,
        log_to_driver=False,
        logging_level="ERROR",
    )


def run(quick: bool) -> dict[str, Any]:
    """Measure all cases."""
    _compile_sources()
    data = Readings()
    window = QUICK_WINDOW if quick else WINDOW
    rows: list[dict[str, Any]] = []
    first_result(window, LocalRuntime(), data)  # compiles what has not been compiled yet
    start_cluster()
    try:
        for batch, measured in MEASURED.items():
            rows += _full_speed(data, window, measured // 5 if quick else measured, batch, 1 if quick else REPEATS)
        rows += _paced(data, QUICK if quick else FULL)
        rows += _warm(data, window)
        rows += _memory(window)
    finally:
        ray.shutdown()
    rows += _cold(quick)
    return {"name": "ray", "rows": rows}


def _compile_sources() -> None:
    """Compile our modules, as an installation does; where Python may not keep them, every worker would do it again."""
    for package in (topology, operators, indexes):
        for folder in package.__path__:
            compileall.compile_dir(folder, quiet=2)


def _full_speed(data: Readings, window: int, measured: int, batch: int, repeats: int) -> list[dict[str, Any]]:
    print(f"batches of {batch:,}, windows of {window:,}, {measured:,} readings of each side measured")
    runs: dict[str, list[Observed]] = {}
    for _ in range(repeats):
        for name, runtime in {EMBEDDED: LocalRuntime(), **modes()}.items():
            runs.setdefault(name, []).append(_observe(data, window, measured, batch, name, runtime))
    best = {name: max(each, key=lambda observed: observed.measured.rate) for name, each in runs.items()}
    for name, observed in best.items():
        _check_same(best[EMBEDDED].measured.results, observed.measured.results, name)
    peer = best.pop(EMBEDDED).measured
    rows = []
    for name, observed in best.items():
        ours = observed.measured
        _show_processes(observed)
        row = _row(f"{name}: throughput batch={batch}", ours.rate, peer.rate, observed.crossed)
        row["processes"] = {process: list(tasks) for process, tasks in observed.processes.items()}
        row["bytes"] = vars(observed.crossed)
        rows.append(row)
        microseconds = 1e6 * ours.processor, 1e6 * peer.processor
        rows.append(_row(f"{name}: processor us/tuple batch={batch}", *microseconds, observed.crossed))
    return rows


def _observe(data: Readings, window: int, measured: int, batch: int, name: str, runtime: Runtime) -> Observed:
    with launched(window, runtime) as running:
        found = throughput(running, data, window, measured, batch, processor_seconds)
        processes: Processes = {} if name == EMBEDDED else processes_of(running)
        return Observed(found, processes, crossed(running, processes))


def _paced(data: Readings, plan: Plan) -> list[dict[str, Any]]:
    print(f"at {plan.rate:,} rows/s in batches of {plan.batch:,}; then the greatest rate in batches of {plan.small}")
    found: dict[str, tuple[Paced, Crossed]] = {}
    for name, runtime in {EMBEDDED: LocalRuntime(), **modes()}.items():
        print(f"  {name}", flush=True)
        with launched(plan.window, runtime) as running:
            paced = PacedRun(running, data, plan)
            measured = paced.measure()
            over = crossed(running, {} if name == EMBEDDED else processes_of(running))
            paced.finish()
        found[name] = measured, over
    peer, _ = found.pop(EMBEDDED)
    rows = []
    for name, (ours, over) in found.items():
        _check_same(peer.results, ours.results, name)
        for label, mine, theirs in (("p50", ours.p50, peer.p50), ("p99", ours.p99, peer.p99)):
            rows.append(_row(f"{name}: {label} ms at {plan.rate} rows/s", 1e3 * mine, 1e3 * theirs, over))
        rows.append(_row(f"{name}: held rows/s batch={plan.small}", ours.held, peer.held, over))
    return rows


def _warm(data: Readings, window: int) -> list[dict[str, Any]]:
    peer = first_result(window, LocalRuntime(), data)
    return [_row(f"{name}: launch s, warm", first_result(window, each, data), peer) for name, each in modes().items()]


def _memory(window: int) -> list[dict[str, Any]]:
    rows = []
    for name, runtime in modes().items():
        with launched(window, runtime) as running:
            workers = memory_of(running)
            running.finish()
            list(running.results())
        for process, memory in workers.items():
            print(f"  {name}, {process}: {memory.resident:.0f} MiB resident, its share {memory.share:.0f} MiB")
        for label in ("resident", "share"):
            largest = max(getattr(memory, label) for memory in workers.values())
            case = f"{name}: worker before rows, MiB {label}"
            rows.append({"case": case, "ours": largest, "peers": {}, "ratio": None})
    return rows


def _cold(quick: bool) -> list[dict[str, Any]]:
    seconds = {}
    for name in (EMBEDDED, *modes()):
        with tempfile.TemporaryDirectory() as empty:
            environment = os.environ | {"INTERLACE_KERNEL_CACHE": empty}
            command = [sys.executable, "-m", "benchmarks.ray_cluster", name, str(QUICK_WINDOW if quick else WINDOW)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
            seconds[name] = json.loads(done.stdout.splitlines()[-1])[COLD]
    peer = seconds.pop(EMBEDDED)
    return [_row(f"{name}: launch s, cold", each, peer) for name, each in seconds.items()]


def _cold_start(name: str, window: int) -> None:
    """In a process of its own: start the cluster and the join, and print the seconds to the first result."""
    data = Readings()
    list(data.batches(0, 10_000, 1_000))  # making the readings is not part of the launch
    began = time.perf_counter()
    if name != EMBEDDED:
        start_cluster()
    started = time.perf_counter() - began
    runtime = LocalRuntime() if name == EMBEDDED else modes()[name]
    print(json.dumps({COLD: started + first_result(window, runtime, data)}))


def _check_same(ours: pa.Table, theirs: pa.Table, name: str) -> None:
    if not ours.combine_chunks().equals(theirs.combine_chunks()):
        raise AssertionError(f"embedded and {name} differ: {ours.num_rows} and {theirs.num_rows} results")


def _show_processes(observed: Observed) -> None:
    over = observed.crossed
    for process, tasks in observed.processes.items():
        print(f"  {process}: {', '.join(tasks)}")
    print(
        f"  bytes between {len(observed.processes)} processes: {over.tasks:,}, of which with probes {over.probes:,}; "
        f"from and to the driver {over.driver:,}"
    )


def _row(case: str, ours: float, peer: float, over: Crossed | None = None) -> dict[str, Any]:
    ratio = None if over is not None and not over.probes else ours / peer
    shown = "probes crossed no process: no ratio" if ratio is None else f"{ratio:.2f}"
    print(f"{case:<44}{ours:>14,.2f}{peer:>14,.2f}  {shown}", flush=True)
    return {"case": case, "ours": ours, "peers": {EMBEDDED: peer}, "ratio": ratio}


if __name__ == "__main__":
    _cold_start(sys.argv[1], int(sys.argv[2]))
