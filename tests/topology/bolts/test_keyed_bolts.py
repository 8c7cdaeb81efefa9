"""Bolts with state by key, timers and ticks: what they remember, when they are called, and how they go on."""

from __future__ import annotations

import threading
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from topology import (
    DEFAULT_STREAM,
    Batch,
    GroupingError,
    Input,
    Key,
    LocalRuntime,
    NoSnapshotError,
    Origin,
    Task,
    TaskContext,
    TopologyBuilder,
    TopologyError,
    bolt,
)

ORIGIN = Origin("in", 0, 0)


def batch(**columns: list[Any]) -> Batch:
    return Batch(DEFAULT_STREAM, pa.record_batch(columns))


def rows(emits: Any) -> list[dict[str, Any]]:
    return [row for emit in emits for row in emit.message.rows.to_pylist()]


def build(described: Any) -> Task:
    return described.build(TaskContext("counting"))


@bolt(key=["a", "b"])
def count(key: Key, rows: pa.RecordBatch) -> Any:
    """Count the rows of each key so far."""
    key.state["n"] = key.state.get("n", 0) + rows.num_rows
    return {"a": [key.value[0]], "b": [key.value[1]], "n": [key.state["n"]]}


def test_each_key_has_a_state_of_its_own_whatever_its_value() -> None:
    chance = Random(3)
    task = build(count)
    expected: Counter[Any] = Counter()
    for _ in range(30):
        size = chance.randrange(1, 12)
        a = [chance.choice([1.5, None, float("nan")]) for _ in range(size)]
        b = [chance.choice(["x", "y", None]) for _ in range(size)]
        keys = [(str(one), other) for one, other in zip(a, b, strict=True)]
        expected.update(keys)
        columns = {"a": pa.array(a, pa.float64(), from_pandas=False), "b": pa.array(b, pa.string())}
        found = rows(task.on_batch(Batch(DEFAULT_STREAM, pa.record_batch(columns)), ORIGIN))
        assert [(str(row["a"]), row["b"]) for row in found] == list(dict.fromkeys(keys))  # in order of appearance
        assert [row["n"] for row in found] == [expected[key] for key in dict.fromkeys(keys)]
        task.check_invariants()
        if chance.random() < 0.3:
            other = build(count)
            other.restore(task.snapshot())
            assert other.snapshot() == task.snapshot()
            task = other


def test_an_empty_state_is_forgotten() -> None:
    @bolt(key="a")
    def pair(key: Key, rows: pa.RecordBatch) -> Any:
        if key.state:
            key.state.clear()
            return {"a": key.value}
        key.state["seen"] = True
        return None

    task = build(pair)
    assert [len(rows(task.on_batch(batch(a=[1]), ORIGIN))) for _ in range(4)] == [0, 1, 0, 1]
    task.check_invariants()
    assert b'"keys":{}' in task.snapshot()


def test_a_key_that_rows_do_not_have_is_named() -> None:
    with pytest.raises(GroupingError, match="bolt 'counting' has key 'b', but its rows have only: a"):
        list(build(count).on_batch(batch(a=[1]), ORIGIN))


@bolt(key="user", tick=0.01)
class Visits:
    """Emits a user when nothing was heard of them for 10 units of event time, or for 5 seconds."""

    def execute(self, key: Key, rows: pa.RecordBatch) -> None:
        """Remember the last time, and wait."""
        key.state["last"] = rows["t"][-1].as_py()
        key.call_at(key.state["last"] + 10)
        key.call_after(5)

    def on_timer(self, key: Key, time: int) -> Any:
        """Say so, if it was the last time."""
        return {"user": key.value, "why": f"time {time}"} if key.state.get("last") == time - 10 else None

    def on_timeout(self, key: Key) -> Any:
        """Say so, and forget."""
        key.state.clear()
        return {"user": key.value, "why": "silence"}


def test_timers_are_called_in_the_order_of_their_times_and_survive() -> None:
    task = build(Visits)
    list(task.on_batch(batch(user=["a", "b", "a"], t=[1, 2, 3]), ORIGIN))
    list(task.on_batch(batch(user=["b"], t=[2]), ORIGIN))
    assert rows(task.on_event_time(11)) == []
    other = build(Visits)
    other.restore(task.snapshot())
    other.check_invariants()
    for each in (task, other):
        assert rows(each.on_event_time(20)) == [{"user": "b", "why": "time 12"}, {"user": "a", "why": "time 13"}]
        assert rows(each.on_event_time(30)) == []


def test_a_timeout_runs_from_the_last_tick_and_a_later_one_replaces_it() -> None:
    task = build(Visits)
    list(task.on_batch(batch(user=["a"], t=[1]), ORIGIN))  # before the first tick: from that one on
    assert rows(task.on_tick(100.0)) == []
    list(task.on_batch(batch(user=["b"], t=[1]), ORIGIN))
    assert rows(task.on_tick(103.0)) == []
    list(task.on_batch(batch(user=["b"], t=[2]), ORIGIN))
    other = build(Visits)
    other.restore(task.snapshot())
    for each in (task, other):
        assert rows(each.on_tick(105.0)) == [{"user": "a", "why": "silence"}]
        assert rows(each.on_tick(107.9)) == []
        assert rows(each.on_tick(108.0)) == [{"user": "b", "why": "silence"}]


def test_timers_need_their_methods_and_ticks() -> None:
    @bolt(key="a", tick=1)
    def function(key: Key, rows: pa.RecordBatch) -> None:
        key.call_at(5)

    class Timed:
        def execute(self, key: Key, rows: pa.RecordBatch) -> None:
            key.call_after(5)

        def on_timeout(self, key: Key) -> None:
            """Do nothing."""

    with pytest.raises(TopologyError, match="'counting' uses call_at: make it a class with the method on_timer"):
        list(build(function).on_batch(batch(a=[1]), ORIGIN))
    with pytest.raises(TopologyError, match=r"'counting' uses call_after: give it ticks"):
        list(build(bolt(key="a")(Timed)).on_batch(batch(a=[1]), ORIGIN))


@bolt(tick=0.005)
class Total:
    """A class with every method that a bolt can have."""

    def __init__(self, start: int = 0) -> None:
        self.total = start
        self.times: list[int] = []

    def execute(self, rows: pa.RecordBatch) -> None:
        """Add the rows."""
        self.total += sum(rows["x"].to_pylist())

    def on_event_time(self, time: int) -> Any:
        """Emit the total so far."""
        self.times.append(time)
        return {"when": f"time {time}", "total": self.total}

    def tick(self, seconds: float) -> Any:
        """Emit the total so far."""
        return {"when": "tick", "total": self.total}

    def on_end(self) -> Any:
        """Emit the total."""
        return {"when": "end", "total": self.total}

    def metrics(self) -> dict[str, float]:
        """Show the total."""
        return {"total": float(self.total)}


def test_the_attributes_of_an_object_are_its_state() -> None:
    task = build(Total(100))
    list(task.on_batch(batch(x=[1, 2]), ORIGIN))
    assert rows(task.on_event_time(7)) == [{"when": "time 7", "total": 103}]
    other = build(Total)
    other.restore(task.snapshot())
    assert other.metrics() == {"total": 103}
    assert rows(other.on_end()) == [{"when": "end", "total": 103}]
    assert other.snapshot() != task.snapshot()  # it has sent one row more


def test_state_that_is_not_plain_is_refused_by_name() -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def execute(self, rows: pa.RecordBatch) -> None:
            """Do nothing."""

    with pytest.raises(NoSnapshotError, match=r"the state of bolt 'counting' holds a lock.*snapshot and restore"):
        build(bolt(Locked)).snapshot()

    class Own(Locked):
        def snapshot(self) -> bytes:
            return b"own"

        def restore(self, snapshot: bytes) -> None:
            self.restored = snapshot

    task = build(bolt(Own))
    task.restore(task.snapshot())
    assert task.code.restored == b"own"  # type: ignore[attr-defined]


def test_ticks_come_while_no_rows_do() -> None:
    builder = TopologyBuilder()
    builder.input("in", Input(event_time="t"))
    builder.bolt("total", Total(1)).shuffle_grouping("in")
    builder.sink().global_grouping("total")
    with LocalRuntime().launch(builder.build()) as running:
        results = running.results(timeout=60)
        assert [next(results)["when"].to_pylist() for _ in range(3)] == [["tick"]] * 3
        running.send("in", {"x": [5], "t": [1]})
        running.finish()
        seen = [row for found in results for row in found.to_pylist()]
    assert seen[-1] == {"when": "end", "total": 6}
    assert {"when": "time 1", "total": 6} in seen


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_local_function_runs_in_a_topology(parallelism: int) -> None:
    seen = 2  # captured by value

    builder = TopologyBuilder()
    builder.input("in")
    builder.bolt("times", bolt(lambda rows: {"a": [seen * a for a in rows["a"].to_pylist()]})).shuffle_grouping("in")
    builder.bolt(
        "count", bolt(key="a")(lambda key, rows: {"a": key.value, "n": rows.num_rows}), parallelism
    ).fields_grouping("times", "a")
    builder.sink().global_grouping("count")
    with LocalRuntime().launch(builder.build()) as running:
        running.send("in", {"a": [1, 1, 2]})
        running.finish()
        found = [row for rows in running.results(timeout=60) for row in rows.to_pylist()]
    assert sorted(found, key=lambda row: row["a"]) == [{"a": 2, "n": 2}, {"a": 4, "n": 1}]
