"""Which level rows go to, and which levels are merged with them."""

import numpy as np
import pytest

from indexes import Interval, Keys, LeveledTrees, Live
from tests.indexes.window_checks import check_shape, shapes


@shapes
def test_every_shape_of_data(shape: str) -> None:
    check_shape(lambda: LeveledTrees(8, 2, 3), shape, 13)


def test_rows_go_down_as_levels_fill() -> None:
    index = LeveledTrees(2, 4)
    index.insert([Keys(np.arange(20))])
    seen = []
    for row in range(14):
        index.insert([Keys(np.array([row]))])
        seen.append(index.level_rows)
        index.check_invariants()
    # Two rows are merged at a time. The last level has more than 2 * 4 ** 1.5 rows, so there is one above it, which
    # may hold a quarter of that.
    assert seen == [(0, 20), (2, 20), (2, 20), (4, 20), (4, 20), (0, 26), (0, 26), (2, 26), (2, 26), (4, 26), (4, 26),
                    (6, 26), (6, 26), (0, 34)]  # fmt: skip


def test_levels_follow_the_window_up_and_down() -> None:
    index = LeveledTrees(2, 2)
    for _ in range(20):
        index.insert([Keys(np.arange(10))])
    assert len(index.level_rows) == 6
    for end in range(201, 600):
        index.insert([Keys(np.arange(1))])
        index.expire(end - 5)
        index.check_invariants()
    assert sum(index.level_rows) <= 20
    assert len(index.level_rows) <= 3


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
    assert sum(index.level_rows) == 0
    index.check_invariants()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="LeveledTrees: recent must be a whole number of 1 or more, not 0"):
        LeveledTrees(0)
    with pytest.raises(ValueError, match="growth must be a whole number of 2 or more, not 1"):
        LeveledTrees(growth=1)
