"""Every kind of window in whole joins, of every kind, against the oracle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operators import CountWindow, Engine, IndexJoin, SPOJoin, StreamJoin, TimeWindow
from tests import oracle
from tests.operators.query.spelling import window_of
from tests.oracle import Comparison, Count, Linear, Time, Unbounded, Window, assert_same_result

windows = st.one_of(
    st.builds(Count, st.integers(1, 5), st.integers(1, 7), st.booleans()),
    st.builds(Time, st.integers(0, 6), st.none() | st.integers(1, 8)),
    st.just(Unbounded()),
)
kinds = st.sampled_from(["inner", "left", "right", "full", "semi", "anti", "count"])
sides = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, 0, 1, 2]), st.integers(0, 3)), max_size=25)


def table(rows: list[tuple[int, int | None, int]], key: pa.DataType) -> pa.Table:
    times, time = [], 0
    for gap, _, _ in rows:
        time += gap
        times.append(time)
    keys, values = [row[1] for row in rows], [row[2] for row in rows]
    return pa.table({"ts": pa.array(times, pa.int64()), "k": pa.array(keys, key), "v": pa.array(values, pa.int64())})


def check(
    left: pa.Table, right: pa.Table | None, pair: tuple[Window, Window], kind: Any, engine: Engine, step: int
) -> None:
    """Compare the result of `l.k = r.k AND l.v <= r.v`; without a right table it is a self-join."""
    predicate = [Comparison(Linear("k"), "=", Linear("k")), Comparison(Linear("v"), "<=", Linear("v"))]
    streams = {"L": "L", "R": "L" if right is None else "R"}
    inputs = {"L": left} if right is None else {"L": left, "R": right}
    sources = {name: {name: rows} for name, rows in inputs.items()}
    expected = oracle.oracle(
        sources, ("L", streams["L"]), ("R", streams["R"]), predicate, pair, event_time="ts", kind=kind
    )
    join = StreamJoin(
        "L", "R", "L.k = R.k AND L.v <= R.v", (window_of(pair[0]), window_of(pair[1])),
        kind=kind, event_time="ts", streams=streams, using=engine, step_rows=step,
    )  # fmt: skip
    assert_same_result(join.collect(inputs), expected.table)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    sides,
    st.none() | sides,
    st.tuples(windows, windows),
    kinds,
    st.sampled_from([SPOJoin(merge_interval=4), IndexJoin()]),
    st.sampled_from([1, 5, 1000]),
)
def test_joins_over_any_windows_follow_the_law(
    left: list[tuple[int, int | None, int]],
    right: list[tuple[int, int | None, int]] | None,
    pair: tuple[Window, Window],
    kind: str,
    engine: Engine,
    step: int,
) -> None:
    right_rows = None if right is None else table(right, pa.float64())  # keys equal by value, not by type
    check(table(left, pa.int32()), right_rows, pair, kind, engine, step)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(sides, sides, st.integers(-4, 6), st.integers(-4, 6))
def test_an_interval_join_is_its_condition_alone(
    left: list[tuple[int, int | None, int]], right: list[tuple[int, int | None, int]], before: int, after: int
) -> None:
    if before + after < 0:
        return
    tables = (table(left, pa.int64()), table(right, pa.int64()))
    on = f"L.ts BETWEEN R.ts - {before} AND R.ts + {after}"
    shown = ["L.ts", "L.v", "R.ts", "R.v"]
    join = StreamJoin("L", "R", on, TimeWindow.interval(before, after), event_time="ts", select=shown)
    result = join.collect({"L": tables[0], "R": tables[1]})
    expected = [
        (one["ts"], one["v"], other["ts"], other["v"])
        for one in tables[0].to_pylist()
        for other in tables[1].to_pylist()
        if other["ts"] - before <= one["ts"] <= other["ts"] + after
    ]
    assert sorted(zip(*(result[name].to_pylist() for name in shown), strict=True)) == sorted(expected)


def test_a_window_per_key_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="key"):
        StreamJoin("L", "R", "L.v <= R.v", CountWindow(5, per_key=True))
