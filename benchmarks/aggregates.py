"""Aggregates over the matches of each row, beside the inner join that lists these, and beside DuckDB.

Two streams take turns in micro-batches over a band; each row has about 300 matches in the other side's window. The
aggregates give one row for each row of R. `ratio` is the rate over that of the inner join in outer order, which makes
rows of two ids; the same by processor time holds on a busy machine, too. DuckDB joins and groups a part of a
micro-batch of R with the window of S, and must find the same counts.
"""

from __future__ import annotations

import time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.kinds import BAND, BATCH, MATCHES, SPACE, Size, best_run
from operators import Aggregate, count
from operators import max as most
from operators import min as least
from operators import sum as sum_of

PEER_BATCH = 2_000
"""Rows of R that DuckDB joins in one query: its band join takes seconds for these."""

AGGREGATES: dict[str, dict[str, Aggregate]] = {
    "count": {},
    "sum of int64": {"volume": sum_of("S.size")},
    "sum of float64": {"value": sum_of("S.price")},
    "min, max": {"least": least("S.price"), "most": most("S.price")},
}


def run(quick: bool) -> dict[str, Any]:
    """Measure each aggregate."""
    size = Size(20_000, 20_000, 1) if quick else Size(100_000, 200_000, 2)
    rows: list[dict[str, Any]] = []
    print(
        f"windows of {size.window:,} rows, micro-batches of {BATCH:,}, {MATCHES} matches a row; best of {size.repeats}"
    )
    print(f"{'':<16}{'tuples/s':>12}{'ratio':>8}{'by processor':>14}{'DuckDB':>12}")
    width = MATCHES * SPACE // (2 * size.window)
    on = BAND.format(width=width)
    tables = tuple(pa.table({"id": np.arange(len(x)), "x": x.astype(np.float64)}) for x in map(size.numbers, (1, 2)))
    best_run(size, tables, on)  # compiles the kernels
    inner = best_run(size, tables, on)
    print(f"{'inner':<16}{inner.rate:>12,.0f}", flush=True)
    for name, values in (("size", size.numbers(3) % 1000), ("price", size.numbers(4) / 64)):
        tables = tuple(table.append_column(name, pa.array(values)) for table in tables)
    for name, aggregates in AGGREGATES.items():
        each = best_run(size, tables, on, aggregate={"matches": count(), **aggregates})
        peer, matches = _duckdb(size, tables, on, aggregates)
        ours = each.counted[size.prefill : size.prefill + len(matches)]
        assert (ours == matches).all(), f"DuckDB finds other matches than {name}"
        ratio, worked = each.rate / inner.rate, inner.processor / each.processor
        print(f"{name:<16}{each.rate:>12,.0f}{ratio:>8.1f}{worked:>14.1f}{peer:>12,.0f}", flush=True)
        rows.append(
            {
                "case": f"aggregate {name}",
                "ours": each.rate,
                "ratio": ratio,
                "processor": worked,
                "peers": {"DuckDB": peer},
            }
        )
    return {"name": "aggregates", "rows": rows}


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
