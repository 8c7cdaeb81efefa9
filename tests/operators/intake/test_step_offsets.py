"""The offsets of a step's rows: exact where rows pass in their order, a bound that holds elsewhere."""

from __future__ import annotations

from random import Random

import pytest

from operators.intake.step_offsets import StepOffsets
from operators.intake.waiting_run import SourceName

A, B = SourceName("a", "R"), SourceName("b", "R")


def test_rows_that_pass_in_order_are_named_exactly() -> None:
    offsets = StepOffsets()
    offsets.take(A, 0, 10, 10, ordered=True)
    offsets.take(A, 10, 15, 5, ordered=True)
    offsets.take(B, 0, 3, 3, ordered=True)
    assert offsets.release({A: 8}) == {("R", "a"): (0, 8)}
    assert offsets.release({A: 4, B: 1}) == {("R", "a"): (8, 12), ("R", "b"): (0, 1)}
    assert offsets.release({A: 3}) == {("R", "a"): (12, 15)}


def test_rows_before_a_restart_are_only_counted_and_rows_out_of_order_only_bounded() -> None:
    offsets = StepOffsets()
    offsets.wait(A, 4)
    offsets.take(A, 20, 30, 10, ordered=True)
    offsets.take(B, 0, 9, 9, ordered=False)
    assert offsets.release({A: 3, B: 2}) == {("R", "a"): (None, 20), ("R", "b"): (None, 9)}
    assert offsets.release({A: 2}) == {("R", "a"): (None, 21)}
    assert offsets.release({A: 2}) == {("R", "a"): (21, 23)}


@pytest.mark.parametrize("seed", range(20))
def test_no_row_of_a_step_is_outside_of_what_is_named(seed: int) -> None:
    chance, offsets, waiting, end = Random(seed), StepOffsets(), list[int](), 0
    for _ in range(50):
        rows = range(end, end + chance.randrange(5))
        kept = [row for row in rows if chance.random() < 0.8]
        offsets.take(A, rows.start, rows.stop, len(kept), ordered=True)
        waiting, end = waiting + kept, rows.stop
        count = chance.randrange(len(waiting) + 1)
        step, waiting = waiting[:count], waiting[count:]
        if step:
            ((first, behind),) = offsets.release({A: count}).values()
            assert first is not None
            assert first <= step[0]
            assert step[-1] < behind <= end
