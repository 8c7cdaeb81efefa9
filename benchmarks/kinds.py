"""The cost of each kind, ordering and type, beside an inner join in outer order on float64.

Two streams take turns in micro-batches; each row has about 300 matches in the other side's window. A run is measured
from the first micro-batch after the windows are full to the last result read. The runs are compared before figures are
printed: counts add up to the pairs of the inner join, semi and anti divide the left rows, a left join adds the
unmatched, and every type finds the pairs that float64 finds. Aggregates over the matches of each row stand beside
DuckDB, which joins and groups a part of a micro-batch of R with the window of S, and must find the same counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.measure import in_blocks
from operators import Aggregate, CountWindow, Ordering, RunningJoin, StreamJoin, count
from operators import max as most
from operators import min as least
from operators import sum as sum_of

MATCHES = 300
SPACE = 1 << 31
BATCH = 10_000
PEER_BATCH = 2_000
"""Rows of R that DuckDB joins in one query: its band join takes seconds for these."""

Convert = Callable[[np.ndarray], pa.Array]

BAND = "abs(R.x - S.x) <= {width}"
RANGE = "S.x BETWEEN R.low AND R.high"
EQUALITY = "R.k = S.k"

AGGREGATES: dict[str, dict[str, Aggregate]] = {
    "count": {},
    "sum of int64": {"volume": sum_of("S.size")},
    "sum of float64": {"value": sum_of("S.price")},
    "min, max": {"least": least("S.price"), "most": most("S.price")},
}
KINDS = ["inner", "left", "right", "full", "semi", "anti", "count"]
ORDERINGS: list[Ordering | int] = ["outer", "strict", 1000, "none"]
TYPES: dict[str, Convert] = {
    "float64": lambda x: pa.array(x.astype(np.float64)),
    "float32": lambda x: pa.array(x.astype(np.float32)),
    "int64": pa.array,
    "int32": lambda x: pa.array(x.astype(np.int32)),
    "timestamp": lambda x: pa.array(x).cast(pa.timestamp("ms")),
    "decimal(12, 2)": lambda x: pa.array(x).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 2)).cast(
        pa.decimal128(12, 2)
    ),
    "decimal(38, 2)": lambda x: pa.array(x).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 2)),
    "string": lambda x: pa.array(np.char.zfill(x.astype(str), 10)),
    "binary": lambda x: pa.array(np.char.zfill(x.astype(str), 10)).cast(pa.binary()),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """Tuples of both sides per second, and the results: how many, and the sum of their `matches` where counted."""

    rate: float
    results: int
    matches: int
    counted: np.ndarray


def run(quick: bool) -> dict[str, Any]:
    """Measure kinds, orderings and types."""
    window = 20_000 if quick else 100_000
    measured = 20_000 if quick else 200_000
    repeats = 1 if quick else 2
    size = Size(window, measured, repeats)
    rows: list[dict[str, Any]] = []
    print(f"windows of {window:,} rows, micro-batches of {BATCH:,}, about {MATCHES} matches a row; best of {repeats}")
    _kinds(size, rows)
    _types(size, rows)
    return {"name": "kinds", "rows": rows}


@dataclass(frozen=True)
class Size:
    """The size of a run."""

    window: int
    measured: int
    repeats: int

    @property
    def prefill(self) -> int:
        """Rows of each side before the measurement begins."""
        return -(-self.window // BATCH) * BATCH

    def numbers(self, seed: int) -> np.ndarray:
        """Uniform numbers."""
        return np.random.default_rng(seed).integers(0, SPACE, self.prefill + self.measured)


def _kinds(size: Size, rows: list[dict[str, Any]]) -> None:
    width = MATCHES * SPACE // (2 * size.window)
    tables = tuple(pa.table({"id": np.arange(len(x)), "x": x.astype(np.float64)}) for x in map(size.numbers, (1, 2)))
    on = BAND.format(width=width)
    runs = {kind: _best(size, tables, on, kind=kind) for kind in KINDS}
    left = tables[0].num_rows
    pairs = runs["inner"].results
    assert runs["count"].matches == pairs, "the counts add up to the pairs"
    assert runs["semi"].results + runs["anti"].results == left, "semi and anti divide the left rows"
    assert runs["left"].results == pairs + runs["anti"].results, "the left join adds the unmatched rows"
    _report("kind", runs, runs["inner"], rows)
    _aggregates(size, tables, on, runs["inner"], rows)
    ordered = {str(each): _best(size, tables, on, ordering=each) for each in ORDERINGS}
    assert len({each.results for each in ordered.values()}) == 1, "the ordering changes no result"
    _report("ordering", ordered, ordered["outer"], rows)


def _aggregates(size: Size, tables: tuple[pa.Table, ...], on: str, inner: Run, rows: list[dict[str, Any]]) -> None:
    """One result for each row of R, beside the inner join's pairs."""
    added = {"size": size.numbers(3) % 1000, "price": size.numbers(4) / 64}
    for name, values in added.items():
        tables = tuple(table.append_column(name, pa.array(values)) for table in tables)
    runs = {
        name: _best(size, tables, on, aggregate={"matches": count(), **aggregates})
        for name, aggregates in AGGREGATES.items()
    }
    for name, each in runs.items():
        rate, matches = _duckdb(size, tables, on, AGGREGATES[name])
        ours = each.counted[size.prefill : size.prefill + len(matches)]
        assert (ours == matches).all(), f"DuckDB finds other matches than {name}"
        ratio = each.rate / inner.rate
        print(f"aggregate {name:<16}{each.rate:>12,.0f} tuples/s {ratio:>6.2f}  DuckDB {rate:>12,.0f}", flush=True)
        rows.append({"case": f"aggregate {name}", "ours": each.rate, "ratio": ratio, "peers": {"DuckDB": rate}})


def _duckdb(
    size: Size, tables: tuple[pa.Table, ...], on: str, aggregates: dict[str, Aggregate]
) -> tuple[float, np.ndarray]:
    """Tuples of both sides per second, and the number of matches of each row, by one query for a micro-batch of R."""
    shown = ", ".join(["count(*) AS matches", *(f"{each.function}({each.argument})" for each in aggregates.values())])
    left, right = tables
    at = size.prefill
    with duckdb.connect(config={"threads": 2}) as database:
        start = time.perf_counter()
        database.register("R", left.slice(at, PEER_BATCH))
        database.register("S", right.slice(max(0, at - size.window), min(at, size.window)))
        query = f"SELECT R.id, {shown} FROM R LEFT JOIN S ON {on} GROUP BY R.id"
        found = database.sql(query.replace("count(*)", "count(S.id)")).to_arrow_table().sort_by("id")
        rate = 2 * PEER_BATCH / (time.perf_counter() - start)
    return rate, found["matches"].to_numpy()


def _types(size: Size, rows: list[dict[str, Any]]) -> None:
    half = MATCHES * SPACE // (2 * size.window)
    left, right = size.numbers(1), size.numbers(2)
    for name, on, columns in (
        ("range", RANGE, ({"low": np.maximum(left - half, 0), "high": left + half}, {"x": right})),
        ("equality", EQUALITY, ({"k": left % (size.window // MATCHES)}, {"k": right % (size.window // MATCHES)})),
    ):
        runs: dict[str, Run] = {}
        for kind, convert in TYPES.items():
            if kind in ("int32", "float32") and name == "range":
                continue  # the numbers do not fit
            tables = tuple(
                pa.table({"id": np.arange(len(left))} | {each: convert(values) for each, values in side.items()})
                for side in columns
            )
            runs[kind] = _best(size, tables, on)
            assert runs[kind].results == runs["float64"].results, f"{kind} finds the pairs that float64 finds"
        _report(name, runs, runs["float64"], rows)


def _report(what: str, runs: dict[str, Run], base: Run, rows: list[dict[str, Any]]) -> None:
    for name, each in runs.items():
        print(f"{what:<10}{name:<16}{each.rate:>12,.0f} tuples/s {each.rate / base.rate:>6.2f}", flush=True)
        rows.append({"case": f"{what} {name}", "ours": each.rate, "ratio": each.rate / base.rate, "peers": {}})


def _best(
    size: Size,
    tables: tuple[pa.Table, ...],
    on: str,
    kind: str = "inner",
    ordering: Any = "outer",
    aggregate: dict[str, Aggregate] | None = None,
) -> Run:
    shown = ["R.id"] if kind in ("semi", "anti") or aggregate else ["R.id", "S.id"]
    join = StreamJoin(
        "R", "S", on, CountWindow(size.window),
        kind=kind, select=shown, event_time="block", ordering=ordering, step_rows=2 * BATCH,
        aggregate=aggregate,
    )  # fmt: skip
    runs = [_run(join, size, tables) for _ in range(size.repeats)]
    return max(runs, key=lambda each: each.rate)


def _run(join: StreamJoin, size: Size, tables: tuple[pa.Table, ...]) -> Run:
    left, right = (in_blocks(table, BATCH, parity).to_batches()[0] for parity, table in enumerate(tables))
    with join.launch(sources={"R": ["R"], "S": ["S"]}) as running:
        counted = _Counted(running)
        reader = threading.Thread(target=counted.read, daemon=True)
        reader.start()
        _send(running, left, right, 0, size.prefill)
        while running.metrics().total("answered", join.engine.collector) < 2 * size.prefill - BATCH:
            time.sleep(0.005)  # the last micro-batch passes the gate when the next one comes
        start = time.perf_counter()
        _send(running, left, right, size.prefill, left.num_rows)
        running.finish()
        reader.join()
        seconds = time.perf_counter() - start
    return Run(2 * size.measured / seconds, counted.results, counted.matches, np.concatenate([*counted.counts, []]))


@dataclass
class _Counted:
    """Reads results as they come and counts them."""

    running: RunningJoin
    results: int = field(default=0, init=False)
    matches: int = field(default=0, init=False)
    counts: list[np.ndarray] = field(default_factory=list, init=False)

    def read(self) -> None:
        for batch in self.running.results():
            self.results += batch.num_rows
            if "matches" in batch.schema.names:
                self.counts.append(batch.column("matches").to_numpy())
                self.matches += int(self.counts[-1].sum())


def _send(running: RunningJoin, left: pa.RecordBatch, right: pa.RecordBatch, start: int, stop: int) -> None:
    for at in range(start, stop, BATCH):
        running.send("R", left.slice(at, min(BATCH, stop - at)))
        running.send("S", right.slice(at, min(BATCH, stop - at)))
