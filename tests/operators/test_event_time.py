"""Sources out of order, against the definition in docs/semantics.md, written here row by row in Python.

A row without a time is rejected; one earlier than the greatest time before it in its source, less the bound, is late;
all others are in the order of (event time, source name, offset).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from operators.intake.gate_task import GateTask
from tests.operators.intake.gate_output import ORIGINS, Collected
from tests.operators.intake.out_of_order import Judged, judge
from topology import Batch, End, Idle, Watermark

LEAST, GREATEST = -(2**63), 2**63 - 1
WHOLE = st.one_of(
    st.integers(0, 6),
    st.integers(0, 40),
    st.sampled_from([None, LEAST, LEAST + 2, GREATEST, GREATEST - 2]),
)
FLOATS = st.one_of(
    st.sampled_from([0.0, 0.1, 0.2, 0.30000000000000004, 0.5, 1.5]),
    st.sampled_from([None, -0.0, np.nan, np.inf, -np.inf, 1e308, 2.0**53]),
)
Source = tuple[str, str]


def ordered(judged: dict[Source, Judged]) -> list[tuple[str, str]]:
    """(stream, id) of all rows that take part, in the total order."""
    rows = [(time, source, stream, offset) for (stream, source), each in judged.items() for time, offset in each.kept]
    return [(stream, f"{stream}/{source}/{offset}") for _, source, stream, offset in sorted(rows)]


class Case(NamedTuple):
    sources: dict[Source, list[Any]]
    bounds: dict[str, Any]
    kind: pa.DataType
    script: list[tuple[Source, int, int]]
    step_rows: int

    def rows(self, source: Source, at: int, count: int) -> pa.RecordBatch:
        stream, name = source
        ids = [f"{stream}/{name}/{offset}" for offset in range(at, at + count)]
        return pa.record_batch({"id": ids, "ts": pa.array(self.sources[source][at : at + count], self.kind)})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Sources with times in any order, ties and extremes; bounds; an interleaving of their batches."""
    floats = draw(st.booleans())
    names = draw(st.lists(st.tuples(st.sampled_from("RS"), st.sampled_from(["a", "b", "é"])), min_size=1, unique=True))
    sources = {name: draw(st.lists(FLOATS if floats else WHOLE, max_size=20)) for name in names}
    bound = (
        st.sampled_from([0.1, 0.5, 3.0, 1e308])
        if floats
        else st.sampled_from([1, 2, 10, 2.5, 2**63, 2**64 - 3, 2**64 - 1, 10**25])
    )
    bounds = {stream: draw(bound) for stream in "RS"}
    script: list[tuple[Source, int, int]] = []
    sent = dict.fromkeys(sources, 0)
    while open_ones := [name for name in sources if sent[name] < len(sources[name])]:
        name = draw(st.sampled_from(open_ones))
        count = draw(st.integers(1, len(sources[name]) - sent[name]))
        script.append((name, sent[name], count))
        sent[name] += count
    return Case(sources, bounds, pa.float64() if floats else pa.int64(), script, draw(st.integers(1, 20)))


@pytest.mark.parametrize(("memory", "merged"), [(0, 8), (150, 2), (400, 3), (1 << 20, 2), (1 << 20, 8)])
@given(case=cases(), data=st.data())
def test_rows_within_the_bound_are_in_order_and_the_others_are_reported(
    memory: int, merged: int, case: Case, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("operators.intake.waiting_source.MEMORY", memory)
        patch.setattr("operators.intake.waiting_source.RUNS_MERGED", merged)
        out, gate = run(case, data)
    judged = {source: judge(times, case.bounds[source[0]]) for source, times in case.sources.items()}
    assert [(stream, name) for _, stream, name in sorted(out.rows)] == ordered(judged)
    assert sorted(seq for seq, _, _ in out.rows) == list(range(len(out.rows)))
    assert all(rows <= case.step_rows for rows in out.steps)
    for (stream, source), each in judged.items():
        reported = [row for row in out.late if row[:2] == (stream, source)]
        assert [(offset, reason) for _, _, offset, _, reason in reported] == each.late
        for _, _, offset, time, _ in reported:
            assert str(time) == str(case.sources[stream, source][offset])
    reasons = [reason for each in judged.values() for _, reason in each.late]
    assert gate.metrics()["late_out_of_order"] == gate.metrics()["late"] == reasons.count("out of order")
    assert gate.metrics()["rejected"] == reasons.count("no event time")


def run(case: Case, data: st.DataObject) -> tuple[Collected, GateTask]:
    gate, out = GateTask({"R": "ts", "S": "ts"}, case.step_rows, None, case.bounds), Collected()
    for stream, name in case.sources:
        out.take(gate.on_watermark(Watermark(None, "default", name), ORIGINS[stream]))
    for index, (source, at, count) in enumerate(case.script):
        batch = Batch("default", case.rows(source, at, count), first=at, source=source[1])
        out.take(gate.on_batch(batch, ORIGINS[source[0]]))
        gate.check_invariants()
        if data.draw(st.booleans()):
            out.take(gate.on_idle())
            gate.check_invariants()
        if not any(later == source for later, _, _ in case.script[index + 1 :]) and data.draw(st.booleans()):
            out.take(gate.on_source_end(End("default", source[1]), ORIGINS[source[0]]))
    for stream in "RS":
        out.take(gate.on_input_end(ORIGINS[stream]))
    out.take(gate.on_end())
    gate.check_invariants()
    return out, gate


@pytest.mark.parametrize(
    ("kind", "times", "bound", "late"),
    [
        (pa.timestamp("us"), [10_000_000, 5_000_001, 5_000_000, 4_999_999], timedelta(seconds=5), [3]),
        (pa.timestamp("s"), [10, 9, 8], "1500 ms", [2]),  # a second and a half: one second is within, two are not
        (pa.timestamp("s"), [10, 10, 9], timedelta(milliseconds=1), [2]),
        (pa.date32(), [10, 9, 8], "1 day", [2]),
        (pa.duration("ms"), [5000, 4000, 3999], "1 s", [2]),
        (pa.time64("us"), [5_000_000, 4_000_000, 3_999_999], "1 s", [2]),
        (pa.int16(), [10, 8, 7], 2, [2]),
        (pa.float32(), [1.0, 0.5, 0.25], 0.5, [2]),
    ],
)
def test_a_bound_is_in_the_unit_of_the_event_time(
    kind: pa.DataType, times: list[Any], bound: Any, late: list[int]
) -> None:
    gate, out = GateTask({"R": "ts"}, 10, None, {"R": bound}), Collected()
    base = pa.int32() if kind in (pa.date32(), pa.int16()) else pa.int64()
    column = pa.array(times, kind) if pa.types.is_floating(kind) else pa.array(times, base).cast(kind)
    rows = pa.record_batch({"id": [str(k) for k in range(len(times))], "ts": column})
    out.take(gate.on_batch(Batch("default", rows, source="r"), ORIGINS["R"]))
    assert [offset for _, _, offset, _, _ in out.late] == late
    assert [time for *_, time, _ in out.late] == [column[row].as_py() for row in late]


def test_a_row_waits_until_no_earlier_one_can_come() -> None:
    gate, out = GateTask({"R": "ts"}, 100, None, {"R": 5}), Collected()

    def send(first: int, *times: int) -> list[str]:
        rows = pa.record_batch({"id": [f"{first + k}" for k in range(len(times))], "ts": pa.array(times, pa.int64())})
        out.take(gate.on_batch(Batch("default", rows, first=first, source="r"), ORIGINS["R"]))
        out.take(gate.on_idle())
        return [name for _, _, name in sorted(out.rows)]

    assert send(0, 10, 7, 12) == ["1"]  # nothing before 7 can come any more
    assert send(3, 8) == ["1"]
    assert send(4, 14) == ["1", "3"]
    assert send(5, 15, 9) == ["1", "3", "0"]  # 9 is late now
    assert out.late == [("R", "r", 6, 9, "out of order")]
    out.take(gate.on_source_end(End("default", "r"), ORIGINS["R"]))
    out.take(gate.on_idle())
    assert [name for _, _, name in sorted(out.rows)] == ["1", "3", "0", "2", "4", "5"]


def test_a_source_far_out_of_order_is_spilled_and_comes_back_in_order(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.intake.waiting_source.MEMORY", 20_000)
    gate, out = GateTask({"R": "ts"}, 64, str(tmp_path), {"R": 10_000}), Collected()
    times = np.random.default_rng(5).permutation(10_000)
    for at in range(0, 10_000, 100):
        rows = pa.record_batch({"id": [str(k) for k in times[at : at + 100]], "ts": times[at : at + 100]})
        out.take(gate.on_batch(Batch("default", rows, first=at, source="r"), ORIGINS["R"]))
        if at % 1000 == 0:
            gate.check_invariants()
    assert gate.metrics()["spilled_bytes"] > 100_000
    assert out.rows == []
    out.take(gate.on_input_end(ORIGINS["R"]))
    out.take(gate.on_end())
    assert [name for _, _, name in out.rows] == [str(k) for k in range(10_000)]
    assert gate.metrics()["spilled_bytes"] == 0


class IdleCase(NamedTuple):
    """What arrives at a gate: batches, and silences of sources, in any order."""

    script: list[tuple[str, str, list[int], bool]]
    bound: int


@st.composite
def idle_cases(draw: st.DrawFn) -> IdleCase:
    """Most steps are batches and silences, most are followed by a release: what is late depends on what has passed."""
    step = st.tuples(
        st.sampled_from(["batch"] * 6 + ["idle"] * 4 + ["open", "end"]),
        st.sampled_from("abc"),
        st.lists(st.integers(0, 12), min_size=1, max_size=3),
        st.sampled_from([True, True, False]),
    )
    return IdleCase(draw(st.lists(step, min_size=10, max_size=20)), draw(st.integers(1, 6)))


@given(idle_cases())
def test_idle_and_new_sources_lose_what_belongs_before_what_has_passed_and_nothing_else(case: IdleCase) -> None:
    gate, out = GateTask({"R": "ts"}, 1000, None, {"R": case.bound}), Collected()
    sent: dict[str, list[int]] = {}
    known_since: dict[str, Any] = {}
    awake: dict[str, bool] = {}
    ended: set[str] = set()
    expected_late: list[tuple[str, int, str]] = []
    waiting: list[tuple[int, str, int]] = []
    passed: list[tuple[int, str, int]] = []

    def release() -> None:
        """All rows that no source that is awake can precede pass, in order."""
        floors = []
        for name, is_awake in awake.items():
            if is_awake and name not in ended:
                if not sent.get(name):
                    return
                floors.append((max(sent[name]) - case.bound, name))
        for row in sorted(waiting):
            if not floors or row[:2] <= min(floors):
                waiting.remove(row)
                passed.append(row)

    for action, name, times, then_release in case.script:
        if name in ended:
            continue
        if name not in awake:
            known_since[name] = max(passed)[:2] if passed else None
            awake[name] = True
        origin = ORIGINS["R"]
        if action == "open":
            out.take(gate.on_watermark(Watermark(None, "default", name), origin))
        elif action == "idle":
            out.take(gate.on_source_idle(Idle("default", name), origin))
            awake[name] = False
        elif action == "end":
            out.take(gate.on_source_end(End("default", name), origin))
            ended.add(name)
        else:
            first = len(sent.setdefault(name, []))
            awake[name] = True
            for offset, time in enumerate(times, first):
                before = sent[name]
                if before and time < max(before) - case.bound:
                    expected_late.append((name, offset, "out of order"))
                elif known_since[name] is not None and (time, name) < known_since[name]:
                    expected_late.append((name, offset, "source joined too late"))
                elif passed and (time, name) < max(passed)[:2]:
                    expected_late.append((name, offset, "source was idle"))
                else:
                    waiting.append((time, name, offset))
                before.append(time)
            ids = [f"{name}{offset}" for offset in range(first, first + len(times))]
            rows = pa.record_batch({"id": pa.array(ids, pa.string()), "ts": pa.array(times, pa.int64())})
            out.take(gate.on_batch(Batch("default", rows, first=first, source=name), origin))
        if then_release:
            release()
            out.take(gate.on_idle())
        gate.check_invariants()
    ended |= set(awake)
    release()
    out.take(gate.on_input_end(ORIGINS["R"]))
    out.take(gate.on_end())
    assert [(source, offset, reason) for _, source, offset, _, reason in out.late] == expected_late
    assert [name for _, _, name in sorted(out.rows)] == [f"{name}{offset}" for _, name, offset in passed]
    assert passed == sorted(passed)
    for reason in {reason for _, _, reason in expected_late}:
        event(reason)


def test_a_stream_without_sources_does_not_hold_the_others_back() -> None:
    gate, out = GateTask({"R": "ts", "S": "ts"}, 100), Collected()
    rows = pa.record_batch({"id": ["a", "b"], "ts": [1, 2]})
    out.take(gate.on_batch(Batch("default", rows, source="r"), ORIGINS["R"]))
    out.take(gate.on_idle())
    assert out.rows == []
    out.take(gate.on_source_idle(Idle("default", ""), ORIGINS["S"]))
    out.take(gate.on_idle())
    assert len(out.rows) == 2
    late = pa.record_batch({"id": ["c", "d"], "ts": [1, 2]})
    out.take(gate.on_batch(Batch("default", late, source="s"), ORIGINS["S"]))
    assert out.late == [("S", "s", 0, 1, "source joined too late")]
