import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Interval, Keys, SortedRun
from tests.indexes.generated import interval, keys, seeds, values, without_deadline


def joined(parts: list[Keys]) -> Keys:
    return Keys(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.mask() for part in parts]),
    )


def assert_equal(run: SortedRun, expected: SortedRun) -> None:
    np.testing.assert_array_equal(run.keys, expected.keys)
    np.testing.assert_array_equal(run.order, expected.order)
    assert run.rows == expected.rows


@without_deadline
@given(seeds, st.sampled_from([np.int64, np.float64]), st.integers(0, 300))
def test_equal_keys_stay_in_row_order(seed: int, dtype: type, count: int) -> None:
    column = keys(np.random.default_rng(seed), dtype, count)
    run = SortedRun.of(column)
    run.check_invariants()
    rows = np.flatnonzero(column.mask())
    np.testing.assert_array_equal(run.order, rows[np.argsort(column.values[rows], kind="stable")])


@without_deadline
@given(seeds, st.sampled_from([np.int64, np.float64]), st.lists(st.integers(0, 40), min_size=1))
def test_merging_is_sorting_the_whole(seed: int, dtype: type, counts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    parts = [keys(rng, dtype, count) for count in counts]
    run = SortedRun.merge([SortedRun.of(part) for part in parts])
    run.check_invariants()
    assert_equal(run, SortedRun.of(joined(parts)))


@without_deadline
@given(seeds, st.sampled_from([np.int64, np.float64]), st.integers(0, 80), st.data())
def test_a_slice_is_the_run_of_its_rows(seed: int, dtype: type, count: int, data: st.DataObject) -> None:
    column = keys(np.random.default_rng(seed), dtype, count)
    first = data.draw(st.integers(0, count))
    end = data.draw(st.integers(first, count))
    run = SortedRun.of(column).slice(first, end)
    assert_equal(run, SortedRun.of(Keys(column.values[first:end], column.mask()[first:end])))


@without_deadline
@given(seeds, st.sampled_from([np.int64, np.float64]), st.integers(0, 80), st.integers(0, 40))
def test_ranges_hold_exactly_the_keys_within(seed: int, dtype: type, count: int, probes: int) -> None:
    rng = np.random.default_rng(seed)
    run = SortedRun.of(Keys(values(rng, dtype, count)))
    bounds = interval(rng, dtype, probes, False)
    a, b = run.ranges(bounds)
    for i in range(probes):
        within = (run.keys >= bounds.low[i]) & (run.keys <= bounds.high[i])
        np.testing.assert_array_equal(np.flatnonzero(within), np.arange(a[i], b[i]))


def test_ranges_agree_with_a_binary_search_on_many_keys() -> None:
    rng = np.random.default_rng(1)
    run = SortedRun.of(Keys(np.round(rng.normal(0, 100, 10_007), 1)))
    low = np.round(rng.normal(0, 100, 1001), 1)
    a, b = run.ranges(Interval(low, low + 3))
    np.testing.assert_array_equal(a, np.searchsorted(run.keys, low, "left"))
    np.testing.assert_array_equal(b, np.searchsorted(run.keys, low + 3, "right"))


def test_bounds_of_another_type_are_a_bug() -> None:
    run = SortedRun.of(Keys(np.arange(3)))
    with pytest.raises(AssertionError):
        run.ranges(Interval(np.zeros(1), np.ones(1)))
