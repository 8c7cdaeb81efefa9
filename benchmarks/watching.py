"""What looking costs: query Q1 with nobody looking on, with a watch, and with Prometheus at the live page.

The three take turns on the same rows, with the windows full. `watch` looks once a second, as the page does for every
topology that somebody has open; `metrics` is the page's server with a client that reads `/metrics` once a second, and
so a watch, too. Both run in the process of the join and compete with it. Results are compared before any figure is
printed.

The cost is the difference of the medians, in percent: of the processor time for each tuple, which other programs
disturb least, and of the rate. Below 2 % is what is asked for.
"""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import interlace as il
from benchmarks.q1_run import Readings, Throughput, launched, throughput
from topology import LocalRuntime

REPEATS = 5
QUICK_REPEATS = 2
ASKED_PERCENT = 2.0
EVERY_SECONDS = 1.0


def run(quick: bool) -> dict[str, Any]:
    """Measure all three in turns."""
    window, measured = (20_000, 200_000) if quick else (100_000, 4_000_000)
    data = Readings()
    found: dict[str, list[Throughput]] = {"unwatched": [], "watch": [], "metrics": []}
    _once("unwatched", data, window, window)  # compiles the kernels
    for _ in range(QUICK_REPEATS if quick else REPEATS):
        for name, runs in found.items():
            runs.append(_once(name, data, window, measured))
    first = found["unwatched"][0].results
    assert all(each.results.equals(first) for runs in found.values() for each in runs), "results differ"
    rate = {name: statistics.median(each.rate for each in runs) for name, runs in found.items()}
    processor = {name: statistics.median(each.processor for each in runs) for name, runs in found.items()}
    print(f"Q1, windows of {window:,}, {2 * measured:,} tuples; medians of {len(found['watch'])} runs in turns")
    print(f"{'':<12}{'tuples/s':>14}{'processor us/tuple':>22}{'cost':>10}{'cost, rate':>14}")
    rows = []
    for name in found:
        cost = 100 * (processor[name] / processor["unwatched"] - 1)
        slower = 100 * (1 - rate[name] / rate["unwatched"])
        print(f"{name:<12}{rate[name]:>14,.0f}{1e6 * processor[name]:>22.3f}{cost:>9.1f}%{slower:>13.1f}%")
        if name != "unwatched":
            rows.append(
                {
                    "case": f"{name} once a second",
                    "ours": rate[name],
                    "peers": {"unwatched": rate["unwatched"]},
                    "ratio": rate[name] / rate["unwatched"],
                    "cost_percent": cost,
                    "asked_percent": ASKED_PERCENT,
                }
            )
    return {"name": "watching", "rows": rows}


def _once(name: str, data: Readings, window: int, measured: int) -> Throughput:
    with launched(window, LocalRuntime()) as running:
        onlookers: dict[str, AbstractContextManager[Any]] = {
            "unwatched": nullcontext(), "watch": _watched(running), "metrics": _scraped(running),
        }  # fmt: skip
        with onlookers[name]:
            return throughput(running, data, window, measured, 10_000, time.process_time)


@contextmanager
def _watched(running: il.Handle) -> Iterator[None]:
    watch = il.Watch(running, interval=EVERY_SECONDS)
    watch.start()
    yield
    watch.close()


@contextmanager
def _scraped(running: il.Handle) -> Iterator[None]:
    """A client that reads the metrics of a page again and again."""
    over = threading.Event()
    with il.ui(running) as page:
        request = urllib.request.Request(f"{page.url}metrics", headers={"Authorization": f"Bearer {page.token!s}"})

        def read() -> None:
            while not over.wait(EVERY_SECONDS):
                with urllib.request.urlopen(request) as answer:
                    answer.read()

        reading = threading.Thread(target=read, name="prometheus")
        reading.start()
        yield
        over.set()
        reading.join()
