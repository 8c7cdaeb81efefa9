"""Levels: which of them rows go to, and what they take along."""

import numpy as np
import pytest

from indexes import Interval, Keys, LeveledTrees, Live
from tests.indexes.window_checks import check_shape, shapes


@shapes
def test_every_shape_of_data(shape: str) -> None:
    check_shape(lambda: LeveledTrees(8, 2, 3), shape, 13)


def test_rows_go_down_as_levels_fill() -> None:
    index = LeveledTrees(2, 2)
    seen = []
    for row in range(12):
        index.insert([Keys(np.array([row]))])
        seen.append(index.level_rows)
        index.check_invariants()
    # Two rows are merged at a time; levels hold 4, 8, 16.
    assert seen == [(), (2,), (2,), (4,), (4,), (0, 6), (0, 6), (2, 6), (2, 6), (4, 6), (4, 6), (0, 0, 12)]


def test_a_large_batch_goes_to_its_level_at_once() -> None:
    index = LeveledTrees(2, 2)
    index.insert([Keys(np.arange(20)[::-1])])
    assert index.level_rows == (0, 0, 0, 20)
    index.insert([Keys(np.arange(3))])
    assert index.level_rows == (3, 0, 0, 20)
    index.check_invariants()


def test_expired_rows_go_at_merges_and_all_when_nothing_lives() -> None:
    index = LeveledTrees(2, 2)
    index.insert([Keys(np.arange(8))])
    index.insert([Keys(np.arange(4))])
    index.expire(8)
    index.insert([Keys(np.arange(6))])
    assert sum(index.level_rows) == 10
    met = index.probe([Interval(np.array([0]), np.array([1]))], Live.everything(1))
    assert met.positions.tolist() == [8, 9, 12, 13]
    index.expire(18)
    assert index.level_rows == ()
    index.check_invariants()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="LeveledTrees: recent=0 must be 1 or more"):
        LeveledTrees(0)
    with pytest.raises(ValueError, match="growth=1 2 or more"):
        LeveledTrees(growth=1)
