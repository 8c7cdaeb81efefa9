"""Bolts with clock timers keep their state: ticks are in the log, and a task hears of the same ones again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.topology.waiting import LONG
from topology import LocalRuntime, TopologyBuilder, bolt
from topology.graph.messages import StepEnd
from topology.steps.sequencer import SequencerTask
from topology.steps.ticks import TicksDue


@bolt(key="user", tick=0.02)
class Quiet:
    """Says when a user has been quiet for a while, and how often it had come."""

    def execute(self, key: Any, rows: pa.RecordBatch) -> None:
        key.state["rows"] = key.state.get("rows", 0) + rows.num_rows
        key.call_after(0.05)

    def on_timeout(self, key: Any) -> dict[str, Any]:
        rows = key.state.pop("rows")
        return {"user": key.value, "rows": rows}


def test_a_timer_that_is_set_in_one_life_fires_in_another(tmp_path: Path) -> None:
    builder = TopologyBuilder("quiet")
    builder.input("clicks")
    builder.bolt("quiet", Quiet).fields_grouping("clicks", "user")
    builder.sink().global_grouping("quiet")
    topology, runtime = builder.build(), LocalRuntime(state=tmp_path)
    found: dict[int, tuple[str, int]] = {}
    for life, users in enumerate((["a", "b", "a"], ["c"], [])):
        with runtime.launch(topology) as running:
            if users:
                running.send("clicks", pa.table({"user": users}))
            end = 3 if life == 2 else -1
            for first, batch in running.results(numbered=True, timeout=LONG if life == 2 else 0.1):
                for number, row in enumerate(batch.to_pylist(), first):
                    assert found.setdefault(number, (row["user"], row["rows"])) == (row["user"], row["rows"])
                if len(found) == end:
                    break
    assert sorted(found.values()) == [("a", 2), ("b", 1), ("c", 1)]


def test_the_plan_says_how_often_the_sequencer_ticks(tmp_path: Path) -> None:
    builder = TopologyBuilder("quiet")
    builder.input("clicks")
    builder.bolt("quiet", Quiet).fields_grouping("clicks", "user")
    builder.sink().global_grouping("quiet")
    with LocalRuntime(state=tmp_path).launch(builder.build()) as running:
        assert "a tick every 0.02 s" in str(running.topology.plan())


def test_a_task_is_due_as_often_as_it_asks_in_the_mean() -> None:
    ticks = TicksDue(2.5, every=1.0)
    assert [clock for clock in range(11) if ticks.is_due(float(clock))] == [0, 2, 5, 7, 10]
    again = TicksDue(2.5, every=1.0)
    again.resume(ticks.state())
    assert not again.is_due(11.0)
    assert again.is_due(100.0)  # it had slept: one call, not all that it has missed
    assert not again.is_due(101.0)


def test_the_time_of_ticks_never_goes_back() -> None:
    task = SequencerTask({"a": None})

    def tick(task: SequencerTask, seconds: float) -> float | None:
        (emit,) = task.on_tick(seconds)
        assert isinstance(emit.message, StepEnd)
        return emit.message.clock

    assert [tick(task, 5.0), tick(task, 3.0)] == [5.0, 5.0]
    later = SequencerTask({"a": None})
    list(later.resume(task.state()))
    assert tick(later, 4.0) == 5.0
    assert later.decision.choice == {"clock": 5.0}
