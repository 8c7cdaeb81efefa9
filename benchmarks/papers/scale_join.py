"""The figures of the ScaleJoin paper, 5 to 8."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks import scale_gate
from benchmarks.chart import Axis
from benchmarks.papers import joins
from benchmarks.papers.cells import DATA, VIRTUAL, cell_join, cell_run, comparisons, counted_feed
from benchmarks.papers.figure import Claim, Figure, NotCovered, Paper, Point, at, extreme, growth, times
from benchmarks.scale_band import r_rows, s_rows
from operators import CountWindow, HandshakeJoin, ScaleJoin, TimeWindow, work_spread
from topology import LocalRuntime, Metrics

THREADS = (1, 2, 4, 8, 16, 32, 48)
THREAD_AXIS = Axis("processing threads", 2)
BATCH = 256
FEWER = (
    "Threads run one after another and their processor time is measured, so neither sockets nor shared memory matter."
)


def _threads(quick: bool) -> tuple[int, ...]:
    return (1, 4) if quick else THREADS


def _scaling(compared: bool, quick: bool) -> Iterator[Point]:
    """Comparisons per second of all threads, or tuples per second."""
    for exponent in (10, 12) if quick else (14, 16, 18):
        for threads in _threads(quick):
            window = 1 << exponent
            run = cell_run(ScaleJoin(threads), window, 8 * BATCH, BATCH)
            rate = comparisons(run, window, "processing-thread") if compared else run.rate
            yield Point(f"window 2^{exponent}", threads, rate)


def _spread(quick: bool) -> Iterator[Point]:
    window = 1 << (10 if quick else 14)
    for threads in (2, 4) if quick else (2, 4, 8, 16, 32, 48):
        join = cell_join(ScaleJoin(threads), CountWindow(window), step=2 * BATCH)
        run = joins.run(join, counted_feed(window, 16 * BATCH, BATCH))
        assert run.after is not None
        yield Point("comparisons", threads, 100 * work_spread(run.before, run.after))


def _handshake(quick: bool) -> Iterator[Point]:
    window = 1 << (12 if quick else 17)
    for threads in _threads(quick):
        scale = cell_run(ScaleJoin(threads), window, 4 * BATCH, BATCH)
        yield Point("ScaleJoin", threads, comparisons(scale, window, "processing-thread"))
        chain = cell_run(HandshakeJoin(threads), window, 4 * BATCH, BATCH)
        yield Point("handshake join", threads, comparisons(chain, window, "handshake-core"))


def _gate(quick: bool) -> Iterator[Point]:
    total = 1 << (18 if quick else 21)
    for sources in (1, 2) if quick else (1, 2, 4, 8, 16, 32, 64):
        batches = scale_gate.source_batches(sources, 10_000, max(total, 20_000 * sources))
        for readers in (1, 2, 4):
            yield Point(f"{readers} reader{'s' * (readers > 1)}", sources, scale_gate.merge_rate(batches, readers))


def _latency(quick: bool) -> Iterator[Point]:
    """Percentiles at half of the rate that one thread keeps up with, so that all are asked for the same."""
    window = 1 << (12 if quick else 16)
    feed = counted_feed(window, (1 << 12) if quick else (1 << 17), BATCH)
    rate = joins.run(cell_join(ScaleJoin(1), CountWindow(window), near=100, step=2 * BATCH), feed).rate / 2
    for threads in (1, 2) if quick else (1, 2, 4):
        join = cell_join(ScaleJoin(threads), CountWindow(window), near=100, step=2 * BATCH)
        latency = joins.run(join, feed, rate).latency
        for name, value in zip(("50 %", "95 %", "99 %"), (latency[0], latency[2], latency[3]), strict=True):
            yield Point(name, threads, value)


Rate = Callable[[int, int, int], float]
"""Rows of a second: of a source, with how many sources its stream has."""


def _constant(second: int, source: int, sources: int) -> float:
    return (1_200 if sources == 1 else 900) / sources


def _fluctuating(second: int, source: int, sources: int) -> float:
    return 350 + 60 * (source + 1) * float(np.sin(2 * np.pi * second / (20 + 7 * source)))


def _peaks(second: int, source: int, sources: int) -> float:
    return 200 + 40 * source + (2_000 if (second + 11 * source) % 30 == 0 else 0)


def _skew(rate: Rate, r_sources: int, s_sources: int, threads: int, quick: bool) -> Iterator[Point]:
    """The spread of comparisons over the threads in each span of event time, once the windows are full."""
    window, span, spans = (5, 2, 2) if quick else (60, 5, 12)
    join = cell_join(ScaleJoin(threads), TimeWindow(1_000 * window), step=1 << 16)
    sources = {"R": [f"R-{n}" for n in range(r_sources)], "S": [f"S-{n}" for n in range(s_sources)]}
    made = {"R": r_rows, "S": s_rows}
    before: Metrics | None = None
    counts = [0]
    ids = {"R": 0, "S": 0}
    with join.launch(LocalRuntime(), sources=sources) as running:
        reader = joins.Reader(running)
        for second in range(window + span * spans + 1):
            for stream, names in sources.items():
                for number, name in enumerate(names):
                    rows = max(1, round(rate(second, number, len(names))))
                    times_ = 1_000 * second + np.linspace(0, 999, rows).astype(np.int64)
                    batch = made[stream](rows, times_, 1_000 * second + number)
                    numbers = pa.array(np.arange(ids[stream], ids[stream] + rows))
                    ids[stream] += rows
                    running.send(stream, batch.add_column(0, "id", numbers), name)
            counts.append(sum(ids.values()))
            if second >= window and (second - window) % span == 0:
                while running.metrics().total("answered") < counts[-2]:
                    time.sleep(0.002)
                after = running.metrics()
                if before is not None:
                    yield Point("spread of comparisons", second, 100 * work_spread(before, after))
                before = after
        running.finish()
        reader.join()


SECONDS = Axis("seconds of event time")
SPREAD = Axis("standard deviation in % of the mean")
SKEW = (
    "`ScaleJoin`, nested loop, in one process. The paper's window is 5 minutes, ours one, so that a thread compares "
    "a fifth as "
    f"much. {DATA}"
)
SHARED = "Whatever the sources and their rates, each thread stores every n-th row, so each does the same work."


def _skewed(letter: str, title: str, varies: str, rate: Rate, counts: tuple[int, int, int], differs: str) -> Figure:
    claims = (Claim("greatest spread", 0.05 if letter == "a" else 0.1, extreme("spread of comparisons"), "%", "value"),)
    return Figure(
        f"8{letter}", title, varies, SKEW, SECONDS, SPREAD, partial(_skew, rate, *counts), SHARED, differs, claims
    )


PAPER = Paper(
    "scale-join",
    "ScaleJoin: a Deterministic, Disjoint-Parallel and Skew-Resilient Stream Join",
    "S1: AMD Opteron 6230, 48 cores at 2.6 GHz; S2: two Intel Xeon E5-2650, 16 cores at 2.0 GHz",
    (
        Figure(
            "5a",
            "Comparisons per second over threads",
            "the threads, and the window; figure 5d is the same on S2",
            f"{VIRTUAL} Comparisons of all threads at the rate of the busiest thread. {DATA}",
            THREAD_AXIS,
            Axis("comparisons/s", 10),
            partial(_scaling, True),
            "Comparisons grow with the threads while each has enough rows to compare with.",
            f"{FEWER} Our nested loop compares 16-bit codes in vectors, and a thread's share of a small window is "
            f"soon compared.",
            (
                Claim("48 threads over 1 (80 of 100 million/s each)", 48 * 0.8, growth("window 2^18")),
                Claim("48 threads", 4e9, at("window 2^18", 48), "/s", "value"),
                Claim("1 thread", 1e8, at("window 2^18", 1), "/s", "value"),
            ),
            (Point("S1, 48 threads", 48, 4e9), Point("S1, 1 thread", 1, 1e8), Point("S2, 16 threads", 16, 1.4e9)),
        ),
        Figure(
            "5b",
            "Tuples per second over threads",
            "the threads, and the window; figure 5e is the same on S2",
            f"{VIRTUAL} {DATA}",
            THREAD_AXIS,
            Axis("tuples/s", 10),
            partial(_scaling, False),
            "With windows that are counted, the rate grows as the comparisons do, until the router is the busiest "
            "element.",
            f"{FEWER} The paper's windows are minutes long and hold more rows the higher the rate, so its rate grows "
            f"with the square "
            "root: 5,100, 3,500 and 3,000 tuples/s at 5, 10 and 15 minutes.",
        ),
        Figure(
            "5c",
            "How evenly the threads share the work",
            "the threads; figure 5f is the same on S2",
            f"`ScaleJoin` in one process, windows of 2^14. {DATA}",
            THREAD_AXIS,
            SPREAD,
            _spread,
            "Each thread does the same number of comparisons.",
            "Comparisons are counted as pairs of a row and a live row that the thread stores.",
            (Claim("greatest spread", 4, extreme("comparisons"), "%", "value"),),
        ),
        Figure(
            "6",
            "ScaleJoin and handshake join",
            "the threads or cores, and the architecture",
            f"{VIRTUAL} Windows of 2^17. {DATA}",
            THREAD_AXIS,
            Axis("comparisons/s", 10),
            _handshake,
            "Both compare with the same nested loop, so they are level where comparing decides.",
            "The paper compares Java with another group's C program; it is 2.5 billion comparisons/s ahead at 48 "
            "cores.",
            (
                Claim(
                    "ScaleJoin over handshake join, 48 threads (4 over 1.5 billion)",
                    4 / 1.5,
                    times("ScaleJoin", "handshake join", 48),
                ),
            ),
        ),
        Figure(
            "7a",
            "ScaleGate",
            "the physical sources, and the readers",
            "The gate alone on one thread, batches of 10,000 rows, times drawn at random. Data: generated.",
            Axis("sources", 2),
            Axis("rows/s", 10),
            _gate,
            "The gate merges far more rows than the threads behind it can compare.",
            "Rows of one source come in batches here, and one by one in the paper.",
            (Claim("most rows/s", 150_000, extreme("1 reader"), "", "value"),),
            (Point("S2", 16, 150_000),),
        ),
        Figure(
            "7b",
            "Latency over threads",
            "the threads; percentiles; figure 7c is the same on S2",
            f"`ScaleJoin` in one process, windows of 2^16, at half of the rate that one thread keeps up with. {DATA} "
            f"The bands are ten "
            "times as wide, so that most batches have a result.",
            THREAD_AXIS,
            Axis("ms"),
            _latency,
            "Latency is that of a batch and of the one that lets it pass the gate.",
            "The paper measures at the highest rate, on as many cores as threads; with two cores more threads only "
            "take turns.",
            (Claim("greatest latency, 99 %", 70, extreme("99 %"), "ms", "value"),),
        ),
        _skewed(
            "a",
            "Sources of distinct constant rates",
            "time; 1 source of R with 1,200 rows/s, 4 of S with 900 together; 10 threads",
            _constant,
            (1, 4, 10),
            "The paper does not say whether 900 rows/s is each source of S or all: 65 million comparisons/s of each "
            "thread fit all.",
        ),
        _skewed(
            "b",
            "Sources of fluctuating rates",
            "time; 3 sources of R and 2 of S, each a sine of its own; 12 threads",
            _fluctuating,
            (3, 2, 12),
            "The amplitudes and periods are ours: the text does not print them.",
        ),
        _skewed(
            "c",
            "Sources with peaks",
            "time; 4 sources of R and 2 of S, each with a peak of 2,000 rows every 30 s; 14 threads",
            _peaks,
            (4, 2, 14),
            "The rates and peaks are ours: the text does not print them.",
        ),
    ),
    (NotCovered("5d-5f, 7c", "The same measurements on the paper's second machine."),),
)
