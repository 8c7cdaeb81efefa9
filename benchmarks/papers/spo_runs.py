"""What the figures of the SPO-Join paper measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from benchmarks.data import datacentre_readings
from benchmarks.papers import joins, queries
from benchmarks.papers.figure import Point
from indexes import BPlusTree, Interval, Keys, Live, PermutationOffsetJoin, PIMTree, SortedRun, TieredRuns, WindowIndex
from operators import Engine, IndexJoin, SplitJoin, SPOJoin, StreamJoin

MUTABLE_PARTS = ("mutable", "predicate", "logical-and")
IMMUTABLE_PARTS = ("po-join", "css-tree", "chained")

PARTS = ("mutable, ranges", "mutable, hash sets", "immutable, PO-Join", "immutable, CSS-tree")

Make = Callable[[Engine, int, int], tuple[StreamJoin, joins.Feed]]
"""A join with this engine, and its feed, for a size of the window and of its slide."""


def part_rates(make: Make, sizes: dict[float, tuple[int, int]], merging: bool) -> Iterator[Point]:
    """Rows per second of the time that each part works, for both designs of each part."""
    slides = {"merging": "slide"} if merging else {}
    ours = SPOJoin(mutable="decomposed", **slides)  # type: ignore[arg-type]
    theirs = SPOJoin(mutable="decomposed", intersection="hash set", **slides)  # type: ignore[arg-type]
    trees = SPOJoin(immutable="css-tree", **slides)  # type: ignore[arg-type]
    for x, (window, slide) in sizes.items():
        for name, engine, part in (
            (PARTS[0], ours, MUTABLE_PARTS),
            (PARTS[1], theirs, MUTABLE_PARTS),
            (PARTS[2], ours, IMMUTABLE_PARTS),
            (PARTS[3], trees, IMMUTABLE_PARTS),
        ):
            join, feed = make(engine, window, slide)
            yield Point(name, x, feed.measured / seconds_of(joins.run(join, feed), part))


def seconds_of(run: joins.Run, part: tuple[str, ...]) -> float:
    return sum(seconds for name, seconds in run.busy.items() if name.startswith(part)) or 1e-9


def self_join_parts(quick: bool) -> Iterator[Point]:
    def make(engine: Engine, window: int, slide: int) -> tuple[StreamJoin, joins.Feed]:
        return queries.q3(engine, window, slide, slide // 2), queries.q3_feed(window, 2 * slide, slide // 2)

    slides = (200, 400) if quick else (600, 700, 800, 900, 1000)
    yield from part_rates(make, {slide: (10 * slide, slide) for slide in slides}, True)


def band_parts(quick: bool) -> Iterator[Point]:
    def make(engine: Engine, window: int, slide: int) -> tuple[StreamJoin, joins.Feed]:
        return queries.q2(engine, window, slide, 250), queries.q2_feed(250, 2_000 if quick else None)

    yield from part_rates(make, {each: (5 * each, each) for each in ((1,) if quick else (1, 2, 3, 4, 5))}, False)


def cross_parts(quick: bool) -> Iterator[Point]:
    def make(engine: Engine, window: int, slide: int) -> tuple[StreamJoin, joins.Feed]:
        feed = queries.q1_feed(window, 2 * slide, slide // 2, noise=5.0)
        return queries.q1(engine, window, slide, slide // 2), feed

    slides = (100, 200) if quick else (500, 1000, 1500, 2000)
    yield from part_rates(make, {slide: (10 * slide, slide) for slide in slides}, True)


DESIGNS: dict[str, Engine] = {
    "ours: fused, PO-Join": SPOJoin(merging="slide"),
    "ranges, PO-Join": SPOJoin(mutable="decomposed", merging="slide"),
    "ranges, CSS-tree": SPOJoin(mutable="decomposed", immutable="css-tree", merging="slide"),
    "hash sets, PO-Join": SPOJoin(mutable="decomposed", intersection="hash set", merging="slide"),
}
MERGING: dict[str, Engine] = {
    "segments of a slide": SPOJoin(4, merging="slide"),
    "of a slide over 4 elements": SPOJoin(4, merging="sub-interval"),
}
CHAINED: dict[str, Engine] = {"SPO-Join": SPOJoin(), "chained index": SPOJoin(immutable="chained")}

OFFERED = 20_000
"""Rows/s that latency is measured at; a design that is slower falls behind, as in the paper."""


def latencies(designs: dict[str, Engine], window: int, quick: bool, measured: int = 20_000) -> Iterator[Point]:
    """Percentiles of Q1's latency in ms at the same rate for all designs."""
    window, batch = (2_000, 200) if quick else (window, 500)
    for name, engine in designs.items():
        feed = queries.q1_feed(window, 2_000 if quick else measured, batch, noise=5.0)
        run = joins.run(queries.q1(engine, window, window // 10, batch), feed, OFFERED)
        yield from (Point(name, place, value) for place, value in enumerate(run.latency))


def self_latencies(quick: bool) -> Iterator[Point]:
    window, batch, measured = (2_000, 200, 2_000) if quick else (10_000, 500, 10_000)
    for name, engine in CHAINED.items():
        join = queries.q3(engine, window, window // 10, batch)
        run = joins.run(join, queries.q3_feed(window, measured, batch), OFFERED / 4)
        yield from (Point(name, place, value) for place, value in enumerate(run.latency))


def partitioned(query: str, quick: bool) -> Iterator[Point]:
    """SPO-Join beside SplitJoin's nested loop."""
    engines: dict[str, Engine] = {"SPO-Join": SPOJoin(), "SplitJoin": SplitJoin(2)}
    for slide in (500,) if quick else (2_000, 4_000, 6_000) if query == "Q3" else (5_000, 10_000, 20_000):
        window, batch = 10 * slide, 500
        for name, engine in engines.items():
            if query == "Q3":
                join, feed = queries.q3(engine, window, slide, batch), queries.q3_feed(window, 4_000, batch)
            else:
                feed = queries.q1_feed(window, 1_000 if quick else 10_000, batch)
                join = queries.q1(engine, window, slide, batch)
            yield Point(name, slide, joins.run(join, feed).rate)


def _two_keys(rows: int, seed: int) -> list[Keys]:
    table = datacentre_readings(rows, queries.NOISE, seed)
    return [Keys(table["power"].to_numpy()), Keys(table["cool"].to_numpy())]


def insertion(quick: bool) -> Iterator[Point]:
    """ns per row: SPO-Join's mutable part holds a tenth of the window, the trees hold all of it, a tree per key."""
    for window in (20_000,) if quick else (500_000, 1_000_000, 2_000_000, 4_000_000):
        new, batch = window // 10, 5_000
        trees: dict[str, Callable[[], WindowIndex]] = {"PIM-Tree": lambda w=window: PIMTree(w), "B+-tree": BPlusTree}  # type: ignore[misc]
        mutable = TieredRuns(dimensions=2)
        yield Point("SPO-Join", window, _insert_time([mutable], [_two_keys(new, 2)], batch) / new * 1e9)
        for name, make in trees.items():
            indexes = [make(), make()]
            old, fresh = _two_keys(window, 1), _two_keys(new, 2)
            for index, keys in zip(indexes, old, strict=True):
                index.insert([keys])
            yield Point(name, window, _insert_time(indexes, [[keys] for keys in fresh], batch) / new * 1e9)


def _insert_time(indexes: list[WindowIndex] | list[TieredRuns], columns: list[list[Keys]], batch: int) -> float:
    spent = 0.0
    for index, keys in zip(indexes, columns, strict=True):
        for first in range(0, len(keys[0]), batch):
            pieces = [Keys(each.values[first : first + batch]) for each in keys]
            start = time.process_time()
            index.insert(pieces)
            spent += time.process_time() - start
    return spent


def memory(quick: bool) -> Iterator[Point]:
    """Bytes per row of the window: nine tenths in segments; the trees once per key."""
    for window in (20_000,) if quick else (500_000, 1_000_000, 2_000_000, 4_000_000):
        keys = _two_keys(window, 1)
        tenth = window // 10
        mutable = TieredRuns(dimensions=2)
        mutable.insert([Keys(each.values[:tenth]) for each in keys])
        runs = [SortedRun.of(Keys(each.values[tenth:])) for each in keys]
        segment = PermutationOffsetJoin(tenth, runs)
        infinite = np.array([np.inf])
        segment.probe([Interval(np.zeros(1), infinite), Interval(-infinite, np.zeros(1))], Live.everything(1))
        yield Point("SPO-Join", window, (mutable.nbytes + segment.nbytes) / window)
        trees = [PIMTree(window), PIMTree(window)]
        for tree, column in zip(trees, keys, strict=True):
            for first in range(0, window, tenth):
                tree.insert([Keys(column.values[first : first + tenth])])
        yield Point("PIM-Tree", window, sum(tree.nbytes for tree in trees) / window)


MATCHES = (1, 10, 100, 400)


def _noise(matches: float, window: int) -> float:
    """The noise at which a reading meets about so many of the window: 3 of a million at 0.05."""
    return 0.05 * matches / 3 * 1_000_000 / window


def match_rates(quick: bool) -> Iterator[Point]:
    window, batch = (5_000, 500) if quick else (50_000, 1_000)
    for matches in MATCHES:
        feed = queries.made_q3_feed(window, 2 * batch if quick else 20_000, batch, _noise(matches, window))
        run = joins.run(queries.q3(SPOJoin(merging="slide"), window, window // 10, batch), feed)
        for name, part in (("mutable part", MUTABLE_PARTS), ("immutable part", IMMUTABLE_PARTS)):
            yield Point(name, matches, feed.measured / seconds_of(run, part))


def match_latencies(quick: bool) -> Iterator[Point]:
    window, batch = (5_000, 500) if quick else (50_000, 1_000)
    engines = {"2 elements": SPOJoin(2), "1 element, 2 threads": SPOJoin(1, probe_threads=2)}
    for matches in MATCHES:
        for name, engine in engines.items():
            feed = queries.made_q3_feed(window, 2 * batch if quick else 40_000, batch, _noise(matches, window))
            run = joins.run(queries.q3(engine, window, window // 10, batch), feed, OFFERED)
            yield Point(name, matches, run.latency[-1])


def elements(quick: bool) -> Iterator[Point]:
    window, batch = (5_000, 500) if quick else (100_000, 1_000)
    feed = queries.made_q3_feed(window, 4 * batch if quick else 20_000, batch, _noise(10, window))
    for count in (1, 4) if quick else (1, 2, 5, 10, 20):
        run = joins.virtual(queries.q3(SPOJoin(count, merging="slide"), window, window // 20, batch), feed)
        busiest = max(seconds for name, seconds in run.busy.items() if name.startswith("po-join"))
        yield Point("PO-Join elements", count, feed.measured / busiest)
        yield Point("the whole join", count, run.rate)


def _pairs(engine: Engine, window: int, rows: int) -> pa.Table:
    feed = queries.made_q3_feed(window, rows - window, 500, _noise(5, window))
    join = queries.q3(engine, window, window // 10, 500)
    return join.collect({"T": pa.Table.from_batches([batch for _, batch in feed.batches])}).sort_by(
        [("T1.id", "ascending"), ("T2.id", "ascending")]
    )


def _difference(found: pa.Table, right: pa.Table) -> tuple[int, int]:
    """How many pairs are right, and how many are not in the reference."""
    keys = ["T1.id", "T2.id"]
    extra = found.join(right, keys, join_type="left anti").num_rows
    return found.num_rows - extra, extra


def correctness(quick: bool) -> Iterator[Point]:
    window, rows = (1_000, 3_000) if quick else (5_000, 20_000)
    right = _pairs(IndexJoin("NestedLoop", 1), window, rows)
    for logical in (10, 20, 40):
        found, _ = _difference(_pairs(SPOJoin(mutable="decomposed", logical_elements=logical), window, rows), right)
        yield Point("right results", logical, 100 * found / right.num_rows)


def extra_results(quick: bool) -> Iterator[Point]:
    window, rows = (1_000, 3_000) if quick else (5_000, 20_000)
    right = _pairs(IndexJoin("NestedLoop", 1), window, rows)
    for elements_ in (2, 5, 10):
        for name, engine in (
            ("round robin", SPOJoin(elements_, merging="slide")),
            ("shared cache", SPOJoin(elements_, merging="slide", state="shared cache")),
        ):
            yield Point(name, elements_, _difference(_pairs(engine, window, rows), right)[1])


def merging_cost(quick: bool) -> Iterator[Point]:
    for slide in (1_000, 2_000) if quick else (60_000, 70_000, 80_000, 90_000, 100_000):
        window, batch = 10 * slide, slide // 10
        feed = queries.made_q3_feed(window, 4 * slide, batch, queries.NOISE)
        run = joins.run(queries.q3(SPOJoin(merging="slide"), window, slide, batch), feed)
        yield Point("building a segment", slide, run.busy["permutation"] / 4 * 1e3)
        yield Point("probing all segments with a slide of rows", slide, seconds_of(run, IMMUTABLE_PARTS) / 4 * 1e3)


def shares(quick: bool) -> Iterator[Point]:
    window, batch = (5_000, 500) if quick else (200_000, 1_000)
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        feed = queries.made_q3_feed(window, window // 5, batch, queries.NOISE)
        engine = SPOJoin(merge_interval=round(share * window))
        run = joins.run(queries.q3(engine, window, window // 10, batch), feed)
        yield Point("mutable part", 100 * share, feed.measured / seconds_of(run, MUTABLE_PARTS))
        yield Point("the whole join", 100 * share, run.rate)


EQUAL: dict[str, Engine] = {"SPO-Join": SPOJoin(), "hash join": IndexJoin("HashIndex", 1)}


def equal_rates(quick: bool) -> Iterator[Point]:
    for slide in (1_000,) if quick else (10_000, 20_000, 30_000, 40_000, 50_000):
        for name, engine in EQUAL.items():
            feed = queries.equal_feed(10 * slide, 4_000 if quick else 100_000, 2_000)
            run = joins.run(queries.q1(engine, 10 * slide, slide, 2_000, queries.Q1_EQUAL), feed)
            yield Point(name, slide, run.rate)


def equal_latencies(quick: bool) -> Iterator[Point]:
    for slide in (1_000,) if quick else (10_000, 30_000, 50_000):
        for name, engine in EQUAL.items():
            feed = queries.equal_feed(10 * slide, 4_000 if quick else 100_000, 2_000)
            run = joins.run(queries.q1(engine, 10 * slide, slide, 2_000, queries.Q1_EQUAL), feed, 100_000)
            yield Point(name, slide, run.latency[-1])
