import numpy as np
import pytest
from hypothesis import given

from indexes.kernels.radix_sort import FEW, sorted_with_order
from tests.indexes.generated import seeds, values, without_deadline


@without_deadline
@given(seeds)
def test_keys_ascend_and_equal_ones_keep_their_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.choice([0, 1, 5, FEW - 1, FEW, 3000]))
    keys = values(rng, np.int64, size)
    if rng.random() < 0.3:
        keys = rng.integers(-(2**63), 2**63 - 1, size, endpoint=True)
    ordered, order = sorted_with_order(keys)
    expected = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(ordered, keys[expected])


@pytest.mark.parametrize("step", [1, -1])
def test_sorted_and_reversed_keys(step: int) -> None:
    keys = np.arange(-2000, 2000)[::step].copy()
    ordered, order = sorted_with_order(keys)
    np.testing.assert_array_equal(ordered, np.arange(-2000, 2000))
    np.testing.assert_array_equal(keys[order], ordered)
