import numpy as np
import pytest

from indexes import Interval, Keys, Live, Matches


def matches(*rows: list[int]) -> Matches:
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Matches(offsets, np.array([p for row in rows for p in row], np.int64))


def rows(found: Matches) -> list[list[int]]:
    return [found.positions[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def test_rows_are_joined_part_after_part() -> None:
    parts = [matches([1], [], [5, 3]), matches([], [], []), matches([9, 8], [7], [6])]
    assert rows(Matches.concat_by_row(parts)) == [[1, 9, 8], [7], [5, 3, 6]]


def test_joining_nothing_gives_the_same_number_of_rows() -> None:
    assert rows(Matches.concat_by_row([Matches.empty(2), Matches.empty(2)])) == [[], []]
    assert rows(Matches.concat_by_row([Matches.empty(0)])) == []


def test_sorting_stays_within_rows() -> None:
    found = matches([5, 2], [], [9, 1, 4])
    assert rows(found.sorted_by_position()) == [[2, 5], [], [1, 4, 9]]
    assert found.probe_rows().tolist() == [0, 0, 2, 2, 2]


def test_nan_is_not_a_key() -> None:
    keys = Keys.of(np.array([1.0, np.nan]))
    assert keys.mask().tolist() == [True, False]
    assert Keys.of(np.array([1, 2], np.int32)).values.dtype == np.int64


def test_columns_cannot_be_written_and_leave_their_source_writable() -> None:
    source = np.array([1, 2, 3])
    keys = Keys(source)
    with pytest.raises(ValueError, match="read-only"):
        keys.values[0] = 7
    source[0] = 7


def test_unfit_columns_are_refused() -> None:
    with pytest.raises(TypeError, match="int32"):
        Keys(np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="same length"):
        Interval(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="same length"):
        Live(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="one flag per key"):
        Keys(np.zeros(2), np.zeros(3, np.bool_))
