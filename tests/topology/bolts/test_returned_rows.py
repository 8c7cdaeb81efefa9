"""What the function of a bolt may return, and what it is told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from topology import (
    DEFAULT_STREAM,
    Batch,
    InterlaceError,
    LocalRuntime,
    Origin,
    ReturnedRowsError,
    Task,
    TaskContext,
    TaskError,
    TopologyBuilder,
    TopologyError,
    Tumbling,
    bolt,
    side,
)

ORIGIN = Origin("in", 0, 0)
XS = pa.schema([("x", pa.int64())])


def sent(task: Task, **columns: list[Any]) -> dict[str, list[list[dict[str, Any]]]]:
    """Give a task one batch; return the rows of each batch that it emits, by stream."""
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for emit in task.on_batch(Batch(DEFAULT_STREAM, pa.record_batch(columns)), ORIGIN):
        assert isinstance(emit.message, Batch)
        found.setdefault(emit.message.stream, []).append(emit.message.rows.to_pylist())
        task.check_invariants()
    return found


def build(described: Any) -> Task:
    return described.build(TaskContext("doubling"))


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: rows,
        lambda rows: pa.Table.from_batches([rows]),
        lambda rows: {"x": rows["x"]},
        lambda rows: {"x": rows["x"].to_pylist()},
        lambda rows: {"x": rows["x"].to_numpy()},
        lambda rows: rows.to_pylist(),
        lambda rows: pl.DataFrame({"x": rows["x"].to_pylist()}),
        lambda rows: ({"x": value} for value in rows["x"].to_pylist()),
        lambda rows: [None, {"x": rows["x"].to_pylist()}, rows.slice(0, 0)],
    ],
)
def test_rows_of_every_kind_leave_as_one_batch(function: Callable[..., Any]) -> None:
    assert sent(build(bolt(function)), x=[1, 2]) == {DEFAULT_STREAM: [[{"x": 1}, {"x": 2}]]}


def test_nothing_leaves_where_nothing_is_returned() -> None:
    assert sent(build(bolt(lambda rows: None)), x=[1]) == {}
    assert sent(build(bolt(lambda rows: rows.slice(0, 0))), x=[1]) == {}


def test_a_generator_may_yield_rows_for_several_streams() -> None:
    @bolt(side_outputs=["odd"])
    def split(rows: pa.RecordBatch) -> Iterator[Any]:
        for row in rows.to_pylist():
            yield row if row["x"] % 2 == 0 else side("odd", row)

    assert sent(build(split), x=[2, 4, 1, 6]) == {
        DEFAULT_STREAM: [[{"x": 2}, {"x": 4}], [{"x": 6}]],
        "odd": [[{"x": 1}]],
    }
    assert dict(split.outputs) == {DEFAULT_STREAM: None, "odd": None}


def test_by_row_a_dict_is_a_row_whatever_it_holds() -> None:
    @bolt(per="row")
    def tagged(row: dict[str, Any]) -> Any:
        return {**row, "tags": [row["x"]]} if row["x"] else None

    assert sent(build(tagged), x=[1, 0, 2]) == {DEFAULT_STREAM: [[{"x": 1, "tags": [1]}, {"x": 2, "tags": [2]}]]}


def test_rows_take_the_declared_schema() -> None:
    task = build(bolt(schema=pa.schema([("x", pa.float32()), ("y", pa.int8())]))(lambda rows: {"y": [1], "x": [2]}))
    (emit,) = task.on_batch(Batch(DEFAULT_STREAM, pa.record_batch({"x": [1]})), ORIGIN)
    assert isinstance(emit.message, Batch)
    assert emit.message.rows.schema == pa.schema([("x", pa.float32()), ("y", pa.int8())])


def test_later_rows_take_the_schema_of_the_first() -> None:
    task = build(bolt(lambda rows: {"x": rows["x"].to_pylist()}))
    assert sent(task, x=[1.5]) == {DEFAULT_STREAM: [[{"x": 1.5}]]}
    (emit,) = task.on_batch(Batch(DEFAULT_STREAM, pa.record_batch({"x": [2]})), ORIGIN)
    assert isinstance(emit.message, Batch)
    assert emit.message.rows.schema == pa.schema([("x", pa.float64())])
    with pytest.raises(ReturnedRowsError, match=r"'doubling'.*'x'"):
        sent(task, x=["text"])


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (7, "bolt 'doubling' returned int: 7; it must return None, a record batch"),
        ("text", "returned str: 'text'"),
        (pa.array([1]), "returned Int64Array"),
        ([1, 2], "returned int: 1"),
        (side("odd", {"x": 1}), r"stream 'odd', which it does not declare: add side_outputs=\['odd'\]"),
        ({"y": [1]}, "returned columns y; expected x"),
        ({"x": [1], "y": [1, 2]}, "columns of different lengths"),
        ({"x": ["a"]}, "'x' does not become"),
        (pa.table({"x": [1.5]}), "declare schema= with the types"),
    ],
)
def test_what_is_not_rows_is_named(returned: Any, said: str) -> None:
    with pytest.raises(ReturnedRowsError, match=said):
        sent(build(bolt(schema=XS)(lambda rows: returned)), x=[1])


def test_a_running_topology_names_the_bolt_and_what_it_returned() -> None:
    builder = TopologyBuilder()
    builder.input("in")
    builder.bolt("doubling", bolt(lambda rows: 7)).shuffle_grouping("in")
    builder.sink().global_grouping("doubling")
    with (
        pytest.raises(TaskError, match="bolt 'doubling' returned int: 7"),
        LocalRuntime().launch(builder.build()) as running,
    ):
        running.send("in", {"x": [1]})
        running.finish()
        list(running.results())


class Empty:
    """No method `execute`."""


class WithoutRows:
    """A method that takes too little."""

    def execute(self) -> None:
        """Do nothing."""


async def later(rows: pa.RecordBatch) -> None:
    """Return when there is time."""


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: bolt(Empty), r"class Empty needs the method execute\(self, rows\)"),
        (lambda: bolt(key="x")(Empty), r"execute\(self, key, rows\)"),
        (lambda: bolt(later), "later is an async function"),
        (lambda: bolt(per="column")(lambda rows: rows), "say 'batch' or 'row'"),  # type: ignore[call-overload]
        (lambda: bolt(per="row", key="x")(lambda rows: rows), "leave out per='row'"),
        (lambda: bolt(window=60)(lambda rows: rows), "say il.Tumbling"),  # type: ignore[call-overload]
        (lambda: bolt(tick=0)(lambda rows: rows), "how many seconds"),
        (lambda: bolt(side_outputs=["default"])(lambda rows: rows), "'default' is there already"),
        (lambda: bolt(lambda key, rows: rows), r"with \(rows\), which it does not take; a key or a window"),
        (lambda: bolt(key="x")(lambda rows: rows), r"with \(key, rows\), which it does not take$"),
        (lambda: bolt(window=Tumbling("ts", 5))(WithoutRows), r"WithoutRows.execute with \(window, rows\), which"),
        (lambda: bolt(7), "of a function or a class, not of 7"),  # type: ignore[call-overload]
    ],
)
def test_descriptions_that_cannot_work_are_refused_when_they_are_made(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        make()


def test_a_function_is_still_one_and_a_class_takes_arguments() -> None:
    @bolt
    def double(rows: pa.RecordBatch) -> Any:
        return {"x": [2 * x for x in rows["x"].to_pylist()]}

    @bolt
    class Times:
        def __init__(self, factor: int = 2) -> None:
            self.factor = factor

        def execute(self, rows: pa.RecordBatch) -> Any:
            return {"x": [self.factor * x for x in rows["x"].to_pylist()]}

    assert double(pa.record_batch({"x": [1]})) == {"x": [2]}
    assert sent(build(Times), x=[1]) == {DEFAULT_STREAM: [[{"x": 2}]]}
    assert sent(build(Times(5)), x=[1]) == {DEFAULT_STREAM: [[{"x": 5}]]}
    assert issubclass(ReturnedRowsError, InterlaceError)
