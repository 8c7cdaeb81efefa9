from __future__ import annotations

import numpy as np
import pytest

from indexes import Keys
from indexes.pan.rap_table import PartitionedSubwindow, RaPTable
from tests.indexes.window_checks import check_little_room, check_memory, check_no_growth, check_shape, shapes


@shapes
@pytest.mark.parametrize("batch", [20, 400])
def test_agrees_on_data_of_any_shape(shape: str, batch: int) -> None:
    check_shape(lambda: RaPTable(300, 16), shape, batch)


def largest(subindex: object) -> float:
    assert isinstance(subindex, PartitionedSubwindow)
    count = subindex.storage.counts[: subindex.partitions]
    return float(count.max() / count.mean())


def test_partitions_become_even_after_three_subwindows() -> None:
    rng = np.random.default_rng(1)
    index = RaPTable(10_000, 64)
    for _ in range(400):
        index.insert([Keys(np.exp(rng.normal(8, 3, 100)))])
    assert [largest(subindex) < 2 for subindex in index.subindexes] == [True] * 4


def test_the_first_subwindow_learns_from_its_own_rows() -> None:
    rng = np.random.default_rng(1)
    index = RaPTable(10_000, 64)
    for _ in range(5000):
        index.insert([Keys(rng.integers(0, 2**60, 1))])
    assert largest(index.subindexes[0]) < 2


def test_rows_of_one_key_share_a_partition() -> None:
    index = RaPTable(100, 8)
    index.insert([Keys(np.repeat([5, 3, 9], 30))])
    subindex = index.subindexes[0]
    assert isinstance(subindex, PartitionedSubwindow)
    assert sorted(subindex.storage.counts[:8].tolist())[-3:] == [30, 30, 30]


def test_a_subwindow_with_few_rows_teaches_nothing() -> None:
    index = RaPTable(100, 8)
    index.insert([Keys(np.arange(100))])
    index.insert([Keys(np.full(100, 7), np.arange(100) < 3)])
    index.insert([Keys(np.arange(100))])
    assert largest(index.subindexes[-1]) < 1.5


def test_a_visit_goes_on_where_room_ended() -> None:
    check_little_room(lambda dimensions: RaPTable(100, 4, 1.0, dimensions))


def test_nbytes_is_what_is_allocated() -> None:
    check_memory(lambda: RaPTable(20_000), 70_000)


def test_many_slides_hold_no_more_than_few() -> None:
    check_no_growth(lambda: RaPTable(64, 8))


@pytest.mark.parametrize("arguments", [(0,), (10, 0), (10, 2, 0.9), (10, 2, float("nan")), (2**31,)])
def test_wrong_arguments_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="RaPTable"):
        RaPTable(*arguments)
