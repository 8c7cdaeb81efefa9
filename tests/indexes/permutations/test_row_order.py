import numpy as np
import pytest

from indexes.kernels.bit_array import empty_bit_array, level_starts
from indexes.permutations.row_order import FEW, FULL_BUCKET, order_room, order_rows

COUNTS = (0, 1, 2, 12, FEW[0], FEW[0] + 1, 60, 300, FEW[1], FEW[1] + 1, 1023, 1024, 5000, 40_000)


def ordered(chosen: np.ndarray, rows: int, spare: int = 0) -> np.ndarray:
    scratch = np.full(order_room(rows + spare), -7, np.int32)
    scratch[: len(chosen)] = chosen
    words = empty_bit_array(rows)
    order_rows(scratch, np.uint64(len(chosen)), words, *level_starts(rows))
    assert not words.any(), "the bit array is left empty"
    return scratch[: len(chosen)]


@pytest.mark.parametrize("rows", [64, 5000, 262_143, 262_144, 262_145, 1_000_000, 1 << 22, (1 << 22) + 1])
@pytest.mark.parametrize("count", COUNTS)
def test_rows_come_in_order(rows: int, count: int) -> None:
    rng = np.random.default_rng(count)
    chosen = rng.choice(rows, min(rows, count), replace=False)
    np.testing.assert_array_equal(ordered(chosen, rows), np.sort(chosen))


@pytest.mark.parametrize("count", COUNTS)
def test_rows_that_lie_close_together_come_in_order(count: int) -> None:
    """All in one stretch, and most of them in one bucket while one lies far off."""
    rng = np.random.default_rng(count)
    close = 900_000 + rng.permutation(max(count, FULL_BUCKET))[:count]
    np.testing.assert_array_equal(ordered(close, 1_000_000), np.sort(close))
    far = np.append(close, 3)
    np.testing.assert_array_equal(ordered(far, 1_000_000), np.sort(far))


def test_scratch_may_be_larger_than_the_block_needs() -> None:
    chosen = np.random.default_rng(4).choice(300_000, 700, replace=False)
    np.testing.assert_array_equal(ordered(chosen, 300_000, spare=12_345), np.sort(chosen))
