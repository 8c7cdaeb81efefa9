"""Aggregates over the intervals of interval joins, which are known when no row can be in them any more."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import interlace as il
from operators import StreamJoin
from tests.operators.surface_check import ENGINES
from tests.oracle import Aggregate, Time, assert_ordered, oracle
from tests.oracle_terms import And, Arithmetic, Between, Column, Compare, Condition, Constant
from topology import LocalRuntime

AGGREGATES = (
    Aggregate("n", "count"), Aggregate("volume", "sum", "size"), Aggregate("rate", "sum", "f"),
    Aggregate("mean", "avg", "f"), Aggregate("first", "min", "t"), Aggregate("last", "max", "ts"),
)  # fmt: skip


def stream(chance: Random, rows: int, bound: int, first: int) -> pa.Table:
    times, now, rates = [], 0, [None, float("nan"), 0.1, -0.3, 1e300, 1e-300]
    for _ in range(rows):
        now += chance.choice([0, 0, 1, 1, 3, 9] if not bound else [-2, -1, 0, 1, 2, 8])
        times.append(now)
    return pa.table({
        "id": pa.array(range(first, first + rows), pa.int64()),
        "k": pa.array([chance.choice([0, 1, None]) for _ in range(rows)], pa.int8()),
        "size": pa.array([chance.choice([None, -3, 5, 2**40]) for _ in range(rows)], pa.int64()),
        "f": pa.array([chance.choice(rates) for _ in range(rows)], pa.float64()),
        "t": pa.array([chance.choice([None, "a", "b", ""]) for _ in range(rows)], pa.string()),
        "ts": pa.array(times, pa.int64()).cast(pa.timestamp("s")),
    })  # fmt: skip


def case(chance: Random, name: str, rows: int) -> tuple[Any, Any]:
    """A join and what the law says of it."""
    same = chance.random() < 0.3
    left, right = ("a", "T"), ("b", "T")
    if not same:
        left, right = ("R", "R"), ("S", "S")
    bound = chance.choice([0, 0, 2])
    names = list(dict.fromkeys([left[1], right[1]]))
    sources = {
        stream_name: {f"s{n}": stream(chance, chance.randint(0, rows), bound, 100 * n + 1000 * place) for n in (1, 2)}
        for place, stream_name in enumerate(names)
    }
    before, after = chance.choice([0, 2, 5]), chance.choice([0, 3, 6])
    own = chance.randint(0, 1)
    inner = Between(
        Column(0, "ts"),
        Arithmetic("-", Column(1, "ts"), Constant(timedelta(seconds=before))),
        Arithmetic("+", Column(1, "ts"), Constant(timedelta(seconds=after))),
    )
    keyed = chance.random() < 0.5
    on: Condition = And((inner, Compare("=", Column(0, "k"), Column(1, "k")))) if keyed else inner
    hidden = chance.random() < 0.3
    where = Compare(">", Column(own, "id"), Constant(105))
    wheres = (where if hidden and own == 0 else None, where if hidden and own == 1 else None)
    bounds = {each: timedelta(seconds=bound) for each in names} if bound else None
    ordering: Any = chance.choice(["strict", "outer", "none", 3])
    role, other = (left, right)[own][0], (left, right)[1 - own][0]
    windows = (Time(timedelta(seconds=before)), Time(timedelta(seconds=after)))
    select = [f"{role}.id"] if chance.random() < 0.7 else None
    expected = oracle(
        sources, left, right, on, windows, "ts", select, "closing aggregate", wheres, bounds, (own, AGGREGATES)
    )
    one, two = left[0], right[0]
    text = f"{one}.ts BETWEEN {two}.ts - INTERVAL '{before}' SECOND AND {two}.ts + INTERVAL '{after}' SECOND"
    join = StreamJoin(
        left[0], right[0], text + (f" AND {left[0]}.k = {right[0]}.k" if keyed else ""),
        aggregate={
            each.name: il.count() if each.column is None else getattr(il, each.function)(f"{other}.{each.column}")
            for each in AGGREGATES
        },
        where=f"{role}.id > 105" if hidden else None, event_time="ts", select=select, ordering=ordering,
        streams={left[0]: left[1], right[0]: right[1]}, step_rows=chance.randint(1, 9), out_of_order=bounds,
        using=ENGINES[name](2),
    )  # fmt: skip
    return join, (sources, expected, ordering)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(ENGINES)))
def test_every_row_comes_out_when_its_interval_has_closed(seed: int, name: str) -> None:
    join, (sources, expected, ordering) = case(Random(seed), name, 12)
    actual = join.collect(sources, LocalRuntime())
    assert_ordered(ordering, actual, expected.table, expected.places)


@pytest.mark.slow
@settings(max_examples=1500, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(ENGINES)))
def test_very_many_intervals(seed: int, name: str) -> None:
    join, (sources, expected, ordering) = case(Random(seed), name, 25)
    actual = join.collect(sources, LocalRuntime())
    assert_ordered(ordering, actual, expected.table, expected.places)
