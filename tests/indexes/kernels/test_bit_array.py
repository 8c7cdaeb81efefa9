import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.bit_array import (
    SLACK,
    clear_bit,
    drain_bits,
    empty_bit_array,
    level_starts,
    scan_bits,
    set_bit,
)
from indexes.permutations.row_filter import sort_rows
from tests.indexes.generated import without_deadline

SIZES = (1, 63, 64, 65, 4096, 4097, 100_000, 300_000)


def unsigned(*numbers: int) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(number) for number in numbers)


@without_deadline
@given(st.data())
def test_bits_that_were_set_and_not_cleared_are_found(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from(SIZES))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    words = empty_bit_array(size)
    levels = unsigned(*level_starts(size))
    model: set[int] = set()
    for bit in rng.integers(0, size, data.draw(st.integers(0, 200))).tolist():
        set_bit(words, *levels, np.uint64(bit))
        model.add(bit)
    for bit in rng.permutation(sorted(model))[: len(model) // 2].tolist():
        clear_bit(words, *levels, np.uint64(bit))
        model.remove(bit)
    found = np.empty(size + SLACK, np.int32)
    for _ in range(5):
        low = int(rng.integers(0, size))
        high = int(rng.integers(low + 1, size + 1))
        count = scan_bits(words, *levels, *unsigned(low, high), found)
        assert found[:count].tolist() == sorted(bit for bit in model if low <= bit < high)
    count = drain_bits(words, *levels, found)
    assert found[:count].tolist() == sorted(model)
    assert not words.any()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 64, 400, 5000])
def test_rows_are_sorted_and_the_bit_array_left_empty(size: int, count: int) -> None:
    count = min(size, count)
    rows = np.random.default_rng(count).permutation(size)[:count].astype(np.int32)
    scratch = np.concatenate([rows, np.zeros(SLACK, np.int32)])
    words = empty_bit_array(size)
    sort_rows(scratch, np.uint64(count), words, *unsigned(*level_starts(size)))
    assert scratch[:count].tolist() == sorted(rows.tolist())
    assert not words.any()
