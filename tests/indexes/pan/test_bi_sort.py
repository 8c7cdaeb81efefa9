from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Interval, Keys, LinearScan, Live, Matches
from indexes.pan.bi_sort import BISort, SortedSubwindow
from tests.indexes.generated import (
    assert_same,
    interval,
    keys,
    live,
    seeds,
    without_deadline,
)
from tests.indexes.window_checks import check_little_room, check_memory, check_no_growth, check_shape, shapes


@shapes
@pytest.mark.parametrize("batch", [20, 400])
def test_agrees_on_data_of_any_shape(shape: str, batch: int) -> None:
    check_shape(lambda: BISort(300, 32, 16), shape, batch)


def filled(rng: np.random.Generator, dtype: type) -> tuple[BISort, LinearScan, int, int]:
    """An index with a partly expired subwindow, full ones, and a newest with a buffer."""
    index, reference = BISort(40, 8, 5), LinearScan(0)
    for rows in (35, 3, 30, 20, 11, 2, 4):
        batch = [keys(rng, dtype, rows)]
        index.insert(batch)
        reference.insert(batch)
    below = int(rng.integers(0, 60))
    index.expire(below)
    return index, reference, below, 105


@without_deadline
@given(seeds, st.sampled_from([np.int64, np.float64]), st.booleans())
def test_records_hold_what_a_probe_finds(seed: int, dtype: type, negated: bool) -> None:
    rng = np.random.default_rng(seed)
    index, reference, below, end = filled(rng, dtype)
    asked = interval(rng, dtype, 9, negated)
    alive = live(rng, below, end, 9)
    expected = reference.probe([asked], alive)
    records = index.records(asked)
    found = Matches.concat_by_row([Matches.empty(9), *(part.matches(alive) for part in records)])
    assert_same(found.sorted_by_position(), expected)
    assert all(part.negated == negated for part in records)
    counts = [part.live_counts(alive) for part in records]
    np.testing.assert_array_equal(sum(counts), expected.counts())


def test_records_are_ranks_of_the_main_array_and_of_the_buffer() -> None:
    index = BISort(8, 3, 4)
    for batch in ([50, 20, 40, 10], [30, 45], [25, 15]):
        index.insert([Keys(np.array(batch))])
    main, buffer = index.records(Interval(np.array([20]), np.array([45])))
    assert (main.start.tolist(), main.end.tolist()) == ([1], [5])
    assert (buffer.start.tolist(), buffer.end.tolist()) == ([1], [2])
    assert main.counts().tolist() == [4]
    assert main.rows.tolist() == [3, 1, 4, 2, 5, 0]
    other, _ = index.records(Interval(np.array([20]), np.array([45]), True))
    assert other.counts().tolist() == [2]


def test_counting_enumerates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index = BISort(1000)
    index.insert([Keys(np.arange(2500))])
    monkeypatch.setattr(BISort, "probe_within", None)
    asked = [Interval(np.array([100, 3]), np.array([2200, 2]))]
    assert index.count(asked, Live.everything(2)).tolist() == [2101, 0]
    assert index.count(asked, Live(np.array([1500, 0]), np.array([1600, 9]))).tolist() == [100, 0]


def test_small_batches_wait_in_the_buffer_and_large_ones_do_not() -> None:
    index = BISort(100, 10)
    index.insert([Keys(np.arange(9))])
    subindex = index.subindexes[0]
    assert isinstance(subindex, SortedSubwindow)
    assert subindex.buffer is not None
    assert (subindex.main.size, subindex.buffer.size) == (0, 9)
    index.insert([Keys(np.arange(10))])
    assert (subindex.main.size, subindex.buffer.size) == (10, 9)
    index.insert([Keys(np.arange(3))])
    assert (subindex.main.size, subindex.buffer.size) == (19, 3)
    index.insert([Keys(np.arange(79))])
    index.insert([Keys(np.arange(1))])
    sealed = index.subindexes[0]
    assert isinstance(sealed, SortedSubwindow)
    assert sealed.buffer is None
    assert sealed.main.size == 100


def test_records_are_refused_where_other_dimensions_filter() -> None:
    index = BISort(10, dimensions=2)
    with pytest.raises(ValueError, match=r"one dimension.*use probe"):
        index.records(Interval(np.array([1]), np.array([2])))


def test_a_visit_goes_on_where_room_ended() -> None:
    check_little_room(lambda dimensions: BISort(100, 20, 6, dimensions))


def test_nbytes_is_what_is_allocated() -> None:
    check_memory(lambda: BISort(20_000), 70_000)


def test_many_slides_hold_no_more_than_few() -> None:
    check_no_growth(lambda: BISort(64, 8, 8))


@pytest.mark.parametrize("arguments", [(0,), (10, -1), (10, 2, 0), (2**31,)])
def test_wrong_arguments_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="BISort"):
        BISort(*arguments)
