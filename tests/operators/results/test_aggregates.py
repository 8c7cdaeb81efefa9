"""Aggregates over the matches of each row: worked examples, types, errors, restarts."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import interlace as il
from operators import (
    CountWindow,
    IndexJoin,
    JoinError,
    PredicateError,
    QueryError,
    StreamJoin,
    TimeWindow,
    UnboundedWindow,
)
from topology import LocalRuntime, RayRuntime, SchemaError, TaskError, Workers

R = pa.table({"id": [1, 2, 3], "k": [0, 0, 1], "ts": [0, 10, 20]})
S = pa.table({"id": [7, 8, 9], "k": [0, 1, 0], "size": [5, None, 2], "t": ["b", "a", None], "ts": [5, 15, 20]})
NEAR = "R.k = S.k AND S.ts BETWEEN R.ts - 5 AND R.ts + 10"
ALL: dict[str, Any] = {"n": il.count(), "sizes": il.count("S.size"), "volume": il.sum("S.size"), "last": il.max("S.t")}


def rows(join: StreamJoin, left: pa.Table = R, right: pa.Table = S) -> list[tuple[Any, ...]]:
    found = join.collect({"R": left, "S": right})
    return list(zip(*[found[name].to_pylist() for name in found.column_names], strict=True))


LONG = TimeWindow(100)


def aggregate(on: str = "R.k = S.k", window: Any = LONG, **options: Any) -> StreamJoin:
    options = {"aggregate": ALL, "select": ["R.id"], "event_time": "ts", **options}
    return StreamJoin("R", "S", on, window, **options)


def test_with_a_window_a_row_meets_earlier_rows_and_comes_out_at_once() -> None:
    assert rows(aggregate()) == [(1, 0, 0, None, None), (2, 1, 1, 5, "b"), (3, 1, 0, None, "a")]


def test_without_one_a_row_meets_all_of_its_interval_and_comes_out_when_it_has_closed() -> None:
    assert rows(aggregate(NEAR, None)) == [(1, 1, 1, 5, "b"), (2, 2, 2, 7, "b"), (3, 1, 0, None, "a")]


def test_a_closed_interval_does_not_wait_for_the_end() -> None:
    with aggregate(NEAR, None).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", R)
        running.send("S", S)
        reading = iter(running.results())
        assert next(reading)["R.id"].to_pylist()[0] == 1
        running.finish()


def test_rows_of_the_right_come_out_if_the_aggregates_name_the_left() -> None:
    join = aggregate(select=None, aggregate={"n": il.count(), "first": il.min("R.id")})
    assert rows(join) == [(7, 0, 5, "b", 5, 1, 1), (8, 1, None, "a", 15, 0, None), (9, 0, 2, None, 20, 2, 1)]


def test_expressions_and_decimals() -> None:
    s = il.stream("S")
    exact = il.sum(s.size.cast(pa.decimal128(10, 2)))
    sums = {"twice": il.sum(s.size * 2 + 1), "exact": exact, "mean": il.mean("S.size")}
    found = aggregate(window=UnboundedWindow(), aggregate=sums, where="S.id > 0").collect({"R": R, "S": S})
    assert found.schema.field("exact").type == pa.decimal128(38, 2)
    assert found["twice"].to_pylist() == [None, 11, None]
    assert found["exact"].to_pylist() == [None, Decimal("5.00"), None]
    assert found["mean"].to_pylist() == [None, 5.0, None]


def test_results_are_typed_before_the_other_stream_has_rows() -> None:
    found = aggregate().collect({"R": R, "S": S.slice(0, 0)})
    assert found.schema.types == [pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.string()]
    assert found["n"].to_pylist() == [0, 0, 0]


def test_a_sum_that_does_not_fit_says_what_to_write() -> None:
    large = S.set_column(2, "size", pa.array([2**63 - 1, 2**63 - 1, 1]))
    with pytest.raises(TaskError, match=r"aggregate 'volume': a sum of 2 values .* sum\(CAST\(S\.size AS DECIMAL"):
        rows(aggregate("R.id > 0 AND S.id > 0"), R, large)


def test_a_join_with_aggregates_is_a_value() -> None:
    join = aggregate()
    again = pickle.loads(pickle.dumps(join))
    assert again == join
    assert rows(again) == rows(join)
    assert aggregate(aggregate={"n": il.count()}) != join


def test_explain_says_when_a_row_comes_out() -> None:
    sections = dict(aggregate(NEAR, None).explain().sections)
    assert sections["aggregates"][0].startswith("each row of R, when its interval has closed")
    assert "sum(S.size) AS volume" in sections["aggregates"]


MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"aggregate": {}}, JoinError, "aggregate must map names of results to aggregates"),
    ({"aggregate": {"n": "count"}}, JoinError, "aggregate 'n' must be one such as"),
    ({"aggregate": {"": il.count()}}, JoinError, "a non-empty string"),
    ({"aggregate": {"v": il.sum("T.x")}}, JoinError, "aggregate 'v': 'T.x' must start with 'R.' or 'S.'"),
    ({"aggregate": {"v": il.sum("S.*")}}, JoinError, "is not one value"),
    ({"aggregate": {"v": il.sum("S.size"), "w": il.sum("R.id")}}, JoinError, "use a join for each"),
    ({"aggregate": {"v": il.sum(il.col("S.size") + il.col("R.id"))}}, JoinError, "columns of both sides"),
    ({"select": ["S.id"]}, JoinError, "each result is a row of 'R'"),
    ({"kind": "left"}, JoinError, "leave kind out"),
    ({"kind": "aggregate", "aggregate": None}, JoinError, "leave kind out, and say aggregate="),
    ({"aggregate": {"R.id": il.count()}}, JoinError, "'R.id' would appear twice"),
]


@pytest.mark.parametrize(("options", "error", "message"), MISTAKES, ids=[each[2] for each in MISTAKES])
def test_mistakes_are_named(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("*", r"\*").replace("(", r"\(").replace(".", r"\.")):
        aggregate(**options)


def test_types_that_do_not_add_up_are_refused_where_rows_enter() -> None:
    with pytest.raises(SchemaError, match="sum takes integers, floats, decimals and durations, not string"):
        rows(aggregate(aggregate={"v": il.sum("S.t")}))
    with pytest.raises(PredicateError, match="sum takes a column such as"):
        il.sum(5)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="takes a value, such as"):
        StreamJoin.from_sql("SELECT sum(*) FROM R JOIN S ON R.k = S.k GROUP BY R WINDOW AS (ROWS 9)")


@pytest.mark.parametrize("window", [TimeWindow(40), None], ids=["on arrival", "closing"])
def test_aggregates_go_on_after_a_restart(window: Any, tmp_path: Path) -> None:
    on = "R.k = S.k" if window is not None else "R.k = S.k AND S.ts BETWEEN R.ts - 20 AND R.ts + 30"
    left = pa.table({"id": range(400), "k": [n % 3 for n in range(400)], "ts": [3 * n for n in range(400)]})
    right = pa.table({"k": [n % 4 for n in range(500)], "size": range(500), "f": [n / 7 for n in range(500)],
                      "ts": [2 * n for n in range(500)]})  # fmt: skip
    join = aggregate(on, window, aggregate={"n": il.count(), "v": il.sum("S.size"), "f": il.sum("S.f")}, step_rows=50)
    wanted = join.collect({"R": {"R": left}, "S": {"S": right}}).to_pylist()
    found: list[dict[str, Any]] = []
    for upto in (150, 300, 500):
        with join.launch(LocalRuntime(state=tmp_path), sources={"R": ["R"], "S": ["S"]}) as running:
            for stream, table in (("R", left), ("S", right)):
                known = running.next_offset(stream, stream)
                end = min(upto, table.num_rows)
                for start in range(known, end, 50):
                    rest = table.slice(start, min(50, end - start))
                    running.send(stream, rest, source=stream, offset=start)
            running.flush()
            if upto == 500:
                running.finish()
            timeout = None if upto == 500 else 0.2
            for first, batch in running.results(numbered=True, timeout=timeout, after=len(found) - 1):
                assert first == len(found)
                found += batch.to_pylist()
                running.acknowledge(len(found) - 1)
                if upto != 500:
                    break
    assert found == wanted


@pytest.mark.usefixtures("ray_cluster")
def test_aggregates_on_ray_are_those_of_this_process() -> None:
    for window, on in ((CountWindow(3), "R.id < S.id"), (None, NEAR)):
        join = aggregate(on, window)
        assert join.collect({"R": R, "S": S}, RayRuntime(placement=Workers(2))).equals(join.collect({"R": R, "S": S}))


def test_running_sums_and_lists_take_turns() -> None:
    """Infinite floats have no running sums: the rows that can meet one get theirs from their matches."""
    prices = [7.5, None, 2.0, 1e9, -1e-9, 0.1]
    left = pa.table({"id": range(300), "k": [n % 3 for n in range(300)], "ts": [2 * n for n in range(300)]})
    right = pa.table({
        "k": [n % 4 if n % 11 else None for n in range(400)], "v": range(400),
        "price": [float("inf") if n == 150 else prices[n % 6] for n in range(400)], "ts": range(400),
    })  # fmt: skip
    functions = {"v": il.sum("S.v"), "p": il.sum("S.price"), "a": il.avg("S.price"), "m": il.max("S.price")}
    spelt = {"n": il.count(), **functions}
    options = {"aggregate": spelt, "step_rows": 40}
    on = "R.k = S.k AND R.id > S.v"
    sources = {"R": {"R": left}, "S": {"S": right}}
    wanted = aggregate(on, TimeWindow(60), using=IndexJoin(index="HashIndex"), **options).collect(sources)
    chosen = aggregate(on, TimeWindow(60), using=IndexJoin(index="auto", threads=1), **options).run(sources)
    assert chosen.result.to_pydict() == wanted.to_pydict()
    totalled, listed = (chosen.metrics.total(name, "index-join") for name in ("totalled", "listed"))
    assert totalled > 100
    assert listed > 20
