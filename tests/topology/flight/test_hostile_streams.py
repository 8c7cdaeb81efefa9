"""Hostile streams against a served join: no crash, nothing taken, bounded memory, exact results after each class."""

from collections.abc import Iterator

import pytest

from tests.topology.flight.hostile_calls import Victim
from tests.topology.flight.hostile_cases import CLASSES, cases

GROWTH = 512 * 1024 * 1024
"""How much the memory of the server may grow: a few messages of 32 MB, as they arrive, copied, decoded and counted."""


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    made = Victim()
    yield made
    made.close()


@pytest.fixture(scope="module")
def memory_before(victim: Victim) -> int:
    victim.works()
    return victim.peak_bytes()


@pytest.mark.parametrize("name", CLASSES)
def test_streams_of_a_class_are_refused_and_leave_no_trace(name: str, victim: Victim, memory_before: int) -> None:
    for number, case in enumerate(cases(name)):
        outcome = victim.put(case.messages)
        where = f"{name}, case {number}: {outcome}"
        assert victim.alive(), where
        assert outcome.code in ("OK", "UNKNOWN"), where
        if case.must_refuse:
            assert outcome.rows == 0, where
        assert outcome.kind != "InterlaceError", where  # an error that nobody expected
        if case.must_refuse and outcome.refused:
            assert outcome.kind in case.kinds, where
    victim.works()
    assert victim.peak_bytes() - memory_before < GROWTH


def test_the_corpus_refuses_what_it_must() -> None:
    assert sum(case.must_refuse for name in CLASSES for case in cases(name)) > 1000


def test_a_message_that_is_too_large_is_refused_before_it_is_read(victim: Victim, memory_before: int) -> None:
    for _ in range(3):
        outcome = victim.put([bytes(200_000_000)])
        assert (outcome.code, outcome.rows) == ("RESOURCE_EXHAUSTED", 0)
    for method in ("DoAction", "DoGet"):
        assert victim.ask(method, bytes(200_000_000)).code == "RESOURCE_EXHAUSTED"
        assert victim.ask(method, bytes(200_000_000), headers=[]).code in ("UNAUTHENTICATED", "RESOURCE_EXHAUSTED")
    victim.works()
    assert victim.peak_bytes() - memory_before < GROWTH
