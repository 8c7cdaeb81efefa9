"""Keys divided among elements: nothing is lost or found twice, loads are even, and divisions follow the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, Live
from operators import ConfiguredIndex, CountWindow, IndexJoin, JoinError, PIMTree, StreamJoin
from operators.engines.index_join import divider
from operators.engines.index_join.block_map import BlockMap
from operators.engines.index_join.divided_element import DividedElement, DividedTask
from operators.engines.index_join.division_map import DivisionMap
from operators.engines.index_join.side_map import Coordinate, SideMap, coordinates
from operators.engines.shared.index_setting import IndexSetting
from operators.join_run import JoinRun
from operators.protocol.divided_rows import DividedRows
from operators.protocol.element_rows import ElementRows
from tests.operators.oracle_check import check, join_of
from tests.operators.seeded_run import check_schedule
from tests.operators.surface_check import sampled
from tests.strategies import JoinCase, join_cases
from topology import LocalRuntime, Origin, Punctuation, TaskContext

KEYS = st.lists(st.sampled_from([None, -1, 0, 1, 2, 3, 7, 2**53]), max_size=30)
TYPES = [pa.int64(), pa.float64(), pa.uint64(), pa.int32(), pa.string(), pa.decimal128(20, 1)]
FITTING = {pa.uint64(): lambda key: key >= 0, pa.int32(): lambda key: abs(key) < 2**31}
CONDITIONS = [
    "R.k = S.k",
    "R.k = S.k AND R.id < S.id",
    "R.id != S.id AND R.k = S.k",
    "R.k < S.k",
    "R.k >= S.k AND R.id - S.id BETWEEN -9 AND 9",
    "R.k != S.k",
]


def column(keys: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    fits = FITTING.get(kind, lambda key: True)
    values: list[object] = [key if key is not None and fits(key) else None for key in keys]
    if pa.types.is_string(kind):
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_decimal(kind) else pa.array(values, kind)


@st.composite
def divided(draw: st.DrawFn) -> IndexJoin:
    """Few rows of a division, so that several hold rows at once."""
    merging = ConfiguredIndex("PIMTree", {"merge_ratio": 0.25, "at_once": 0})
    index = draw(st.sampled_from(("auto", "BPlusTree")) | st.just(merging))
    rows_per_map = draw(st.sampled_from([None, 1, 3, 10]))
    elements = draw(st.integers(2, 8))
    return IndexJoin(index, draw(st.integers(1, 2)), draw(st.integers(1, 7)), elements, rows_per_map)


@settings(sampled, max_examples=50)
@given(
    left=KEYS,
    right=KEYS,
    kinds=st.sampled_from([(a, b) for a in TYPES[:4] for b in TYPES[:4]] + [(kind, kind) for kind in TYPES]),
    engine=divided(),
    on=st.sampled_from(CONDITIONS),
)
def test_results_are_those_of_one_element(
    left: list[int | None],
    right: list[int | None],
    kinds: tuple[pa.DataType, pa.DataType],
    engine: IndexJoin,
    on: str,
) -> None:
    tables = {
        name: pa.table({"id": pa.array(range(len(keys)), pa.int64()), "k": column(keys, kind)})
        for name, keys, kind in zip("RS", (left, right), kinds, strict=True)
    }

    def collect(engine: IndexJoin) -> pa.Table:
        return StreamJoin("R", "S", on, CountWindow(9), using=engine, step_rows=7).collect(tables, LocalRuntime())

    assert collect(engine).equals(collect(IndexJoin(engine.index, 1)))


@given(join_cases(max_rows=16), divided(), st.integers(1, 12))
@settings(sampled, max_examples=30)
def test_results_and_their_order_are_those_of_the_oracle(case: JoinCase, engine: IndexJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(max_rows=8, max_sources=2), divided(), st.integers(1, 9), st.integers(0, 10**6))
@settings(sampled, max_examples=10)
def test_timing_makes_no_difference(case: JoinCase, engine: IndexJoin, step_rows: int, seed: int) -> None:
    check_schedule(case, join_of(case, engine, step_rows=step_rows), seed)


@pytest.mark.slow
@given(join_cases(max_rows=60), divided(), st.integers(1, 60))
@settings(sampled, max_examples=500)
def test_very_many_random_joins(case: JoinCase, engine: IndexJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


def test_an_equality_that_several_keys_satisfy_asks_every_element() -> None:
    """Floats: 0, 1 and 2 added to 10^16 are all the same number, and their hashes are not.

    There are too few rows for another division than by hashes.
    """
    keys = np.arange(30.0)
    tables = {"R": pa.table({"k": keys}), "S": pa.table({"k": keys + 1e16})}

    def found(engine: IndexJoin) -> int:
        on = "R.k + 1e16 = S.k"
        return StreamJoin("R", "S", on, CountWindow(500), using=engine).collect(tables).num_rows

    assert found(IndexJoin("auto", 1, partitions=4)) == found(IndexJoin("auto", 1)) > 60


def ran(on: str, left: np.ndarray, right: np.ndarray, elements: int, **options: Any) -> JoinRun:
    """A run with several elements whose results are those of one."""
    tables = {name: pa.table({"id": np.arange(len(keys)), "k": keys}) for name, keys in (("R", left), ("S", right))}
    window, step = CountWindow(options.pop("window", 2000)), options.pop("step_rows", 2000)

    def run(engine: IndexJoin) -> JoinRun:
        return StreamJoin("R", "S", on, window, using=engine, step_rows=step).run(tables, LocalRuntime())

    several = run(IndexJoin("auto", 1, partitions=elements, **options))
    assert several.result.num_rows > 0
    assert several.result.equals(run(IndexJoin("auto", 1)).result)
    return several


def costs(run: JoinRun) -> tuple[float, dict[str, Any]]:
    """Rows sent for each row received, and what else the divider knows."""
    (task,) = run.metrics.of("divider")
    sent = [task.own[name] for name in task.own if name.startswith("sent_to_")]
    assert sum(sent) == task.own["sent"] == sum(each.rows_in for each in run.metrics.of("index-join"))
    return task.own["sent"] / task.own["received"], {**task.own, **task.details["division"]}


def any_division(chance: np.random.Generator, elements: int) -> DivisionMap:
    """Cells or blocks anywhere, of either side without regard to the other."""

    def cells(side: int) -> SideMap | BlockMap:
        coordinate = [Coordinate.RISING, Coordinate.FALLING, Coordinate.HASHED][chance.integers(0, 3)]
        if chance.random() < 0.3:
            return BlockMap(0, elements, chance.uniform(0.5, 30), chance.choice([-1.0, 1.0]), chance.uniform(-9, 9))
        keys = chance.integers(-5, 55, chance.integers(0, 2 * elements))
        bounds = np.sort(coordinates(keys, coordinate))
        owners = np.sort(chance.integers(0, elements, 2 * len(bounds) + 2))
        dealt = [np.linspace(first, last, 64).astype(np.int32) for first, last in owners.reshape(-1, 2)]
        return SideMap(0, coordinate, elements, bounds, np.array(dealt))

    division = DivisionMap((cells(0), cells(1)))
    division.check_invariants()
    return division


@pytest.mark.parametrize(
    ("on", "elements"),
    [("R.k = S.k", 8), ("R.k BETWEEN S.k - 3 AND S.k + 9", 5), ("R.k + S.k < 40", 2), ("R.k > S.k", 3)],
)
def test_any_divisions_one_after_the_other_give_the_same_results(
    monkeypatch: pytest.MonkeyPatch, on: str, elements: int
) -> None:
    """What a division costs is a matter of choice; whether it is exact is not."""
    chance = np.random.default_rng(elements)
    monkeypatch.setattr(divider, "best_map", lambda sample, dimensions, elements: any_division(chance, elements))
    keys = [chance.integers(0, 50, 600) for _ in "RS"]
    for rows_per_map, window, step_rows in ((15, 40, 20), (60, 15, 7), (9, 60, 70)):
        run = ran(on, keys[0], keys[1], elements, window=window, step_rows=step_rows, rows_per_map=rows_per_map)
        _, seen = costs(run)
        assert seen["maps"] > 5


@pytest.mark.parametrize(
    ("on", "by", "most"),
    [
        ("R.k = S.k", "hashes of keys", 1.0),
        ("R.k = S.k + 1000", "blocks of keys", 1.0),
        ("abs(R.k - S.k) <= 20", "ranges of keys", 1.1),
        ("R.k + S.k BETWEEN 9000 AND 9010", "blocks of keys", 1.1),
    ],
)
def test_a_row_is_sent_to_hardly_more_than_one_element(on: str, by: str, most: float) -> None:
    chance = np.random.default_rng(1)
    run = ran(on, chance.integers(0, 10_000, 8000), chance.integers(0, 10_000, 8000), 8)
    sent, seen = costs(run)
    assert 1.0 <= sent <= most
    assert seen["by"] == by
    assert seen["busiest"]["observed"] < 1.2
    stored = [task.own["left_stored"] for task in run.metrics.of("index-join")]
    assert sum(stored) == 8000


def test_rows_that_meet_nothing_are_sent_nowhere() -> None:
    keys = np.where(np.arange(4000) % 2, np.nan, np.arange(4000.0))
    sent, _ = costs(ran("R.k = S.k", keys, keys, 4))
    assert sent == 0.5


def test_keys_are_divided_before_the_other_side_has_rows() -> None:
    """Nothing is known then of what the keys may meet, not even in which type."""
    keys = [np.inf, -np.inf, 2.0, 0.5, 3.0, -1.0, 2.5, 1.0]
    tables = {name: pa.table({"t": range(first, first + 8), "k": keys}) for name, first in (("R", 0), ("S", 8))}

    def found(engine: IndexJoin) -> pa.Table:
        join = StreamJoin("R", "S", "R.k < S.k", CountWindow(9), event_time="t", using=engine, step_rows=2)
        return join.collect(tables)

    assert found(IndexJoin("auto", 1, partitions=3, rows_per_map=1)).equals(found(IndexJoin("auto", 1)))


def test_a_frequent_key_is_dealt_to_several_elements() -> None:
    """Of Zipf's keys with exponent 1.2 the first is a fifth of all, and most pairs are pairs of it."""
    chance = np.random.default_rng(2)
    keys = [np.minimum(chance.zipf(1.2, 6000), 10_000) for _ in "RS"]
    for on in ("R.k = S.k", "abs(R.k - S.k) <= 1"):
        run = ran(on, keys[0], keys[1], 8, window=1000)
        _, seen = costs(run)
        assert seen["busiest"]["expected"] < 1.5
        stored = [task.own["left_stored"] for task in run.metrics.of("index-join")]
        assert sum(count > 300 for count in stored) >= 4


def test_loads_stay_even_while_keys_drift() -> None:
    chance = np.random.default_rng(3)
    keys = [np.arange(12_000) + chance.integers(0, 4000, 12_000) for _ in "RS"]
    sent, seen = costs(ran("abs(R.k - S.k) <= 2", keys[0], keys[1], 4, window=1000, step_rows=500))
    assert seen["busiest"]["observed"] < 1.1
    assert sent < 1.1
    assert seen["maps"] <= 3  # nothing that would have to follow the keys


def test_another_division_begins_when_loads_drift_apart_and_old_ones_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All keys crowd into what was a block of one element, and spread again."""
    monkeypatch.setattr("operators.engines.index_join.divider.EARLY_LOOK", 1000)
    chance = np.random.default_rng(4)
    phases = [(0, 10**6), (5000, 6000), (0, 10**6)]
    keys = [np.concatenate([chance.integers(*phase, 8000) for phase in phases]) for _ in "RS"]
    sent, seen = costs(ran("abs(R.k - S.k) <= 2", keys[0], keys[1], 4, window=1000, step_rows=500))
    assert seen["maps"] >= 2
    assert seen["maps_in_use"] <= 2
    assert sent < 1.4
    assert seen["busiest"]["observed"] < 1.4  # without it the one element would have had most of a third of all rows


def test_an_index_is_chosen_for_the_rows_that_an_element_has() -> None:
    """One of 4 elements has half of 4000 live rows, by its part of the first rows, and not a quarter."""
    setting = IndexSetting("auto", ("point",), (4000, 4000), 1000)
    element = DividedElement((False,), True, setting, 1, item_rows=1000)
    task = element.build(TaskContext("index-join", 0, 4, ()))
    assert isinstance(task, DividedTask)
    keys = np.arange(500)
    rows = ElementRows(0, keys, (Keys(keys),), (Interval(keys, keys),), Live.everything(500), positions=2 * keys)
    for side in (0, 1):
        task.on_batch(DividedRows(rows, None, of=1000).to_batch(side), Origin("divider", 0, 0))
    list(task.on_punctuation(Punctuation(1999), Origin("divider", 0, 0)))
    assert task.setting.rows == (2000, 2000)


def test_without_a_comparison_that_divides_rows_are_dealt_in_turn() -> None:
    chance = np.random.default_rng(5)
    run = ran("R.k != S.k", chance.integers(0, 3, 400), chance.integers(0, 3, 400), 4, window=50)
    sent, seen = costs(run)
    assert 3.9 < sent <= 4.0  # the first rows meet nothing
    assert seen["by"] == "positions"
    assert seen["of"] == ""


def test_one_element_divides_nothing() -> None:
    with pytest.raises(JoinError, match="rows_per_map divides keys among several elements: leave it out"):
        IndexJoin(rows_per_map=5)
    with pytest.raises(JoinError, match="partitions"):
        IndexJoin(PIMTree(), partitions=0)
