"""What the gate of a part keeps for a new life: the rows that later results depend on, and few more."""

from __future__ import annotations

from itertools import accumulate
from random import Random

import pyarrow as pa
import pytest

from operators import CountWindow, TimeWindow
from operators.intake.gate import Gate
from operators.intake.gate_task import SEQ, GateTask
from operators.intake.retention import Retention
from topology import Batch, Emit, Origin, Punctuation, TaskContext
from topology.graph.messages import Idle, Watermark

STEP_ROWS = 8
SPAN = 30
ORIGINS = {"R": Origin("R", 0, 0), "S": Origin("S", 0, 1)}


def gate(window: CountWindow | TimeWindow, remember: bool) -> GateTask:
    retention = Retention((("R", window), ("S", window)), remember)
    described = Gate((("R", "ts"), ("S", "ts")), STEP_ROWS, retention=retention).durable()
    task = described.build(TaskContext("gate"))
    assert isinstance(task, GateTask)
    return task


def rows(first: int, times: list[int]) -> Batch:
    ids = list(range(first, first + len(times)))
    return Batch("default", pa.record_batch({"id": ids, "ts": pa.array(times, pa.int64())}), first, "s")


def passed(emits: list[Emit], stream: str) -> list[int]:
    """The rows of a stream in steps, by their numbers."""
    messages = [emit.message for emit in emits]
    batches = [each for each in messages if isinstance(each, Batch) and each.stream == stream]
    return [number for batch in batches for number in batch.rows["id"].to_pylist()]


@pytest.mark.parametrize("remember", [False, True])
@pytest.mark.parametrize("window", [CountWindow(20), CountWindow(24, 6), TimeWindow(SPAN)], ids=str)
def test_a_snapshot_has_the_rows_that_are_live_and_few_more(window: CountWindow | TimeWindow, remember: bool) -> None:
    chance = Random(1)
    task, lives = gate(window, remember), 0
    out: list[Emit] = []
    next_row, time = {"R": 0, "S": 0}, {"R": 0, "S": 0}
    for _ in range(150):
        stream = chance.choice("RS")
        steps = [chance.randint(0, 2) for _ in range(chance.randint(1, 9))]
        times = [time[stream] + step for step in accumulate(steps)]
        time[stream] = times[-1]
        out += task.on_batch(rows(next_row[stream], times), ORIGINS[stream])
        next_row[stream] += len(times)
        out += task.on_idle()
        if chance.random() < 0.1:
            lives += 1
            snapshot = task.snapshot()
            task = gate(window, remember)
            task.restore(snapshot)
            again = list(task.on_idle())
            task.check_invariants()
            check(again, out, window, remember)
    assert lives > 8


def check(again: list[Emit], out: list[Emit], window: CountWindow | TimeWindow, remember: bool) -> None:
    """What is emitted again is the end of what was emitted before, back to the first row that is live at the end."""
    ends = [emit.message for emit in out if isinstance(emit.message, Punctuation)]
    if not ends:
        assert not again
        return
    assert again[-1].message == ends[-1]
    factor = 2 if remember else 1  # a live row may have met rows that have expired since
    for stream in "RS":
        before, now = passed(out, stream), passed(again, stream)
        assert now == before[len(before) - len(now) :]
        if isinstance(window, CountWindow):
            needed = [number for number in before if number >= len(before) - factor * window.size]
            most = factor * (window.size + (window.slide or 0) + 3 * STEP_ROWS)
        else:
            times = dict(zip(before, times_of(out, stream), strict=True))
            last = max(times_of(out, "R") + times_of(out, "S"))
            needed = [number for number in before if times[number] >= last - factor * SPAN]
            most = len([number for number in before if times[number] >= last - factor * 2 * SPAN])
        assert now[len(now) - len(needed) :] == needed
        assert len(now) <= most + 2 * STEP_ROWS


def times_of(emits: list[Emit], stream: str) -> list[int]:
    messages = [emit.message for emit in emits]
    batches = [each for each in messages if isinstance(each, Batch) and each.stream == stream]
    return [time for batch in batches for time in batch.rows["ts"].to_pylist()]


def test_sequence_numbers_go_on_behind_a_snapshot() -> None:
    task = gate(CountWindow(20), remember=False)
    list(task.on_batch(rows(0, [1, 2]), ORIGINS["R"]))
    list(task.on_batch(rows(0, [1, 2]), ORIGINS["S"]))
    list(task.on_idle())
    after = gate(CountWindow(20), remember=False)
    after.restore(task.snapshot())
    list(after.on_idle())
    list(after.on_batch(rows(2, [5]), ORIGINS["R"]))
    list(after.on_batch(rows(2, [5]), ORIGINS["S"]))
    (batch, *_) = [emit.message for emit in after.on_idle() if isinstance(emit.message, Batch)]
    assert (batch.first, batch.rows[SEQ].to_pylist()) == (2, [4])


def test_what_was_idle_or_promised_is_so_behind_a_snapshot() -> None:
    """Otherwise rows would pass later in a new life, and others would not be late that were late before."""
    task = gate(CountWindow(20), remember=False)
    list(task.on_batch(rows(0, [1]), ORIGINS["R"]))
    list(task.on_batch(rows(0, [1]), ORIGINS["S"]))
    list(task.on_watermark(Watermark(9, "default", "s"), ORIGINS["R"]))
    list(task.on_source_idle(Idle("default", "s"), ORIGINS["S"]))
    list(task.on_idle())
    after = gate(CountWindow(20), remember=False)
    after.restore(task.snapshot())
    list(after.on_idle())
    late = [emit.message for emit in after.on_batch(rows(1, [5, 9]), ORIGINS["R"]) if isinstance(emit.message, Batch)]
    assert [batch.stream for batch in late] == ["#late"]
    assert passed(list(after.on_idle()), "R") == [2]
