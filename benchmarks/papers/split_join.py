"""The figures of the SplitJoin paper, 12 to 19."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import split_order
from benchmarks.chart import Axis
from benchmarks.papers import joins
from benchmarks.papers.cells import DATA, VIRTUAL, cell_run, timed_run
from benchmarks.papers.figure import Claim, Figure, NotCovered, Paper, Point, at, greatest_times, times
from operators import EveryK, HandshakeJoin, Ordering, SplitJoin

CORES = (1, 2, 4, 8, 16, 28)
CORE_AXIS = Axis("join cores", 2)
TUPLES = Axis("tuples/s", 10)
BATCH = 256

STAGES = {
    "distribution": ("gate", "router", "distribution"),
    "execution": ("join-core",),
    "collection": ("merger", "combiner"),
}
"""The stages of the paper's figure 14, and the elements of each here."""

FEWER = "The paper has 32 cores; here elements run one after another and their processor time is measured."


def _cores(quick: bool) -> tuple[int, ...]:
    return (1, 4) if quick else CORES


def _throughput(run: Callable[..., joins.Run], quick: bool) -> Iterator[Point]:
    window = 1 << (12 if quick else 17)
    for cores in _cores(quick):
        for name, engine in (("SplitJoin", SplitJoin(cores, fanout=2)), ("handshake join", HandshakeJoin(cores))):
            yield Point(name, cores, run(engine, window, 8 * BATCH, BATCH).rate)


def _visiting(quick: bool) -> Iterator[Point]:
    engines: dict[str, Callable[[int], SplitJoin | HandshakeJoin]] = {
        "SplitJoin": lambda cores: SplitJoin(cores, fanout=2),
        "handshake join": HandshakeJoin,
    }
    for cores in _cores(quick):
        for name, engine in engines.items():
            window = cores * (split_order.SUB_WINDOW if not quick else 256)
            yield Point(name, cores, 1e3 * split_order.virtual_latency(engine(cores), window, "strict", True))


def _stages(run: Callable[..., joins.Run], quick: bool) -> Iterator[Point]:
    """Microseconds per tuple of the busiest element of each stage."""
    window, measured = 1 << (12 if quick else 16), 8 * BATCH
    for cores in _cores(quick):
        busy = run(SplitJoin(cores, fanout=2), window, measured, BATCH).busy
        for stage, names in STAGES.items():
            most = max((each for name, each in busy.items() if name.startswith(names)), default=0.0)
            yield Point(stage, cores, most / (2 * measured) * 1e6)


def _count_windows(quick: bool) -> Iterator[Point]:
    for exponent in (10, 12) if quick else (14, 16, 18):
        for cores in _cores(quick):
            run = cell_run(SplitJoin(cores, fanout=2), 1 << exponent, 8 * BATCH, BATCH)
            yield Point(f"window 2^{exponent}", cores, run.rate)


def _selectivity(quick: bool) -> Iterator[Point]:
    """Bands of several widths, 28 cores."""
    for exponent in (10, 12) if quick else (14, 16, 18):
        for near in (10, 100) if quick else (1, 3, 10, 32, 100, 316):
            cores = 4 if quick else 28
            run = cell_run(SplitJoin(cores, fanout=2), 1 << exponent, 4 * BATCH, BATCH, near)
            share = ((2 * near + 1) / 10_000) ** 2
            yield Point(f"window 2^{exponent}", share, run.rate)


def _precision(quick: bool) -> Iterator[Point]:
    """Tuples between two stars; 1 is strict outer order, 0.5 stands for strict inner order."""
    orderings: dict[float, Ordering] = {
        0.5: "strict",
        1: "outer",
        16: EveryK(16),
        1024: EveryK(1024),
        16384: EveryK(16384),
    }
    for index in (None, "TieredRuns"):
        for place, ordering in orderings.items():
            rate, _ = split_order.throughput(SplitJoin(4, fanout=2, index=index), ordering, 2_000 if quick else 10_000)
            yield Point(f"{index or 'nested loop'} in the cores", place, rate)


PAPER = Paper(
    "split-join",
    "SplitJoin: A Scalable, Low-latency Stream Join Architecture with Adjustable Ordering Precision",
    "a Dell PowerEdge R820 with 4 Intel E5-4650, 32 cores",
    (
        Figure(
            "12",
            "Throughput of SplitJoin and handshake join",
            "the join cores, and the architecture; windows by time",
            f"{VIRTUAL} Windows of 2^17 rows by time, nested loop in the cores. {DATA}",
            CORE_AXIS,
            TUPLES,
            partial(_throughput, timed_run),
            "Both scale until the elements around the cores see as many rows as they can take.",
            f"{FEWER} Windows of 5, 10 and 15 minutes at the paper's rates hold up to 2^21 rows; ours 2^17. Our "
            f"chain sends no "
            "expiry messages, which cost the paper's handshake join most.",
            (Claim("SplitJoin over handshake join, at its best", 1.6, greatest_times("SplitJoin", "handshake join")),),
        ),
        Figure(
            "13",
            "Visiting latency of SplitJoin and handshake join",
            "the join cores, each with a sub-window of 4,096 rows",
            "A processor for each element, and 0.2 ms between two. Data: generated, a band with 300 matches per tuple.",
            CORE_AXIS,
            Axis("ms"),
            _visiting,
            "The latency of the tree grows with the logarithm of the cores, that of the chain with their number.",
            "The paper has fixed windows, so that its sub-windows shrink as cores are added; ours are fixed, as in "
            "its analysis "
            "(section 6). A hop of 0.2 ms is that of two Ray actors, far more than between two threads.",
            (
                Claim("handshake join over SplitJoin, 28 cores", 26.8 / 8.1, times("handshake join", "SplitJoin", 28)),
                Claim("SplitJoin, 28 cores", 8.1, at("SplitJoin", 28), "ms", "value"),
                Claim("handshake join, 28 cores", 26.8, at("handshake join", 28), "ms", "value"),
            ),
            (Point("SplitJoin", 28, 8.1), Point("handshake join", 28, 26.8)),
        ),
        Figure(
            "15",
            "Time in each stage, windows by time",
            "the join cores, and the stage",
            f"{VIRTUAL} Processor time of a stage's busiest element. Windows of 2^16 rows by time. {DATA}",
            CORE_AXIS,
            Axis("us per tuple", 10),
            partial(_stages, timed_run),
            "Execution shrinks with the cores; distribution and collection are what is left.",
            f"{FEWER} The paper measures how long a tuple waits in each stage; we measure how long a stage works on "
            f"it.",
        ),
        Figure(
            "16",
            "Throughput by size of count windows",
            "the join cores, and the rows of a window",
            f"{VIRTUAL} Nested loop in the cores. {DATA}",
            CORE_AXIS,
            TUPLES,
            _count_windows,
            "Doubling the window halves the rate as long as the cores decide.",
            f"{FEWER} The paper's windows go to 2^21 and beyond.",
        ),
        Figure(
            "17",
            "Selectivity",
            "the share of pairs that match, and the window; 28 cores",
            f"{VIRTUAL} Nested loop in the cores. {DATA} Here the bands vary.",
            Axis("share of pairs that match", 10),
            TUPLES,
            _selectivity,
            "Comparing decides until the results are many; then making them does.",
            f"{FEWER} The paper's windows are 28 sub-windows of up to 2^15 rows.",
        ),
        Figure(
            "18",
            "Time in each stage, count windows",
            "the join cores, and the stage",
            f"{VIRTUAL} Processor time of a stage's busiest element. Windows of 2^16 rows. {DATA}",
            CORE_AXIS,
            Axis("us per tuple", 10),
            partial(_stages, cell_run),
            "As figure 15; a window by time costs the router a little more.",
            f"{FEWER} The paper's two kinds of windows differ by the system call for each timestamp, which ours do "
            f"not make.",
        ),
        Figure(
            "19",
            "Ordering precision",
            "the tuples between two stars; 0.5 stands for strict order within a tuple's matches",
            "The whole join in one process, windows of 2^15, 4 cores, 300 matches per tuple. Data: generated, one "
            "band.",
            Axis("tuples between two stars", 2),
            TUPLES,
            _precision,
            "Order among tuples is nearly free; order within a tuple's matches costs the sort of the matches.",
            "The paper's stars come after so many comparisons within a tuple's sub-window; ours after whole tuples.",
        ),
    ),
    (
        NotCovered("14", "A diagram of the stages, not a measurement."),
        NotCovered(
            "19: stars within a tuple", "Not yet: a star every k comparisons is no ordering that a join can have."
        ),
    ),
)
