"""The same input gives byte-identical output: at any parallelism, step size, batch cut, timing and plan."""

from __future__ import annotations

import pytest

from operators import SPOJoin
from tests.operators.sent_readings import SOURCES, WINDOWS, content, join_with, results_of_senders


@pytest.mark.parametrize("window", WINDOWS, ids=["count", "time and count"])
def test_output_does_not_depend_on_parallelism_plan_or_step(window: object) -> None:
    expected = content(join_with(window, SPOJoin(elements=1), 1 << 17).collect(SOURCES))
    for engine, step_rows in [
        (SPOJoin(elements=1, merge_interval=64), 100),
        (SPOJoin(elements=4, merge_interval=50), 37),
        (SPOJoin(elements=3, mutable="decomposed", logical_elements=1, merge_interval=128), 256),
        (SPOJoin(elements=2, mutable="decomposed", logical_elements=3, permutations=2, merge_interval=33), 61),
    ]:
        assert content(join_with(window, engine, step_rows).collect(SOURCES)) == expected


def test_output_does_not_depend_on_who_sends_when() -> None:
    window = WINDOWS[0]
    expected = content(join_with(window, SPOJoin(elements=1), 1 << 17).collect(SOURCES))
    for seed in range(3):
        join = join_with(window, SPOJoin(elements=2, merge_interval=90), 80)
        assert content(results_of_senders(join, seed)) == expected
