"""Calls in a thread of their own."""

import threading

import pytest

from tests.topology.waiting import LONG
from topology.flight.background_calls import BackgroundCalls


def test_calls_are_made_in_order_and_their_outcomes_kept() -> None:
    calls = BackgroundCalls("test")
    made: list[int] = []

    def fail() -> None:
        raise KeyError("no")

    futures = [calls.submit(lambda number=number: made.append(number)) for number in range(5)]  # type: ignore[misc]
    failed = calls.submit(fail)
    answer = calls.submit(lambda: threading.current_thread().name)
    assert answer.result(LONG) == "test"
    assert [future.result(LONG) for future in futures] == [None] * 5
    assert made == list(range(5))
    with pytest.raises(KeyError, match="no"):
        failed.result(LONG)
    calls.close(LONG)


def test_a_cancelled_call_is_not_made() -> None:
    calls = BackgroundCalls("test")
    gate = threading.Event()
    made: list[str] = []
    calls.submit(gate.wait)
    second = calls.submit(lambda: made.append("second"))
    assert second.cancel()
    gate.set()
    calls.close(LONG)
    assert made == []
