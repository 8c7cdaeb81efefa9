"""Windows over event time: each window once, with exactly its rows, as soon as and not before it is complete."""

from __future__ import annotations

import datetime
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from topology import (
    DEFAULT_STREAM,
    Batch,
    Input,
    LocalRuntime,
    Origin,
    Sessions,
    Sliding,
    TaskContext,
    Time,
    TopologyBuilder,
    TopologyError,
    Tumbling,
    Windowing,
    bolt,
)

ORIGIN = Origin("in", 0, 0)
Row = tuple[Any, Time, int]
"""The key, the event time and the number of a row."""

Fired = tuple[Any, Any, Any, tuple[int, ...]]
"""A window that was given to the code: its key, start, end, and the numbers of its rows."""


def expected(windowing: Windowing, rows: list[Row]) -> list[Fired]:
    """The windows of rows, straight from their definition."""
    found: dict[tuple[Any, Time, Time], list[tuple[Time, int]]] = {}
    if isinstance(windowing, Sessions):
        for key in {key for key, _, _ in rows}:
            session: list[tuple[Time, int]] = []
            for time, number in sorted((time, number) for own, time, number in rows if own == key):
                if session and time - session[-1][0] >= windowing.gap:  # type: ignore[operator]
                    found[key, session[0][0], session[-1][0] + windowing.gap] = session  # type: ignore[operator]
                    session = []
                session.append((time, number))
            found[key, session[0][0], session[-1][0] + windowing.gap] = session  # type: ignore[operator]
    else:
        size: Any = windowing.size  # type: ignore[attr-defined]
        every: Any = getattr(windowing, "every", size)
        for key, time, number in rows:
            index = int(time // every) + 2
            while (index + 2) * every + size > time:
                end = (index + 1) * every if size == every else max(index * every + size, (index + 1) * every)
                if index * every <= time < end:
                    found.setdefault((key, index * every, end), []).append((time, number))
                index -= 1
    return [(key, start, end, tuple(number for _, number in sorted(rows))) for (key, start, end), rows in found.items()]


def batch(rows: list[Row]) -> Batch:
    columns = {"k": [row[0] for row in rows], "t": [row[1] for row in rows], "n": [row[2] for row in rows]}
    return Batch(DEFAULT_STREAM, pa.record_batch(columns))


def described(windowing: Windowing, key: str | tuple[str, ...] = "k") -> Any:
    @bolt(window=windowing, key=key)
    def members(window: Any, rows: pa.RecordBatch) -> Any:
        return {"k": [window.key], "s": [window.start], "e": [window.end], "n": [rows["n"].to_pylist()]}

    return members


def fired(emits: Any) -> list[Fired]:
    rows = [row for emit in emits if emit.message.stream == DEFAULT_STREAM for row in emit.message.rows.to_pylist()]
    return [(row["k"], row["s"], row["e"], tuple(row["n"])) for row in rows]


WINDOWINGS = [
    Tumbling("t", 5),
    Tumbling("t", 1),
    Sliding("t", 6, 2),
    Sliding("t", 7, 3),
    Sliding("t", 5, 5),
    Sessions("t", 3),
    Sessions("t", 1),
]
FLOATS = [Tumbling("t", 0.1), Sliding("t", 0.3, 0.1), Sessions("t", 0.25)]


@pytest.mark.parametrize("windowing", [*WINDOWINGS, *FLOATS], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_every_window_fires_once_with_its_rows_when_it_is_complete(windowing: Windowing, seed: int) -> None:
    chance = Random(seed)
    scale = 0.05 if windowing in FLOATS else 1
    lag = 4
    rows: list[Row] = []
    now = -10
    task = described(windowing).build(TaskContext("windows"))
    done: list[Fired] = []
    watermark: Time | None = None
    for _ in range(40):
        now += chance.choice([0, 0, 1, 1, 2, 9])
        fresh = [
            (chance.choice("ab"), (now - chance.randrange(lag)) * scale, len(rows) + each)
            for each in range(chance.randrange(5))
        ]
        rows += fresh
        if fresh:
            assert list(task.on_batch(batch(fresh), ORIGIN)) == []  # nothing is late, nothing fires by rows
        time = (now - lag) * scale
        if watermark is None or time > watermark:
            watermark = time
            for window in fired(task.on_event_time(time)):
                assert done == [] or done[-1][2] <= window[2]  # by their end
                assert window[2] <= time
                done.append(window)
        task.check_invariants()
        if chance.random() < 0.1:  # another task goes on from its snapshot, and hears the time again
            snapshot = task.snapshot()
            task = described(windowing).build(TaskContext("windows"))
            task.restore(snapshot)
            assert task.snapshot() == snapshot
            assert watermark is None or list(task.on_event_time(watermark)) == []
        complete = [window for window in expected(windowing, rows) if watermark is not None and window[2] <= watermark]
        assert Counter(done) == Counter(complete)
    done += fired(task.on_end())
    assert Counter(done) == Counter(expected(windowing, rows))


def late(emits: Any) -> list[int]:
    return [row["n"] for emit in emits if emit.message.stream == "late" for row in emit.message.rows.to_pylist()]


def test_rows_of_complete_windows_are_late() -> None:
    task = described(Sliding("t", 4, 2)).build(TaskContext("windows"))
    assert late(task.on_batch(batch([("a", 1, 0)]), ORIGIN)) == []
    assert fired(task.on_event_time(4)) == [("a", -2, 2, (0,)), ("a", 0, 4, (0,))]
    emits = list(task.on_batch(batch([("a", 1, 1), ("a", 2, 2), ("a", 3, 3)]), ORIGIN))
    assert late(emits) == [1]  # 2 and 3 are in [2, 6), which is not complete
    assert fired(task.on_end()) == [("a", 2, 6, (2, 3))]
    assert task.metrics()["late_rows"] == 1


def test_a_session_that_comes_after_its_end_is_late() -> None:
    task = described(Sessions("t", 3)).build(TaskContext("windows"))
    assert list(task.on_event_time(10)) == []
    assert late(task.on_batch(batch([("a", 7, 0), ("a", 8, 1)]), ORIGIN)) == [0]
    assert fired(task.on_event_time(11)) == [("a", 8, 11, (1,))]


def test_rows_without_a_time_are_late() -> None:
    task = described(Tumbling("t", 5)).build(TaskContext("windows"))
    rows = pa.record_batch({"k": ["a", "a"], "t": pa.array([None, 3], pa.int64()), "n": [0, 1]})
    assert late(task.on_batch(Batch(DEFAULT_STREAM, rows), ORIGIN)) == [0]
    assert fired(task.on_end()) == [("a", 0, 5, (1,))]


def test_without_a_key_a_window_has_all_rows() -> None:
    task = described(Tumbling("t", 5), key=()).build(TaskContext("windows"))
    list(task.on_batch(batch([("a", 4, 0), ("b", 3, 1)]), ORIGIN))
    assert fired(task.on_event_time(5)) == [(None, 0, 5, (1, 0))]  # in the order of event time


def test_a_watermark_far_ahead_costs_no_more_than_the_rows() -> None:
    task = described(Sliding("t", 6, 2)).build(TaskContext("windows"))
    list(task.on_batch(batch([("a", 0, 0), ("a", 10**15, 1)]), ORIGIN))
    assert len(fired(task.on_event_time(2 * 10**15))) == 6


def test_spans_are_in_the_unit_of_the_column() -> None:
    kind = pa.timestamp("ms")
    for size in (60_000, datetime.timedelta(minutes=1)):
        task = described(Tumbling("t", size)).build(TaskContext("windows"))
        times = pa.array([datetime.datetime(2024, 1, 1, 0, 0, 59), datetime.datetime(2024, 1, 1, 0, 1)], kind)
        rows = pa.record_batch({"k": ["a", "a"], "t": times, "n": [0, 1]})
        list(task.on_batch(Batch(DEFAULT_STREAM, rows), ORIGIN))
        one, two = fired(task.on_end())
        assert (one[1], one[3], two[1]) == (
            datetime.datetime(2024, 1, 1), (0,), datetime.datetime(2024, 1, 1, 0, 1)
        )  # fmt: skip


@pytest.mark.parametrize(
    ("windowing", "kind", "said"),
    [
        (Tumbling("t", datetime.timedelta(milliseconds=1)), pa.timestamp("s"), "no whole number of units"),
        (Tumbling("t", datetime.timedelta(days=1)), pa.int64(), "no whole number of units"),
        (Tumbling("t", 1.5), pa.int64(), "no whole number"),
        (Sliding("t", 2, 3), pa.int64(), "choose every <= size"),
        (Tumbling("t", 1), pa.string(), "must be a timestamp"),
        (Tumbling("missing", 1), pa.int64(), "^bolt 'windows': event-time column 'missing' is missing"),
    ],
)
def test_windows_that_do_not_fit_their_rows_are_refused(windowing: Windowing, kind: pa.DataType, said: str) -> None:
    task = described(windowing).build(TaskContext("windows"))
    with pytest.raises(ValueError, match=said):
        list(task.on_batch(Batch(DEFAULT_STREAM, pa.record_batch({"t": pa.array([], kind)})), ORIGIN))


@pytest.mark.parametrize("size", [0, -1, "1 min", True, datetime.timedelta(0)])
def test_spans_that_are_none_are_refused(size: Any) -> None:
    with pytest.raises(TopologyError, match=r"Tumbling\(size="):
        Tumbling("t", size)


def test_windows_fire_in_a_running_topology_before_its_end() -> None:
    @bolt(window=Tumbling("t", 10), key="k")
    def total(window: Any, rows: pa.RecordBatch) -> Any:
        return {"k": window.key, "end": window.end, "rows": rows.num_rows}

    @bolt(window=Tumbling("end", 20))
    def totals(window: Any, rows: pa.RecordBatch) -> Any:
        return {"end": window.end, "windows": rows.num_rows}

    builder = TopologyBuilder()
    builder.input("in", Input(event_time="t"))
    builder.bolt("total", total, parallelism=2).fields_grouping("in", "k")
    builder.bolt("totals", totals).global_grouping("total")
    builder.sink().global_grouping("totals")
    builder.sink("late", aside=True).global_grouping("total", "late")
    with LocalRuntime().launch(builder.build()) as running:
        running.send("in", {"k": ["a", "b", "a", "b"], "t": [1, 2, 11, 40]})
        assert next(running.results(timeout=60)).to_pylist() == [{"end": 20, "windows": 2}]
