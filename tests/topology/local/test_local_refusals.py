"""Calls that do not fit are refused, and the topology goes on as if they had not been made."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.topology.local.pipelines import numbers, pipeline, read
from tests.topology.waiting import SHORT
from topology import (
    Input,
    InputError,
    LocalRuntime,
    OutOfOrderError,
    RunningTopology,
    SchemaError,
    SourceEndedError,
    StoppedError,
    TopologyBuilder,
    UnknownInputError,
)


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
        assert list(running.results(timeout=SHORT)) == [numbers(1)]
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
    with pytest.raises(StoppedError, match="before all results had been read"):
        list(running.results())
