"""The three queries of the SPO-Join paper, as printed there, on recorded data; DuckDB is the judge."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import pyarrow as pa
import pytest

from operators import (
    CountWindow,
    Engine,
    HandshakeJoin,
    IndexJoin,
    PanJoin,
    ScaleJoin,
    SplitJoin,
    SPOJoin,
    StreamJoin,
)
from tests.duckdb_oracle import duckdb_oracle
from tests.oracle import Band, Comparison, Count, Linear, Time, assert_same_result
from tests.realdata import green_taxi, taxi_sample, transformer

pytestmark = pytest.mark.realdata

Q1 = """
SELECT R.POW_ID, R.COOL_ID, S.POW_ID, S.COOL_ID
FROM R, S
WHERE R.POWER < S.POWER AND R.COOL > S.COOL
WINDOW AS (SLIDE INTERVAL '10' ON '60')
"""
Q2 = """
SELECT tripId, time FROM taxi_trips
WHERE ABS(start_LON1 - start_LON2) < 0.03
AND ABS(start_LAT1 - start_LAT2) < 0.03
WINDOW AS (SLIDE INTERVAL 'D' ON 'W')
"""
Q3 = """
SELECT trip.ID FROM NYC
WHERE NYC.trip_dist1 > NYC.trip_dist2
AND NYC.trip_fare1 < NYC.trip_fare2
WINDOW AS ( SLIDE INTERVAL 'D' ON 'W');
"""
PLANS: dict[str, Engine] = {
    "fused": SPOJoin(elements=2, mutable="fused", merge_interval=512),
    "decomposed": SPOJoin(elements=3, mutable="decomposed", merge_interval=300),
    "ScaleJoin": ScaleJoin(threads=2),
    "SplitJoin": SplitJoin(cores=3, fanout=2, index="auto"),
    "PanJoin": PanJoin(workers=2),
    "IndexJoin": IndexJoin(threads=2),
    "HandshakeJoin": HandshakeJoin(cores=3),
}
every_engine = pytest.mark.parametrize("engine", PLANS.values(), ids=PLANS)


@cache
def station(number: int) -> pa.Table:
    """A station's first readings under the names of Q1; event time counts hours."""
    table = transformer(number).slice(0, 5000)
    hours = pa.array([stamp.value // 3_600_000_000 for stamp in table["ts"]], pa.int64())
    columns = [table["id"], table["id"], table["power"], table["cool"], hours]
    return pa.table(columns, names=["POW_ID", "COOL_ID", "POWER", "COOL", "hour"])


@every_engine
def test_q1_cross_join_of_two_stations(engine: Engine) -> None:
    stations = {"R": station(1), "S": station(2)}
    actual = StreamJoin.from_sql(Q1, event_time="hour", using=engine, step_rows=700).collect(stations)
    expected = q1_expected()
    assert expected.num_rows > 1000
    assert_same_result(actual, expected)


@cache
def q1_expected() -> pa.Table:
    return duckdb_oracle(
        {"R": {"R": station(1)}, "S": {"S": station(2)}},
        ("R", "R"),
        ("S", "S"),
        [Comparison(Linear("POWER"), "<", Linear("POWER")), Comparison(Linear("COOL"), ">", Linear("COOL"))],
        (Time(60, 10), Time(60, 10)),
        "hour",
        ["R.POW_ID", "R.COOL_ID", "S.POW_ID", "S.COOL_ID"],
    )


SLIDE, SIZE = timedelta(minutes=1), timedelta(minutes=3)


@every_engine
def test_q2_band_join_of_taxi_trips_with_each_other(engine: Engine) -> None:
    join = StreamJoin.from_sql(Q2, parameters={"D": SLIDE, "W": SIZE}, event_time="time", using=engine, step_rows=700)
    actual = join.collect({"taxi_trips": taxi_trips()})
    expected = q2_expected()
    assert expected.num_rows > 10_000
    assert_same_result(actual, expected)


@cache
def taxi_trips() -> pa.Table:
    trips = taxi_sample().select(["id", "ts", "lon", "lat"]).slice(0, 4000)
    return trips.rename_columns(["tripId", "time", "start_LON", "start_LAT"])


@cache
def q2_expected() -> pa.Table:
    return duckdb_oracle(
        {"taxi_trips": {"taxi_trips": taxi_trips()}},
        ("taxi_trips1", "taxi_trips"),
        ("taxi_trips2", "taxi_trips"),
        [
            Band(Linear("start_LON"), Linear("start_LON"), 0.03, "<"),
            Band(Linear("start_LAT"), Linear("start_LAT"), 0.03, "<"),
        ],
        (Time(SIZE, SLIDE), Time(SIZE, SLIDE)),
        "time",
        ["taxi_trips1.tripId", "taxi_trips2.tripId", "taxi_trips1.time", "taxi_trips2.time"],
    )


@every_engine
def test_q3_self_join_of_taxi_trips(engine: Engine) -> None:
    window = CountWindow(2000, 500)  # takes the place of the printed clause, whose D and W are left open
    join = StreamJoin.from_sql(Q3, window=window, event_time="ts", using=engine, step_rows=700)
    actual = join.collect({"NYC": green_trips()})
    expected = q3_expected()
    assert expected.num_rows > 10_000
    assert_same_result(actual, expected)


@cache
def green_trips() -> pa.Table:
    trips = green_taxi().select(["id", "ts", "distance", "fare"]).slice(0, 12_000)
    return trips.rename_columns(["ID", "ts", "trip_dist", "trip_fare"])


@cache
def q3_expected() -> pa.Table:
    return duckdb_oracle(
        {"NYC": {"NYC": green_trips()}},
        ("NYC1", "NYC"),
        ("NYC2", "NYC"),
        [
            Comparison(Linear("trip_dist"), ">", Linear("trip_dist")),
            Comparison(Linear("trip_fare"), "<", Linear("trip_fare")),
        ],
        (Count(2000, 500), Count(2000, 500)),
        "ts",
        ["NYC1.ID", "NYC2.ID"],
    )
