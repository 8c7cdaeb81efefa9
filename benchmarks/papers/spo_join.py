"""The figures of the SPO-Join paper, 7 to 23."""

from __future__ import annotations

from functools import partial

from benchmarks.chart import Axis
from benchmarks.papers import spo_runs as runs
from benchmarks.papers.figure import Claim, Figure, NotCovered, Paper, at, extreme, growth, times
from operators import Engine

SLIDE = Axis("rows of a slide")
PART = Axis("rows/s of the time that a part works", 10)
RATE = Axis("tuples/s", 10)
MS = Axis("ms", 10)
PERCENTILE = Axis("", names=("50 %", "75 %", "95 %", "99 %", "all"))
WINDOW = Axis("rows of a window", 10)

BUSY = "Throughput of a part is rows over the time that its elements work; bit arrays are not measured, see below."
TAXI = "Data: recorded, green taxi trips of January 2023; the paper's 172 million trips are not to be had."
READINGS = (
    "Data: generated, power and cooling of two data centres; the paper's BLOND readings are not to be had at this size."
)
TRIPS = "Data: generated trips, whose fare follows the distance, as in the paper's synthetic set."
TENTH = "The window is ten slides."
MACHINES = "The paper runs on 10 machines under Storm, tuple by tuple; ours in one process, in batches."
SCALED = f"Our slides are a hundredth of the paper's, because hash sets take quadratic time. {MACHINES}"
PO, CSS = "immutable, PO-Join", "immutable, CSS-tree"
RANGES, HASHES = "mutable, ranges", "mutable, hash sets"
HASH_CONCLUSION = (
    "Intersecting ranges of ranks is far cheaper than hash sets, whose size is that of each predicate's answer; "
    "scanning a "
    "permutation beats visiting the leaves of a tree per predicate."
)


def _latency(
    number: str, title: str, designs: dict[str, Engine], window: int, claims: tuple[Claim, ...], what: str
) -> Figure:
    return Figure(
        number,
        title,
        "the share of results that have come; the design",
        f"Q1 at {runs.OFFERED:,} rows/s for all designs, window of {window:,}, some {window * 280 / 1_000_000:.0f} "
        f"matches per "
        f"row; latency runs from when a batch of 500 was due until the result was read. {READINGS}",
        PERCENTILE,
        MS,
        partial(runs.latencies, designs, window),
        what,
        f"{MACHINES} Its latencies are those of queues that grow: tens of seconds. Ours are of a rate that the "
        f"faster designs hold.",
        claims,
    )


PAPER = Paper(
    "spo-join",
    "SPO-Join: Efficient Stream Inequality Join",
    "10 machines with 4 to 12 GB, Apache Storm 2.4.0, Kafka and Redis",
    (
        Figure(
            "7",
            "Q3, self-join: both parts by design",
            "the slide; how the mutable part intersects, and the structure of the immutable one",
            f"Q3, {TENTH.lower()} {BUSY} {TAXI}",
            SLIDE,
            PART,
            runs.self_join_parts,
            HASH_CONCLUSION,
            SCALED,
            (
                Claim("PO-Join over CSS-tree with bits (first of four windows)", 16, times(PO, CSS)),
                Claim("ours over hash sets, mutable, slide of 60K (ours 600)", 19, times(RANGES, HASHES, 600)),
                Claim("ours over hash sets, mutable, slide of 100K (ours 1,000)", 44, times(RANGES, HASHES, 1000)),
            ),
        ),
        Figure(
            "8",
            "Q2, band join with time windows: both parts by design",
            "the slide in minutes; the designs",
            f"Q2, windows of 5 slides. {BUSY} Data: recorded, the DEBS 2015 sample of 10,004 taxi trips.",
            Axis("minutes of a slide"),
            PART,
            runs.band_parts,
            "Bands leave few rows in each dimension, so the designs are closer to each other than with inequalities.",
            f"Half of the trips meet each other within the paper's band of 0.03 degrees, so writing pairs is most of "
            f"the work. {MACHINES}",
            (
                Claim("PO-Join over CSS-tree, slide of 1 min", 1.5, times(PO, CSS, 1)),
                Claim("ours over hash sets, mutable, slide of 1 min", 7, times(RANGES, HASHES, 1)),
                Claim("ours over hash sets, mutable, slide of 5 min", 4.9, times(RANGES, HASHES, 5)),
            ),
        ),
        Figure(
            "9",
            "Q1, cross join: both parts by design",
            "the slide; the designs",
            f"Q1, {TENTH.lower()} {BUSY} {READINGS}",
            SLIDE,
            PART,
            runs.cross_parts,
            HASH_CONCLUSION,
            SCALED,
            (
                Claim("PO-Join over CSS-tree, slide of 100K (ours 1,000)", 12, times(PO, CSS, 1000)),
                Claim("PO-Join over CSS-tree, slide of 200K (ours 2,000)", 19, times(PO, CSS, 2000)),
                Claim("ours over hash sets, mutable, slide of 100K (ours 1,000)", 4.6, times(RANGES, HASHES, 1000)),
                Claim("ours over hash sets, mutable, slide of 200K (ours 2,000)", 5.2, times(RANGES, HASHES, 2000)),
            ),
        ),
        _latency(
            "10a",
            "Q1: latency by design",
            runs.DESIGNS,
            5_000,
            (
                Claim(
                    "CSS-tree over PO-Join, 50 % (49 over 37 s)",
                    49 / 37,
                    times("ranges, CSS-tree", "ranges, PO-Join", 0),
                ),
                Claim(
                    "CSS-tree over PO-Join, 75 % (80 over 62 s)",
                    80 / 62,
                    times("ranges, CSS-tree", "ranges, PO-Join", 1),
                ),
                Claim(
                    "hash sets over ours, 50 % (173 over 109 s)",
                    173 / 109,
                    times("hash sets, PO-Join", "ranges, PO-Join", 0),
                ),
            ),
            "A design that does not keep up falls behind without limit; the others answer within a few batches.",
        ),
        _latency(
            "10c",
            "Q1: latency by the size of segments",
            runs.MERGING,
            50_000,
            (
                Claim(
                    "a slide over a part of it, 50 %", 70, times("segments of a slide", "of a slide over 4 elements", 0)
                ),
            ),
            "Smaller segments are built faster, but each probe searches more of them.",
        ),
        Figure(
            "11a",
            "Q3: latency of SPO-Join and the chained index",
            "the share of results that have come; the immutable structure",
            f"Q3 at {runs.OFFERED // 4:,} rows/s, window of 10,000. {TAXI}",
            PERCENTILE,
            MS,
            runs.self_latencies,
            "A chained index searches every subindex, PO-Join few segments.",
            MACHINES,
            (Claim("chained index over SPO-Join, 95 %, smallest slide", 7, times("chained index", "SPO-Join", 2)),),
        ),
        Figure(
            "11b",
            "Q3: throughput of SPO-Join and SplitJoin",
            "the slide, and the engine",
            f"The whole join in one process. {TENTH} {TAXI}",
            SLIDE,
            RATE,
            partial(runs.partitioned, "Q3"),
            "A nested loop compares with the whole window.",
            f"A taxi trip has hundreds of matches even in these windows, whose writing costs all engines alike. "
            f"{MACHINES}",
            (Claim("SPO-Join over SplitJoin, slide of 50K (ours 2,000)", 71, times("SPO-Join", "SplitJoin", 2000)),),
        ),
        _latency(
            "11c",
            "Q1: latency of SPO-Join and the chained index",
            runs.CHAINED,
            20_000,
            (
                Claim("chained index over SPO-Join, 75 %, smallest slide", 12.2, times("chained index", "SPO-Join", 1)),
                Claim("chained index over SPO-Join, 95 %, smallest slide", 14.1, times("chained index", "SPO-Join", 2)),
            ),
            "As figure 11a.",
        ),
        Figure(
            "11d",
            "Q1: throughput of SPO-Join and SplitJoin",
            "the slide, and the engine",
            f"The whole join in one process. {TENTH} {READINGS}",
            SLIDE,
            RATE,
            partial(runs.partitioned, "Q1"),
            "With few matches, searching is nearly everything, and sorted structures show it.",
            MACHINES,
            (Claim("SPO-Join over SplitJoin, mean", 43, times("SPO-Join", "SplitJoin")),),
        ),
        Figure(
            "12",
            "Insertion",
            "the window, of which a tenth is inserted; the structure",
            f"Structures alone, batches of 5,000 rows with two keys. {READINGS}",
            WINDOW,
            Axis("ns per row"),
            runs.insertion,
            "What is inserted into a part that holds a tenth of the window is inserted faster.",
            "The paper's windows go to 50 million, ours to 4. It does not say whether merging counts; ours leaves it "
            "to another element.",
            (
                Claim("B+-tree over SPO-Join, smallest window", 1.15, times("B+-tree", "SPO-Join", 500_000)),
                Claim("PIM-Tree over SPO-Join, smallest window", 1 / 1.3, times("PIM-Tree", "SPO-Join", 500_000)),
                Claim("PIM-Tree over SPO-Join, largest window", 1.5, times("PIM-Tree", "SPO-Join", 4_000_000)),
                Claim("B+-tree over SPO-Join, largest window", 1.7, times("B+-tree", "SPO-Join", 4_000_000)),
            ),
        ),
        Figure(
            "13",
            "Memory",
            "the window, and the structure",
            f"Structures alone with two keys, after a probe has made what probes need. {READINGS}",
            WINDOW,
            Axis("bytes per row"),
            runs.memory,
            "Arrays need no room to spare and no inner nodes.",
            "A PIM-Tree is one per key; PO-Join shares positions between keys and adds a permutation.",
            (
                Claim("PIM-Tree over SPO-Join, small windows", 1.5, times("PIM-Tree", "SPO-Join", 500_000)),
                Claim("PIM-Tree over SPO-Join, large windows", 2.5, times("PIM-Tree", "SPO-Join", 4_000_000)),
            ),
        ),
        Figure(
            "14",
            "Match rate and throughput",
            "the matches of a row",
            f"Q3, window of 50,000. {BUSY} {TRIPS}",
            Axis("matches per row", 10),
            PART,
            runs.match_rates,
            "More matches cost more, in both parts.",
            f"The paper gives pairs of a whole run (15 to 249 million), so places cannot be compared. {MACHINES}",
            (Claim("mutable part, most matches over fewest (114 over 167)", 114 / 167, growth("mutable part")),),
        ),
        Figure(
            "15",
            "Match rate and greatest latency",
            "the matches of a row; elements, or threads of one element",
            f"Q3 at {runs.OFFERED:,} rows/s, window of 50,000. {TRIPS}",
            Axis("matches per row", 10),
            MS,
            runs.match_latencies,
            "The greatest latency is that of a batch that meets a merge or waits for the batch before.",
            MACHINES,
            (
                Claim("elements, most matches over fewest (190 over 51 ms)", 190 / 51, growth("2 elements")),
                Claim("greatest latency with elements", 190, extreme("2 elements"), "ms", "value"),
                Claim("greatest latency with threads", 176, extreme("1 element, 2 threads"), "ms", "value"),
            ),
        ),
        Figure(
            "17",
            "Elements",
            "the PO-Join elements, of which each has a processor",
            "Q3, window of 100,000, some 10 matches per row. A processor for each element: processor time is "
            "measured, and the busiest "
            f"decides. {TRIPS}",
            Axis("PO-Join elements", 2),
            RATE,
            runs.elements,
            "The immutable part divides well among elements, until gate, router and mutable part set the limit.",
            f"Every element gets every row, and searches its segments only. {MACHINES}",
            (Claim("PO-Join elements, 20 over 1 (6,167 over 419)", 6167 / 419, growth("PO-Join elements")),),
        ),
        Figure(
            "18",
            "Right results of the mutable part",
            "the logical-AND elements",
            f"Q3 with the decomposed plan beside a nested loop. {TRIPS}",
            Axis("logical-AND elements"),
            Axis("% of the results"),
            runs.correctness,
            "All results are right, whatever the elements.",
            "The paper's 0.3 % and 8 % are without its table of provenance, which we have no way to switch off: "
            "answers of a step "
            "always meet at one element, so its 100 % with the table is ours.",
            (Claim("with hash partitioning and the table", 100, extreme("right results", min), "%", "value"),),
        ),
        Figure(
            "19",
            "Results on expired rows",
            "the PO-Join elements, and the strategy of state management",
            f"Q3 beside a nested loop. {TRIPS}",
            Axis("PO-Join elements"),
            Axis("pairs that are not in the window"),
            runs.extra_results,
            "There are none: every probe row carries the positions that it may meet.",
            "The paper counts by how many rows its elements differ; 13 to 94 times fewer with the cache.",
        ),
        Figure(
            "20",
            "Merging",
            "the slide, which is a segment",
            f"Q3. {TENTH} Seconds that the permutation element works for a segment. {TRIPS}",
            SLIDE,
            Axis("ms"),
            runs.merging_cost,
            "Building a segment is sorting that is done already, and a permutation; it happens beside the stream.",
            f"The paper's 10 to 15 seconds include the network. {MACHINES}",
            (
                Claim("slide of 60K", 10_000, at("building a segment", 60_000), "ms", "value"),
                Claim("slide of 100K", 15_000, at("building a segment", 100_000), "ms", "value"),
            ),
        ),
        Figure(
            "21",
            "The share of the mutable part",
            "how much of the window a segment takes, which is what the mutable part collects before it",
            f"Q3, window of 200,000. {TRIPS}",
            Axis("% of the window in a segment"),
            RATE,
            runs.shares,
            "A small mutable part is cheaper, but makes more segments to search.",
            f"Our mutable part also answers for a segment while it is built. {MACHINES}",
            (Claim("mutable part, 50 % over 10 % (96 over 249)", 96 / 249, growth("mutable part", 10, 50)),),
        ),
        Figure(
            "22",
            "Equality: throughput of SPO-Join and a hash join",
            "the slide, and the engine",
            "Q1 with `=`, the whole join in one process, one match per row. The hash join is `IndexJoin` over a "
            "`HashIndex`. "
            f"{TENTH} Data: generated, uniform.",
            SLIDE,
            RATE,
            runs.equal_rates,
            "A hash join is for equality.",
            MACHINES,
            (
                Claim("hash join over SPO-Join, slide of 10K", 1.14, times("hash join", "SPO-Join", 10_000)),
                Claim("hash join over SPO-Join, slide of 50K", 6.8, times("hash join", "SPO-Join", 50_000)),
            ),
        ),
        Figure(
            "23",
            "Equality: greatest latency of SPO-Join and a hash join",
            "the slide, and the engine",
            "As figure 22, at 100,000 rows/s in batches of 2,000. Data: generated, uniform.",
            SLIDE,
            MS,
            runs.equal_latencies,
            "Both hold this rate, so the greatest latency is that of a merge or of the machine.",
            MACHINES,
            (
                Claim("SPO-Join over hash join, slide of 10K", 2.7, times("SPO-Join", "hash join", 10_000)),
                Claim("SPO-Join over hash join, slide of 50K", 2.02, times("SPO-Join", "hash join", 50_000)),
            ),
        ),
    ),
    (
        NotCovered("7-9: bit arrays", "Not yet: the mutable part intersects ranges or hash sets."),
        NotCovered("10b, 10d, 10e", "The same as 10a and 10c at other windows."),
        NotCovered(
            "11b, 11d: BCHJ", "Not yet: there is no broadcast hash join; the paper's is a nested loop like SplitJoin's."
        ),
        NotCovered("16", "It needs nine machines; figure 17 has the elements, each with a processor of its own."),
    ),
)
