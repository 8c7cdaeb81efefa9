"""SplitJoin: the cost of each ordering, and how latency grows with the cores of its trees.

Throughput: a band join with about 300 matches per tuple, both windows full, micro-batches of R and S alternating, end
to end on the embedded runtime, at each ordering. All orderings must give the same pairs, which a sum over them checks.

Visiting latency is defined as in the paper: from sending the later tuple of a pair until the pair is out, averaged over
all pairs. As in the paper's analysis (section 6) each core has a sub-window of a fixed size, compared by nested loop;
only the way to the cores and back grows. It is measured twice:
- with a processor for each element, nearly the setting of the paper's 32 cores: the processor time of each element is
  measured, the hop between two elements counts 0.2 ms, as between two Ray actors here (three hops in 0.6 ms,
  `ray-hop`), and the times are added along the path (`virtual_processors`);
- on the embedded runtime of this machine, where all elements share the processors.
Low-latency handshake join is measured beside it. At each ordering, latency is also measured with one core 5 ms late:
the weaker the order, the less the pairs of other cores wait for it.

The paper (32 cores: 4 Intel E5-4650; 28 join cores): latency grows as the logarithm of the cores, 8.1 ms at 28 cores
against 26.8 ms of low-latency handshake join, which grows linearly, and up to 60% more throughput. Punctuation after
every comparison (strict inner order) costs it most of its throughput at sub-windows of 2^15, outer order next to none.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.virtual_processors import VirtualProcessors
from operators import CountWindow, Engine, EveryK, HandshakeJoin, Ordering, RunningJoin, SplitJoin, StreamJoin

ORDERINGS: tuple[Ordering, ...] = ("strict", "outer", EveryK(100), EveryK(10_000), "none")
CORES = (1, 2, 4, 8, 16)
WINDOW, MATCHES, BATCH = 1 << 15, 300, 1_000
SUB_WINDOW, LATENCY_BATCH = 1 << 12, 64
HOP_SECONDS, LATE_SECONDS = 0.2e-3, 5e-3
PAPER = "paper, 28 cores of 4 Intel E5-4650: SplitJoin 8.1 ms, low-latency handshake join 26.8 ms"


def run(quick: bool) -> dict[str, Any]:
    """Measure throughput at each ordering, then latency at each number of cores."""
    return {"name": "split-order", "rows": [*_throughputs(quick), *_latencies(quick), *_latency_of_orderings(quick)]}


def _throughputs(quick: bool) -> list[dict[str, Any]]:
    rows = []
    print("paper, 4 Intel E5-4650: outer order costs next to nothing, strict inner order most of the throughput")
    print(f"tuples/s at {MATCHES} matches per tuple, windows of {WINDOW:,}, 4 join cores, fan-out 2")
    print(f"{'index in the cores':<22}" + "".join(f"{each!s:>14}" for each in ORDERINGS) + f"{'strict/best':>14}")
    for index in (None, "TieredRuns", "auto"):
        best: dict[str, float] = {}
        sums = set()
        for _ in range(2 if quick else 5):  # alternating, so that a busy moment of the machine affects all alike
            for ordering in ORDERINGS:
                rate, check = throughput(SplitJoin(4, fanout=2, index=index), ordering, 10_000 if quick else 30_000)
                best[str(ordering)] = max(rate, best.get(str(ordering), 0.0))
                sums.add(check)
        assert len(sums) == 1, "every ordering must give the same pairs"
        share = best["strict"] / max(best.values())
        name = index or "nested loop"
        print(f"{name:<22}" + "".join(f"{rate:>14,.0f}" for rate in best.values()) + f"{share:>14.2f}", flush=True)
        peers = {ordering: rate for ordering, rate in best.items() if ordering != "strict"}
        rows.append({"case": f"throughput, {name}", "ours": best["strict"], "peers": peers, "ratio": share})
    return rows


def throughput(engine: Engine, ordering: Ordering, measured: int) -> tuple[float, int]:
    """Tuples of both sides per second, and a sum over all pairs."""
    rng = np.random.default_rng(7)
    total = WINDOW + measured
    tables = [_rows(rng, total, np.arange(total) // BATCH * 2 + parity) for parity in (0, 1)]
    with _join(engine, WINDOW, ordering, step_rows=2 * BATCH).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        reader = _Reader(running)
        reader.start()
        _send(running, tables, 0, WINDOW)
        while running.metrics().total("answered") < 2 * WINDOW - 2 * BATCH:
            time.sleep(0.005)
        start = time.perf_counter()
        _send(running, tables, WINDOW, total)
        running.finish()
        reader.join()
        return 2 * measured / (time.perf_counter() - start), reader.total


def _latencies(quick: bool) -> list[dict[str, Any]]:
    rows = []
    engines: dict[str, Any] = {
        "tree, fan-out 2": lambda cores: SplitJoin(cores, fanout=2),
        "tree, fan-out 4": lambda cores: SplitJoin(cores, fanout=4),
        "handshake chain": HandshakeJoin,
    }
    print(f"\nvisiting latency in ms, sub-windows of {SUB_WINDOW:,} per core, {LATENCY_BATCH} tuples at a time")
    print(PAPER)
    print(f"{'':<44}" + "".join(f"{cores:>9}" for cores in CORES) + "   cores")
    for name, engine in engines.items():
        virtual = [virtual_latency(engine(cores), cores * SUB_WINDOW, "strict", quick) for cores in CORES]
        _print_latencies(f"{name}, a processor per element", virtual)
        embedded = [_embedded_latency(engine(cores), cores * SUB_WINDOW, quick) for cores in CORES]
        _print_latencies(f"{name}, all on this machine", embedded)
        rows.append(
            {
                "case": f"latency, {name}",
                "ours": {str(cores): each for cores, each in zip(CORES, virtual, strict=True)},
                "peers": {"on this machine": {str(c): each for c, each in zip(CORES, embedded, strict=True)}},
                "ratio": virtual[-1] / virtual[0],
                "per doubling": [later - earlier for earlier, later in pairwise(virtual)],
            }
        )
    return rows


def _latency_of_orderings(quick: bool) -> list[dict[str, Any]]:
    print("\nvisiting latency in ms at each ordering, 16 cores, fan-out 2, a processor per element")
    print(f"{'':<44}{'even':>9}{'one late':>9}")
    rows = []
    for ordering in ORDERINGS:
        even, late = (
            virtual_latency(SplitJoin(16, fanout=2), 16 * SUB_WINDOW, ordering, quick, late_cores)
            for late_cores in ({}, {"join-core-5": LATE_SECONDS})
        )
        _print_latencies(str(ordering), [even, late])
        peers = {"one core late": late}
        rows.append({"case": f"latency, {ordering}", "ours": even, "peers": peers, "ratio": late / even})
    return rows


def _print_latencies(name: str, latencies: list[float]) -> None:
    print(f"{name:<44}" + "".join(f"{each * 1e3:>9.2f}" for each in latencies), flush=True)


def virtual_latency(
    engine: Engine, window: int, ordering: Ordering, quick: bool, late: Mapping[str, float] | None = None
) -> float:
    """The median over rounds of the mean over pairs."""
    processors = VirtualProcessors(_join(engine, window, ordering).topology(), HOP_SECONDS, late)
    processors.open(["R", "S"])
    rng = np.random.default_rng(3)
    processors.send(0.0, [("S", _rows(rng, window, np.zeros(window, np.int64)))])
    rounds, latencies, now = (20 if quick else 60), [], 1e3
    for number in range(rounds):
        now += 1e3
        results = processors.send(now, _round(rng, window, number))
        latencies.append(_mean_latency([(moment - now, rows) for moment, rows in results], window))
    return float(np.nanmedian(latencies[5:]))


def _embedded_latency(engine: Engine, window: int, quick: bool) -> float:
    rng = np.random.default_rng(3)
    latencies: list[float] = []
    with _join(engine, window, "strict").launch(sources={"R": ["R"], "S": ["S"]}) as running:
        results: list[tuple[float, pa.RecordBatch]] = []

        def read() -> None:
            for rows in running.results():
                results.append((time.perf_counter(), rows))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        running.send("S", _rows(rng, window, np.zeros(window, np.int64)))
        for number in range(20 if quick else 60):
            done = running.metrics().total("answered")
            batches = _round(rng, window, number)
            start = time.perf_counter()
            for stream, rows in batches:
                running.send(stream, rows)
            while running.metrics().total("answered") == done:
                time.sleep(0.0005)
            time.sleep(0.002)
            taken, results[:] = list(results), []
            latencies.append(_mean_latency([(moment - start, rows) for moment, rows in taken], window))
        running.finish()
        reader.join()
    return float(np.nanmedian(latencies[5:]))


def _round(rng: np.random.Generator, window: int, number: int) -> list[tuple[str, pa.RecordBatch]]:
    """S rows that let the gate pass the R rows sent after them, and these; the S rows pass with the next round."""
    first = number * LATENCY_BATCH
    return [
        ("S", _rows(rng, LATENCY_BATCH, np.full(LATENCY_BATCH, 2 * number + 2), first=window + first)),
        ("R", _rows(rng, LATENCY_BATCH, np.full(LATENCY_BATCH, 2 * number + 1), first=first)),
    ]


def _mean_latency(results: list[tuple[float, pa.RecordBatch]], window: int) -> float:
    """The mean over the pairs whose later tuple is of R: it was sent at time 0 of this round."""
    total, pairs = 0.0, 0
    for moment, rows in results:
        left, right = (rows.column(side).to_numpy() for side in (0, 1))
        later = int(np.sum(right < window + left // LATENCY_BATCH * LATENCY_BATCH))
        total += moment * later
        pairs += later
    return total / pairs if pairs else math.nan


def _join(engine: Engine, window: int, ordering: Ordering, **options: Any) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        f"abs(R.x - S.x) <= {MATCHES // 2}",
        CountWindow(window),
        select=["R.id", "S.id"],
        event_time="ts",
        using=engine,
        ordering=ordering,
        **options,
    )


def _rows(rng: np.random.Generator, count: int, times: Any, first: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"id": np.arange(first, first + count), "x": rng.integers(0, WINDOW, count), "ts": times})


def _send(running: RunningJoin, tables: list[pa.RecordBatch], start: int, stop: int) -> None:
    for at in range(start, stop, BATCH):
        for stream, rows in zip(("R", "S"), tables, strict=True):
            running.send(stream, rows.slice(at, min(BATCH, stop - at)))


class _Reader(threading.Thread):
    """Reads results as they come; keeps a sum that does not depend on their order."""

    def __init__(self, running: RunningJoin) -> None:
        super().__init__(name="reader", daemon=True)
        self._running = running
        self.total = 0

    def run(self) -> None:
        for rows in self._running.results():
            left, right = (rows.column(side).to_numpy().astype(np.uint64) for side in (0, 1))
            mixed = (left * np.uint64(0x9E3779B97F4A7C15)) ^ (right * np.uint64(0xC2B2AE3D27D4EB4F))
            self.total = (self.total + int(mixed.sum())) & ((1 << 64) - 1)
