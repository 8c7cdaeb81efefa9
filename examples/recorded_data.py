"""Recorded data sets for the examples: where they are not at hand, generated rows with the same columns stand in.

The files are those of `RECORDED`; `--data FOLDER` of each example says where they are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
RECORDED = (
    *("transformer_1.csv", "transformer_2.csv", "debs2015_taxi_sample.csv", "green_taxi_2023_01.parquet"),
    *("stock_orders.csv", "stock_quotes.csv"),
)

Rows = tuple[pa.Table, str]
"""A table sorted by its event time `ts`, with a row number `id`, and what the data is."""


def transformer(station: int, folder: Path = FOLDER) -> Rows:
    """Hourly load (`power`) and oil temperature (`cool`) of one of two electricity transformers."""
    path = folder / f"transformer_{station}.csv"
    if not path.is_file():
        return _generated(17_420, "hourly readings", station, power=(12, 10), cool=(20, 9))
    read = pa.csv.read_csv(path)
    table = pa.table({"ts": read["date"].cast(pa.timestamp("us")), "power": read["HUFL"], "cool": read["OT"]})
    return _numbered(table), "recorded: two electricity transformers, hourly (ETT)"


def taxi_pickups(folder: Path = FOLDER) -> Rows:
    """Taxi trips in New York by drop-off, with the place of the pickup: `lon`, `lat`, `miles`, `fare`."""
    path = folder / "debs2015_taxi_sample.csv"
    if not path.is_file():
        return _generated(10_004, "taxi trips", 3, lon=(-73.98, 0.03), lat=(40.75, 0.03), miles=(3, 2), fare=(12, 8))
    columns = [f"f{number}" for number in range(17)]
    read = pa.csv.read_csv(path, read_options=pa.csv.ReadOptions(column_names=columns))
    names = {"ts": "f3", "lon": "f6", "lat": "f7", "miles": "f5", "fare": "f11"}
    table = pa.table({name: read[column] for name, column in names.items()})
    for name in ("lon", "lat", "miles", "fare"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.float64()))
    table = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us")))
    return _numbered(table), "recorded: taxi trips of New York (DEBS 2015 sample)"


def green_taxi(folder: Path = FOLDER) -> Rows:
    """Green taxi trips in New York by pickup: `distance` and `fare`."""
    path = folder / "green_taxi_2023_01.parquet"
    if not path.is_file():
        return _generated(68_211, "taxi trips", 4, distance=(3, 2), fare=(16, 9))
    read = pa.parquet.read_table(path)
    names = {"ts": "lpep_pickup_datetime", "distance": "trip_distance", "fare": "fare_amount"}
    table = pa.table({name: read[column] for name, column in names.items()})
    return _numbered(
        table.take(pc.sort_indices(table, [("ts", "ascending")]))
    ), "recorded: green taxi trips, January 2023"


def stocks(which: str, folder: Path = FOLDER) -> Rows:
    """Stock "orders" or "quotes" as they arrived, not in the order of `ts`: `key` and `value`."""
    path = folder / f"stock_{which}.csv"
    if not path.is_file():
        table, what = _generated(60_000, f"stock {which}", 5, value=(100, 20))
        keys = np.random.default_rng(6).integers(0, 500, table.num_rows)
        return table.append_column("key", pa.array(keys)), what
    read = pa.csv.read_csv(path)
    read = read.take(pc.sort_indices(read, [("arrivalTime", "ascending")]))
    table = pa.table({"ts": read["eventTime"], "key": read["key"], "value": read["value"]})
    return _with_numbers(table), f"recorded: a trace of stock {which}"


def _numbered(table: pa.Table) -> pa.Table:
    times = table["ts"].cast(pa.int64()).combine_chunks()
    if not pc.all(pc.greater_equal(times[1:], times[:-1])).as_py():
        raise ValueError("event times go backwards: this is not the documented file")
    return _with_numbers(table)


def _with_numbers(table: pa.Table) -> pa.Table:
    return table.combine_chunks().add_column(0, "id", pa.array(np.arange(table.num_rows)))


def _generated(rows: int, what: str, seed: int, **columns: tuple[float, float]) -> Rows:
    """Normal values around a mean that all columns of a row share the deviation from, a second apart."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 1, rows)
    made = {
        name: np.round(mean + deviation * (0.95 * common + 0.3 * rng.normal(0, 1, rows)), 4)
        for name, (mean, deviation) in columns.items()
    }
    times = pa.array(np.arange(rows) * 1_000_000 if "key" in columns else np.arange(rows) * 400_000, pa.timestamp("us"))
    return _with_numbers(pa.table({"ts": times, **made})), f"generated: {what} of the same shape"
