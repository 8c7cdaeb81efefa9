"""Short runs of overload and soak, and the judgement of what grows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.endurance.__main__ import main
from tests.endurance.sampling import SLACK, Sample, growth

FLAT = [Sample(memory=10**8, descriptors=20, threads=10, state=10**7, log=100)] * 40


def test_what_stays_within_its_slack_is_flat() -> None:
    assert growth([replace(one, memory=one.memory + SLACK.memory * (n % 2) // 2) for n, one in enumerate(FLAT)]) == []


@pytest.mark.parametrize("what", ["memory", "descriptors", "threads", "state", "log"])
def test_what_grows_is_named(what: str) -> None:
    step = getattr(SLACK, what) // 10 + 1
    grown = [replace(one, **{what: getattr(one, what) + n * step}) for n, one in enumerate(FLAT)]
    assert [found.split()[0] for found in growth(grown)] == [what]


@pytest.mark.slow
def test_an_overloaded_join_stays_as_it_is() -> None:
    assert main(["overload", "--minutes", "1"]) == 0


@pytest.mark.slow
def test_a_join_with_faults_stays_as_it_is() -> None:
    assert main(["soak", "--minutes", "1", "--every", "15"]) == 0
