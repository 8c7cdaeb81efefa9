"""The embedded runtime: whole topologies in this process, with all that can go wrong in them."""

import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    Emit,
    Input,
    InputError,
    LocalRuntime,
    MapBatches,
    Origin,
    OutOfOrderError,
    RunningTopology,
    SchemaError,
    SourceEndedError,
    Spout,
    SpoutTask,
    StoppedError,
    Task,
    TaskContext,
    TaskError,
    Topology,
    TopologyBuilder,
    TopologyError,
    UnknownInputError,
)
from topology.local import runtime as local_runtime

LONG = 20.0
SHORT = 0.05


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread.name for thread in threading.enumerate() if thread not in before and thread.is_alive()]
    assert left == []


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return numbers(*(2 * value for value in rows.column("n").to_pylist()))


def pipeline(bolt: Bolt | None = None, parallelism: int = 1, source: Input | None = None) -> Topology:
    """in -> bolt -> results, rows divided by `n`."""
    builder = TopologyBuilder("pipeline")
    builder.input("in", source or Input())
    builder.bolt("bolt", bolt or MapBatches(doubled), parallelism).fields_grouping("in", "n")
    builder.sink().shuffle_grouping("bolt")
    return builder.build()


def read(running: RunningTopology, sink: str | None = None) -> list[int]:
    return [value for rows in running.results(sink) for value in rows.column("n").to_pylist()]


def send_each(running: RunningTopology, values: Iterable[int], finish: bool = False) -> None:
    for value in values:
        running.send("in", numbers(value))
    if finish:
        running.finish()


# what flows


def test_rows_go_in_and_results_come_out() -> None:
    with LocalRuntime().launch(pipeline()) as running:
        running.send("in", numbers(1, 2, 3))
        running.send("in", pa.table({"n": [4, 5]}))
        running.finish()
        assert read(running) == [2, 4, 6, 8, 10]


def test_results_can_be_read_while_data_is_still_moving() -> None:
    with LocalRuntime().launch(pipeline()) as running:
        results = running.results()
        for value in range(5):
            running.send("in", numbers(value))
            assert next(results) == numbers(2 * value)
        running.finish()
        assert list(results) == []


def test_results_with_a_timeout_stop_and_go_on() -> None:
    with LocalRuntime().launch(pipeline()) as running:
        assert list(running.results(timeout=SHORT)) == []
        running.send("in", numbers(1))
        assert next(running.results(timeout=LONG)) == numbers(2)
        assert list(running.results(timeout=SHORT)) == []
        running.send("in", numbers(2))
        running.finish()
        assert list(running.results(timeout=LONG)) == [numbers(4)]
        assert list(running.results()) == []


def test_the_same_topology_runs_many_times() -> None:
    topology = pipeline()
    for _ in range(5):
        with LocalRuntime().launch(topology) as running:
            running.send("in", numbers(1))
            running.finish()
            assert read(running) == [2]


@dataclass(frozen=True)
class Range(Spout):
    count: int

    def build(self, context: TaskContext) -> SpoutTask:
        return RangeTask(self.count, context)


class RangeTask(SpoutTask):
    def __init__(self, count: int, context: TaskContext) -> None:
        self._mine = range(context.task, count, context.parallelism)

    def batches(self) -> Iterator[Emit]:
        for value in self._mine:
            yield Emit(Batch(DEFAULT_STREAM, numbers(value)))


def test_spouts_end_by_themselves() -> None:
    builder = TopologyBuilder()
    builder.spout("range", Range(20), parallelism=3)
    builder.bolt("double", MapBatches(doubled), parallelism=2).shuffle_grouping("range")
    builder.sink().shuffle_grouping("double")
    with LocalRuntime().launch(builder.build()) as running:
        assert sorted(read(running)) == list(range(0, 40, 2))


def test_an_endless_spout_can_be_stopped() -> None:
    builder = TopologyBuilder()
    builder.spout("range", Range(10**12))
    builder.sink().shuffle_grouping("range")
    with LocalRuntime(edge_bytes=1_000).launch(builder.build()) as running:
        assert next(running.results()) == numbers(0)


def test_several_sinks_are_read_by_name() -> None:
    builder = TopologyBuilder("forked")
    builder.input("in")
    builder.bolt("double", MapBatches(doubled)).shuffle_grouping("in")
    builder.sink("plain").shuffle_grouping("in")
    builder.sink("double results").shuffle_grouping("double")
    with LocalRuntime().launch(builder.build()) as running:
        running.send("in", numbers(1, 2))
        running.finish()
        with pytest.raises(TopologyError, match="'forked': name the sink to read, one of: plain, double results"):
            running.results()
        with pytest.raises(TopologyError, match="name the sink"):
            running.results("other")
        assert read(running, "double results") == [2, 4]
        assert read(running, "plain") == [1, 2]


def test_rows_of_one_source_stay_in_order_through_parallel_tasks_of_equal_keys() -> None:
    with LocalRuntime().launch(pipeline(MapBatches(same), parallelism=3)) as running:
        for _ in range(50):
            running.send("in", numbers(1, 2, 3))
        running.finish()
        got = read(running)
    assert sorted(got) == sorted([1, 2, 3] * 50)


def same(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


# what is refused


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda running: running.send("out", numbers(1)), UnknownInputError),
        (lambda running: running.send("bolt", numbers(1)), UnknownInputError),
        (lambda running: running.open("out", "a"), UnknownInputError),
        (lambda running: running.finish("out"), UnknownInputError),
        (lambda running: running.pin("out", numbers().schema), UnknownInputError),
        (lambda running: running.commit("out", "a", "1", 0), UnknownInputError),
        (lambda running: running.finish(source="a"), InputError),
        (lambda running: running.finish("in", "unknown"), InputError),
        (lambda running: running.send("in", [1, 2, 3]), InputError),
        (lambda running: running.send("in", pa.record_batch({"m": [1]})), SchemaError),
        (lambda running: running.send("in", pa.table({"n": pa.array([], pa.string())})), SchemaError),
        (lambda running: running.pin("in", pa.schema([("m", pa.int64())])), SchemaError),
        (lambda running: running.send("in", numbers(9, 1)), OutOfOrderError),
        (lambda running: running.send("in", numbers(1)), OutOfOrderError),
        (lambda running: running.send("in", numbers(100), source="ended"), SourceEndedError),
    ],
    ids=lambda case: case.__name__ if isinstance(case, type) else "",
)
def test_what_does_not_fit_is_refused_and_the_topology_still_works(
    call: Callable[[RunningTopology], object], kind: type[Exception]
) -> None:
    with LocalRuntime().launch(pipeline(source=Input(event_time="n"))) as running:
        running.send("in", numbers(5))
        running.send("in", numbers(1), source="ended")
        running.finish("in", "ended")
        for _ in range(2):
            with pytest.raises(kind):
                call(running)
        running.send("in", numbers(6))
        running.finish()
        assert read(running) == [10, 2, 12]


def test_a_table_is_taken_whole_or_not_at_all() -> None:
    sorted_first_chunk = pa.Table.from_batches([numbers(1, 2), numbers(1)])
    with LocalRuntime().launch(pipeline(source=Input(event_time="n"))) as running:
        with pytest.raises(OutOfOrderError, match=r"row 2 of the table \(2 is followed by 1\)"):
            running.send("in", sorted_first_chunk)
        running.send("in", numbers(0))
        running.finish()
        assert read(running) == [0]


def test_an_empty_table_makes_its_source_known() -> None:
    with LocalRuntime().launch(pipeline()) as running:
        running.send("in", numbers().schema.empty_table(), source="quiet")
        running.finish("in", "quiet")
        running.finish()
        assert read(running) == []


def test_nothing_is_taken_after_finish() -> None:
    with LocalRuntime().launch(pipeline()) as running:
        running.finish()
        running.finish()
        running.finish("in")
        with pytest.raises(SourceEndedError, match="stream 'in' has been finished"):
            running.send("in", numbers(1))
        assert read(running) == []


def test_finishing_one_stream_leaves_the_others_open() -> None:
    builder = TopologyBuilder()
    builder.input("a")
    builder.input("b")
    builder.sink().shuffle_grouping("a").shuffle_grouping("b")
    with LocalRuntime().launch(builder.build()) as running:
        running.finish("a")
        running.send("b", numbers(1))
        assert next(running.results()) == numbers(1)
        assert list(running.results(timeout=SHORT)) == []
        running.finish("b")
        assert list(running.results()) == []


def test_nothing_is_taken_or_given_after_stop() -> None:
    running = LocalRuntime().launch(pipeline())
    running.send("in", numbers(1))
    running.stop()
    running.stop()
    with pytest.raises(StoppedError):
        running.send("in", numbers(1))
    with pytest.raises(StoppedError):
        running.open("in", "late")
    with pytest.raises(StoppedError):
        running.endpoint("in")
    assert list(running.results()) == []


# what fails


@dataclass(frozen=True)
class Fails(Bolt):
    """Fails at one of its moments, in one of its tasks."""

    moment: str
    task: int = 0

    def build(self, context: TaskContext) -> Task:
        if self.moment == "build" and context.task == self.task:
            self.fail_on_purpose()
        return FailingTask(self, context)

    def fail_on_purpose(self) -> None:
        raise ZeroDivisionError(f"on purpose, in {self.moment}")


class FailingTask(Task):
    def __init__(self, description: Fails, context: TaskContext) -> None:
        self._description = description
        self._mine = context.task == description.task

    def _reached(self, moment: str) -> Iterable[Emit]:
        if self._mine and self._description.moment == moment:
            self._description.fail_on_purpose()
        return ()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        yield from self._reached("batch")
        yield Emit(batch)

    def on_idle(self) -> Iterable[Emit]:
        return self._reached("idle")

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        return self._reached("input end")

    def on_end(self) -> Iterable[Emit]:
        return self._reached("end")


@pytest.mark.parametrize("moment", ["batch", "idle", "input end", "end"])
def test_an_error_in_a_task_reaches_the_reader_with_component_task_and_traceback(moment: str) -> None:
    topology = pipeline(Fails(moment, task=1), parallelism=3)
    running = LocalRuntime().launch(topology)
    with pytest.raises(TaskError) as caught:
        running.send("in", numbers(*range(100)))
        running.finish()
        read(running)
    running.stop()
    error = caught.value
    assert (error.component, error.task) == ("bolt", 1)
    assert str(error).startswith(f"component 'bolt', task 1, failed: ZeroDivisionError: on purpose, in {moment}\n")
    assert "in fail_on_purpose" in error.traceback_text
    assert "raise ZeroDivisionError" in error.traceback_text
    assert "task_loop.py" not in error.traceback_text


def test_an_error_while_building_a_task_is_reported_by_launch() -> None:
    with pytest.raises(TaskError) as caught:
        LocalRuntime().launch(pipeline(Fails("build", task=1), parallelism=3))
    assert (caught.value.component, caught.value.task) == ("bolt", 1)
    assert "in fail_on_purpose" in caught.value.traceback_text


class FailingSpout(Spout):
    def build(self, context: TaskContext) -> SpoutTask:
        return FailingSpoutTask()


class FailingSpoutTask(SpoutTask):
    def batches(self) -> Iterator[Emit]:
        yield Emit(Batch(DEFAULT_STREAM, numbers(1)))
        raise OSError("the file is gone")


def test_an_error_in_a_spout_is_reported() -> None:
    builder = TopologyBuilder()
    builder.spout("file", FailingSpout())
    builder.sink().shuffle_grouping("file")
    said = "component 'file', task 0, failed: OSError: the file is gone"
    with pytest.raises(TaskError, match=said), LocalRuntime().launch(builder.build()) as running:
        read(running)


def test_a_grouping_column_that_is_missing_at_run_time_is_named() -> None:
    said = r"component 'in'.*rows are grouped by 'n' but have only: m"
    with pytest.raises(TaskError, match=said), LocalRuntime().launch(pipeline()) as running:
        running.send("in", pa.record_batch({"m": [1]}))
        read(running)


def test_an_error_is_raised_by_stop_once_if_nobody_has_seen_it() -> None:
    running = LocalRuntime().launch(pipeline(Fails("batch")))
    running.send("in", numbers(1))
    wait_for(lambda: running._error is not None)  # type: ignore[attr-defined]
    with pytest.raises(TaskError):
        running.stop()
    running.stop()


def test_an_error_that_was_seen_is_not_raised_again_when_leaving() -> None:
    with LocalRuntime().launch(pipeline(Fails("batch"))) as running:
        running.send("in", numbers(1))
        with pytest.raises(TaskError):
            read(running)
        with pytest.raises(TaskError):
            running.send("in", numbers(1))


def test_an_error_of_the_caller_is_not_hidden_by_one_of_a_task(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(LookupError), LocalRuntime().launch(pipeline(Fails("batch"))) as running:
        running.send("in", numbers(1))
        wait_for(lambda: running._error is not None)  # type: ignore[attr-defined]
        raise LookupError("of the caller")
    assert "while stopping after another error" in caplog.text


def test_an_error_wakes_a_sender_that_waits_for_room() -> None:
    topology = pipeline(SlowThenFails(), source=Input(event_time="n"))
    SlowThenFails.proceed.clear()
    with LocalRuntime(edge_bytes=500).launch(topology) as running, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send_each, running, range(10_000))
        assert not done_within(sending.done, SHORT)
        SlowThenFails.proceed.set()
        with pytest.raises(TaskError, match="RuntimeError: gave up"):
            sending.result(LONG)


class SlowThenFails(Bolt):
    proceed = threading.Event()

    def build(self, context: TaskContext) -> Task:
        return SlowThenFailsTask()


class SlowThenFailsTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        assert SlowThenFails.proceed.wait(LONG)
        raise RuntimeError("gave up")


# back-pressure


def test_a_slow_reader_slows_the_sender_and_memory_stays_bounded() -> None:
    bound, count = 10_000, 2_000
    topology = pipeline(MapBatches(same))
    one = pa.record_batch({"n": np.zeros(100, dtype=np.int64)})
    with LocalRuntime(edge_bytes=bound).launch(topology) as running, ThreadPoolExecutor(1) as pool:

        def send() -> None:
            for _ in range(count):
                running.send("in", one)
            running.finish()

        sending = pool.submit(send)
        assert not done_within(sending.done, SHORT)
        received = 0
        for rows in running.results():
            received += rows.num_rows
            # A queue may hold one batch more than its bound, and a control message or two.
            assert all(task.waiting_bytes <= bound + 1_200 for task in running.metrics().tasks)
            taken = running.metrics().of("in")[0].rows_in
            # Four such queues and the batch in the hands of each of the three tasks lie between.
            assert taken - received <= 4 * (bound + 1_200) // 8 + 4 * 100
        sending.result(LONG)
    assert received == count * 100


def test_a_sender_that_waits_for_a_reader_is_told_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local_runtime, "UNREAD_WARNING_SECONDS", 0.01)
    with LocalRuntime(edge_bytes=1_000).launch(pipeline()) as running, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send_each, running, [1] * 200, finish=True)
        wait_for(lambda: "read results() in another thread" in caplog.text)
        assert read(running) == [2] * 200
        sending.result(LONG)


# stopping


def test_stopping_releases_senders_and_readers() -> None:
    running = LocalRuntime(edge_bytes=500).launch(pipeline())
    with ThreadPoolExecutor(2) as pool:
        sending = pool.submit(send_each, running, range(1_000))
        assert not done_within(sending.done, SHORT)
        running.stop()
        assert isinstance(sending.exception(LONG), StoppedError)
    quiet = LocalRuntime().launch(pipeline())
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, quiet)
        assert not done_within(reading.done, SHORT)
        quiet.stop()
        assert reading.result(LONG) == []


class Stubborn(Bolt):
    release = threading.Event()

    def build(self, context: TaskContext) -> Task:
        return StubbornTask()


class StubbornTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        Stubborn.release.wait(LONG)
        return ()


def test_a_task_that_does_not_return_is_named_and_does_not_hold_up_stop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local_runtime, "JOIN_SECONDS", SHORT)
    Stubborn.release.clear()
    running = LocalRuntime().launch(pipeline(Stubborn()))
    running.send("in", numbers(1))
    wait_for(lambda: running.metrics().of("bolt")[0].rows_in == 1)
    with caplog.at_level(logging.WARNING):
        running.stop()
    assert "bolt[0] is still busy" in caplog.text
    Stubborn.release.set()
    wait_for(lambda: not any(thread.name.startswith("interlace-") for thread in threading.enumerate()))


def test_an_interrupted_reader_leaves_nothing_running() -> None:
    with pytest.raises(KeyboardInterrupt), LocalRuntime().launch(pipeline()) as running:
        interrupt_soon()
        list(running.results())


def test_an_interrupted_send_can_be_repeated_without_gap_or_double() -> None:
    with LocalRuntime(edge_bytes=500).launch(pipeline(source=Input(event_time="n"))) as running:
        sent = 0
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            while True:
                running.send("in", numbers(sent))
                sent += 1
        with ThreadPoolExecutor(1) as pool:
            pool.submit(send_each, running, [sent], finish=True)
            assert read(running) == [2 * value for value in range(sent + 1)]


def interrupt_soon() -> None:
    """What Ctrl-C does, a moment from now, when the main thread waits."""
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.daemon = True
    timer.start()


# metrics


class CountsItself(Bolt):
    def build(self, context: TaskContext) -> Task:
        return CountsItselfTask(context.task)


class CountsItselfTask(Task):
    def __init__(self, number: int) -> None:
        self._number = number
        self._seen = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self._seen += batch.rows.num_rows
        yield Emit(batch)

    def metrics(self) -> dict[str, float]:
        return {"seen": self._seen, "number": self._number}


def test_metrics_count_rows_through_every_task() -> None:
    with LocalRuntime().launch(pipeline(CountsItself(), parallelism=3)) as running:
        assert np.isnan(running.metrics().latency(50)[0])
        running.send("in", numbers(*range(100)))
        running.send("in", numbers(*range(50)))
        running.finish()
        read(running)
        metrics = running.metrics()
    assert [(task.component, task.task) for task in metrics.tasks] == [
        ("in", 0), ("bolt", 0), ("bolt", 1), ("bolt", 2), ("results", 0),
    ]  # fmt: skip
    assert metrics.of("in")[0].rows_out == 150
    assert (
        sum(task.rows_in for task in metrics.of("bolt"))
        == metrics.total("seen")
        == metrics.total("seen", "bolt")
        == 150
    )
    assert metrics.total("number") == 3
    assert metrics.of("results")[0].rows_in == 150
    assert all(task.waiting_bytes == 0 for task in metrics.tasks)
    half, most = metrics.latency(50, 99)
    assert 0 <= half <= most
    table = str(metrics).splitlines()
    assert len(table) == 6
    assert table[1].split()[:4] == ["in", "0", "150", "150"]


def wait_for(condition: Callable[[], bool]) -> None:
    assert done_within(condition, LONG)


def done_within(condition: Callable[[], bool], seconds: float) -> bool:
    pause = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if condition():
            return True
        pause.wait(0.005)
    return condition()
