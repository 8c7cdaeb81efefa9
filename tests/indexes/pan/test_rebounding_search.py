from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from indexes.kernels.columns import frozen
from indexes.pan.rebounding_search import GROUP, rebound, rebound_group
from tests.indexes.generated import seeds, values, without_deadline


@pytest.mark.parametrize("closed", [False, True])
@without_deadline
@given(seeds)
def test_one_search_finds_what_a_full_binary_search_finds(closed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = frozen(np.sort(values(rng, np.int64, int(rng.integers(0, 60)))))
    end = int(rng.integers(0, len(keys) + 1))
    for target in values(rng, np.int64, 5):
        expected = int(np.searchsorted(keys[:end], target, "right" if closed else "left"))
        for begin in (0, expected // 2, expected):
            assert rebound(keys, begin, end, target, closed) == expected


@without_deadline
@given(seeds)
def test_a_group_finds_what_its_members_find(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = frozen(np.sort(values(rng, np.int64, int(rng.integers(0, 200)))))
    targets = frozen(np.sort(values(rng, np.int64, 40)))
    start, group = int(rng.integers(0, 40 - GROUP)), int(rng.integers(1, GROUP + 1))
    expected = np.searchsorted(keys, targets[start : start + group])
    found = np.empty(GROUP, np.int64)
    rebound_group(keys, int(rng.integers(0, expected[0] + 1)), len(keys), targets, start, group, found)
    np.testing.assert_array_equal(found[:group], expected)
    assert (found[group:] == expected[-1]).all()
