"""Keys of consecutive parts as one column."""

from __future__ import annotations

import numpy as np

from indexes import Keys


def test_invalid_rows_stay_invalid_beside_parts_that_have_none() -> None:
    parts = [Keys(np.array([1, 2])), Keys(np.array([3]), np.array([False])), Keys(np.array([], np.int64))]
    joined = Keys.joined(parts)
    assert joined.values.tolist() == [1, 2, 3]
    assert joined.mask().tolist() == [True, True, False]


def test_parts_that_are_all_valid_need_no_flags() -> None:
    assert Keys.joined([Keys(np.array([1])), Keys(np.array([2]))]).valid is None


def test_a_single_part_is_not_copied() -> None:
    (part,) = parts = [Keys(np.array([1, 2]))]
    assert Keys.joined(parts) is part
