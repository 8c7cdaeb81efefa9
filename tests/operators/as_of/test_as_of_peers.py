"""As-of joins of recorded orders and quotes give what DuckDB and Polars give."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from operators import StreamJoin
from tests.comparison import assert_same_rows
from tests.realdata import stocks

pytestmark = pytest.mark.realdata
ROWS = 20_000


def trades(which: str) -> pa.Table:
    """Rows of one stream in event-time order; of rows with equal key and time, one: peers choose any of them."""
    table = stocks(which).slice(0, ROWS)
    times = table["event_time" if "event_time" in table.column_names else "ts"].cast(pa.int64())
    found = pl.from_arrow(pa.table({"id": table["id"], "key": table["key"], "ts": times, "value": table["value"]}))
    assert isinstance(found, pl.DataFrame)
    return found.unique(["key", "ts"], keep="first").sort("ts", "id").to_arrow()


def joined(orders: pa.Table, quotes: pa.Table, **options: Any) -> pa.Table:
    join = StreamJoin(
        "o", "q", "o.key = q.key", event_time="ts", select=["o.id", "q.id"], **options,
    )  # fmt: skip
    found = join.collect({"o": orders, "q": quotes})
    return found.rename_columns(["order", "quote"])


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("tolerance", [None, 50])
def test_polars_agrees(direction: str, tolerance: int | None) -> None:
    orders, quotes = trades("orders"), trades("quotes")
    frames = [pl.from_arrow(table) for table in (orders, quotes)]
    left, right = (frame for frame in frames if isinstance(frame, pl.DataFrame))
    found = left.join_asof(
        right, on="ts", by="key", strategy=direction, tolerance=tolerance, check_sortedness=False,
    )  # fmt: skip
    wanted = found.select(pl.col("id").alias("order"), pl.col("id_right").alias("quote")).to_arrow()
    assert wanted["quote"].null_count < wanted.num_rows
    result = joined(orders, quotes, kind="asof", direction=direction, tolerance=tolerance)
    if direction == "nearest":  # of two quotes that are equally far, Polars takes the later
        result, wanted = (with_distances(table, orders, quotes) for table in (result, wanted))
    assert_same_rows(result, wanted)


def with_distances(result: pa.Table, orders: pa.Table, quotes: pa.Table) -> pa.Table:
    """How far each order is from its quote."""
    times = {name: dict(zip(*(table[column].to_pylist() for column in ("id", "ts")), strict=True))
             for name, table in (("order", orders), ("quote", quotes))}  # fmt: skip
    pairs = zip(result["order"].to_pylist(), result["quote"].to_pylist(), strict=True)
    away = [
        (order, None if quote is None else abs(times["order"][order] - times["quote"][quote])) for order, quote in pairs
    ]
    return pa.table({"order": [order for order, _ in away], "away": pa.array([each for _, each in away], pa.int64())})


@pytest.mark.parametrize("operator", [">=", ">", "<=", "<"])
def test_duckdb_agrees(operator: str) -> None:
    orders, quotes = trades("orders"), trades("quotes")
    text = f"FROM orders o ASOF JOIN quotes q ON o.key = q.key AND o.ts {operator} q.ts"
    with duckdb.connect() as database:
        database.register("orders", orders)
        database.register("quotes", quotes)
        wanted = database.sql(f'SELECT o.id AS "order", q.id AS "quote" {text}').to_arrow_table()
    assert wanted.num_rows > 1000
    join = StreamJoin.from_sql(f"SELECT o.id, q.id {text}", event_time="ts")
    found = join.collect({"orders": orders, "quotes": quotes})
    assert_same_rows(found.rename_columns(["order", "quote"]), wanted)
