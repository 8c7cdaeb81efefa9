"""The same joins as Ray actors: same results, same order, same errors."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CountWindow, IndexJoin, RunningJoin, SPOJoin, StreamJoin, TimeWindow
from tests.operators.oracle_check import check, engines
from tests.strategies import JoinCase, join_cases
from topology import InputError, LocalRuntime, RayRuntime, SchemaError, Workers, attach

pytestmark = pytest.mark.usefixtures("ray_cluster")

ROWS = 2500


def readings(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    power = rng.integers(0, 200, ROWS)
    cool = np.where(rng.random(ROWS) < 0.02, np.nan, power + rng.normal(0, 3, ROWS).round(1))
    return pa.table(
        {
            "id": np.arange(ROWS),
            "power": pa.array(power, mask=rng.random(ROWS) < 0.02),
            "cool": cool,
            "ts": np.sort(rng.integers(0, ROWS // 3, ROWS)),
            "name": [f"rack {number % 7}" for number in range(ROWS)],
        }
    )


SOURCES = {
    stream: {f"{stream}-{k}": table.take(pa.array(range(k, ROWS, 2))) for k in range(2)}
    for stream, table in {"R": readings(1), "S": readings(2)}.items()
}
JOIN = StreamJoin(
    "R",
    "S",
    "R.power < S.power AND R.cool > S.cool",
    (CountWindow(600, 50), TimeWindow(120, 7)),
    event_time="ts",
    step_rows=150,
)


@pytest.mark.slow  # as the test of SPO-Join's elements, which has a process for each task
def test_ray_and_the_embedded_runtime_agree_to_the_byte() -> None:
    elements = SPOJoin(elements=2, mutable="decomposed", logical_elements=2, merge_interval=70)
    join = replace(JOIN, using=elements)
    local = join.collect(SOURCES, LocalRuntime())
    assert local.num_rows > 1000
    assert join.collect(SOURCES, RayRuntime()).combine_chunks().equals(local.combine_chunks())


@pytest.mark.slow
@given(join_cases(max_rows=60), engines(), st.integers(1, 40))
@settings(max_examples=100)
def test_many_random_joins_on_ray(case: JoinCase, engine: SPOJoin, step_rows: int) -> None:
    check(case, engine, RayRuntime(), step_rows)


@pytest.mark.slow
def test_a_self_join_on_ray() -> None:
    trips = SOURCES["R"]["R-0"]
    join = StreamJoin(
        "a",
        "b",
        "abs(a.power - b.power) <= 2 AND a.cool != b.cool",
        CountWindow(200),
        select=["a.id", "b.name"],
        streams={"a": "trips", "b": "trips"},
        using=SPOJoin(elements=1, merge_interval=64),
        step_rows=100,
    )
    local = join.collect({"trips": trips})
    assert local.num_rows > 1000
    assert join.collect({"trips": trips}, RayRuntime()).combine_chunks().equals(local.combine_chunks())


def test_sending_reading_and_refusing_on_ray() -> None:
    join = replace(JOIN, using=SPOJoin(elements=1, merge_interval=100))
    sources = {stream: list(tables) for stream, tables in SOURCES.items()}
    with join.launch(RayRuntime(placement=Workers(2)), sources=sources) as running:
        with pytest.raises(InputError, match="no input stream 'T'"):
            running.send("T", SOURCES["R"]["R-0"])
        with pytest.raises(InputError, match="column 'cool', which the join needs, is missing"):
            running.send("R", SOURCES["R"]["R-0"].drop_columns(["cool"]), source="R-0")

        def feed() -> None:
            for stream, tables in SOURCES.items():
                for name, table in tables.items():
                    running.send(stream, table, source=name)
                    with pytest.raises(InputError, match="'ts' goes backwards"):
                        running.send(stream, table, source=name)
                        running.flush()
            running.finish()

        feeder = threading.Thread(target=feed)
        feeder.start()
        result = pa.Table.from_batches(list(running.results()), running.result_schema())
        feeder.join()
        assert running.metrics().total("results", "collector") == result.num_rows
    assert result.combine_chunks().equals(join.collect(SOURCES).combine_chunks())


def test_another_handle_of_a_join_knows_its_types_and_feeds_it() -> None:
    join = replace(JOIN, using=IndexJoin())
    sources = {stream: list(tables) for stream, tables in SOURCES.items()}
    with join.launch(RayRuntime(placement=Workers(1)), sources=sources, name="shared join") as running:
        for name, table in SOURCES["R"].items():
            running.send("R", table, source=name)
        running.flush()
        with attach("shared join") as other:
            assert isinstance(other, RunningJoin)
            assert other.join == join
            assert other.schema("R") == SOURCES["R"]["R-0"].schema
            assert other.schema("S") is None
            table = SOURCES["S"]["S-0"]
            wrong = table.set_column(table.schema.get_field_index("ts"), "ts", table["ts"].cast(pa.timestamp("s")))
            with pytest.raises(SchemaError, match="event times of different types cannot be merged"):
                other.send("S", wrong, source="S-0")  # only R's types, which the other handle sent, forbid it
            for name, table in SOURCES["S"].items():
                other.send("S", table, source=name)
            other.finish()
        result = pa.Table.from_batches(list(running.results()), running.result_schema())
    assert result.combine_chunks().equals(join.collect(SOURCES).combine_chunks())
