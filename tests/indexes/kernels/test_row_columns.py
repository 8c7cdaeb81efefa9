import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.row_columns import RowColumns
from tests.indexes.generated import without_deadline


@without_deadline
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=30))
def test_the_rows_still_asked_for_are_there(steps: list[tuple[int, int]]) -> None:
    columns = RowColumns(2)
    below = end = 0
    for rows, kept in steps:
        positions = np.arange(end, end + rows)
        columns.append(end, [positions * 3, -positions], below)
        end += rows
        below = max(below, end - kept)
        asked = np.arange(below, end)
        np.testing.assert_array_equal(columns.at(asked), [asked * 3, -asked])


def test_room_follows_the_rows_held() -> None:
    columns = RowColumns(1)
    columns.append(0, [np.arange(5000)], 0)
    assert columns.mask + 1 == 8192
    for end in range(5000, 9000, 10):
        columns.append(end, [np.zeros(10, np.int64)], end - 20)
    assert columns.mask + 1 <= 64
