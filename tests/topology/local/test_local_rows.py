"""Rows flow through a topology in this process: in order, while it runs, and again in another run."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from tests.topology.local.pipelines import doubled, numbers, pipeline, read, same
from tests.topology.waiting import LONG, SHORT
from topology import (
    DEFAULT_STREAM,
    Batch,
    Emit,
    LocalRuntime,
    MapBatches,
    Spout,
    SpoutTask,
    TaskContext,
    TopologyBuilder,
    TopologyError,
)


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
        assert list(running.results(timeout=SHORT)) == [numbers(2)], "the reader that left had not acknowledged it"
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
