"""When a topology that has failed starts again, and when it gives up."""

from __future__ import annotations

from topology.on_ray.recovery import LONG_RUN_SECONDS, MOST_FAILURES, MOST_TASK_ERRORS, Cause, Recovery

DIED = Cause("the process died", ("gate", 0))
RAISED = Cause("ValueError", ("map", 0), in_task=True)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def failures(recovery: Recovery, cause: Cause, most: int = 100) -> int:
    """How often it starts again at one place."""
    count = 0
    while count < most and recovery.pause_after(cause) is not None:
        recovery.note((0, 0))
        count += 1
    return count


def test_failures_at_one_place_end_it() -> None:
    assert failures(Recovery(Clock()), DIED) == MOST_FAILURES
    assert failures(Recovery(Clock()), RAISED) == MOST_TASK_ERRORS


def test_pauses_grow() -> None:
    recovery = Recovery(Clock())
    pauses = [recovery.pause_after(DIED) for _ in range(MOST_FAILURES)]
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0]


def test_progress_begins_the_count_anew() -> None:
    recovery = Recovery(Clock())
    for progress in range(1, 50):
        assert recovery.pause_after(DIED) is not None
        recovery.note((progress, 0))
        recovery.note(None)  # a worker without the journal
    assert recovery.count == 49


def test_rows_that_come_in_are_no_progress_for_a_task_that_fails() -> None:
    recovery = Recovery(Clock())
    for number in range(1, MOST_TASK_ERRORS + 1):
        assert recovery.pause_after(RAISED) is not None
        recovery.note((number, 0))
    assert recovery.pause_after(RAISED) is None
    recovery = Recovery(Clock())
    for number in range(1, 50):
        assert recovery.pause_after(RAISED) is not None
        recovery.note((number, number))


def test_a_long_run_begins_the_count_anew_unless_a_task_fails() -> None:
    clock = Clock()
    recovery = Recovery(clock)
    for _ in range(20):
        assert recovery.pause_after(DIED) is not None
        recovery.note((0, 0))
        clock.seconds += LONG_RUN_SECONDS + 1
    recovery = Recovery(clock)
    for _ in range(MOST_TASK_ERRORS):
        assert recovery.pause_after(RAISED) is not None
        clock.seconds += LONG_RUN_SECONDS + 1
    assert recovery.pause_after(RAISED) is None
