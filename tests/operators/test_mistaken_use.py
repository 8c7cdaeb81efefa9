"""Hostile or mistaken use of a join: a clear error of the right type, nothing changed, the join still works."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from operators import (
    CountWindow,
    StreamJoin,
    col,
    stream,
)
from topology import (
    Handle,
    InputError,
    OutOfOrderError,
    RunningTopology,
    SchemaError,
    SourceEndedError,
    UnknownInputError,
)

R = pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "ts": [1, 2, 3]})
S = pa.table({"id": [7, 8, 9], "x": [1.5, 2.5, 0.5], "ts": [1, 2, 3]})


def join(**options: object) -> StreamJoin:
    arguments: dict[str, object] = {
        "left": "R",
        "right": "S",
        "on": "R.x < S.x",
        "window": CountWindow(10),
        "select": ["R.id", "S.id"],
        "event_time": "ts",
    }
    return StreamJoin(**(arguments | options))  # type: ignore[arg-type]


def pairs(table: pa.Table) -> set[tuple[int, int]]:
    return set(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))


GOOD = {(1, 7), (1, 8), (2, 8)}


def test_what_is_refused_changes_nothing() -> None:
    good_r, good_s = R.to_batches()[0], S.to_batches()[0]
    with join().launch(sources={"R": ["R"], "S": ["S"]}) as running:
        refused: list[tuple[Callable[[], object], type[Exception]]] = [
            (lambda: running.send("T", good_r), UnknownInputError),
            (lambda: running.send("R", good_r.drop_columns(["x"])), SchemaError),
            (lambda: running.send("R", good_r.drop_columns(["ts"])), SchemaError),
            (lambda: running.send("R", {"x": [1]}), InputError),
            (lambda: running.finish("R", "nobody"), InputError),
            (lambda: running.finish(source="R"), InputError),
        ]
        for action, error in refused:
            with pytest.raises(error):
                action()
        running.send("R", good_r)
        later: list[tuple[Callable[[], object], type[Exception]]] = [
            (lambda: running.send("R", good_r), OutOfOrderError),
            (lambda: running.send("R", good_r.set_column(1, "x", pa.array([1, 2, 3]))), SchemaError),
            (lambda: running.send("S", good_s.set_column(1, "x", pa.array(["a", "b", "c"]))), SchemaError),
        ]
        for action, error in later:
            with pytest.raises(error):
                action()
        running.send("S", good_s)
        running.finish("R")
        with pytest.raises(SourceEndedError):
            running.send("R", good_r)
        running.finish()
        result = pa.Table.from_batches(list(running.results()), running.result_schema())
    assert pairs(result) == GOOD


def test_a_table_that_is_refused_for_its_order_does_not_fix_the_schema() -> None:
    backwards = R.take([2, 1, 0]).set_column(1, "x", pa.array([1, 2, 3]))
    with join().launch(sources={"R": ["R"], "S": ["S"]}) as running:
        with pytest.raises(OutOfOrderError):
            running.send("R", backwards)
        assert running.schemas == {}
        running.send("R", R)
        running.send("S", S)
        running.finish()
        assert pairs(pa.Table.from_batches(list(running.results()), running.result_schema())) == GOOD


def test_the_handle_of_a_join_has_a_running_topology_and_is_none() -> None:
    with join().launch() as running:
        assert isinstance(running, Handle)
        assert not isinstance(running, RunningTopology)
        assert set(running.topology.inputs) == {"R", "S"}


def test_conditions_may_be_column_expressions() -> None:
    left, right = stream("R"), stream("S")
    for condition in (left.x < right.x, right["x"] > left["x"], col("R.x") < col("S.x")):
        assert pairs(join(on=condition).collect({"R": R, "S": S})) == GOOD


def test_one_name_twice_is_a_self_join() -> None:
    for on in ("T1.x < T2.x", "T.x1 < T.x2"):
        twice = StreamJoin("T", "T", on, CountWindow(10), event_time="ts")
        result = twice.collect({"T": R})
        assert result.column_names == ["T1.id", "T1.x", "T1.ts", "T2.id", "T2.x", "T2.ts"]
        assert pairs(result.select(["T1.id", "T2.id"])) == {(1, 2), (1, 3), (2, 3)}


def test_an_empty_stream_gives_an_empty_table_with_the_right_columns() -> None:
    result = join(select=None).collect({"R": R, "S": S.slice(0, 0)})
    assert result.num_rows == 0
    assert result.schema.names == ["R.id", "R.x", "R.ts", "S.id", "S.x", "S.ts"]
    assert result.schema.field("S.x").type == pa.float64()


def test_results_come_while_the_data_is_still_moving() -> None:
    with join().launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", R)
        running.send("S", S)
        batch = next(running.results(timeout=30))
        assert batch.num_rows > 0
        assert running.metrics().latency(50)[0] > 0


def test_leaving_the_block_with_unread_results_stops_everything() -> None:
    with join().launch() as running:
        running.send("R", R)
        running.send("S", S)
    running.stop()
