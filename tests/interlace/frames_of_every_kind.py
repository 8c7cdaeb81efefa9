"""Frames of every kind with the same rows, and the rows of a frame."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

NAN = float("nan")
ZONE = "Europe/Vienna"
LIBRARIES = ["pandas", "polars", "lazy polars", "arrow", "duckdb", "dict", "dicts"]


def table(seed: int, rows: int) -> pa.Table:
    """Rows with nulls, NaN, ties, categories and times in a zone, in no order of time."""
    random = np.random.default_rng(seed)
    x = [
        None if random.random() < 0.2 else NAN if random.random() < 0.2 else random.integers(5) / 2 for _ in range(rows)
    ]
    k = [None if random.random() < 0.1 else int(random.integers(3)) for _ in range(rows)]
    hours = random.integers(0, 12, rows)
    ts = [datetime.datetime(2024, 3, 30, 20, tzinfo=datetime.UTC) + datetime.timedelta(hours=int(h)) for h in hours]
    word = [None if random.random() < 0.2 else "abc"[random.integers(3)] for _ in range(rows)]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "x": pa.array(x, pa.float64()),
            "k": pa.array(k, pa.int64()),
            "word": pa.array(word, pa.string()).dictionary_encode(),
            "ts": pa.array(ts, pa.timestamp("us", ZONE)),  # over the end of winter time
        }
    )


def frame(library: str, rows: pa.Table) -> Any:
    match library:
        case "pandas":
            return rows.to_pandas()
        case "polars":
            return pl.from_arrow(rows)
        case "lazy polars":
            return pl.LazyFrame(pl.from_arrow(rows))
        case "duckdb":
            return duckdb.connect().from_arrow(rows)
        case "dict":
            return rows.to_pydict()
        case "dicts":
            return rows.to_pylist()
    return rows


def as_arrow(library: str, given: Any) -> pa.Table:
    expected = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "lazy polars": pl.LazyFrame,
        "arrow": pa.Table,
        "duckdb": pa.Table,
        "dict": dict,
        "dicts": list,
    }
    assert type(given) is expected[library]
    match library:
        case "pandas":
            return pa.Table.from_pandas(given)
        case "polars":
            return given.to_arrow()
        case "lazy polars":
            return given.collect().to_arrow()
        case "dict":
            return pa.table(given)
        case "dicts":
            return pa.Table.from_pylist(given)
    return given
