"""The figures of the PIM-Tree paper, 8 to 13."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.chart import Axis
from benchmarks.index_workloads import KEY_SPACE, Workload
from benchmarks.papers import joins, trees
from benchmarks.papers.figure import Claim, Figure, NotCovered, Paper, Point, best_place, extreme, growth, times
from indexes import BPlusTree, ChainedIndex, IMTree, Keys, PIMTree
from operators import Engine, IndexJoin, ScaleJoin

RATE = Axis("tuples/s", 10)
WORKED = Axis("tuples/s of processor time", 10)
WINDOW = Axis("rows of a window", 2)
RATIO = Axis("merge ratio", 2)
GENERATED = "Data: generated, uniform 32-bit keys, two matches for each tuple, as in the paper."
ALONE = f"An index alone on one thread: each tuple probes the other window and enters its own. {GENERATED}"
WHOLE = f"The whole join in one process, batch in to result batch out. {GENERATED}"

B_TREE = "B+-tree"
BATCHES = (
    "Ours takes micro-batches of 10,000 rows, sorted by key, so a search shares most of its way with the one before."
)


def _b_tree(_: Workload) -> BPlusTree:
    return BPlusTree()


def _im_tree(workload: Workload, ratio: float = 1 / 16) -> IMTree:
    return IMTree(workload.window, merge_ratio=ratio)


def _pim_tree(workload: Workload, ratio: float = 1 / 16, depth: int = 2) -> PIMTree:
    return PIMTree(workload.window, merge_ratio=ratio, insertion_depth=depth)


TREES: trees.Makes = {B_TREE: _b_tree, "IM-Tree": _im_tree, "PIM-Tree": _pim_tree}


def _round_robin(quick: bool) -> Iterator[Point]:
    engines: dict[str, Engine] = {
        "nested loop, 1 thread": ScaleJoin(1),
        "nested loop, 2 threads round robin": ScaleJoin(2),
        "B+-tree, 1 thread": IndexJoin("BPlusTree", 1),
        "B+-tree, 2 threads round robin": ScaleJoin(2, "BPlusTree"),
    }
    for exponent in (12, 14) if quick else (14, 16, 18):
        for name, engine in engines.items():
            count = 1 << (14 if quick else 16)
            if "nested" in name:
                count = min(count, (1 << 32) >> exponent)
            run = trees.band_run(engine, 1 << exponent, 1 << 12, count)
            yield Point(name, float(1 << exponent), run.rate)


def _chains(quick: bool) -> Iterator[Point]:
    window = 1 << (16 if quick else 20)
    workload = Workload(window, trees.BATCH)
    tuples = 200_000 if quick else 600_000
    plain = trees.measured(workload, _b_tree, tuples, 5.0).rate
    for length in (2, 4, 8) if quick else (2, 3, 4, 6, 8, 12, 16):
        yield Point(B_TREE, length, plain)
        for design in ("B-chain", "IB-chain"):

            def make(each: Workload, length: int = length, design: str = design) -> ChainedIndex:
                return ChainedIndex(each.window, length, "B-chain" if design == "B-chain" else "IB-chain")

            yield Point(design, length, trees.measured(workload, make, tuples, 2.5).rate)


def _depths(quick: bool) -> Iterator[Point]:
    for depth in (1, 2, 3, 4):
        for exponent in (14, 16) if quick else (16, 18, 20):
            workload = trees.windows([exponent])[float(1 << exponent)]
            make = partial(_pim_tree, depth=depth)
            yield Point(f"window 2^{exponent}", depth, trees.measured(workload, make, 600_000, 2.0).rate)


def _ratios(tree: Callable[..., IMTree | PIMTree], quick: bool) -> Iterator[Point]:
    for ratio in (-4, -2) if quick else range(-6, 1):
        for exponent in (14, 16) if quick else (16, 18, 20, 22):
            workload = trees.windows([exponent])[float(1 << exponent)]
            rows = min(1 << 21, max(600_000, 4 * workload.window))
            make = partial(tree, ratio=2.0**ratio)
            rate = trees.measured(workload, make, 200_000 if quick else rows, 2.0).rate
            yield Point(f"window 2^{exponent}", 2.0**ratio, rate)


STEPS = ("probe", "insert and merge", "delete")


def _costs(quick: bool) -> Iterator[Point]:
    for exponent in (14,) if quick else (17, 22):
        workload = trees.windows([exponent])[float(1 << exponent)]
        for name, make in TREES.items():
            run = trees.measured(workload, make, 400_000 if quick else 4_000_000, 8.0)
            for place, seconds in enumerate((run.probe, run.insert, run.expire)):
                yield Point(f"{name}, 2^{exponent}", place, seconds * 1e9)


def _windows(quick: bool) -> Iterator[Point]:
    exponents = (12, 14, 16) if quick else (12, 14, 16, 18, 20, 22)
    yield from trees.index_rates(TREES, trees.windows(exponents), 300_000 if quick else 2_000_000, 2.0)


def _match_rates(quick: bool) -> Iterator[Point]:
    window = 1 << (16 if quick else 20)
    places = (-4, 1, 5) if quick else (-4, -1, 2, 4, 6, 8, 10)
    workloads = {2.0**rate: Workload(window, trees.BATCH, 2.0**rate) for rate in places}
    yield from trees.index_rates(TREES, workloads, 100_000 if quick else 400_000, 1.2)


def _task_sizes(latency: bool, quick: bool) -> Iterator[Point]:
    """The median latency at half of a rate that all sizes reach, or the rate."""
    window, batch = 1 << (14 if quick else 18), 1 << 13
    for rows in (1 << 8, 1 << 12) if quick else (1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 13):
        engine = IndexJoin("PIMTree", 2, task_rows=rows)
        run = trees.band_run(engine, window, batch, 1 << (15 if quick else 18), 200_000 if latency else None)
        if latency:
            yield Point("50 %", rows, run.latency[0])
            yield Point("95 %", rows, run.latency[2])
        else:
            yield Point("PIM-Tree, 2 threads", rows, run.rate)


def _memory(quick: bool) -> Iterator[Point]:
    for exponent in (14, 16) if quick else (16, 18, 20, 22):
        workload = Workload(1 << exponent, trees.BATCH)
        rng = np.random.default_rng(1)
        for name, index in ((B_TREE, _b_tree(workload)), ("PIM-Tree, ratio 1", _pim_tree(workload, 1.0))):
            for first in range(0, 2 * workload.window, trees.BATCH):
                index.insert([Keys(workload.keys(rng, first, trees.BATCH))])
                index.expire(max(0, index.next_position - workload.window))
            yield Point(name, float(1 << exponent), index.nbytes / workload.window)


Measured = Callable[[Engine, int, int, int], joins.Run]
"""A run of an engine: with windows of so many rows, in batches of so many, and so many measured."""


def _threads(quick: bool) -> Iterator[Point]:
    window, batch = 1 << (16 if quick else 20), 1 << 16
    count = 1 << (17 if quick else 20)
    kinds: dict[str, Measured] = {"two-way join": trees.band_run, "self-join": trees.self_run}
    for name, run in kinds.items():
        single = run(IndexJoin("IMTree", 1), window, batch, count).rate
        for threads in (1, 2, 4):
            yield Point(f"{name}, PIM-Tree", threads, run(IndexJoin("PIMTree", threads), window, batch, count).rate)
            yield Point(f"{name}, no concurrency control", threads, single)


def _parallel(run: Measured, quick: bool) -> Iterator[Point]:
    engines = {
        "B+-tree, 1 thread": IndexJoin("BPlusTree", 1),
        "PIM-Tree, 1 thread": IndexJoin("PIMTree", 1),
        "PIM-Tree, 2 threads": IndexJoin("PIMTree", 2),
    }
    for exponent in (12, 14) if quick else (12, 14, 16, 18, 20):
        for name, engine in engines.items():
            batch = min(1 << 16, 1 << exponent)
            yield Point(name, float(1 << exponent), run(engine, 1 << exponent, batch, 1 << (15 if quick else 18)).rate)


DISTRIBUTIONS = ("uniform", "gaussian", "gamma 3 3", "gamma 1 5")


def _distributions(quick: bool) -> Iterator[Point]:
    window = 1 << (16 if quick else 20)
    for place, kind in enumerate(DISTRIBUTIONS):
        workload = Workload(window, trees.BATCH, distribution=kind)  # type: ignore[arg-type]
        yield Point("PIM-Tree", place, trees.measured(workload, _pim_tree, 200_000 if quick else 2_000_000, 5.0).rate)


def _shifting(speed: float, rows: int, first: int, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Keys of three phases, 3 : 10 : 3 of `rows`: the mean stays, moves by `speed`, and stays again."""
    at = np.arange(first, first + batch) / rows
    mean = 0.5 + speed * np.clip((at - 3 / 16) / (10 / 16), 0.0, 1.0)
    # Theirs is a variance: the deviation is its root. The key space holds the whole way of the mean.
    return ((mean + rng.normal(0, 0.125**0.5, batch) + 2) / 5 * KEY_SPACE).astype(np.int64)


FULLEST = "fullest partition"


def _shares(quick: bool) -> Iterator[Point]:
    """The share of inserts in the fullest partitions during the second phase: one, 10 and 30 % of the partitions."""
    window = 1 << (15 if quick else 19)
    rows = 16 * window
    for speed in (0.0, 1.0) if quick else (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        rng = np.random.default_rng(1)
        index = PIMTree(window, merge_ratio=1.0, insertion_depth=3)
        shares: list[np.ndarray] = []
        batch = window // 8
        for first in range(0, rows, batch):
            before = index.recent
            index.insert([Keys(_shifting(speed, rows, first, batch, rng))])
            index.expire(max(0, index.next_position - window))
            after = index.recent
            if 3 * rows // 16 <= first < 13 * rows // 16 and len(after) == len(before) and after.sum() > before.sum():
                shares.append(np.sort(after - before)[::-1] / (after - before).sum())
        yield Point(FULLEST, speed, float(np.mean([each[0] for each in shares])) * 100)
        for share in (0.1, 0.3):
            met = [each[: max(1, round(share * len(each)))].sum() for each in shares]
            yield Point(f"fullest {share:.0%} of partitions", speed, float(np.mean(met)) * 100)


def _recovering(quick: bool) -> Iterator[Point]:
    window = 1 << (14 if quick else 18)
    rows = 16 * window
    for speed in (0.0, 1.0) if quick else (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        rng = np.random.default_rng(1)
        keys = _shifting(speed, rows, 0, rows, rng)
        phases = {"first phase": (0, 3), "second phase": (3, 13), "third phase": (13, 16)}
        for name, (first, end) in phases.items():
            begin = max(0, first * window - window)
            part = keys[begin : end * window]
            filling = first * window - begin or window
            run = trees.self_run(IndexJoin("PIMTree", 2), filling, 1 << 13, len(part) - filling, part)
            yield Point(name, speed, run.worked)


PAPER = Paper(
    "pim-tree",
    "PIM-Tree: Parallel Index-based Stream Join on a Multicore CPU",
    "an Intel Xeon E5-2665, 8 cores, 16 hardware threads; all 16 are used where threads do not vary",
    (
        Figure(
            "8a",
            "Windows divided round robin among threads",
            "the window; nested loop or B+-tree; one thread, or two that divide the window",
            f"{WHOLE} `ScaleJoin` divides the window, `IndexJoin` does not. The paper uses 16 threads.",
            WINDOW,
            RATE,
            _round_robin,
            "Dividing a window helps a nested loop, whose work is the window, and hardly helps an index, whose every "
            "part "
            "must be searched.",
            "Our nested loop compares 16-bit codes in vectors and is far ahead of the paper's at small windows. "
            "Bw-tree has "
            "no counterpart here.",
            (
                Claim(
                    "nested loop, divided among 16 threads over 1 (ours 2)",
                    8,
                    times("nested loop, 2 threads round robin", "nested loop, 1 thread"),
                ),
                Claim(
                    "B+-tree, divided among 16 threads over 1 (ours 2)",
                    2.5,
                    times("B+-tree, 2 threads round robin", "B+-tree, 1 thread"),
                ),
            ),
        ),
        Figure(
            "8b",
            "Chained index over chain length",
            "the length of the chain; archived subindexes that stay B+-trees or become immutable",
            ALONE,
            Axis("chain length"),
            WORKED,
            _chains,
            "The shortest chain is the best, because every subindex is searched.",
            BATCHES,
            (
                Claim("IB-chain over B-chain, mean over lengths", 1.5, times("IB-chain", "B-chain")),
                Claim("best length of the B-chain", 2, best_place("B-chain"), "", "value"),
                Claim("best length of the IB-chain", 2, best_place("IB-chain"), "", "value"),
            ),
        ),
        Figure(
            "8c",
            "Insertion depth, one thread",
            "the depth whose nodes define the partitions of PIM-Tree; the window",
            ALONE,
            Axis("insertion depth"),
            WORKED,
            _depths,
            "With one thread, more partitions cost more than the smaller trees save.",
            BATCHES,
        ),
        Figure(
            "9b",
            "Merge ratio of IM-Tree, one thread",
            "the merge ratio, and the window",
            ALONE,
            RATIO,
            WORKED,
            partial(_ratios, _im_tree),
            "Merging very often rewrites the large tree for few rows; merging seldom makes the small one large.",
            f"{BATCHES} The paper's largest window is 2^23, ours 2^22.",
            (
                Claim("best ratio at window 2^16", 1 / 8, best_place("window 2^16"), "", "value"),
                Claim("best ratio at the largest window", 1 / 16, best_place("window 2^22"), "", "value"),
            ),
        ),
        Figure(
            "9c",
            "Merge ratio of PIM-Tree, one thread",
            "the merge ratio, and the window",
            ALONE,
            RATIO,
            WORKED,
            partial(_ratios, _pim_tree),
            "As figure 9b.",
            f"{BATCHES} The paper's largest window is 2^23, ours 2^22.",
            (
                Claim("best ratio at window 2^16", 1 / 8, best_place("window 2^16"), "", "value"),
                Claim("best ratio at the largest window", 1 / 16, best_place("window 2^22"), "", "value"),
            ),
        ),
        Figure(
            "10a",
            "Cost of the steps for one tuple",
            "the step; the tree; the window (the paper: 2^17 and 2^23, ours 2^17 and 2^22)",
            f"{ALONE} Merging is a part of our inserts, search and scan together are our probe.",
            Axis("", names=STEPS),
            Axis("ns per tuple"),
            _costs,
            "Merge trees insert and delete more cheaply than a B+-tree, the more so in large windows.",
            "Our B+-tree inserts sorted batches, which helps it more than the merge trees.",
            (
                Claim("inserts of PIM-Tree over B+-tree, 2^17", 1.5, times("B+-tree, 2^17", "PIM-Tree, 2^17", 1)),
                Claim(
                    "inserts of PIM-Tree over B+-tree, largest window",
                    2.6,
                    times("B+-tree, 2^22", "PIM-Tree, 2^22", 1),
                ),
            ),
        ),
        Figure(
            "10b",
            "Three trees over window size, one thread",
            "the window and the tree",
            ALONE,
            WINDOW,
            WORKED,
            _windows,
            "Merge trees are ahead of the B+-tree, and the distance grows with the window.",
            BATCHES,
            (
                Claim("IM-Tree over B+-tree, mean over windows", 1.5, times("IM-Tree", B_TREE)),
                Claim("PIM-Tree over B+-tree, mean over windows", 1.63, times("PIM-Tree", B_TREE)),
            ),
        ),
        Figure(
            "10c",
            "Match rate, one thread",
            "the matches of a tuple, and the tree",
            f"{ALONE} Here the matches vary.",
            Axis("matches per tuple", 2),
            WORKED,
            _match_rates,
            "Up to about 16 matches the search decides, beyond that writing the matches does, and the trees draw "
            "level.",
            BATCHES,
            (Claim("PIM-Tree from 2^-4 to 2^4 matches", 1, growth("PIM-Tree", 2.0**-4, 2.0**4)),),
        ),
        Figure(
            "11a",
            "Task size and throughput",
            "the rows of a work item, which the paper calls a task",
            f"{WHOLE} Two threads.",
            Axis("rows of a work item", 2),
            RATE,
            partial(_task_sizes, False),
            "An item must hold enough rows that taking it costs nothing.",
            "The paper's items are 1 to 10 tuples, ours hundreds to thousands: rows come in batches and a thread "
            "sorts its item.",
        ),
        Figure(
            "11b",
            "Task size and latency",
            "the rows of a work item; percentiles of latency at 200,000 rows/s",
            f"{WHOLE} Two threads; latency runs from when a batch of 8,192 rows was due until a result was read.",
            Axis("rows of a work item", 2),
            Axis("ms"),
            partial(_task_sizes, True),
            "The paper's latency grows with the task. Ours is that of the batch, so it need not.",
            "A batch of 8,192 rows is answered as a step, however it is cut; half of the batches also wait for the "
            "next one.",
        ),
        Figure(
            "11c",
            "Memory per row",
            "the window and the tree",
            f"An index alone, of which old rows have expired. {GENERATED}",
            WINDOW,
            Axis("bytes per row of the window"),
            _memory,
            "At merge ratio 1, PIM-Tree holds up to twice the window and a copy while it merges.",
            "Our entries are 8-byte keys and 8-byte positions, the paper's 4 and 4.",
            (Claim("PIM-Tree over B+-tree, mean over windows", 2, times("PIM-Tree, ratio 1", B_TREE)),),
        ),
        Figure(
            "12a",
            "Threads, and the price of concurrency control",
            "the threads that share the index; two-way join or self-join",
            f"{WHOLE} Without concurrency control: IM-Tree, one thread. Window 2^20, batches of 2^16.",
            Axis("threads"),
            RATE,
            _threads,
            "A second thread gains what the gate, the router and the collector leave of the second core.",
            "The paper has 8 cores, this machine 2, and the paper's join has no gate and no ordered results to make.",
            (
                Claim(
                    "two-way join without concurrency control over PIM-Tree with 1 thread",
                    1 / 0.6,
                    times("two-way join, no concurrency control", "two-way join, PIM-Tree", 1),
                ),
                Claim(
                    "two-way join, most threads over 1 (paper 8, ours 4 on 2 cores)",
                    4.6,
                    growth("two-way join, PIM-Tree"),
                ),
                Claim("self-join, most threads over 1 (paper 8, ours 4 on 2 cores)", 4, growth("self-join, PIM-Tree")),
            ),
        ),
        Figure(
            "12b",
            "Two-way join over window size",
            "the window; tree and threads",
            WHOLE,
            WINDOW,
            RATE,
            partial(_parallel, trees.band_run),
            "The index that threads share pays once the window is large enough that merges are rare.",
            "Two threads instead of 16. Bw-tree has no counterpart here.",
            (
                Claim("parallel PIM-Tree over B+-tree, mean", 7.5, times("PIM-Tree, 2 threads", "B+-tree, 1 thread")),
                Claim("parallel PIM-Tree over 1 thread, mean", 3.7, times("PIM-Tree, 2 threads", "PIM-Tree, 1 thread")),
            ),
        ),
        Figure(
            "12c",
            "Self-join over window size",
            "the window; tree and threads",
            WHOLE,
            WINDOW,
            RATE,
            partial(_parallel, trees.self_run),
            "As figure 12b.",
            "Two threads instead of 16.",
            (
                Claim("parallel PIM-Tree over B+-tree, mean", 7, times("PIM-Tree, 2 threads", "B+-tree, 1 thread")),
                Claim("parallel PIM-Tree over 1 thread, mean", 4, times("PIM-Tree, 2 threads", "PIM-Tree, 1 thread")),
            ),
        ),
        Figure(
            "13a",
            "Distributions of keys",
            "the distribution; the band gives two matches in each",
            f"An index alone on one thread, window 2^20. {GENERATED.replace('uniform 32-bit', '32-bit')}",
            Axis("", names=DISTRIBUTIONS),
            WORKED,
            _distributions,
            "Skew that stays costs next to nothing: partitions follow the keys.",
            "The paper measures 16 threads, where uniform keys are 2 % and 4 % ahead of Gaussian and Gamma ones.",
            (
                Claim("uniform over Gaussian", 1.02, growth("PIM-Tree", 1, 0)),
                Claim("uniform over Gamma (3, 3)", 1.04, growth("PIM-Tree", 2, 0)),
                Claim("uniform over Gamma (1, 5)", 1.04, growth("PIM-Tree", 3, 0)),
            ),
        ),
        Figure(
            "13b",
            "Inserts among partitions while the mean shifts",
            "the speed of the shift in the second of three phases",
            "PIM-Tree alone, merge ratio 1, partitions at depth 3. Data: generated as in the paper, Gaussian, three "
            "phases.",
            Axis("speed r of the shift"),
            Axis("% of inserts"),
            _shares,
            "The faster the mean moves, the more inserts fall into the last few partitions.",
            "We take the variance 0.125 as printed, a window of 2^19 and depth 3 instead of 4. With that variance "
            "few keys leave "
            "the range of the window before, whatever r is, so inserts are less skewed than the paper says.",
            (Claim("% of inserts in one partition at r = 1", 77, extreme(FULLEST), "%", "value"),),
        ),
        Figure(
            "13c",
            "Self-join while the mean shifts",
            "the speed of the shift; the phase",
            "The whole self-join, window 2^18, two threads, by processor time. Data: generated as in the paper.",
            Axis("speed r of the shift"),
            WORKED,
            _recovering,
            "Once the distribution stands still again, the partitions follow and the rate recovers.",
            "With two threads there is little to wait for at a lock, so the second phase hardly slows down; the "
            "paper's 16 fall "
            "to 35 % and 16 % of the rate.",
            (Claim("third phase over first, all speeds", 1, times("third phase", "first phase")),),
        ),
    ),
    (
        NotCovered(
            "9a, 9d", "Not yet: they need a PIM-Tree with settings in `IndexJoin`, which takes the name of an index."
        ),
        NotCovered("8a, 12b: Bw-tree", "There is no Bw-tree here; the paper takes it from elsewhere as a baseline."),
        NotCovered("12b: blocking merge", "Not yet: needs a PIM-Tree with settings in `IndexJoin`."),
    ),
)
