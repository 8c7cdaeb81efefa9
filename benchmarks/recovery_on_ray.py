"""What survival costs on Ray: query Q1 with its state on a local disk and in a bucket beside the same without.

The time to go on is measured from SIGKILL of one process, with full windows and nothing under way, to the first result
of rows that are sent right after it. The bucket is on a server of this machine: a real one answers later.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from benchmarks.q1_run import Readings, Throughput, launched, send_all, throughput
from benchmarks.ray_cluster import start_cluster
from benchmarks.ray_processes import processor_seconds
from operators import RunningJoin
from tests.s3_server import below, s3_server
from topology import RayRuntime

BATCH = 10_000
KILLED = ("element", "gate", "collector", "controller")
ROWS_AFTER = 20_000
"""Readings of each side that are sent after a kill; they have results."""


def run_on_ray(data: Readings, window: int, measured: int, repeats: int) -> list[dict[str, Any]]:
    """Measure all cases on a cluster that is started here."""
    import ray

    start_cluster()
    try:
        with tempfile.TemporaryDirectory() as place, s3_server() as bucket:
            states = {"disk": str(Path(place) / "cost"), "bucket": below(bucket, "cost")}
            return [
                *_cost(data, window, measured, repeats, states),
                *_pauses(data, window, str(Path(place) / "pauses")),
            ]
    finally:
        ray.shutdown()


def _cost(data: Readings, window: int, measured: int, repeats: int, states: dict[str, str]) -> list[dict[str, Any]]:
    plain = _best(data, window, measured, repeats, None)
    rows: list[dict[str, Any]] = []
    for name, state in states.items():
        kept = _best(data, window, measured, repeats, state)
        if not kept.results.equals(plain.results):
            raise AssertionError("the results with a state differ from those without")
        ratio = kept.rate / plain.rate
        print(f"  on Ray, state on {name}: {kept.rate:,.0f} rows/s, without {plain.rate:,.0f}, ratio {ratio:.2f}")
        rows.append(
            {
                "case": f"throughput on Ray state={name} batch={BATCH}",
                "ours": kept.rate,
                "peers": {"without state": plain.rate},
                "ratio": ratio,
                "processor_us": [1e6 * kept.processor, 1e6 * plain.processor],
            }
        )
    return rows


def _best(data: Readings, window: int, measured: int, repeats: int, state: str | None) -> Throughput:
    runs = []
    for number in range(repeats):
        where = None if state is None else _numbered(state, number)
        with launched(window, RayRuntime(state=where)) as running:
            runs.append(throughput(running, data, window, measured, BATCH, processor_seconds))
    return max(runs, key=lambda each: each.rate)


def _numbered(state: str, number: int) -> str:
    place, mark, options = state.partition("?")
    return f"{place}-{number}{mark}{options}"


def _pauses(data: Readings, window: int, state: str) -> list[dict[str, Any]]:
    """Kill one process after the other, and measure how long results stay away."""
    rows: list[dict[str, Any]] = []
    with launched(window, RayRuntime(state=state)) as running:
        reader = _NewestResult(running)
        send_all(running, data, 0, window, BATCH)
        sent = window
        for killed in KILLED:
            send_all(running, data, sent, sent + ROWS_AFTER, BATCH)
            reader.wait_for(sent + ROWS_AFTER - BATCH)
            sent += ROWS_AFTER
            began = time.perf_counter()
            os.kill(_process_of(running, killed), signal.SIGKILL)
            send_all(running, data, sent, sent + ROWS_AFTER, BATCH)
            seconds = reader.wait_for(sent) - began
            sent += ROWS_AFTER
            print(f"  SIGKILL of {killed}: {seconds:.2f} s to the next result")
            rows.append({"case": f"pause after SIGKILL of {killed}", "ours": seconds, "peers": {}, "ratio": None})
    return rows


def _process_of(running: RunningJoin, what: str) -> int:
    if what == "controller":
        titles = {
            int(entry.name): (entry / "cmdline").read_bytes().decode(errors="replace")
            for entry in Path("/proc").glob("[0-9]*")
            if (entry / "cmdline").exists()
        }
        name = running.status().name
        return next(process for process, title in titles.items() if title.startswith(f"ray::{name}/controller"))
    workers = running.status().workers
    entry = next(worker for worker in workers if ("gate", 0) in worker.tasks)
    exit_ = next(worker for worker in workers if ("collector", 0) in worker.tasks)
    others = [worker for worker in workers if worker not in (entry, exit_)]
    return {"gate": entry, "collector": exit_, "element": others[0]}[what].pid


class _NewestResult:
    """A reader that remembers only the newest reading that is part of a result, and when that came."""

    def __init__(self, running: RunningJoin) -> None:
        self._reading = -1
        self._time = 0.0
        self._came = threading.Condition()
        threading.Thread(target=self._read, args=(running,), daemon=True).start()

    def wait_for(self, reading: int) -> float:
        """Wait for a result of this reading or a later one; return when the first of them came."""
        with self._came:
            self._came.wait_for(lambda: self._reading >= reading)
            return self._time

    def _read(self, running: RunningJoin) -> None:
        for batch in running.results():
            newest = max(pc.max(column).as_py() for column in batch.columns)
            with self._came:
                if newest > self._reading:
                    self._reading, self._time = newest, time.perf_counter()
                    self._came.notify_all()
