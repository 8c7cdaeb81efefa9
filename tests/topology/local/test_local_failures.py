"""A failing component is named with its task and traceback, and wakes everyone who waits."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tests.topology.local.pipelines import numbers, pipeline, read, same, send_each
from tests.topology.waiting import LONG, SHORT, done_within, wait_for
from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    Emit,
    Input,
    LocalRuntime,
    MapBatches,
    Origin,
    Spout,
    SpoutTask,
    Task,
    TaskContext,
    TaskError,
    TopologyBuilder,
)


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


def test_an_error_is_raised_by_stop_once_if_it_was_not_raised_before() -> None:
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


def no_seven(rows: pa.RecordBatch) -> pa.RecordBatch:
    if 7 in rows.column("n").to_pylist():
        raise LookupError("no such rack")
    return rows


@pytest.mark.parametrize(
    ("grouping", "told"), [("shuffle", "rows 5-9 of in from rack-1"), ("fields", "rows from 5 on of in from rack-1")]
)
def test_an_error_names_the_source_and_the_offsets_of_its_rows(grouping: str, told: str) -> None:
    builder = TopologyBuilder("racks")
    builder.input("in")
    bolt = builder.bolt("bolt", MapBatches(no_seven))
    bolt.shuffle_grouping("in") if grouping == "shuffle" else bolt.fields_grouping("in", "n")
    builder.sink().shuffle_grouping("bolt")
    with pytest.raises(TaskError) as caught, LocalRuntime().launch(builder.build()) as running:
        for start in range(0, 20, 5):
            running.send("in", numbers(*range(start, start + 5)), source="rack-1")
        running.finish()
        read(running)
    assert f"at {told}:\n" in caught.value.traceback_text
    assert str(caught.value).startswith("component 'bolt', task 0, failed: LookupError: no such rack\n")


def test_with_a_state_an_error_behind_other_bolts_names_the_rows_of_its_step(tmp_path: Path) -> None:
    """Launched again, it meets the same rows, from the log, and names them again."""
    builder = TopologyBuilder("racks")
    builder.input("in")
    builder.bolt("same", MapBatches(same)).shuffle_grouping("in")
    builder.bolt("bolt", MapBatches(no_seven)).shuffle_grouping("same")
    builder.sink().shuffle_grouping("bolt")
    topology = builder.build()

    def fail(*starts: int) -> str:
        with pytest.raises(TaskError) as caught, LocalRuntime(state=tmp_path).launch(topology) as running:
            for start in starts:
                running.send("in", numbers(*range(start, start + 5)), source="rack-1")
                if start == 0:
                    assert next(running.results()).num_rows == 5  # the step has ended
            running.finish()
            read(running)
        return caught.value.traceback_text

    first = fail(0, 5)
    assert "at rows 5-9 of in from rack-1:\n" in first
    assert fail() == first
