"""One law for all indexes: what a linear scan finds, they find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.indexes.contract import STEPS, check_against_linear_scan
from tests.indexes.every_index import NAMES, tiny_indexes
from tests.indexes.generated import seeds


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(1, 3), st.lists(st.sampled_from(STEPS), min_size=1, max_size=30))
def test_any_course_of_events_agrees_with_a_linear_scan(
    name: str, seed: int, dimensions: int, steps: list[str]
) -> None:
    make = tiny_indexes(np.random.default_rng(seed))[name]
    check_against_linear_scan(make, seed, dimensions, steps)
