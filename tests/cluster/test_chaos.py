"""A few faults on a real cluster, one after the other: `make chaos` makes many."""

from __future__ import annotations

import pytest

from tests.cluster.chaos import chaos
from tests.cluster.namespaces import refusal


@pytest.mark.slow
def test_rows_and_numbers_are_those_of_a_run_without_faults() -> None:
    if reason := refusal():
        pytest.skip(reason)
    with chaos() as made:
        made.run(minutes=15, most=11)
        assert made.conclude() > 0
    assert sum(made.faults.values()) == 11
    assert len(made.faults) >= 8
