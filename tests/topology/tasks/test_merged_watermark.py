"""The watermark of a task: the least that its active inputs promise, never earlier than a row that follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import (
    DEFAULT_STREAM,
    All,
    Batch,
    Bolt,
    Emit,
    End,
    Fields,
    Global,
    Grouping,
    Idle,
    Input,
    LocalRuntime,
    MapBatches,
    Message,
    Origin,
    PartialKey,
    Punctuation,
    Shuffle,
    Spout,
    SpoutTask,
    Task,
    TaskContext,
    Time,
    TopologyBuilder,
    TopologyError,
    Watermark,
)
from topology.graph.components import PassOn
from topology.tasks.merged_watermark import MergedWatermark
from topology.tasks.metrics import TaskCounters
from topology.tasks.task_loop import Outputs, TaskCore

SOURCES = ("", "a", "b")


def rows(*times: int, source: str = "") -> Batch:
    return Batch(DEFAULT_STREAM, pa.record_batch({"t": list(times)}), 0, source, (min(times), max(times)))


class Written(Task):
    """Writes down every call that concerns time, and passes rows on."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self.calls.append(("rows", batch.rows["t"].to_pylist()))
        return (Emit(batch),)

    def on_event_time(self, time: Time) -> Iterable[Emit]:
        self.calls.append(("time", time))
        return (Emit(Punctuation(int(time))),)


def run(task: Task, lags: list[int | None], *messages: tuple[int, Message]) -> list[Message]:
    origins = [Origin("producer", index, index, lag) for index, lag in enumerate(lags)]
    core = TaskCore(task, origins, TaskCounters())
    return [emit.message for index, message in messages for emit in core.handle(index, message)]


def times(messages: list[Message]) -> list[Message]:
    return [message for message in messages if isinstance(message, Watermark | Idle)]


def test_the_least_promise_counts_and_goes_on_behind_the_answers() -> None:
    task = Written()
    sent = run(task, [None, None], (0, Watermark(5)), (1, Watermark(3)), (1, Watermark(4)), (1, Watermark(9)))
    assert task.calls == [("time", 3), ("time", 4), ("time", 5)]
    assert sent == [Punctuation(3), Watermark(3), Punctuation(4), Watermark(4), Punctuation(5), Watermark(5)]


def test_batches_of_an_input_with_event_time_promise_for_their_source() -> None:
    task = Written()
    known = [(0, Watermark(None, DEFAULT_STREAM, name)) for name in "ab"]
    sent = run(task, [0], *known, (0, rows(1, 5, source="a")), (0, rows(3, source="b")), (0, rows(4, source="b")))
    assert task.calls == [("rows", [1, 5]), ("rows", [3]), ("time", 3), ("rows", [4]), ("time", 4)]
    assert times(sent) == [Watermark(3), Watermark(4)]


def test_batches_of_other_components_promise_nothing() -> None:
    assert times(run(Written(), [None], (0, rows(1, 5)), (0, End()))) == []


def test_a_source_may_be_out_of_order_within_its_lag() -> None:
    assert times(run(Written(), [2], (0, rows(5, 4, source="a")), (0, rows(3, source="a")))) == [Watermark(3)]


def test_what_ends_or_falls_silent_holds_nothing_back() -> None:
    sent = run(
        Written(), [None, 0, None],
        (0, Watermark(8)), (1, rows(2, source="a")), (1, rows(6, source="b")), (2, End()),
        (1, Idle(DEFAULT_STREAM, "a")), (1, End(DEFAULT_STREAM, "b")), (1, rows(7, source="a")),
    )  # fmt: skip
    assert times(sent) == [Watermark(2), Watermark(6), Watermark(8)]


def test_when_all_are_silent_time_rises_to_the_greatest_promise_and_silence_goes_on() -> None:
    sent = run(
        Written(), [None, None],
        (0, Watermark(8)), (1, Watermark(3)), (0, Idle()), (1, Idle()), (0, rows(9)), (0, Idle()), (1, Watermark(10)),
    )  # fmt: skip
    assert times(sent) == [Watermark(3), Watermark(8), Idle(), Watermark(None), Idle(), Watermark(10)]


def test_a_task_may_do_it_all_itself() -> None:
    assert run(PassOn(), [0], (0, Watermark(1, "s", "a")), (0, Watermark(2))) == [Watermark(1, "s", "a"), Watermark(2)]


@dataclass
class Model:
    """All that was said by one input, looked at as a whole each time."""

    lag: int | None
    said: list[Message]

    def of(self, source: str) -> list[Message]:
        batches = self.lag is not None
        return [
            message
            for message in self.said
            if getattr(message, "source", None) == source and (batches or not isinstance(message, Batch))
        ]

    def promises(self, source: str) -> list[Time]:
        found: list[Time] = []
        for message in self.of(source):
            if isinstance(message, Watermark) and message.time is not None:
                found.append(message.time)
            if isinstance(message, Batch) and message.times is not None and self.lag is not None:
                found.append(message.times[1] - self.lag)
        return found

    def state(self) -> tuple[str, Time | None]:
        """Whether it is active, idle or ended, and what it promises."""
        if any(isinstance(message, End) and not message.source for message in self.said):
            return "ended", None
        known = {name: self.of(name) for name in SOURCES[1:] if self.of(name)}
        active = {name: said for name, said in known.items() if not isinstance(said[-1], Idle | End)}
        spoke = [m for m in self.said if isinstance(m, Batch | Watermark) or (isinstance(m, Idle) and not m.source)]
        silent = bool(spoke) and isinstance(spoke[-1], Idle)
        if silent or (known and not active):
            return "idle", None
        whole = self.promises("")
        least = [max(self.promises(name), default=None) for name in active]
        if least and None not in least:
            whole = [*whole, min(time for time in least if time is not None)]
        return "active", max(whole, default=None)


messages = st.one_of(
    st.builds(Watermark, st.one_of(st.none(), st.integers(0, 9)), st.just(""), st.sampled_from(SOURCES)),
    st.builds(lambda time, source: rows(time, source=source), st.integers(0, 9), st.sampled_from(SOURCES[1:])),
    st.builds(Idle, st.just(""), st.sampled_from(SOURCES)),
    st.builds(End, st.just(""), st.sampled_from(SOURCES[1:])),
    st.just(End()),
    st.just(Punctuation(1)),
)


@given(
    st.lists(st.sampled_from([None, 0, 2]), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), messages), max_size=25),
)
def test_it_is_the_least_promise_of_the_active_inputs(
    lags: list[int | None], course: list[tuple[int, Message]]
) -> None:
    merged = MergedWatermark([Origin("p", index, index, lag) for index, lag in enumerate(lags)])
    models = [Model(lag, []) for lag in lags]
    expected: Time | None = None
    for index, message in course:
        model = models[index % len(lags)]
        if model.state()[0] == "ended" or ended_before(model, message):
            continue
        if isinstance(message, Batch) and model.lag is None:
            message = rows(*message.rows["t"].to_pylist())  # rows of a bolt belong to no source
        model.said.append(message)
        before = expected
        states = [each.state() for each in models]
        active = [promise for state, promise in states if state == "active"]
        if not active:
            active = [max((t for each in models for name in SOURCES for t in each.promises(name)), default=None)]
        if None not in active:
            expected = max(time for time in (expected, min(active)) if time is not None)  # type: ignore[type-var]
        assert merged.take(index % len(lags), message) == (expected != before)
        assert merged.time == expected
        assert merged.is_idle == (
            all(state != "active" for state, _ in states) and any(state == "idle" for state, _ in states)
        )


def ended_before(model: Model, message: Message) -> bool:
    """Whether the source of a message has ended: it sends nothing more."""
    source = getattr(message, "source", "")
    return bool(source) and any(isinstance(said, End) and said.source == source for said in model.said)


@dataclass(frozen=True)
class Watching(Bolt):
    """Fails if a row is earlier than the time that it was told; emits the times."""

    def build(self, context: TaskContext) -> Task:
        return WatchingTask()


class WatchingTask(Task):
    def __init__(self) -> None:
        self.time = -10

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        assert min(batch.rows["t"].to_pylist(), default=self.time) >= self.time
        return ()

    def on_event_time(self, time: Time) -> Iterable[Emit]:
        assert time > self.time
        self.time = int(time)
        yield Emit(Batch(DEFAULT_STREAM, pa.record_batch({"time": [self.time]})))


@dataclass(frozen=True)
class Counting(Spout):
    """Rows with times 0, 1, 2, ..., each followed by its watermark."""

    def build(self, context: TaskContext) -> SpoutTask:
        return CountingTask()


class CountingTask(SpoutTask):
    def batches(self) -> Iterator[Emit]:
        for time in range(30):
            yield Emit(Batch(DEFAULT_STREAM, pa.record_batch({"t": [time]})))
            yield Emit(Watermark(time))


@pytest.mark.parametrize("seed", range(5))
def test_no_row_is_earlier_than_the_time_that_a_task_was_told(seed: int) -> None:
    chance = Random(seed)
    builder = TopologyBuilder()
    builder.input("in", Input(event_time="t", out_of_order=3))
    builder.input("other", Input(event_time="t"))
    builder.spout("numbers", Counting())
    builder.bolt("map", MapBatches(lambda batch: batch.slice(1)), parallelism=2).shuffle_grouping("in")
    watching = builder.bolt("watch", Watching(), parallelism=2).fields_grouping("map", "t")
    watching.fields_grouping("other", "t").shuffle_grouping("numbers")
    builder.sink().global_grouping("watch")
    with LocalRuntime().launch(builder.build()) as running:
        sources = [("in", "a"), ("in", "b"), ("other", "c"), ("other", "d")]
        for stream, source in sources:
            running.open(stream, source)
        times = dict.fromkeys(sources, 0)
        for _ in range(60):
            stream, source = chance.choice(sources)
            times[stream, source] += chance.randrange(3)
            back = chance.randrange(4) if stream == "in" else 0
            first = times[stream, source] - back
            running.send(stream, pa.table({"t": [max(0, first), times[stream, source]]}), source=source)
        running.finish()
        told = [batch["time"][0].as_py() for batch in running.results(timeout=60)]
    late = max(times["in", "a"], times["in", "b"]) - 3
    assert max(told) == max(29, late, times["other", "c"], times["other", "d"])


@pytest.mark.parametrize("grouping", [Shuffle(), Fields(("t",)), PartialKey(("t",)), Global(), All()], ids=str)
def test_tasks_that_get_no_rows_hear_the_promise_of_an_input(grouping: Grouping) -> None:
    builder = TopologyBuilder()
    builder.input("in", Input(event_time="t", out_of_order=2))
    builder.bolt("watch", Watching(), parallelism=3).grouping("in", grouping)
    topology = builder.build()
    got: dict[tuple[str, int], list[Message]] = {("watch", task): [] for task in range(3)}
    outputs = Outputs(topology, "in", 0, {name: queue.append for name, queue in got.items()})
    outputs.send(Emit(rows(4, 7, source="a")))
    for queue in got.values():
        merged = MergedWatermark(topology.origins("watch"))
        assert [merged.take(0, message) for message in queue] == [True]
        assert merged.time == 5


def test_a_bound_without_an_event_time_is_refused() -> None:
    with pytest.raises(TopologyError, match="event_time="):
        Input(out_of_order=3)
    with pytest.raises(TopologyError, match="0 or more"):
        Input(event_time="t", out_of_order=-1)
