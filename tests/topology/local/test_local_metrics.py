"""Metrics count rows through every task."""

import logging
import threading
from collections.abc import Iterable

import numpy as np
import pytest

from tests.topology.local.pipelines import numbers, pipeline, read
from tests.topology.waiting import wait_for
from topology import Batch, Bolt, Emit, LocalRuntime, Origin, State, Task, TaskContext, TaskError


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


def test_metrics_count_each_edge_the_age_of_rows_and_how_long_a_task_waits_for_room() -> None:
    with LocalRuntime(edge_bytes=1 << 12).launch(pipeline(CountsItself(), parallelism=2)) as running:
        sending = threading.Thread(target=lambda: [running.send("in", numbers(*range(100))) for _ in range(20)])
        sending.start()  # it waits, as nobody reads yet
        wait_for(lambda: running.metrics().of("results")[0].blocked_seconds > 0)
        blocked = running.metrics()
        assert 0 < blocked.of("results")[0].blocked_seconds < running.metrics().of("results")[0].blocked_seconds
        count = 0
        for rows in running.results():
            count += rows.num_rows
            if count == 2000:
                running.finish()
        sending.join()
        metrics = running.metrics()
    (results,) = metrics.of("results")
    assert [(edge.producer, edge.task) for edge in results.edges] == [("bolt", 0), ("bolt", 1)]
    assert [edge.rows for edge in results.edges] == [task.rows_out for task in metrics.of("bolt")]
    assert sum(edge.bytes for edge in results.edges) == results.bytes_in
    assert results.ages.count == results.batches_in
    half, most = results.ages.percentiles(50, 100)
    assert 0 <= half <= most
    assert results.ages.seconds <= most * results.ages.count


def test_a_failure_and_a_stop_are_events() -> None:
    with pytest.raises(TaskError), LocalRuntime().launch(pipeline(Fails())) as running:
        running.send("in", numbers(1))
        wait_for(lambda: running.status().state is State.FAILED)
        events = running.status().events
        assert [event.state for event in events] == [State.RUNNING, State.FAILED]
        assert events[1].task == ("bolt", 0)
        assert "ZeroDivisionError" in events[1].text
    running = LocalRuntime().launch(pipeline(CountsItself()))
    running.stop()
    assert [event.state for event in running.status().events] == [State.RUNNING, State.STOPPED]


def test_what_a_task_logs_is_read_with_the_name_of_the_task() -> None:
    with LocalRuntime().launch(pipeline(Talks())) as running:
        assert running.logs() == ()
        running.send("in", numbers(1))
        running.send("in", numbers(2))
        running.finish()
        read(running)
        lines = running.logs()
        assert {(line.component, line.task, line.text) for line in lines} == {("bolt", 0, "saw rows")}
        assert sum(line.repeated for line in lines) == 2
        assert running.logs(lines[-1].number) == ()


class Fails(Bolt):
    def build(self, context: TaskContext) -> Task:
        return FailsTask()


class FailsTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        raise ZeroDivisionError("no way")


class Talks(Bolt):
    def build(self, context: TaskContext) -> Task:
        return TalksTask()


class TalksTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        logging.getLogger("interlace").warning("saw rows")
        yield Emit(batch)
