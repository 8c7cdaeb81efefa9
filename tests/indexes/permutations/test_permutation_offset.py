from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Interval, Keys, LinearScan, Live, Matches, PermutationOffsetJoin, SortedRun
from indexes.permutations.costs import Strategy
from indexes.permutations.permutation_offset import ROWS
from indexes.permutations.permutation_search import walk
from tests.indexes.generated import assert_same, dtypes, intervals, keys, live, seeds, thorough


def reference(first: int, columns: list[Keys]) -> LinearScan:
    index = LinearScan(first)
    index.insert(columns)
    return index


def segment(first: int, columns: list[Keys]) -> PermutationOffsetJoin:
    return PermutationOffsetJoin(first, [SortedRun.of(column) for column in columns])


def correlated(rows: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    power = rng.uniform(0, 1000, rows)
    return power, power + rng.normal(0, noise, rows)


def less_power_more_cooling(rows: int, noise: float, seed: int) -> list[Interval]:
    power, cool = correlated(rows, noise, seed)
    infinite = np.full(rows, np.inf)
    return [Interval(np.nextafter(power, np.inf), infinite), Interval(-infinite, cool)]


@thorough
@given(
    seeds,
    st.integers(1, 4),
    st.integers(0, 200),
    st.integers(0, 40),
    st.booleans(),
)
def test_every_strategy_finds_what_a_linear_scan_finds(
    seed: int,
    dimensions: int,
    rows: int,
    probes: int,
    ordered: bool,
) -> None:
    rng = np.random.default_rng(seed)
    types = dtypes(rng, dimensions)
    first = int(rng.choice([0, 7, 2**40]))
    columns = [keys(rng, dtype, rows) for dtype in types]
    bounds = intervals(rng, types, probes)
    alive = live(rng, max(first - 3, 0), first + rows, probes)
    index = segment(first, columns)
    ranges = index.ranges(bounds)
    negated = [bound.negated for bound in bounds]
    expected = reference(first, columns).probe(bounds, alive)
    for strategy in (None, *Strategy):
        found = index.match(ranges, negated, alive, ordered=ordered, _strategy=strategy)
        index.check_invariants()
        assert found is not None
        assert_same(found if ordered else found.sorted_by_position(), expected)
    for _ in range(2):
        np.testing.assert_array_equal(index.count(bounds, alive), expected.counts())
    restored = PermutationOffsetJoin.restore(index.snapshot())
    np.testing.assert_array_equal(restored.count(bounds, alive), expected.counts())
    assert_same(restored.probe(bounds, alive), expected)


@pytest.mark.parametrize("strategy", [None, *Strategy])
@pytest.mark.parametrize("noise", [0.01, 10.0, 10_000.0])
def test_strategies_agree_on_correlated_dimensions(strategy: Strategy | None, noise: float) -> None:
    columns = [Keys(column) for column in correlated(3000, noise, 1)]
    bounds = less_power_more_cooling(500, noise, 2)
    rng = np.random.default_rng(3)
    index = segment(0, columns)
    for alive in (Live.everything(500), live(rng, 0, 3000, 500)):
        expected = reference(0, columns).probe(bounds, alive)
        ranges = index.ranges(bounds)
        assert_same(index.match(ranges, [False, False], alive, _strategy=strategy), expected)


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_limit_gives_all_matches_or_none(strategy: Strategy, dimensions: int) -> None:
    power, cool = correlated(3000, 500.0, 4)
    columns = [Keys(power), Keys(cool), Keys(power)][:dimensions]
    rng = np.random.default_rng(5)
    bounds = [*less_power_more_cooling(64, 500.0, 6), *intervals(rng, [np.float64], 64)]
    bounds = bounds[:dimensions]
    index = segment(0, columns)
    alive = Live.everything(64)
    expected = reference(0, columns).probe(bounds, alive)
    total = len(expected.positions)
    negated = [bound.negated for bound in bounds]
    ranges = index.ranges(bounds)
    assert total > 2000
    for limit in (total, total + 1, 10 * total):
        found = index.match(ranges, negated, alive, limit=limit, _strategy=strategy)
        assert_same(found, expected)
    for limit in (0, 1, total // 2, total - 1):
        assert index.match(ranges, negated, alive, limit=limit, _strategy=strategy) is None


@pytest.mark.parametrize("strategy", list(Strategy))
def test_results_survive_running_out_of_room(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [Keys(column) for column in correlated(3000, 500.0, 7)]
    bounds = less_power_more_cooling(200, 500.0, 8)
    index = segment(0, columns)
    monkeypatch.setattr("indexes.permutations.permutation_offset.count_in_scan", lambda *_: 0)
    alive = Live.everything(200)
    expected = reference(0, columns).probe(bounds, alive)
    found = index.match(index.ranges(bounds), [False, False], alive, _strategy=strategy)
    assert_same(found, expected)


def test_threads_may_share_a_segment() -> None:
    columns = [Keys(column) for column in correlated(5000, 50.0, 9)]
    index = segment(0, columns)
    alive = Live.everything(300)
    batches = [less_power_more_cooling(300, 50.0, seed) for seed in range(10, 26)]

    def probe(bounds: list[Interval]) -> Matches:
        return index.probe(bounds, alive)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(probe, batches))
    expected = reference(0, columns)
    for one, bounds in zip(found, batches, strict=True):
        assert_same(one, expected.probe(bounds, alive))


@pytest.mark.parametrize("strategy", [None, *Strategy])
@pytest.mark.parametrize("seed", range(5))
def test_bands_of_any_width_in_any_order_agree(strategy: Strategy | None, seed: int) -> None:
    """Both ends of the ranges move back and forth, where a walk could leave bits behind."""
    rng = np.random.default_rng(seed)
    columns = [Keys(rng.permutation(1000)), Keys(rng.permutation(1000))]
    ends = np.sort(rng.integers(-10, 1010, (2, 2, 300)), axis=1)
    bounds = [Interval(ends[d, 0], ends[d, 1]) for d in range(2)]
    index = segment(0, columns)
    alive = Live.everything(300)
    found = index.match(index.ranges(bounds), [False, False], alive, _strategy=strategy)
    assert_same(found, reference(0, columns).probe(bounds, alive))


def test_wide_ranges_that_share_little_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bit array is for many probe rows whose ranges stay wide: a few outliers see to that."""
    power, cool = correlated(4000, 0.1, 11)
    cool[::100] = np.random.default_rng(12).uniform(0, 1000, 40)
    columns = [Keys(power), Keys(cool)]
    bounds = less_power_more_cooling(3000, 0.1, 13)
    index = segment(0, columns)
    walks = []

    def counted(*arguments: Any) -> Any:
        walks.append(1)
        return walk(*arguments)

    monkeypatch.setattr("indexes.permutations.permutation_offset.walk", counted)
    found = index.probe(bounds, Live.everything(3000))
    assert walks
    assert_same(found, reference(0, columns).probe(bounds, Live.everything(3000)))


def test_a_tree_is_made_when_it_would_have_saved_what_it_costs() -> None:
    columns = [Keys(column) for column in correlated(20_000, 500.0, 14)]
    index = segment(0, columns)
    bounds = less_power_more_cooling(4, 500.0, 15)
    alive = Live.everything(4)
    expected = reference(0, columns).probe(bounds, alive)
    trees = index._pair_trees(0, 1)
    sizes = []
    for _ in range(200):
        assert_same(index.probe(bounds, alive), expected)
        sizes.append(index.nbytes)
    assert trees.nbytes
    grown = sizes.index(sizes[-1])
    assert 2 < grown < 150
    assert sizes[-1] - sizes[0] == trees.nbytes


def test_counts_come_from_a_tree_once_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [Keys(column) for column in correlated(20_000, 500.0, 16)]
    index = segment(0, columns)
    bounds = less_power_more_cooling(300, 500.0, 17)
    alive = Live.everything(300)
    expected = reference(0, columns).probe(bounds, alive).counts()
    np.testing.assert_array_equal(index.count(bounds, alive), expected)
    assert index._pair_trees(0, 1).counts
    monkeypatch.setattr("indexes.permutations.permutation_offset.count_scanned", None)
    np.testing.assert_array_equal(index.count(bounds, alive), expected)


@pytest.mark.parametrize("tree", [False, True])
def test_counts_leave_out_what_is_not_live(tree: bool) -> None:
    columns = [Keys(column) for column in correlated(4000, 500.0, 18)]
    index = segment(7, columns)
    bounds = less_power_more_cooling(300, 500.0, 19)
    if tree:
        index._pair_trees(0, 1).counting()
    rng = np.random.default_rng(20)
    near = Live(rng.integers(0, 40, 300), 4007 - rng.integers(0, 40, 300))
    for alive in (near, live(rng, 0, 4007, 300), Live(np.full(300, 3000), np.full(300, 3010))):
        expected = reference(7, columns).probe(bounds, alive).counts()
        np.testing.assert_array_equal(index.count(bounds, alive), expected)


@pytest.mark.parametrize("alive", [Live.everything(50), Live(np.arange(50), np.arange(50) + 900)])
@pytest.mark.parametrize("tree", [False, True])
def test_one_dimension_is_counted_within_any_live_range(alive: Live, tree: bool) -> None:
    rng = np.random.default_rng(21)
    columns = [keys(rng, np.int64, 1000)]
    low, high = np.sort(rng.integers(-5, 105, (2, 50)), axis=0)
    expected = reference(0, columns).probe([Interval(low, high)], alive).counts()
    index = segment(0, columns)
    if tree:
        index._pair_trees(ROWS, 0).worth_counting(1e12)
    np.testing.assert_array_equal(index.count([Interval(low, high)], alive), expected)


def test_counting_by_probing_takes_a_part_of_the_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexes.permutations.permutation_offset.COUNTED_AT_ONCE", 500)
    columns = [Keys(column) for column in correlated(1000, 500.0, 22)]
    power, cool = less_power_more_cooling(40, 500.0, 23)
    bounds = [power, Interval(cool.low, cool.high, negated=True)]
    alive = Live.everything(40)
    expected = reference(0, columns).probe(bounds, alive).counts()
    assert expected.max() > 500
    np.testing.assert_array_equal(segment(0, columns).count(bounds, alive), expected)


def test_many_rows_in_order_come_from_a_large_segment() -> None:
    columns = [Keys(column) for column in correlated(300_000, 30.0, 24)]
    bounds = less_power_more_cooling(20, 30.0, 25)
    index = segment(0, columns)
    alive = Live.everything(20)
    ranges = index.ranges(bounds)
    expected = reference(0, columns).probe(bounds, alive)
    assert len(expected.positions) > 20_000
    for strategy in (Strategy.SCAN, Strategy.TREE):
        assert_same(index.match(ranges, [False, False], alive, _strategy=strategy), expected)
