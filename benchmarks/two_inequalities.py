"""Two inequalities over a window of a million readings: probing and counting, from sparse to dense answers.

A batch of readings R probes a window of readings S with `R.power < S.power AND R.cool > S.cool`, for all pairs or for
the number of pairs of each reading. Each system has one thread and prepares the window in its preferred layout: ours is
an index, DuckDB's is sorted by power, Polars' by cool (the layouts that `peers` found to be best). DuckDB and Polars
build anything further within each query. `build_s` is the time to build our index, including its trees. These are built
when they pay, and the first 200,000 probe tuples, a fifth of the probes in a block's life, are not measured.

- `ours` is one block of a million rows (`PermutationOffsetJoin`) that chooses its strategy, trees included;
- `po_join` is the same without trees, as in the paper: it counts by enumerating;
- `tree` always copies from the merge-sort tree; `ordered` is `ours` with ascending positions, which no peer provides;
- `window` is a `RangeTreeWindow`, filled by batches of 10,000 and then slid, so that its oldest block is cut.

The ratio compares `ours` with the best of DuckDB, Polars and `po_join`. All must find the same number of matches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.data import datacentre_readings
from indexes import (
    EVERYWHERE,
    Interval,
    Keys,
    Live,
    PermutationOffsetJoin,
    RangeTreeWindow,
    SortedRun,
    Strategy,
    probe_blocks,
)

WINDOW, SLID, FILL = 1_000_000, 36_789, 10_000
NOISE = {10: 0.18, 300: 5.3, 5_600: 100.0}
"""The noise that leads to each number of matches per reading."""

REPEATS, PEER_REPEATS = 9, 2
"""Machines are shared and noisy: CPU time of one thread counts, and the best of so many runs."""

WARM_PROBES = 200_000
"""Probe tuples before the measurement, a fifth of those in a block's life: trees that pay are built by then."""

JOIN = "FROM batch b, window_rows w WHERE b.power < w.power AND b.cool > w.cool"


def run(quick: bool) -> dict[str, Any]:
    """Measure all cases."""
    rows: list[dict[str, Any]] = []
    print(
        f"window of {WINDOW:,} readings; probe tuples/s; Polars has {pl.thread_pool_size()} thread(s), all others one"
    )
    names = ("ours", "ordered", "tree", "window", "po_join", "duckdb", "polars")
    print(f"{'case':<34}" + "".join(f"{name:>12}" for name in names) + f"{'ratio':>8}{'build_s':>9}")
    for matches, noise in NOISE.items():
        readings = datacentre_readings(WINDOW + SLID, noise, 1)
        ours = Ours(readings)
        peers = Peers(readings.slice(SLID))
        for batch in (1_000,) if quick else (1_000, 10_000):
            probes = datacentre_readings(batch, noise, 2)
            for row in (_probing(ours, peers, probes), _counting(ours, peers, probes)):
                row["case"] = f"{row['case']} matches={matches} batch={batch}"
                peer_rates = row["peers"]
                row["ratio"] = row["ours"] / max(peer_rates.values())
                rates = [peer_rates.get(name, row.get(name)) for name in names]
                print(
                    f"{row['case']:<34}"
                    + "".join("".rjust(12) if rate is None else f"{rate:>12,.0f}" for rate in rates)
                    + f"{row['ratio']:>8.1f}{row['build_s']:>9.2f}",
                    flush=True,
                )
                rows.append(row)
    return {"name": "two-inequalities", "rows": rows}


class Ours:
    """The last million readings as one block, with and without trees, and as a sliding window."""

    def __init__(self, readings: pa.Table) -> None:
        power, cool = (Keys(readings[name].to_numpy()) for name in ("power", "cool"))
        self.window = RangeTreeWindow(2)
        for start in range(0, WINDOW + SLID, FILL):
            part = slice(start, start + FILL)
            self.window.insert([Keys(power.values[part]), Keys(cool.values[part])])
            self.window.expire(self.window.next_position - WINDOW)
        start_time = time.perf_counter()
        runs = [SortedRun.of(Keys(keys.values[SLID:])) for keys in (power, cool)]
        self.sort_seconds = time.perf_counter() - start_time
        self.block = PermutationOffsetJoin(SLID, runs)
        self.listing = PermutationOffsetJoin(SLID, runs)
        self.paper = PermutationOffsetJoin(SLID, runs, trees=False)
        for part in (slice(0, 100), slice(None)):  # the first time compiles
            self.tree_seconds = _tree_seconds([SortedRun.of(Keys(k.values[SLID:][part])) for k in (power, cool)])


def _tree_seconds(runs: list[SortedRun]) -> float:
    """Seconds until a block first lists by its tree."""
    nothing = (np.zeros(1, np.int32), np.zeros(1, np.int32))
    fresh = PermutationOffsetJoin(0, runs)
    start_time = time.perf_counter()
    fresh.match([nothing, nothing], [False, False], Live.everything(1), _strategy=Strategy.TREE)
    return time.perf_counter() - start_time


class Peers:
    """The window in the best layout for DuckDB and Polars."""

    def __init__(self, window: pa.Table) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute("SET enable_progress_bar = false")
        self.connection.register("window_rows", window.sort_by("power").combine_chunks())
        self.frame = pl.DataFrame(pl.from_arrow(window)).sort("cool")

    def probe_duckdb(self, probes: pa.Table) -> int:
        self.connection.register("batch", probes)
        return self.connection.sql(f"SELECT b.id AS r, w.id AS s {JOIN}").to_arrow_table().num_rows

    def count_duckdb(self, probes: pa.Table) -> int:
        self.connection.register("batch", probes)
        query = f"SELECT b.id AS r, count(*) AS matches {JOIN} GROUP BY b.id"
        return int(self.connection.sql(query).to_arrow_table()["matches"].to_numpy().sum())

    def probe_polars(self, probes: pa.Table) -> int:
        return self._joined(probes).select("id", "id_w").collect().height

    def count_polars(self, probes: pa.Table) -> int:
        counted = self._joined(probes).select("id").group_by("id").len().collect()
        return int(counted["len"].sum())

    def _joined(self, probes: pa.Table) -> pl.LazyFrame:
        batch = pl.DataFrame(pl.from_arrow(probes)).lazy()
        conditions = (pl.col("power") < pl.col("power_w"), pl.col("cool") > pl.col("cool_w"))
        return batch.join_where(self.frame.lazy(), *conditions, suffix="_w")


def _probing(ours: Ours, peers: Peers, probes: pa.Table) -> dict[str, Any]:
    bounds, live = _asked(probes)
    negated = [False, False]

    def with_block(block: PermutationOffsetJoin, ordered: bool) -> int:
        found = probe_blocks(EVERYWHERE, [block], bounds, live, ordered=ordered)
        assert found is not None
        return len(found.positions)

    def with_tree() -> int:
        ranges = ours.listing.ranges(bounds)
        found = ours.listing.match(ranges, negated, live, ordered=False, _strategy=Strategy.TREE)
        assert found is not None
        return len(found.positions)

    ways: dict[str, Callable[[], int]] = {
        "ours": lambda: with_block(ours.block, False),
        "ordered": lambda: with_block(ours.block, True),
        "tree": with_tree,
        "window": lambda: len(ours.window.probe(bounds, live, ordered=False).positions),
        "po_join": lambda: with_block(ours.paper, False),
        "duckdb": lambda: peers.probe_duckdb(probes),
        "polars": lambda: peers.probe_polars(probes),
    }
    return _measured("probe", ways, ours, len(bounds[0]))


def _counting(ours: Ours, peers: Peers, probes: pa.Table) -> dict[str, Any]:
    bounds, live = _asked(probes)
    ways: dict[str, Callable[[], int]] = {
        "ours": lambda: int(ours.block.count(bounds, live).sum()),
        "window": lambda: int(ours.window.count(bounds, live).sum()),
        "po_join": lambda: int(ours.paper.count(bounds, live).sum()),
        "duckdb": lambda: peers.count_duckdb(probes),
        "polars": lambda: peers.count_polars(probes),
    }
    return _measured("count", ways, ours, len(bounds[0]))


def _measured(case: str, ways: dict[str, Callable[[], int]], ours: Ours, probes: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    totals: dict[str, int] = {}
    for name in ("ours", "window"):
        for _ in range(0, WARM_PROBES, probes):
            ways[name]()
    for repeat in range(REPEATS):
        for name, way in ways.items():
            if repeat < PEER_REPEATS or name not in ("duckdb", "polars"):
                if name not in ("duckdb", "polars"):
                    way()  # fills the caches with its own data
                start_time = time.process_time()
                totals[name] = way()
                seconds[name].append(time.process_time() - start_time)
    rates = {name: probes / min(taken) for name, taken in seconds.items()}
    if len(set(totals.values())) != 1:
        raise AssertionError(f"the numbers of matches differ: {totals}")
    rivals = {name: rates.pop(name) for name in ("duckdb", "polars", "po_join")}
    build = ours.sort_seconds + ours.tree_seconds
    return {"case": case, **rates, "peers": rivals, "build_s": build, "matches": totals["ours"] / probes}


def _asked(probes: pa.Table) -> tuple[list[Interval], Live]:
    """Intervals for more power but less cooling than the probe's, in the last million positions."""
    power, cool = probes["power"].to_numpy(), probes["cool"].to_numpy()
    infinite = np.full(len(power), np.inf)
    bounds = [Interval(np.nextafter(power, np.inf), infinite), Interval(-infinite, np.nextafter(cool, -np.inf))]
    return bounds, Live(np.full(len(power), SLID), np.full(len(power), WINDOW + SLID))
