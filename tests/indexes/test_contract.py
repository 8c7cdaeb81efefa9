"""One law for all indexes: what a linear scan finds, they find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, LinearScan, Live
from tests.indexes.contract import STEPS, check_against_linear_scan
from tests.indexes.every_index import NAMES, tiny_index
from tests.indexes.generated import assert_same, seeds


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(1, 3), st.lists(st.sampled_from(STEPS), min_size=1, max_size=30))
def test_any_course_of_events_agrees_with_a_linear_scan(
    name: str, seed: int, dimensions: int, steps: list[str]
) -> None:
    make = tiny_index(name, np.random.default_rng(seed))
    check_against_linear_scan(make, seed, dimensions, steps)


@pytest.mark.parametrize("name", NAMES)
def test_rows_come_in_any_order_of_positions_where_inserts_are_concurrent(name: str) -> None:
    rng = np.random.default_rng(4)
    columns = rng.integers(0, 30, (3, 600))
    index, reference = tiny_index(name, rng)(3, 0), LinearScan()
    if not index.concurrent_inserts:
        with pytest.raises(NotImplementedError, match="in the order of positions: use insert"):
            index.insert_at(0, [Keys(values) for values in columns])
        return
    reference.insert([Keys(values) for values in columns])
    for first in rng.permutation(np.arange(0, 600, 20)).tolist():
        index.insert_at(first, [Keys(values[first : first + 20]) for values in columns])
        index.check_invariants()
    intervals = [Interval(values, values + 9) for values in rng.integers(0, 30, (3, 50))]
    assert_same(*(one.probe(intervals, Live.everything(50)) for one in (index, reference)))
