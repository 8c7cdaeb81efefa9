"""As-of joins per micro-batch: ours, beside DuckDB's and Polars' as-of joins re-run for each micro-batch.

Trades meet the last quote of their share. The peers keep the quotes of the last window, sorted by time, and join each
micro-batch of trades with them; ours keeps one quote for each share. Quotes come ten times as often as trades do in
their own micro-batches of the same time. All three must choose the same quotes.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

os.environ.setdefault("POLARS_MAX_THREADS", "2")  # as for DuckDB; Polars fixes it when it is imported

import duckdb
import polars as pl

from operators import StreamJoin
from topology import LocalRuntime

SHARES = 500
WINDOW = 100_000
"""Quotes that the peers keep; shares are quoted often enough that older ones are never chosen."""


def run(quick: bool) -> dict[str, Any]:
    """Measure each micro-batch size."""
    rows = []
    print(f"{'micro-batch':>12}{'ours, trades/s':>18}{'DuckDB':>12}{'Polars':>12}{'ratio':>8}")
    _ours(*_streams(100, 3), 100)  # compiles the kernels
    for batch in (1_000,) if quick else (100, 1_000, 10_000):
        rounds = 10 if quick else max(10, 30_000 // batch)
        trades, quotes = _streams(batch, rounds)
        chosen: dict[str, pa.Table] = {}
        ours, chosen["ours"] = _ours(trades, quotes, batch)
        with duckdb.connect(config={"threads": 2}) as connection:
            duck, chosen["DuckDB"] = _peer(trades, quotes, batch, partial(_duckdb, connection))
        polar, chosen["Polars"] = _peer(trades, quotes, batch, _polars)
        for name, table in chosen.items():
            assert table.sort_by("trade").equals(chosen["ours"].sort_by("trade")), f"{name} chose other quotes"
        ratio = ours / max(duck, polar)
        print(f"{batch:>12,}{ours:>18,.0f}{duck:>12,.0f}{polar:>12,.0f}{ratio:>8.1f}", flush=True)
        peers = {"DuckDB": duck, "Polars": polar}
        rows.append({"case": f"micro-batches of {batch}", "ours": ours, "peers": peers, "ratio": ratio})
    return {"name": "as-of", "rows": rows}


def _streams(batch: int, rounds: int) -> tuple[pa.Table, pa.Table]:
    """Trades and quotes in time order; the peers' window is full of quotes before the first trade."""
    chance = np.random.default_rng(7)
    per_round = 10 * batch
    count = WINDOW + rounds * per_round
    times = np.arange(count) * 2
    quotes = {"quote": np.arange(count), "share": chance.integers(0, SHARES, count), "ts": times}
    number = rounds * batch
    trades = {
        "trade": np.arange(number),
        "share": chance.integers(0, SHARES, number),
        "ts": 2 * WINDOW + np.arange(number) * 20 + 1,
    }
    return pa.table(trades), pa.table(quotes)


def _ours(trades: pa.Table, quotes: pa.Table, batch: int) -> tuple[float, pa.Table]:
    join = StreamJoin("T", "Q", "T.share = Q.share", kind="asof inner", event_time="ts", select=["T.trade", "Q.quote"])
    found: list[pa.RecordBatch] = []
    with join.launch(LocalRuntime(), sources={"T": ["T"], "Q": ["Q"]}) as running:
        running.send("Q", quotes.slice(0, WINDOW))
        running.send("T", trades.slice(0, 0))
        rounds = trades.num_rows // batch
        reader = running.results()
        certain = 0
        start = time.perf_counter()
        for number in range(rounds):
            running.send("Q", quotes.slice(WINDOW + 10 * batch * number, 10 * batch))
            running.send("T", trades.slice(batch * number, batch))
            wanted = batch * (number + 1) - 1  # the last trade is certain with the next quote
            while certain < wanted - batch // 10:
                found.append(next(reader))
                certain += found[-1].num_rows
        running.finish()
        found += list(reader)
        seconds = time.perf_counter() - start
    table = pa.Table.from_batches(found).rename_columns(["trade", "quote"])
    return trades.num_rows / seconds, table


def _peer(trades: pa.Table, quotes: pa.Table, batch: int, join: Any) -> tuple[float, pa.Table]:
    found = []
    start = time.perf_counter()
    for number in range(trades.num_rows // batch):
        end = WINDOW + 10 * batch * (number + 1)
        found.append(
            join(trades.slice(batch * number, batch), quotes.slice(end - WINDOW - 10 * batch, WINDOW + 10 * batch))
        )
    seconds = time.perf_counter() - start
    return trades.num_rows / seconds, pa.concat_tables(found)


def _duckdb(connection: duckdb.DuckDBPyConnection, trades: pa.Table, quotes: pa.Table) -> pa.Table:
    connection.register("t", trades)
    connection.register("q", quotes)
    text = "SELECT t.trade, q.quote FROM t ASOF JOIN q ON t.share = q.share AND t.ts >= q.ts"
    return connection.sql(text).to_arrow_table()


def _polars(trades: pa.Table, quotes: pa.Table) -> pa.Table:
    left, right = (pl.from_arrow(table) for table in (trades, quotes))
    assert isinstance(left, pl.DataFrame)
    assert isinstance(right, pl.DataFrame)
    found = left.join_asof(right, on="ts", by="share", check_sortedness=False).select("trade", "quote")
    return found.drop_nulls().to_arrow()
