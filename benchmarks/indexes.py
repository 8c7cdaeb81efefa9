"""Every window index on one thread: insert, probe, expire and the steady state of a two-way band join.

Each section is printed as a table; `python -m benchmarks.index_figures` draws them from the JSON (docs/indexes.md):
- band: the default index beside Polars' bucketed hash join on the same data, and at windows from 2^17 to 2^23.
- each index by window, by batch, by match rate and by distribution; the other settings are 2^20, 10,000, 2 and uniform.
- merge ratio and insertion depth of IM-Tree and PIM-Tree (PIM-Tree, figures 9b, 9c and 8c).
- batch size and partition count of PanJoin's structures (PanJoin, figures 10 to 13).
- two inequalities: probing and counting beside DuckDB, Polars and PO-Join (`benchmarks.two_inequalities`).

`rate` is tuples/s of both sides: each tuple probes the other window and enters its own, and an old tuple leaves. All
figures, ours and the peers', are of processor time on one thread, so other work on the machine changes them little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks import bucketed_join, two_inequalities
from benchmarks.index_workloads import DISTRIBUTIONS, Steady, Workload, steady
from indexes import (
    CATALOGUE,
    BISort,
    IMTree,
    Observed,
    PIMTree,
    Query,
    RaPTable,
    WiBPlusTree,
    WindowIndex,
    choose,
    make_index,
)

ROUNDS = 3
"""Machines are shared and noisy: the best of so many runs counts, for us and for the peers."""

WARM_UP = Workload(1 << 16, 256)
"""A short run that compiles all kernels of the measured run: a large batch and small ones, merges and probes."""

SLOW = {"LinearScan", "SortedListIndex"}
"""Measured only on small workloads: one compares everything, the other keeps Python objects."""

Row = dict[str, Any]


def run(quick: bool) -> dict[str, Any]:
    """Measure all sections."""
    rows: list[Row] = []
    for title, section in SECTIONS.items():
        print(f"\n{title}", flush=True)
        for row in section(quick):
            rows.append(row)
            print("  " + "  ".join(_shown(name, value) for name, value in row.items()), flush=True)
    return {"name": "indexes", "rows": rows}


def _shown(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{name}={value:,.0f}" if abs(value) >= 100 else f"{name}={value:.3g}"
    if isinstance(value, dict):
        return " ".join(_shown(inner, one) for inner, one in value.items())
    return f"{name}={value}"


def default_band_index(workload: Workload) -> tuple[str, Callable[[], WindowIndex]]:
    """The name of the index that `choose` picks for this band join, and a function that makes it."""
    observed = Observed(matches=workload.match_rate, drifting=workload.distribution in ("drifting", "increasing"))
    choice = choose(Query(ranges=1, window=workload.window, batch=workload.batch), observed)
    return choice.index, partial(make_index, choice.index, window=workload.window, batch=workload.batch)


def best(workload: Workload, make: Callable[[], WindowIndex], tuples: int, rounds: int = ROUNDS) -> Steady:
    """The best of several runs, after a short one that compiles."""
    steady(WARM_UP, make, 2048)
    return max((steady(workload, make, tuples) for _ in range(rounds)), key=lambda run: run.rate)


def band(quick: bool) -> Iterator[Row]:
    """Our default index beside the bucketed hash join at a window of 2^20, and alone at others."""
    for batch, peer_tuples in ((1_000, 20_000), (10_000, 200_000), (100_000, 800_000)):
        workload = Workload(1 << 20, batch)
        name, make = default_band_index(workload)
        rounds = 1 if quick else ROUNDS
        ours = best(workload, make, 800_000 if quick else 3_000_000, rounds)
        peers = {}
        for peer, tuned in (("polars", False), ("polars tuned", True)):
            runs = [bucketed_join.measure(workload, peer_tuples, tuned=tuned) for _ in range(rounds)]
            compared = min(len(ours.pairs), len(runs[0][1]))
            if ours.pairs[:compared] != runs[0][1][:compared]:
                raise AssertionError(f"{name} and the bucketed join differ in the pairs they find")
            peers[peer] = max(rate for rate, _ in runs)
        yield {
            "case": f"band window=2^20 batch={batch}",
            "index": name,
            "ours": ours.rate,
            "peers": peers,
            "ratio": ours.rate / peers["polars"],
            "ratio to tuned": ours.rate / peers["polars tuned"],
        }
    for exponent in (17, 20, 23) if not quick else (17, 20):
        workload = Workload(1 << exponent, 10_000)
        name, make = default_band_index(workload)
        ours = best(workload, make, 1_000_000 if quick else 3_000_000 + 2 * workload.window, 1 if quick else 2)
        yield {"case": f"band window=2^{exponent} batch=10000", "index": name, **_parts(ours)}


def _parts(run: Steady) -> Row:
    return {
        "rate": run.rate,
        "probe_ns": run.probe * 1e9,
        "insert_ns": run.insert * 1e9,
        "expire_ns": run.expire * 1e9,
        "MiB": run.nbytes / 2**20,
    }


def _each(workloads: dict[str, Workload], tuples: int, seconds: float) -> Iterator[Row]:
    for label, workload in workloads.items():
        for name, recipe in CATALOGUE.items():
            if not recipe.bands or (name in SLOW and workload.window * workload.batch > 1 << 24):
                continue
            make = partial(make_index, name, window=workload.window, batch=workload.batch)
            steady(WARM_UP, make, 2048)
            yield {"case": label, "index": name, **_parts(steady(workload, make, tuples, seconds=seconds))}


def by_window(quick: bool) -> Iterator[Row]:
    exponents = (14, 17) if quick else (14, 17, 20, 23)
    workloads = {f"window=2^{e}": Workload(1 << e, 10_000) for e in exponents}
    yield from _each(workloads, 200_000 if quick else 1_000_000, 3.0)


def by_batch(quick: bool) -> Iterator[Row]:
    sizes = (1, 1 << 10) if quick else (1, 1 << 5, 1 << 10, 10_000, 1 << 17)
    for size in sizes:
        workloads = {f"batch={size}": Workload(1 << 20 if not quick else 1 << 16, size)}
        yield from _each(workloads, min(1_000_000, size * 2000), 2.0)


def by_match_rate(quick: bool) -> Iterator[Row]:
    exponents = (-4, 5) if quick else (-4, 1, 4, 7, 10)
    workloads = {f"match rate=2^{e}": Workload(1 << 20 if not quick else 1 << 16, 10_000, 2.0**e) for e in exponents}
    yield from _each(workloads, 100_000, 2.0)


def by_distribution(quick: bool) -> Iterator[Row]:
    window = 1 << 20 if not quick else 1 << 16
    yield from _each({kind: Workload(window, 10_000, 2.0, kind) for kind in DISTRIBUTIONS}, 300_000, 2.0)


def merge_ratio(quick: bool) -> Iterator[Row]:
    """PIM-Tree, figures 9b and 9c: how often the mutable part is merged."""
    workload = Workload(1 << 17 if quick else 1 << 20, 10_000)
    for exponent in range(-7, 1):
        for kind in (IMTree, PIMTree):
            make = partial(kind, workload.window, merge_ratio=2.0**exponent)
            run = best(workload, make, 1_000_000, 1)
            yield {"case": f"merge ratio=2^{exponent}", "index": kind.__name__, **_parts(run)}


def insertion_depth(quick: bool) -> Iterator[Row]:
    """PIM-Tree, figure 8c: the number of partitions of the mutable part."""
    workload = Workload(1 << 17 if quick else 1 << 20, 10_000)
    for depth in range(4):
        make = partial(PIMTree, workload.window, insertion_depth=depth)
        yield {"case": f"insertion depth={depth}", "index": "PIMTree", **_parts(best(workload, make, 1_000_000, 1))}


def partitions(quick: bool) -> Iterator[Row]:
    """PanJoin, figures 10 to 13: batch size and partition count."""
    window = 1 << 17 if quick else 1 << 20
    for batch in (1 << 7, 1 << 10, 1 << 13, 1 << 16):
        for exponent in (8, 11, 14):
            for kind in (RaPTable, WiBPlusTree, BISort):
                workload = Workload(window, batch)
                size: dict[str, int] = {"partitions": 1 << exponent}
                if kind is WiBPlusTree:
                    size = {"leaf_width": max(4, (window // 4) >> exponent)}
                make: Callable[[], WindowIndex] = partial(kind, window // 4, **size)
                run = steady(workload, make, 300_000, seconds=1.5)
                yield {"case": f"batch={batch} partitions=2^{exponent}", "index": kind.__name__, **_parts(run)}


def inequalities(quick: bool) -> Iterator[Row]:
    yield from two_inequalities.run(quick)["rows"]


SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "Band join, default choice beside Polars' bucketed hash join (match rate 2)": band,
    "By window (batch 10,000, match rate 2, uniform)": by_window,
    "By batch (window 2^20, match rate 2, uniform)": by_batch,
    "By match rate (window 2^20, batch 10,000, uniform)": by_match_rate,
    "By distribution (window 2^20, batch 10,000, match rate 2)": by_distribution,
    "Merge ratio (PIM-Tree, figures 9b and 9c)": merge_ratio,
    "Insertion depth (PIM-Tree, figure 8c)": insertion_depth,
    "Batch size and partition count (PanJoin, figures 10 to 13)": partitions,
    "Two inequalities, window of a million": inequalities,
}
