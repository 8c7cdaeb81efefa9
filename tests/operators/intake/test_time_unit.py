"""The gate counts in the finest unit of its streams' timestamps, whichever it learns of first."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from operators.intake.gate_task import GateTask
from tests.operators.intake.gate_output import ORIGINS, Collected
from topology import Batch, Idle, SchemaError, Watermark


def batch(unit: str, times: list[int], source: str, first: int = 0) -> Batch:
    ids = range(first, first + len(times))
    rows = pa.record_batch({"id": pa.array(ids, pa.int64()), "ts": pa.array(times, pa.timestamp(unit))})
    return Batch("default", rows, first=first, source=source)


@pytest.fixture
def gate(tmp_path: object) -> Iterator[GateTask]:
    task = GateTask({"R": "ts", "S": "ts"}, 5, str(tmp_path))
    yield task
    task.check_invariants()


def ended(gate: GateTask, out: Collected) -> list[tuple[str, int]]:
    """The rows in order, once everything has ended."""
    for stream in "RS":
        out.take(gate.on_input_end(ORIGINS[stream]))
    out.take(gate.on_end())
    return [(stream, number) for _, stream, number in sorted(out.rows)]


def test_rows_that_wait_in_memory_and_on_disk_are_counted_anew(gate: GateTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.intake.waiting_source.MEMORY", 300)
    out = Collected()
    for first in range(0, 40, 4):
        out.take(gate.on_batch(batch("s", list(range(first, first + 4)), "r", first), ORIGINS["R"]))
    assert gate.metrics()["spilled_bytes"] > 0
    out.take(gate.on_batch(batch("ms", [1500], "s"), ORIGINS["S"]))
    out.take(gate.on_batch(batch("ms", [20_500, 38_999], "s", 1), ORIGINS["S"]))
    of_r = [("R", number) for number in range(40)]
    assert ended(gate, out) == [*of_r[:2], ("S", 0), *of_r[2:21], ("S", 1), *of_r[21:39], ("S", 2), of_r[39]]


def test_rows_out_of_order_are_counted_anew(tmp_path: object) -> None:
    gate, out = GateTask({"R": "ts", "S": "ts"}, 5, str(tmp_path), {"R": 2}), Collected()
    out.take(gate.on_batch(batch("s", [5, 3, 2, 4], "r"), ORIGINS["R"]))  # 2 is late: 3 s behind 5
    out.take(gate.on_batch(batch("us", [3_500_000], "s"), ORIGINS["S"]))
    out.take(gate.on_batch(batch("s", [3, 2, 9], "r", 4), ORIGINS["R"]))
    assert [row[1:3] for row in out.late] == [("r", 2), ("r", 5)]
    assert ended(gate, out) == [("R", 1), ("R", 4), ("S", 0), ("R", 3), ("R", 0), ("R", 6)]


def test_a_stream_that_was_idle_from_the_start_may_have_any_unit(gate: GateTask) -> None:
    out = Collected()
    out.take(gate.on_source_idle(Idle(), ORIGINS["S"]))
    out.take(gate.on_batch(batch("s", [1, 2], "r"), ORIGINS["R"]))
    out.take(gate.on_idle())
    assert len(out.rows) == 2
    out.take(gate.on_batch(batch("ns", [1_999_999_999, 2_000_000_001], "s"), ORIGINS["S"]))
    assert [row[2] for row in out.late] == [0]
    assert ended(gate, out) == [("R", 0), ("R", 1), ("S", 1)]


def test_a_promise_before_the_unit_is_known_must_have_been_in_the_same_unit() -> None:
    gate, out = GateTask({"R": "ts", "S": "ts"}, 5), Collected()
    out.take(gate.on_batch(batch("s", [1, 2], "r"), ORIGINS["R"]))
    out.take(gate.on_watermark(Watermark(2000, "default", "s"), ORIGINS["S"]))
    out.take(gate.on_idle())
    with pytest.raises(SchemaError, match=r"stream 'S': its event times are timestamp\[ms\], and rows .* cast them to"):
        gate.on_batch(batch("ms", [2000], "s"), ORIGINS["S"])


def test_a_bound_before_the_unit_is_known_counts_in_its_stream_s_unit(gate: GateTask) -> None:
    out = Collected()
    out.take(gate.on_watermark(Watermark(None, "default", "r", bound=2), ORIGINS["R"]))
    out.take(gate.on_batch(batch("ms", [1500], "s"), ORIGINS["S"]))
    out.take(gate.on_batch(batch("s", [4, 2, 1], "r"), ORIGINS["R"]))
    assert [row[2] for row in out.late] == [2]
    assert ended(gate, out) == [("S", 0), ("R", 1), ("R", 0)]


def test_another_gate_goes_on_in_the_unit_of_the_one_before(gate: GateTask, tmp_path: object) -> None:
    out = Collected()
    out.take(gate.on_watermark(Watermark(None, "default", "t", bound=2), ORIGINS["S"]))
    out.take(gate.on_batch(batch("s", [1, 2, 3], "r"), ORIGINS["R"]))
    out.take(gate.on_batch(batch("ms", [2500], "s"), ORIGINS["S"]))
    state = gate.state()
    after = GateTask({"R": "ts", "S": "ts"}, 5, str(tmp_path))
    list(after.resume(state))
    out.take(after.on_batch(batch("s", [4], "r", 3), ORIGINS["R"]))
    assert ended(after, out) == [("R", 0), ("R", 1), ("S", 0), ("R", 2), ("R", 3)]


def test_times_that_the_finer_unit_cannot_hold_are_refused() -> None:
    far = 10**12
    for first, second in ((("R", "s", far), ("S", "ns", 5)), (("S", "ns", 5), ("R", "s", far))):
        gate = GateTask({"R": "ts", "S": "ts"}, 5)
        gate.on_batch(batch(first[1], [first[2]], "x"), ORIGINS[first[0]])
        with pytest.raises(SchemaError, match="stream 'R': its event times do not fit the unit of the other stream"):
            gate.on_batch(batch(second[1], [second[2]], "x"), ORIGINS[second[0]])
