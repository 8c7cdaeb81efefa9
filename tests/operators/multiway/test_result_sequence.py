"""The order of combinations beside Python's own sorting."""

from __future__ import annotations

import numpy as np
import pytest

from operators.multiway.result_sequence import result_order


@pytest.mark.parametrize("rows", [0, 1, 7, 300])
@pytest.mark.parametrize("most", [3, 1000, 2**40])
@pytest.mark.parametrize("places", [1, 5, 2**40])
@pytest.mark.parametrize("rising", [True, False])
def test_combinations_are_ordered_by_all_columns(rows: int, most: int, places: int, rising: bool) -> None:
    """Few and many of one place, columns that fit into one number and that do not, places that rise or fall."""
    chance = np.random.default_rng([rows, most, places])
    columns = np.unique(chance.integers([0, -most, 0], [places, most, most], (rows, 3)), axis=0)
    columns = columns[chance.permutation(len(columns))]
    if rising:
        columns = columns[np.argsort(columns[:, 0], kind="stable")]
    place, *others = (np.ascontiguousarray(column) for column in columns.T)
    order = result_order(place, others)
    assert sorted(columns.tolist()) == (columns if order is None else columns[order]).tolist()


def test_what_comes_in_order_is_not_ordered_again() -> None:
    assert result_order(np.array([3, 3, 5]), [np.array([1, 2, 0]), np.array([9, 9, 9])]) is None
