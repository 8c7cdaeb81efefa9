"""The loop around a task, driven by hand: what it calls, in which order, and what goes downstream."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from topology import (
    DEFAULT_STREAM,
    Barrier,
    Batch,
    Bolt,
    Emit,
    End,
    Fields,
    Idle,
    Input,
    Origin,
    Punctuation,
    SpoutTask,
    Task,
    TaskContext,
    TopologyBuilder,
    UnknownStreamError,
    Watermark,
)
from topology.graph.components import PassOn
from topology.graph.messages import Message
from topology.tasks.inbox import Inbox
from topology.tasks.metrics import TaskCounters
from topology.tasks.task_loop import Outputs, TaskCore, run_spout


def batch(number: int, stream: str = DEFAULT_STREAM) -> Batch:
    return Batch(stream, pa.record_batch({"a": [number]}), first=number)


class Diary(Task):
    """Records every call and answers it from `answers`."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[Any] = []
        self.answers = answers
        self.blocking: set[int] = set()

    def _write(self, name: str, *details: Any) -> Any:
        self.calls.append((name, *details) if details else name)
        return self.answers.get(name, ())

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        return self._write("batch", origin.index, batch.first)

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        return self._write("punctuation", origin.index, punctuation.seq)

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        return self._write("watermark", origin.index, watermark.time)

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        return self._write("source end", origin.index, end.source)

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        return self._write("input end", origin.index)

    def on_barrier(self, barrier: Barrier) -> Iterable[Emit]:
        return self._write("barrier", barrier.checkpoint)

    def on_idle(self) -> Iterable[Emit]:
        return self._write("idle")

    def on_end(self) -> Iterable[Emit]:
        return self._write("end")

    def blocked(self, origin: Origin) -> bool:
        return origin.index in self.blocking


class Bench:
    """A loop on the test's own thread. Everything is queued beforehand, so it runs to its end without waiting."""

    def __init__(self, task: Task, *queues: list[Message]) -> None:
        self.inbox = Inbox(len(queues))
        self.sent: list[Message] = []
        self.counters = TaskCounters()
        for index, queue in enumerate(queues):
            for message in queue:
                self.inbox.put(index, message)
        origins = [Origin("producer", index, index) for index in range(len(queues))]
        self.core = TaskCore(task, origins, self.counters)

    def run(self) -> list[Message]:
        """Handle messages until every input has ended or nothing can be taken; then the task is idle once."""
        while not self.core.finished:
            found = self.inbox.poll(self.core.blocked)
            for emit in self.core.idle() if found is None else self.core.handle(*found):
                self.sent.append(emit.message)
            if found is None:
                break
        return self.sent


def test_every_kind_of_message_reaches_its_method_with_its_origin() -> None:
    diary = Diary()
    Bench(
        diary,
        [batch(1), Watermark(5), Punctuation(2), End(DEFAULT_STREAM, "s"), End()],
        [batch(7), End()],
    ).run()
    assert diary.calls == [
        ("batch", 0, 1),
        ("batch", 1, 7),
        ("watermark", 0, 5),
        ("input end", 1),
        ("punctuation", 0, 2),
        ("source end", 0, "s"),
        ("input end", 0),
        "end",
    ]


def test_the_end_follows_only_after_all_inputs_have_ended() -> None:
    diary = Diary(end=[Emit(batch(99))])
    sent = Bench(diary, [End()], [batch(1), batch(2), End()]).run()
    assert diary.calls[-2:] == [("input end", 1), "end"]
    assert sent == [batch(99), End()]


def test_the_end_of_a_source_is_not_the_end_of_the_input() -> None:
    diary = Diary()
    sent = Bench(diary, [End(DEFAULT_STREAM, "s"), batch(1), End()]).run()
    assert diary.calls == [("source end", 0, "s"), ("batch", 0, 1), ("input end", 0), "end"]
    assert sent == [Idle(), Watermark(None), End()]


def test_answers_are_sent_in_order_and_one_by_one() -> None:
    seen_when_made: list[int] = []

    class Slowly(PassOn):
        def on_batch(self, batch: Batch, origin: Origin) -> Iterator[Emit]:
            for _ in range(3):
                seen_when_made.append(len(bench.sent))
                yield Emit(batch)

    bench = Bench(Slowly(), [batch(1), End()])
    assert bench.run() == [batch(1)] * 3 + [End()]
    assert seen_when_made == [0, 1, 2]


def test_idle_is_called_when_nothing_waits() -> None:
    class EmitsWhenIdle(Diary):
        def on_idle(self) -> Iterable[Emit]:
            self.calls.append("idle")
            yield Emit(batch(50))

    diary = EmitsWhenIdle()
    bench = Bench(diary, [batch(1), batch(2)])
    assert bench.run() == [batch(50)]
    assert diary.calls == [("batch", 0, 1), ("batch", 0, 2), "idle"]


def test_an_input_that_reached_a_barrier_waits_for_the_others() -> None:
    diary = Diary(barrier=[Emit(batch(70))])
    sent = Bench(
        diary,
        [batch(1), Barrier(1), batch(2), End()],
        [batch(11), batch(12), batch(13), Barrier(1), batch(14), End()],
    ).run()
    before = diary.calls[: diary.calls.index(("barrier", 1))]
    after = diary.calls[diary.calls.index(("barrier", 1)) :]
    assert sorted(before) == [("batch", 0, 1), ("batch", 1, 11), ("batch", 1, 12), ("batch", 1, 13)]
    assert ("batch", 0, 2) in after
    assert ("batch", 1, 14) in after
    assert sent == [batch(70), Barrier(1), End()]


def test_an_ended_input_has_reached_every_barrier() -> None:
    diary = Diary()
    sent = Bench(diary, [End()], [Barrier(1), batch(1), Barrier(2), End()]).run()
    assert sent == [Barrier(1), Barrier(2), End()]
    assert [call for call in diary.calls if call[0] == "barrier"] == [("barrier", 1), ("barrier", 2)]


def test_a_barrier_completes_when_the_last_other_input_ends() -> None:
    diary = Diary()
    sent = Bench(diary, [Barrier(1), batch(1), End()], [batch(11), End()]).run()
    assert sent == [Barrier(1), End()]
    assert diary.calls.index(("barrier", 1)) < diary.calls.index(("batch", 0, 1))


def test_a_task_may_leave_an_input_alone_for_a_while() -> None:
    class RightFirst(Diary):
        def on_input_end(self, origin: Origin) -> Iterable[Emit]:
            self.blocking.discard(0)
            return super().on_input_end(origin)

    diary = RightFirst()
    diary.blocking.add(0)
    Bench(diary, [batch(1), End()], [batch(11), batch(12), End()]).run()
    assert diary.calls == [
        ("batch", 1, 11),
        ("batch", 1, 12),
        ("input end", 1),
        ("batch", 0, 1),
        ("input end", 0),
        "end",
    ]


def test_a_method_may_return_nothing() -> None:
    assert Bench(Diary(batch=None), [batch(1), End()]).run() == [End()]


def test_what_is_no_action_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a task yields Emit\(message\), not Batch"):
        Bench(Diary(batch=[batch(1)]), [batch(1), End()]).run()
    with pytest.raises(TypeError, match="not NoneType"):
        Bench(Diary(batch=[None, Emit(batch(1))]), [batch(1), End()]).run()


def test_an_error_of_the_task_passes_through() -> None:
    class Fails(PassOn):
        def on_batch(self, batch: Batch, origin: Origin) -> Iterator[Emit]:
            yield Emit(batch)
            raise ZeroDivisionError

    bench = Bench(Fails(), [batch(1), batch(2), End()])
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.sent == [batch(1)]


def test_rows_and_batches_are_counted() -> None:
    bench = Bench(PassOn(), [batch(1), Watermark(1), batch(2), End()])
    bench.run()
    counters = bench.counters
    assert (counters.batches_in, counters.rows_in) == (counters.batches_out, counters.rows_out) == (2, 2)
    assert counters.bytes_in == counters.bytes_out == 2 * batch(1).nbytes


class Letters(SpoutTask):
    def batches(self) -> Iterator[Emit]:
        yield Emit(batch(1))
        yield Emit(Watermark(3))
        yield Emit(batch(2))


def test_a_spout_sends_all_it_makes_and_then_the_end() -> None:
    sent: list[Message] = []
    counters = TaskCounters()
    run_spout(Letters(), lambda emit: sent.append(emit.message), sent.append, counters)
    assert sent == [batch(1), Watermark(3), batch(2), End()]
    assert counters.batches_out == 2


class Splitter(Bolt):
    @property
    def outputs(self) -> dict[str, pa.Schema | None]:
        return {"even": None, "odd": None}

    def build(self, context: TaskContext) -> Task:
        return PassOn()


def outputs() -> tuple[Outputs, dict[tuple[str, int], list[Message]]]:
    builder = TopologyBuilder()
    builder.input("in", Input())
    builder.bolt("split", Splitter()).shuffle_grouping("in")
    builder.bolt("evens", Splitter(), parallelism=2).grouping("split", Fields(("a",)), "even")
    builder.bolt("chosen", Splitter(), parallelism=3).direct_grouping("split", "odd")
    builder.bolt("both", Splitter()).shuffle_grouping("split", "even").shuffle_grouping("split", "odd")
    topology = builder.build()
    got: dict[tuple[str, int], list[Message]] = {
        (consumer, task): []
        for consumer in topology.consumers("split")
        for task in range(topology.node(consumer).parallelism)
    }
    return Outputs(topology, "split", 0, {key: queue.append for key, queue in got.items()}), got


def test_a_batch_goes_along_the_edges_of_its_stream_only() -> None:
    out, got = outputs()
    out.send(Emit(batch(1, "odd"), to=2))
    assert {key: len(queue) for key, queue in got.items() if queue} == {("chosen", 2): 1, ("both", 0): 1}
    out.send(Emit(Batch("even", pa.record_batch({"a": range(20)}))))
    assert got["evens", 0]
    assert got["evens", 1]
    assert len(got["both", 0]) == 2


def test_control_messages_go_to_everyone_downstream_once() -> None:
    out, got = outputs()
    out.send(Emit(Punctuation(3)))
    assert all(queue == [Punctuation(3)] for queue in got.values())


def test_sending_on_a_stream_that_was_not_declared_is_an_error() -> None:
    out, got = outputs()
    with pytest.raises(UnknownStreamError, match=r"'split' emits on stream 'default'.*declared: 'even', 'odd'"):
        out.send(Emit(batch(1)))
    assert not any(got.values())
