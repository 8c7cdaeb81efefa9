"""A join of three streams beside DuckDB and Polars, re-run per micro-batch, and beside a cascade of two joins.

Three streams take turns in micro-batches of 10,000 rows over count windows of 100,000. There are two queries, each with
about three results a row: `a.k = b.k AND b.k = c.k AND a.x < c.x`, and two bands, `abs(a.x - b.x) <= d AND
abs(b.x - c.x) <= d`. The peers keep the windows as tables and join each micro-batch with the windows of the other two,
by the same condition. The cascade is what one writes by hand: a join of two, whose results a second join takes up.
Its windows count other rows, so its results are not the same; the others are compared by their number and by the sums
of their columns before any figure is printed. Each reads all values of its results into these sums while it is timed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

os.environ.setdefault("POLARS_MAX_THREADS", "2")  # as for the other peers; Polars fixes it when it is imported

import duckdb
import polars as pl

from operators import CountWindow, MultiJoin, StreamJoin
from topology import DEFAULT_STREAM, LocalRuntime, MapBatches, Topology, TopologyBuilder

NAMES = ("a", "b", "c")
MATCHES = 3.0
"""Results that belong to a row, about."""

REPEATS = 2
"""Machines are shared and noisy: the best of this many runs counts, for ours and the peers."""

GREATEST = 10**9
"""Values of `x` are integers below it, so that all engines compute the same."""

Batches = list[tuple[str, pa.Table]]
Frames = dict[str, pl.LazyFrame]


@dataclass
class Found:
    """Results: how many, and the sum of each of their columns."""

    rows: int = 0
    sums: tuple[int, ...] = (0, 0, 0)

    def add(self, columns: Iterable[pa.Array | pa.ChunkedArray]) -> None:
        """Read the columns of some more."""
        columns = list(columns)
        self.rows += len(columns[0])
        self.sums = tuple(one + (pc.sum(each).as_py() or 0) for one, each in zip(self.sums, columns, strict=True))

    def since(self, earlier: Found) -> Found:
        """Without those of an earlier state."""
        return Found(
            self.rows - earlier.rows, tuple(one - other for one, other in zip(self.sums, earlier.sums, strict=True))
        )


@dataclass(frozen=True)
class Query:
    """One condition, in our words, in DuckDB's, and as joins of Polars frames whose columns begin with their names."""

    name: str
    ours: str
    duckdb: str
    polars: Callable[[Frames, str], pl.LazyFrame]


def _equalities() -> Query:
    def joined(frames: Frames, latest: str) -> pl.LazyFrame:
        first, second, third = sorted(NAMES, key=lambda name: name != latest)
        found = frames[first].join(frames[second], left_on=f"{first}_k", right_on=f"{second}_k")
        found = found.join(frames[third], left_on=f"{first}_k", right_on=f"{third}_k")
        return found.filter(pl.col("a_x") < pl.col("c_x"))

    on = "a.k = b.k AND b.k = c.k AND a.x < c.x"
    return Query("equalities", on, on, joined)


def _bands(window: int) -> Query:
    width = round(GREATEST * MATCHES**0.5 / (2 * window))

    def near(one: str) -> list[pl.Expr]:
        return [pl.col(f"{one}_x") >= pl.col("b_x") - width, pl.col(f"{one}_x") <= pl.col("b_x") + width]

    def joined(frames: Frames, latest: str) -> pl.LazyFrame:
        ends = [name for name in NAMES if name != "b"]
        first, last = ends if latest != "c" else ends[::-1]  # the micro-batch takes part in the first join
        return frames["b"].join_where(frames[first], *near(first)).join_where(frames[last], *near(last))

    return Query(
        "two bands",
        f"abs(a.x - b.x) <= {width} AND abs(b.x - c.x) <= {width}",
        f"a.x BETWEEN b.x - {width} AND b.x + {width} AND c.x BETWEEN b.x - {width} AND b.x + {width}",
        joined,
    )


def run(quick: bool) -> dict[str, Any]:
    """Measure all of them on the same rows."""
    window, batch, rounds = (20_000, 5_000, 3) if quick else (100_000, 10_000, 10)
    keys = int(window * (1 / (2 * MATCHES)) ** 0.5)
    filling, measured = _batches(window, batch, rounds, keys)
    rows = []
    for query in (_equalities(), _bands(window)):
        rows.append(_row(query, filling, measured, window))
    cascade = _cascade(filling, measured, window)
    ours = rows[0]["ours"]
    print(f"cascade of two joins, equalities: {cascade:,.0f} rows a second, ours {ours:,.0f}")
    rows.append({"case": "cascade of two joins", "ours": ours, "peers": {"cascade": cascade}, "ratio": ours / cascade})
    return {"name": "multiway", "rows": rows}


def _row(query: Query, filling: Batches, measured: Batches, window: int) -> dict[str, Any]:
    runs = [_ours(query, filling, measured, window) for _ in range(REPEATS)]
    ours, results = max(rate for rate, _ in runs), runs[0][1]
    peers: dict[str, float] = {}
    for name, peer in (("DuckDB", _DuckDB), ("Polars", _Polars)):
        for _ in range(REPEATS):
            rate, found = _peer(peer(query), filling, measured, window)
            assert found == results, f"{query.name}: {name} finds {found}, we find {results}"
            peers[name] = max(peers.get(name, 0.0), rate)
    batch, sent = measured[0][1].num_rows, sum(rows.num_rows for _, rows in measured)
    print(
        f"{query.name}: windows of {window:,} rows, micro-batches of {batch:,}, {results.rows / sent:.2f} results a "
        f"row; rows a second"
    )
    for name, rate in {"ours": ours, **peers}.items():
        print(f"  {name:<22}{rate:>14,.0f}")
    case = f"three streams, {query.name}, batch {batch}"
    return {"case": case, "ours": ours, "peers": peers, "ratio": ours / max(peers.values())}


def _batches(window: int, batch: int, rounds: int, keys: int) -> tuple[Batches, Batches]:
    chance = np.random.default_rng(1)
    first = dict.fromkeys(NAMES, 0)

    def table(name: str) -> pa.Table:
        ids = first[name] + np.arange(batch)
        first[name] += batch
        return pa.table(
            {
                "id": ids,
                "k": chance.integers(0, keys, batch),
                "x": chance.integers(0, GREATEST, batch),
                "ts": ids // batch,
            }
        )

    def turns(count: int) -> Batches:
        return [(name, table(name)) for _ in range(count) for name in NAMES]

    return turns(-(-window // batch)), turns(rounds)


def _timed(
    topology: Topology, filling: Batches, measured: Batches, answered: Callable[[Any], float]
) -> tuple[float, Found]:
    """Rows a second from the first measured batch to the last result, and all results."""
    found = Found()
    with LocalRuntime().launch(topology) as running:
        for name in NAMES:
            running.open(name, name)

        def read() -> None:
            for rows in running.results():
                found.add(rows.columns[:3])

        reader = threading.Thread(target=read)
        reader.start()
        for name, rows in filling:
            running.send(name, rows, source=name)
        total = sum(rows.num_rows for _, rows in filling)
        while answered(running.metrics()) < total - 2 * filling[0][1].num_rows:
            time.sleep(0.01)
        start = time.perf_counter()
        for name, rows in measured:
            running.send(name, rows, source=name)
        running.finish()
        reader.join()
        seconds = time.perf_counter() - start
    return sum(rows.num_rows for _, rows in measured) / seconds, found


def _ours(query: Query, filling: Batches, measured: Batches, window: int) -> tuple[float, Found]:
    """Rows a second, and the results of the measured rows."""
    join = MultiJoin(
        NAMES, query.ours, CountWindow(window), select=["a.id", "b.id", "c.id"], event_time="ts",
        step_rows=len(filling[0][1]),
    )  # fmt: skip
    before = Found()
    rows = join.collect({name: [rows for each, rows in filling if each == name] for name in NAMES})
    before.add(rows.columns)
    rate, found = _timed(join.topology(), filling, measured, lambda metrics: metrics.total("answered"))
    return rate, found.since(before)


def _cascade(filling: Batches, measured: Batches, window: int) -> float:
    builder = TopologyBuilder("cascade")
    for name in NAMES:
        builder.input(name)
    one = StreamJoin("a", "b", "a.k = b.k", CountWindow(window), select=["a.id", "a.k", "a.x", "b.id"], event_time="ts")
    builder.join("pairs", one, inputs={"a": "a", "b": "b"})
    builder.bolt("named", MapBatches(_named)).global_grouping("pairs")
    other = StreamJoin(
        "p", "c", "p.k = c.k AND p.x < c.x", CountWindow(window), select=["p.a", "p.b", "c.id"],
        event_time={"p": "event_time", "c": "ts"},
    )  # fmt: skip
    builder.join("triples", other, inputs={"p": ("named", DEFAULT_STREAM), "c": "c"}, event_time=None)
    builder.sink().global_grouping("triples")
    rows = len(filling[0][1])

    def answered(metrics: Any) -> float:
        return float(metrics.total("answered", "pairs/collector")) * 1.5 + rows

    return _timed(builder.build(), filling, measured, answered)[0]


def _named(rows: pa.RecordBatch) -> pa.RecordBatch:
    names = {"a.id": "a", "a.k": "k", "a.x": "x", "b.id": "b", "event_time": "event_time"}
    return pa.record_batch([rows.column(name) for name in names], names=list(names.values()))


class _DuckDB:
    """The windows are Arrow tables; each micro-batch is joined with the other two."""

    def __init__(self, query: Query) -> None:
        self._query = f"SELECT a.id AS i, b.id AS j, c.id AS l FROM a, b, c WHERE {query.duckdb}"
        self._connection = duckdb.connect(config={"threads": 2})

    def join(self, tables: dict[str, pa.Table], latest: str) -> list[pa.ChunkedArray]:
        for name, table in tables.items():
            self._connection.register(name, table)
        found: list[pa.ChunkedArray] = self._connection.sql(self._query).to_arrow_table().columns
        return found


class _Polars:
    """As `_DuckDB`; the micro-batch takes part in the first of two joins."""

    def __init__(self, query: Query) -> None:
        self._join = query.polars

    def join(self, tables: dict[str, pa.Table], latest: str) -> list[pa.ChunkedArray]:
        frames = {
            name: pl.DataFrame(pl.from_arrow(table)).lazy().rename(lambda column, of=name: f"{of}_{column}")
            for name, table in tables.items()
        }
        found: list[pa.ChunkedArray] = (
            self._join(frames, latest).select("a_id", "b_id", "c_id").collect().to_arrow().columns
        )
        return found


def _peer(peer: _DuckDB | _Polars, filling: Batches, measured: Batches, window: int) -> tuple[float, Found]:
    """Rows a second, and the results of the measured rows."""
    parts: dict[str, list[pa.Table]] = {name: [] for name in NAMES}
    for name, rows in filling:
        parts[name].append(rows)
    found, sent = Found(), 0
    start = time.perf_counter()
    for name, rows in measured:
        tables = {
            each: rows if each == name else pa.concat_tables(list(_last(parts[each], window))).combine_chunks()
            for each in NAMES
        }
        found.add(peer.join(tables, name))
        parts[name].append(rows)
        sent += rows.num_rows
    return sent / (time.perf_counter() - start), found


def _last(tables: list[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The last so many rows."""
    left = rows
    for table in reversed(tables):
        if left <= 0:
            return
        yield table.slice(max(0, table.num_rows - left))
        left -= table.num_rows
