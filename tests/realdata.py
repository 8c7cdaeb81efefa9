"""The recorded data sets beside the checkout, as Arrow tables ready to join.

Each table has an `id` (row number in event-time order) and an event time `ts` that never goes
backwards, except for the stocks, which keep the order in which they arrived. A machine without the
folder skips the tests that read it (with CI=true they fail); data that does not parse is always an error.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"

_TAXI_COLUMNS = [
    "medallion", "licence", "pickup_time", "dropoff_time", "seconds", "miles", "pickup_lon", "pickup_lat",
    "dropoff_lon", "dropoff_lat", "payment", "fare", "surcharge", "tax", "tip", "tolls", "total",
]  # fmt: skip


def realdata(name: str) -> Path:
    """Return the path of one file; skips the running test if the whole folder is absent."""
    if not FOLDER.exists():
        pytest.skip("the recorded data sets are not beside this checkout")
    path = FOLDER / name
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is missing from the data folder")
    return path


def _numbered(table: pa.Table) -> pa.Table:
    return table.add_column(0, "id", pa.array(range(table.num_rows), pa.int64()))


def _in_time_order(table: pa.Table, rows: int) -> pa.Table:
    """Number the rows of a table sorted by `ts`; fails unless the table is as documented."""
    if table.num_rows != rows:
        raise ValueError(f"{table.num_rows} rows where {rows} are documented")
    times = table["ts"].cast(pa.int64()).combine_chunks()
    if times.null_count or not pc.all(pc.greater_equal(times[1:], times[:-1])).as_py():
        raise ValueError("event times are missing or go backwards")
    return _numbered(table)


def transformer(station: int) -> pa.Table:
    """Q1: hourly readings of station 1 or 2: id, ts, power (HUFL), cool (OT). 17,420 rows."""
    table = pa.csv.read_csv(realdata(f"transformer_{station}.csv"))
    columns = {"ts": table["date"].cast(pa.timestamp("us")), "power": table["HUFL"], "cool": table["OT"]}
    return _in_time_order(pa.table({n: c.combine_chunks() for n, c in columns.items()}), 17_420)


def taxi_sample() -> pa.Table:
    """Q2: DEBS 2015 trips by drop-off: id, ts (drop-off), pickup_time, lon, lat, miles, fare. 10,004 rows.

    Coordinates of 0.0 are as recorded: they are far from everything and close to each other.
    """
    stamp = pa.timestamp("us")
    table = pa.csv.read_csv(
        realdata("debs2015_taxi_sample.csv"),
        read_options=pa.csv.ReadOptions(column_names=_TAXI_COLUMNS),
        convert_options=pa.csv.ConvertOptions(
            column_types={"pickup_time": stamp, "dropoff_time": stamp, "miles": pa.float64()}
        ),
    )
    columns = {
        "ts": table["dropoff_time"],
        "pickup_time": table["pickup_time"],
        "lon": table["pickup_lon"],
        "lat": table["pickup_lat"],
        "miles": table["miles"],
        "fare": table["fare"],
    }
    return _in_time_order(pa.table({n: c.combine_chunks() for n, c in columns.items()}), 10_004)


def green_taxi() -> pa.Table:
    """Q3: green taxi trips by pickup: id, ts (pickup), distance, fare, passengers (has nulls). 68,211 rows.

    The file is not in pickup order; the sort is stable, so trips of one second keep the file's order.
    Rows with null keys stay: they must match nothing, not vanish.
    """
    table = pa.parquet.read_table(realdata("green_taxi_2023_01.parquet"))
    order = pc.sort_indices(table, sort_keys=[("lpep_pickup_datetime", "ascending")])
    table = table.take(order)
    columns = {
        "ts": table["lpep_pickup_datetime"],
        "distance": table["trip_distance"],
        "fare": table["fare_amount"],
        "passengers": table["passenger_count"],
    }
    return _in_time_order(pa.table({n: c.combine_chunks() for n, c in columns.items()}), 68_211)


def stocks(which: str) -> pa.Table:
    """Orders or quotes ("orders", "quotes") by arrival: id, ts (event time), key, value, arrival.

    The input for tests of late rows. Most rows arrive after a row with a later event time, by up to 992
    units. The id numbers the rows as they arrive. 60,527 orders, 77,227 quotes.
    """
    table = pa.csv.read_csv(realdata(f"stock_{which}.csv"))
    table = table.take(pc.sort_indices(table, sort_keys=[("arrivalTime", "ascending")]))
    if table.num_rows != {"orders": 60_527, "quotes": 77_227}[which]:
        raise ValueError(f"{table.num_rows} {which}: not the documented number")
    columns = {"ts": "eventTime", "key": "key", "value": "value", "arrival": "arrivalTime"}
    return _numbered(pa.table({name: table[column].combine_chunks() for name, column in columns.items()}))
