"""Aggregates from sorted blocks are those over the listed matches: all types, live ranges, one and two dimensions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, Live, Matches
from operators.aggregates.range_aggregates import range_aggregate
from operators.aggregates.window_totals import WindowTotals
from operators.query.expressions import Column
from operators.query.select_items import AggregateFunction, AggregateItem
from operators.results.aggregated_columns import AggregatedColumns

F = AggregateFunction
INTEGER = (F.SUM, F.AVG, F.MIN, F.MAX, F.COUNT)
FLOATS = [1.5, -0.0, 0.0, 5e-324, 1.7976931348623157e308, -1e200, 0.1, 2.0**53, 1e-40, 3.0, -7.25, float("nan"), None]
TYPES: dict[str, tuple[pa.DataType, list[Any], tuple[AggregateFunction, ...]]] = {
    "int64": (pa.int64(), [2**54, -(2**54), 5, -3, 0, None, 2**40], INTEGER),
    "uint64": (pa.uint64(), [2**63 - 1, 2**62, 1, 0, None], (F.AVG, F.MIN, F.MAX)),
    "bool": (pa.bool_(), [True, False, None], INTEGER),
    "prices": (pa.float64(), [10.25, 9.75, 0.5, None, 1024.0], INTEGER),
    "float32": (pa.float32(), [0.1, -0.0, 0.0, None, float("nan"), 1e30], INTEGER),
    "wide": (pa.float64(), FLOATS, INTEGER),
    "infinite": (pa.float64(), [float("inf"), 1.0, -float("inf"), None], INTEGER),
    "decimal": (pa.decimal128(30, 2), [Decimal("1e20"), Decimal("-0.01"), Decimal("-9e25"), None], (F.SUM, F.AVG)),
    "date": (pa.date32(), [3, -5, None, 700], (F.MIN, F.MAX, F.COUNT)),
    "text": (pa.string(), ["a", None], (F.COUNT,)),
}
MOST_ROWS = 70


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    seed = draw(st.integers(0, 2**32 - 1))
    return {"seed": seed, "dimensions": draw(st.integers(1, 2)), "spread": draw(st.sampled_from([2, 6, 40]))}


def keys_of(rng: np.random.Generator, rows: int, spread: int, *, floats: bool) -> Keys:
    values = rng.integers(0, spread, rows)
    valid = None if rng.random() < 0.5 else rng.random(rows) < 0.8
    return Keys(values / 4 if floats else values, valid)


def intervals_of(rng: np.random.Generator, rows: int, spread: int, *, floats: bool, point: bool) -> Interval:
    low = rng.integers(-1, spread + 1, rows)
    high = low if point else low + rng.integers(-1, spread, rows)
    return Interval(low / 4, high / 4) if floats else Interval(low, high)


def listed(keys: list[Keys], intervals: list[Interval], live: Live) -> Matches:
    found = []
    for probe in range(len(live)):
        met = np.ones(len(keys[0]), np.bool_)
        for column, interval in zip(keys, intervals, strict=True):
            met &= column.mask() & (column.values >= interval.low[probe]) & (column.values <= interval.high[probe])
        positions = np.arange(len(met))
        met &= (positions >= live.start[probe]) & (positions < live.end[probe])
        found.append(np.flatnonzero(met))
    return Matches(np.cumsum([0, *map(len, found)]), np.concatenate([np.empty(0, np.int64), *found]))


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=12)
@example(drawn={"seed": 0, "dimensions": 2, "spread": 6})
@given(drawn=windows())
def test_ranges_add_up_to_what_their_matches_do(name: str, drawn: dict[str, Any]) -> None:
    kind, choices, functions = TYPES[name]
    rng = np.random.default_rng(drawn["seed"])
    items = [AggregateItem(function, Column("S", "x"), str(function)) for function in functions]
    totals = WindowTotals([*(range_aggregate(item, kind) for item in items), None])
    columns = AggregatedColumns(items)
    floats = [bool(rng.random() < 0.5) for _ in range(drawn["dimensions"])]
    stored: list[list[Keys]] = [[] for _ in floats]
    rows = below = 0
    for _ in range(rng.integers(1, 7)):
        more = int(rng.integers(0, MOST_ROWS))
        keys = [keys_of(rng, more, drawn["spread"], floats=each) for each in floats]
        values = pa.array([choices[at] for at in rng.integers(0, len(choices), more)], kind)
        if pa.types.is_date(kind):
            values = pa.array([choices[at] for at in rng.integers(0, len(choices), more)], pa.int32()).view(kind)
        totals.insert(keys, [*[values for _ in items], None])
        totals.check_invariants()
        columns.append(pa.record_batch({"x": values}))
        rows += more
        for own, each in zip(stored, keys, strict=True):
            own.append(each)
        probes = int(rng.integers(1, 20))
        below = max(below, int(rng.integers(0, rows + 1)) // 2)
        totals.expire(below)
        live = Live(rng.integers(below, rows + 1, probes), rng.integers(below, rows + 5, probes))
        asked = [
            intervals_of(rng, probes, drawn["spread"], floats=each, point=number + 1 < len(floats))
            for number, each in enumerate(floats)
        ]
        matches = listed([Keys.joined(each) for each in stored], asked, live)
        wanted = [*columns.over(matches, matches.counts()), pa.array(matches.counts())]
        found = totals.over(asked, live)
        if found is None:
            assert name in ("wide", "infinite")
        else:
            assert [str(each.to_pylist()) for each in found] == [str(each.to_pylist()) for each in wanted]
            assert [each.type for each in found] == [each.type for each in wanted]
        positions = totals.probe_within(1 << 20, asked, live)
        assert positions is not None
        assert positions.sorted_by_position().positions.tolist() == matches.positions.tolist()
        assert len(matches.positions) < 2 or totals.probe_within(1, asked, live) is None


def test_an_equality_that_asks_for_a_range_is_listed() -> None:
    totals = WindowTotals([None])
    totals.insert([Keys.of(np.array([1, 2])), Keys.of(np.array([7, 3]))], [None])
    asked = [Interval(np.array([1]), np.array([2])), Interval(np.array([3]), np.array([9]))]
    assert totals.over(asked, Live.everything(1)) is None
    matches = totals.probe_within(9, asked, Live.everything(1))
    assert matches is not None
    assert sorted(matches.positions.tolist()) == [0, 1]
