import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.position_order import order_rows
from tests.indexes.generated import seeds, thorough

row_lengths = st.lists(st.sampled_from([0, 1, 2, 31, 32, 33, 70, 400]), max_size=6)


@thorough
@given(seeds, row_lengths, st.sampled_from([1, 100, 10**6]))
def test_each_row_ascends_and_keeps_what_it_has(seed: int, lengths: list[int], apart: int) -> None:
    rng = np.random.default_rng(seed)
    least = int(rng.choice([0, 7, 2**40]))
    rows = [least + apart * np.sort(rng.choice(500, length, replace=False)) for length in [*lengths, 0]]
    positions = np.concatenate([rng.permutation(row) for row in rows])
    offsets = np.cumsum([0, *map(len, rows)])
    order_rows(positions, offsets)
    np.testing.assert_array_equal(positions, np.concatenate(rows))
