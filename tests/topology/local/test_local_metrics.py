"""Metrics count rows through every task."""

from collections.abc import Iterable

import numpy as np

from tests.topology.local.pipelines import numbers, pipeline, read
from topology import Batch, Bolt, Emit, LocalRuntime, Origin, Task, TaskContext


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
