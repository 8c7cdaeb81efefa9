"""The gate against its definition: sort all rows by (event time, source name, offset)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.intake.gate_task import GateTask
from tests.operators.intake.gate_output import ORIGINS, Collected
from topology import Batch, End, Watermark


def table(stream: str, source: str, times: list[Any]) -> pa.RecordBatch:
    ids = [f"{stream}/{source}/{offset}" for offset in range(len(times))]
    kind = pa.float64() if any(isinstance(time, float) for time in times) else pa.int64()
    return pa.record_batch({"id": ids, "ts": pa.array(times, kind)})


def expected_order(sources: dict[tuple[str, str], list[Any]]) -> list[tuple[str, str]]:
    rows = [
        ((time, source, stream), offset, f"{stream}/{source}/{offset}", stream)
        for (stream, source), times in sources.items()
        for offset, time in enumerate(times)
    ]
    rows.sort(key=lambda row: (row[0], row[1]))
    return [(stream, name) for _, _, name, stream in rows]


@st.composite
def scripts(draw: st.DrawFn) -> tuple[dict[tuple[str, str], list[int]], list[tuple[str, str, int, int]], int]:
    """Sources with sorted times and many ties, an interleaving of their batches, and a bound on steps."""
    name = st.tuples(st.sampled_from("RS"), st.sampled_from(["a", "b", "é", "aa"]))
    names = draw(st.lists(name, min_size=1, unique=True))
    sources = {name: sorted(draw(st.lists(st.integers(0, 6), max_size=12))) for name in names}
    cuts = []
    for (stream, source), times in sources.items():
        at = 0
        while at < len(times):
            count = draw(st.integers(1, len(times) - at))
            cuts.append((stream, source, at, count))
            at += count
    order = draw(st.permutations(range(len(cuts))))
    by_source: dict[tuple[str, str], list[tuple[str, str, int, int]]] = {}
    for cut in cuts:
        by_source.setdefault(cut[:2], []).append(cut)
    script = [by_source[cuts[index][:2]].pop(0) for index in order]  # any interleaving, each source in its own order
    return sources, script, draw(st.integers(1, 20))


@given(scripts(), st.randoms(use_true_random=False))
def test_the_merged_order_is_a_function_of_the_rows_alone(
    script: tuple[dict[tuple[str, str], list[int]], list[tuple[str, str, int, int]], int], random: Any
) -> None:
    sources, batches, step_rows = script
    gate, out = GateTask({"R": "ts", "S": "ts"}, step_rows), Collected()
    for stream, source in sources:
        out.take(gate.on_watermark(Watermark(None, "default", source), ORIGINS[stream]))
    whole = {key: table(*key, times) for key, times in sources.items()}
    for stream, source, at, count in batches:
        rows = whole[stream, source].slice(at, count)
        out.take(gate.on_batch(Batch("default", rows, first=at, source=source), ORIGINS[stream]))
        gate.check_invariants()
        if random.random() < 0.5:
            out.take(gate.on_idle())
            gate.check_invariants()
    for stream in "RS":
        out.take(gate.on_input_end(ORIGINS[stream]))
    out.take(gate.on_end())
    assert [(stream, name) for _, stream, name in sorted(out.rows)] == expected_order(sources)
    assert sorted(seq for seq, _, _ in out.rows) == list(range(len(out.rows)))
    assert all(rows <= step_rows for rows in out.steps)


def test_a_row_waits_for_every_open_source_and_no_longer() -> None:
    gate, out = GateTask({"R": "ts", "S": "ts"}, 100), Collected()
    out.take(gate.on_batch(Batch("default", table("R", "r", [1, 2, 5]), source="r"), ORIGINS["R"]))
    out.take(gate.on_idle())
    assert out.rows == []  # it is still unknown when S begins
    out.take(gate.on_batch(Batch("default", table("S", "s", [2]), source="s"), ORIGINS["S"]))
    out.take(gate.on_idle())
    # s may still send more rows of time 2, but no earlier ones; r precedes s at equal times
    assert [name for _, _, name in sorted(out.rows)] == ["R/r/0", "R/r/1", "S/s/0"]
    out.take(gate.on_watermark(Watermark(5, "default", "s"), ORIGINS["S"]))
    out.take(gate.on_idle())
    assert len(out.rows) == 4
    out.take(gate.on_source_end(End("default", "s"), ORIGINS["S"]))
    out.take(gate.on_batch(Batch("default", table("R", "r", [9]), first=3, source="r"), ORIGINS["R"]))
    out.take(gate.on_idle())
    assert len(out.rows) == 5


def test_rows_without_a_time_are_rejected_and_counted() -> None:
    gate, out = GateTask({"R": "ts"}, 100), Collected()
    rows = pa.record_batch({"id": list("abcde"), "ts": pa.array([0.5, None, float("nan"), 1.5, None])})
    out.take(gate.on_batch(Batch("default", rows, source="r"), ORIGINS["R"]))
    out.take(gate.on_input_end(ORIGINS["R"]))
    out.take(gate.on_end())
    assert [name for _, _, name in out.rows] == ["a", "d"]
    assert gate.metrics()["rejected"] == 3
    assert [(stream, source, offset) for stream, source, offset, _, _ in out.late] == [("R", "r", k) for k in (1, 2, 4)]
    assert {reason for *_, reason in out.late} == {"no event time"}
    assert [str(time) for *_, time, _ in out.late] == ["None", "nan", "None"]  # as they were sent


def test_without_an_event_time_column_row_numbers_are_the_time() -> None:
    gate, out = GateTask({"R": None, "S": None}, 3), Collected()
    for stream in "RS":
        for at in (0, 2, 4):
            rows = pa.record_batch({"id": [f"{stream}{at}", f"{stream}{at + 1}"]})
            out.take(gate.on_batch(Batch("default", rows, first=at, source=stream), ORIGINS[stream]))
    for stream in "RS":
        out.take(gate.on_input_end(ORIGINS[stream]))
    out.take(gate.on_end())
    assert [name for _, _, name in sorted(out.rows)] == [f"{stream}{i}" for i in range(6) for stream in "RS"]


def test_a_source_that_comes_too_late_is_counted_and_its_later_rows_count(caplog: pytest.LogCaptureFixture) -> None:
    gate, out = GateTask({"R": "ts"}, 100), Collected()
    out.take(gate.on_batch(Batch("default", table("R", "b", [1, 5]), source="b"), ORIGINS["R"]))
    out.take(gate.on_idle())
    with caplog.at_level("WARNING", "interlace"):
        out.take(gate.on_batch(Batch("default", table("R", "a", [4, 5, 6]), source="a"), ORIGINS["R"]))
    assert "2 rows of source 'a' are late" in caplog.text
    out.take(gate.on_input_end(ORIGINS["R"]))
    out.take(gate.on_end())
    assert [name for _, _, name in out.rows] == ["R/b/0", "R/b/1", "R/a/2"]
    assert gate.metrics()["late"] == gate.metrics()["late_joined_too_late"] == 2
    assert out.late == [("R", "a", 0, 4, "source joined too late"), ("R", "a", 1, 5, "source joined too late")]


def test_a_source_far_ahead_is_spilled_and_comes_back_whole(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.intake.waiting_source.MEMORY", 3000)
    gate, out = GateTask({"R": "ts", "S": "ts"}, 64, str(tmp_path)), Collected()
    out.take(gate.on_watermark(Watermark(0, "default", "s"), ORIGINS["S"]))
    times = np.arange(1000)
    for at in range(0, 1000, 50):
        rows = pa.record_batch({"id": times[at : at + 50], "ts": times[at : at + 50]})
        out.take(gate.on_batch(Batch("default", rows, first=at, source="r"), ORIGINS["R"]))
        gate.check_invariants()
    assert gate.metrics()["spilled_bytes"] > 0
    for stream in "RS":
        out.take(gate.on_input_end(ORIGINS[stream]))
    out.take(gate.on_end())
    assert [name for _, _, name in out.rows] == times.tolist()
    assert gate.metrics()["spilled_bytes"] == 0
