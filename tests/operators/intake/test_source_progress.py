"""The gate says how far each source is, which one all wait for, and shows the last late rows."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from operators.intake.gate_task import LATE_SAMPLES, GateTask
from topology import Batch, Origin, Watermark

R, S = Origin("R", 0, 0), Origin("S", 0, 1)


def rows(*seconds: int) -> pa.RecordBatch:
    times = [datetime(2024, 5, 1, 8, 0, second) for second in seconds]
    return pa.record_batch({"ts": pa.array(times, pa.timestamp("us"))})


def gate() -> GateTask:
    return GateTask({"R": "ts", "S": "ts"}, 1000)


def test_the_source_that_all_wait_for_is_named_and_how_far_it_is_behind() -> None:
    task = gate()
    list(task.on_batch(Batch("R", rows(1, 9), source="east"), R))
    assert task.details()["unknown_streams"] == ["S"]
    list(task.on_batch(Batch("S", rows(2, 4), source="slow"), S))
    list(task.on_idle())
    slow, east = task.details()["sources"]
    assert (slow["stream"], slow["source"], slow["awaited"], slow["state"]) == ("S", "slow", True, "open")
    assert (slow["behind"], slow["unit"], slow["reached"]) == (5.0, "s", "2024-05-01 08:00:04.000000")
    assert (east["awaited"], east["behind"], east["waiting_rows"]) == (False, 0.0, 1)
    assert task.details()["unknown_streams"] == []


def test_a_source_that_was_announced_and_is_silent_comes_before_one_that_is_behind() -> None:
    task = gate()
    list(task.on_batch(Batch("R", rows(1, 9), source="east"), R))
    list(task.on_watermark(Watermark(None, "S", "new"), S))
    first = task.details()["sources"][0]
    assert (first["source"], first["state"], first["awaited"], first["behind"]) == ("new", "silent", True, None)


def test_nobody_is_awaited_when_nothing_waits() -> None:
    task = gate()
    list(task.on_batch(Batch("R", rows(1), source="r"), R))
    list(task.on_batch(Batch("S", rows(1), source="s"), S))
    list(task.on_input_end(R))
    list(task.on_input_end(S))
    list(task.on_idle())
    sources = task.details()["sources"]
    assert [source["state"] for source in sources] == ["ended", "ended"]
    assert not any(source["awaited"] for source in sources)


def test_the_last_late_rows_are_shown_by_reason() -> None:
    task = gate()
    nothing = pa.record_batch({"ts": pa.array([None] * 7, pa.timestamp("us"))})
    list(task.on_batch(Batch("R", nothing, source="r", first=40), R))
    found = task.details()["late"]["no event time"]
    assert found["rows"] == 7
    assert [row["offset"] for row in found["samples"]] == list(range(47 - LATE_SAMPLES, 47))
    assert found["samples"][0]["source"] == "r"


def test_row_numbers_are_behind_by_rows() -> None:
    task = GateTask({"R": None, "S": None}, 1000)
    list(task.on_batch(Batch("R", pa.record_batch({"x": [1, 2, 3]}), source="r"), R))
    list(task.on_batch(Batch("S", pa.record_batch({"x": [1]}), source="s"), S))
    behind = {source["source"]: (source["behind"], source["unit"]) for source in task.details()["sources"]}
    assert behind == {"r": (0.0, "rows"), "s": (2.0, "rows")}
