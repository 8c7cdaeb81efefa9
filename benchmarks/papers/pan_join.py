"""The figures of the PanJoin paper, 10 to 15."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from benchmarks import pan_join as workload
from benchmarks.chart import Axis
from benchmarks.papers import joins, trees
from benchmarks.papers.figure import Claim, Figure, NotCovered, Paper, Point, extreme, growth, times
from benchmarks.splitter_figure import ROUNDS, adjustments
from indexes import BISort, BPlusTree, Interval, Keys, Live, RaPTable, SubwindowIndex, WiBPlusTree
from operators import PanJoin
from topology import LocalRuntime

ROWS = Axis("rows/s", 10)
TUPLES = Axis("tuples/s", 10)
BATCH = Axis("rows of a batch", 2)
PER_PROBE = Axis("matches per probe row", 2)
KIND = Callable[..., SubwindowIndex]
STRUCTURES: dict[str, KIND] = {"RaP-Table": RaPTable, "WiB+-Tree": WiBPlusTree, "BI-Sort": BISort}
PROBE_BATCH = 1 << 15

GENERATED = "Data: generated, uniform keys, as in the paper."
ALONE = f"One subwindow on one thread, no join around it. {GENERATED}"
THREADS = "The paper probes with 8 threads and inserts into BI-Sort with 8; ours is one thread."


def _sized(kind: KIND, size: int, partitions: int) -> SubwindowIndex:
    """A subwindow of about so many partitions."""
    if kind is WiBPlusTree:
        return WiBPlusTree(size, leaf_width=max(4, size // partitions))
    return kind(size, partitions=partitions)


def _inserts_by_partitions(kind: KIND, quick: bool) -> Iterator[Point]:
    size = 1 << (17 if quick else 22)
    for exponent in (6, 10) if quick else (10, 13, 16):
        make = partial(_sized_of, kind, 1 << exponent)
        yield from _inserts(f"P = 2^{exponent}", make, size, quick)


def _sized_of(kind: KIND, partitions: int, size: int) -> SubwindowIndex:
    return _sized(kind, size, partitions)


def _inserts(series: str, make: Callable[[int], SubwindowIndex], size: int, quick: bool) -> Iterator[Point]:
    for exponent in (5, 10, 15) if quick else (5, 10, 13, 16, 19, 21):
        if 1 << exponent <= size // 2:
            rate = workload.insertion_rate(make, size, 1 << exponent, 0.05 if quick else 0.4)
            yield Point(series, float(1 << exponent), rate)


def _inserts_by_size(kind: KIND, quick: bool) -> Iterator[Point]:
    for exponent in (14, 16) if quick else (16, 19, 22):
        yield from _inserts(f"subwindow 2^{exponent}", partial(_sized_of, kind, 1 << 10), 1 << exponent, quick)


def _filled(kind: KIND, size: int, partitions: int) -> SubwindowIndex:
    index = _sized(kind, size, partitions)
    index.insert([Keys(np.random.default_rng(2).integers(0, workload.RANGE, size))])
    return index


def _probes_by_batch(kind: KIND, quick: bool) -> Iterator[Point]:
    """S = 1, for subwindow sizes and partition sizes."""
    for size in (14, 16) if quick else (16, 19, 22):
        for rows in (64, 1024):
            index = _filled(kind, 1 << size, (1 << size) // rows)
            for exponent in (5, 15) if quick else (5, 10, 15, 18):
                rate = workload.probing_rate(index, 1 << size, 1 << exponent, 1, False, 0.05 if quick else 0.3)
                yield Point(f"subwindow 2^{size}, {rows:,} per partition", float(1 << exponent), rate)


def _probes_by_matches(kind: KIND, equal: bool, quick: bool) -> Iterator[Point]:
    size = 1 << (16 if quick else 22)
    for exponent in (6, 10) if quick else (10, 13, 16):
        index = _filled(kind, size, 1 << exponent)
        for matches in (1, 64) if quick else (1, 4, 16, 64, 256, 1024, 4096):
            if equal:
                index = _filled_with_equal(kind, size, 1 << exponent, matches)
            rate = _probing(index, size, matches, kind is BISort, equal, 0.05 if quick else 0.3)
            yield Point(f"P = 2^{exponent}", float(matches), rate)


def _filled_with_equal(kind: KIND, size: int, partitions: int, matches: int = 1) -> SubwindowIndex:
    """Keys that are multiples of a step, so that each occurs about `matches` times."""
    index = _sized(kind, size, partitions)
    distinct = max(1, size // matches)
    keys = np.random.default_rng(2).integers(0, distinct, size) * (workload.RANGE // distinct)
    index.insert([Keys(keys)])
    return index


def _probing(index: SubwindowIndex, size: int, matches: int, records: bool, equal: bool, seconds: float) -> float:
    """Probe rows/s in batches of 32K, or pieces of them where the answers are large."""
    if not equal:
        return workload.probing_rate(index, size, PROBE_BATCH, matches, records, seconds)
    rng = np.random.default_rng(3)
    distinct = max(1, size // matches)
    piece = PROBE_BATCH if records else max(1, min(PROBE_BATCH, workload.PIECE // matches))
    spent, probed = -1.0, 0
    while spent < seconds:
        keys = rng.integers(0, distinct, piece) * (workload.RANGE // distinct)
        interval, live = Interval(keys, keys), Live.everything(piece)
        start = time.perf_counter()
        if records:
            assert isinstance(index, BISort)
            index.records(interval)
        else:
            index.probe([interval], live, ordered=False)
        if spent < 0:  # the first one compiles
            spent = 0.0
            continue
        spent += time.perf_counter() - start
        probed += piece
    return probed / spent


def _adjusting(quick: bool) -> Iterator[Point]:
    for partitions in (1 << 6,) if quick else (1 << 8, 1 << 12):
        for case in adjustments(partitions, 1 << (14 if quick else 20)):
            for step in range(ROUNDS + 1):
                yield Point(f"{case.name}, P = {partitions:,}", step, case.error[step])


def _over_b_tree(quick: bool) -> Iterator[Point]:
    """WiB+-Tree over a B+-tree: inserts, and probes at two sizes of batches."""
    size = 1 << (16 if quick else 21)
    keys = np.random.default_rng(2).integers(0, workload.RANGE, size)
    wide, tree = _sized(WiBPlusTree, size, 1 << 15), BPlusTree()
    for index in (wide, tree):
        index.insert([Keys(keys)])
    rates = {}
    for name, make in (("wide", partial(_sized_of, WiBPlusTree, 1 << 15)), ("tree", lambda _: BPlusTree())):
        rates[name] = workload.insertion_rate(make, size, 1 << 10, 0.05 if quick else 0.5)  # type: ignore[arg-type]
    for matches in (1, 64) if quick else (1, 16, 256, 4096):
        yield Point("insertion", matches, rates["wide"] / rates["tree"])
        for batch in (1 << 10, 1 << 15):
            both = [
                workload.probing_rate(index, size, batch, matches, False, 0.05 if quick else 0.4)  # type: ignore[arg-type]
                for index in (wide, tree)
            ]
            yield Point(f"band probes, batches of {batch:,}", matches, both[0] / both[1])


def _buffers(quick: bool) -> Iterator[Point]:
    """BI-Sort with insertion buffers of several sizes, subwindow of 64K rows."""
    size = 1 << 16
    for buffer in (0, 1 << 10, 1 << 14):
        make = partial(_buffered, buffer)
        for exponent in (3, 8) if quick else (3, 5, 8, 10, 13):
            rate = workload.insertion_rate(make, size, 1 << exponent, 0.05 if quick else 0.5)
            yield Point(f"buffer of {buffer:,}", float(1 << exponent), rate)


def _buffered(buffer: int, size: int) -> BISort:
    return BISort(size, buffer=buffer)


def _compared_inserts(quick: bool) -> Iterator[Point]:
    size = 1 << (17 if quick else 23)
    for name, kind in STRUCTURES.items():
        yield from _inserts(name, partial(_sized_of, kind, size // 128), size, quick)


def _compared_probes(quick: bool) -> Iterator[Point]:
    size = 1 << (16 if quick else 23)
    for name, kind in STRUCTURES.items():
        index = _filled(kind, size, size // 128)
        for matches in (1, 64) if quick else (1, 16, 64, 256, 1024, 4096):
            seconds = 0.05 if quick else 0.4
            rate = workload.probing_rate(index, size, PROBE_BATCH, matches, kind is BISort, seconds)
            yield Point(name, matches, rate)


def _whole(quick: bool, batches: Sequence[int], matches: Sequence[int]) -> Iterator[Point]:
    """PanJoin end to end; the place is the batch, or the matches if there are several."""
    window = 1 << (15 if quick else 20)
    for name, kind in STRUCTURES.items():
        for batch in batches:
            for each in matches:
                measured = max(2 * batch, (1 << 15 if quick else 1 << 20) // max(1, each // 8))
                engine = PanJoin(2, structure=kind.__name__, batch_rows=batch)
                found = workload.end_to_end(
                    engine, window, each, batch, measured // batch * batch, LocalRuntime(), "none"
                )
                yield Point(name, float(each if len(matches) > 1 else batch), found["rate"])


def _system_by_batch(quick: bool) -> Iterator[Point]:
    yield from _whole(quick, (1 << 10, 1 << 13) if quick else (1 << 10, 1 << 13, 1 << 16, 1 << 18), (1,))


def _system_by_matches(quick: bool) -> Iterator[Point]:
    yield from _whole(quick, (1 << 12,) if quick else (PROBE_BATCH,), (1, 16) if quick else (1, 16, 64, 256))


def _returned(quick: bool) -> Iterator[Point]:
    """The bytes that workers send for a row, as positions and as records."""
    window = 1 << (14 if quick else 16)
    for name in ("positions", "records"):
        for matches in (1, 64) if quick else (1, 16, 64, 256, 1024):
            measured = max(1 << 13, (1 << 17) // max(1, matches // 16))
            engine = PanJoin(2, records=name == "records")
            found = workload.end_to_end(engine, window, matches, 1 << 12, measured, LocalRuntime(), "none")
            yield Point(f"{name}, bytes per row", matches, found["worker_bytes"])


def _workers(quick: bool) -> Iterator[Point]:
    """A processor for each element: rows per second of the busiest."""
    window, batch = 1 << (15 if quick else 20), 1 << (12 if quick else 15)
    for matches in (1, 64):
        for workers in (1, 2, 4) if quick else (1, 2, 4, 8, 16):
            tables = [trees.keyed(window + 4 * batch, seed) for seed in (1, 2)]
            feed = joins.alternating(tables, batch, window)
            join = trees.band_join(PanJoin(workers, batch_rows=batch), window, trees.half_band(window, matches), batch)
            run = joins.virtual(join, feed)
            yield Point(f"BI-Sort, S = {matches}", workers, run.rate)
            worker = max(seconds for name, seconds in run.busy.items() if name.startswith("worker"))
            yield Point(f"a worker alone, S = {matches}", workers, feed.measured / worker)


def _claim(window: int, quick: bool) -> Iterator[Point]:
    """Rows per second of one core against a window, from S = 1 on, beside the nested loop of SplitJoin and "
    "ScaleJoin."""
    if quick:
        window = 1 << 16
    nested = workload.nested_rate(window, 64)
    for matches in (1, 64) if quick else (1, 64, 1024):
        yield Point("nested loop", matches, nested)
        for name, kind in STRUCTURES.items():
            if window > 1 << 24 and kind is not BISort:
                continue
            yield Point(name, matches, workload.index_rate(kind, window, 0.1 if quick else 1.0, matches))


def _empty(quick: bool) -> Iterator[Point]:
    """PanJoin over the same topology with windows of one row, whose workers have nothing to keep or find."""
    window = 1 << (15 if quick else 20)
    for exponent in (12,) if quick else (12, 14, 16):
        batch = 1 << exponent
        measured = max(2 * batch, 1 << (15 if quick else 20))
        rates = []
        for size in (window, 1):
            feed = joins.alternating(
                [trees.keyed(max(window, 2 * batch) + measured, seed) for seed in (1, 2)], batch, window
            )
            join = trees.band_join(PanJoin(2, batch_rows=batch), size, trees.half_band(window, 1), batch)
            rates.append(joins.run(join, feed).rate)
        yield Point("PanJoin", float(batch), rates[0])
        yield Point("empty windows", float(batch), rates[1])


def _structure(letter: int, name: str, kind: KIND) -> tuple[Figure, ...]:
    """The five parts that figures 10, 11 and 12 share."""
    parts = "abcde"
    return (
        Figure(
            f"{letter}{parts[0]}",
            f"{name}: insertion by partitions",
            "the rows of a batch, and the partitions P",
            f"{ALONE} Subwindow of 2^22 rows (the paper: 2^23), half full to begin with.",
            BATCH,
            ROWS,
            partial(_inserts_by_partitions, kind),
            "Large batches insert faster, because rows of a partition share memory accesses.",
            THREADS,
        ),
        Figure(
            f"{letter}{parts[1]}",
            f"{name}: insertion by size of the subwindow",
            "the rows of a batch, and the rows of a subwindow; 1,024 partitions",
            ALONE,
            BATCH,
            ROWS,
            partial(_inserts_by_size, kind),
            "The size matters where a batch touches much of the subwindow: a lot for BI-Sort in small batches.",
            THREADS,
        ),
        Figure(
            f"{letter}{parts[2]}",
            f"{name}: probing by batch",
            "the rows of a probe batch, of a subwindow, and of a partition; one match per row",
            ALONE,
            BATCH,
            ROWS,
            partial(_probes_by_batch, kind),
            "Larger batches probe faster, and smaller partitions leave fewer rows to scan.",
            f"The paper asks for one key and we for the band that holds one row; one is a band of width 0. {THREADS}",
        ),
        Figure(
            f"{letter}{parts[3]}",
            f"{name}: equi-join probing by selectivity",
            "the matches of a probe row, and the partitions",
            f"{ALONE} Subwindow of 2^22 rows, batches of 32K; each key occurs as often as a row has matches.",
            PER_PROBE,
            ROWS,
            partial(_probes_by_matches, kind, True),
            "Copying matches costs in proportion to them; BI-Sort's records do not.",
            THREADS,
        ),
        Figure(
            f"{letter}{parts[4]}",
            f"{name}: band probing by selectivity",
            "the matches of a probe row, and the partitions",
            f"{ALONE} Subwindow of 2^22 rows, batches of 32K.",
            PER_PROBE,
            ROWS,
            partial(_probes_by_matches, kind, False),
            "As for the equi-join.",
            THREADS,
        ),
    )


PAPER = Paper(
    "pan-join",
    "PanJoin: A Partition-based Adaptive Stream Join",
    "nodes with two 20-core Intel Xeon Gold 6148 and 192 GB, InfiniBand of 100 Gb/s between them",
    (
        *_structure(10, "RaP-Table", RaPTable),
        Figure(
            "10f",
            "RaP-Table: evenness after each adjustment",
            "the adjustments so far; the distribution of keys and the partitions",
            "Splitters alone. Data: generated; instead of the paper's YouTube views, log-normal view counts of the "
            "same shape.",
            Axis("adjustments"),
            Axis("mean distance from the mean rows of a partition"),
            _adjusting,
            "Three adjustments suffice, as the paper says, and fewer where partitions are few.",
            "The paper's formula for the splitters is incomplete in print; ours is in `indexes/pan/splitters.py`.",
        ),
        *_structure(11, "WiB+-Tree", WiBPlusTree),
        Figure(
            "11f",
            "WiB+-Tree over a B+-tree",
            "the matches of a probe row; insertion, and probing in two sizes of batches",
            f"{ALONE} Subwindow of 2^21 rows, some 2^15 leaves.",
            PER_PROBE,
            Axis("times as fast"),
            _over_b_tree,
            "Leaves that are not sorted make inserts cheaper; probes pay for that in small bands.",
            "The paper's B-tree is Google's, row by row. Ours takes sorted batches too.",
            (
                Claim("insertion, least that is printed", 3.5, extreme("insertion")),
                Claim("band probes, most that is printed", 1.3, extreme("band probes, batches of 32,768")),
            ),
        ),
        *_structure(12, "BI-Sort", BISort),
        Figure(
            "12f",
            "BI-Sort: insertion buffer",
            "the rows of a batch, and the rows of the buffer",
            f"{ALONE} Subwindow of 64K rows.",
            BATCH,
            ROWS,
            _buffers,
            "A buffer makes small batches cheap to insert, until probes have to search it.",
            "A buffer of 16,384 rows is our largest; probing a larger one would cost more than it saves.",
            (
                Claim(
                    "largest buffer over none, in batches of 8 (paper: 2 to 3 orders of magnitude)",
                    100,
                    times("buffer of 16,384", "buffer of 0", 8),
                ),
            ),
        ),
        Figure(
            "13a",
            "Insertion of the three structures",
            "the rows of a batch, and the structure",
            f"{ALONE} Subwindow of 2^23 rows, 2^16 partitions, as in the paper.",
            BATCH,
            ROWS,
            _compared_inserts,
            "BI-Sort is for large batches.",
            THREADS,
        ),
        Figure(
            "13b",
            "Band probing of the three structures",
            "the matches of a probe row, and the structure; BI-Sort answers with records",
            f"{ALONE} Subwindow of 2^23 rows, 2^16 partitions, batches of 32K, as in the paper.",
            PER_PROBE,
            ROWS,
            _compared_probes,
            "RaP-Table before WiB+-Tree, and BI-Sort before both, the more so the more matches there are.",
            THREADS,
            (
                Claim(
                    "RaP-Table over WiB+-Tree, one match (paper: 1.7 to 2.4)", 1.7, times("RaP-Table", "WiB+-Tree", 1)
                ),
                Claim("BI-Sort over RaP-Table, one match (paper: 1.6 to 7)", 1.6, times("BI-Sort", "RaP-Table", 1)),
                Claim("BI-Sort over RaP-Table, 4,096 matches", 100, times("BI-Sort", "RaP-Table", 4096)),
            ),
        ),
        Figure(
            "15a",
            "PanJoin end to end by batch",
            "the rows of a batch, and the structure; one match per row",
            f"The whole join in one process with two workers, windows of 2^20. {GENERATED}",
            BATCH,
            TUPLES,
            _system_by_batch,
            "Throughput grows with the batch.",
            "The paper has 16 worker nodes for each stream, windows of 2^27 and answers that nobody collects.",
            (Claim("RaP-Table over WiB+-Tree, batches of 2^18", 1.5, times("RaP-Table", "WiB+-Tree", 1 << 18)),),
        ),
        Figure(
            "15b",
            "PanJoin end to end by selectivity",
            "the matches of a row, and the structure; batches of 32K",
            f"The whole join in one process with two workers, windows of 2^20. {GENERATED}",
            PER_PROBE,
            TUPLES,
            _system_by_matches,
            "Once results are made, writing them decides, and the structures draw level.",
            "The paper's RaP-Table and WiB+-Tree are level as well, because of the network.",
        ),
        Figure(
            "15c",
            "What workers send back",
            "the matches of a row; positions, or records of BI-Sort",
            f"The whole join in one process with two workers, windows of 2^16. {GENERATED}",
            PER_PROBE,
            Axis("bytes per row", 10),
            _returned,
            "Records have a fixed size; positions grow with the matches.",
            "The paper prints the share of time spent on receiving results, above 90 % from 1,024 matches on. In one "
            "process "
            "nothing is sent, so we count bytes.",
        ),
        Figure(
            "15d",
            "More workers",
            "the workers; one match or 64",
            "The whole join, windows of 2^20 (the paper: 2^30), a processor for each element: the processor time of "
            "each is "
            f"measured, and the busiest decides. {GENERATED}",
            Axis("workers", 2),
            TUPLES,
            _workers,
            "A worker's part shrinks, but gate, router, manager and collector see every row: they set the limit.",
            "The paper's limit is the network between manager and workers.",
            (Claim("16 workers over 1, one match", 1, growth("BI-Sort, S = 1")),),
        ),
        Figure(
            "15e",
            "The claim of 1,000 times, W = 8M",
            "the matches of a row; the structure, or the nested loop that SplitJoin and ScaleJoin have",
            f"Inserting into and probing a window on one core, without the join around it. {GENERATED}",
            PER_PROBE,
            TUPLES,
            partial(_claim, 1 << 23),
            "An index is thousands of times as fast as comparing with everything.",
            "Our nested loop compares 16-bit codes in vectors, some 50 times as fast as ScaleJoin's public Java "
            "code, so the "
            "ratio is smaller by that much than it would be against that.",
            (
                Claim("BI-Sort over nested loop, one match", 1000, times("BI-Sort", "nested loop", 1)),
                Claim("RaP-Table over nested loop, one match", 100, times("RaP-Table", "nested loop", 1)),
                Claim("WiB+-Tree over nested loop, one match", 100, times("WiB+-Tree", "nested loop", 1)),
            ),
        ),
        Figure(
            "15f",
            "The claim of 5,000 times, W = 128M",
            "the matches of a row; BI-Sort, or the nested loop",
            f"As figure 15e. Only BI-Sort, to save memory and time. {GENERATED}",
            PER_PROBE,
            TUPLES,
            partial(_claim, 1 << 27),
            "As figure 15e: the ratio grows with the window.",
            "As figure 15e.",
            (Claim("BI-Sort over nested loop, one match", 5000, times("BI-Sort", "nested loop", 1)),),
        ),
        Figure(
            "15g",
            "PanJoin over an empty topology",
            "the rows of a batch; the join, or the same topology with windows of one row",
            f"The whole join in one process with two workers, windows of 2^20, one match per row. Figure 15h is the "
            f"ratio. {GENERATED}",
            BATCH,
            TUPLES,
            _empty,
            "How much of the time is spent on moving rows, and how much on joining them.",
            "Storm spends far more on moving a tuple than on joining it, so the paper's ratio is near 1. Batches in "
            "one process "
            "cost little to move, so ours shows the join.",
            (Claim("PanJoin over empty windows", 0.9, times("PanJoin", "empty windows")),),
        ),
    ),
    (
        NotCovered("14", "FPGA: out of scope."),
        NotCovered(
            "15e, 15f: handshake join", "Its nested loop is the one that is measured; its chain only adds to it."
        ),
    ),
)
