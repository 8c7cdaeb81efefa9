"""One law for all indexes: they find what a linear scan finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, LinearScan, Live
from tests.indexes.contract import STEPS, check_against_linear_scan
from tests.indexes.every_index import NAMES, tiny_index
from tests.indexes.generated import assert_same, seeds, without_deadline

every_index = pytest.mark.parametrize("name", NAMES)
courses = given(seeds, st.sampled_from([1, 1, 2, 3, 4]), st.lists(st.sampled_from(STEPS), min_size=8, max_size=30))


@every_index
@settings(without_deadline, max_examples=100)
@courses
def test_any_course_of_events_agrees_with_a_linear_scan(
    name: str, seed: int, dimensions: int, steps: list[str]
) -> None:
    check_against_linear_scan(tiny_index(name, np.random.default_rng(seed)), seed, dimensions, steps)


@pytest.mark.slow
@every_index
@settings(without_deadline, max_examples=1000)
@courses
def test_a_thousand_courses_of_events_agree_with_a_linear_scan(
    name: str, seed: int, dimensions: int, steps: list[str]
) -> None:
    check_against_linear_scan(tiny_index(name, np.random.default_rng(seed)), seed, dimensions, steps)


@every_index
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
