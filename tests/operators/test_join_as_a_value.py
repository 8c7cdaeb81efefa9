"""A `StreamJoin` is a value: what the user gave, unchanged by use; equality, hash, copies and pickle follow from it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators import (
    CountWindow,
    IndexJoin,
    JoinError,
    MultiJoin,
    SPOJoin,
    StreamJoin,
    TimeWindow,
    UnboundedWindow,
    function,
    stream,
)

ROWS = pa.table({"id": [1, 2, 3, 4], "x": [1.0, 2.0, 0.5, 3.0], "k": [1, 1, 2, 2], "ts": [1, 2, 3, 4]})


def close(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.less(pc.abs(pc.subtract(left, right)), 1.5)


@function
def near(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.less(pc.abs(pc.subtract(left, right)), 1.5)


def text_join(**options: Any) -> StreamJoin:
    return StreamJoin("R", "S", "R.x < S.x", CountWindow(3), **options)


def expression_join(constant: object = 1) -> StreamJoin:
    left, right = stream("R"), stream("S")
    on = (left.x + constant < right.x) & near(left.x, right.x)
    return StreamJoin("R", "S", on, CountWindow(3), select=[left.id, (right.x * 2).alias("double")])


def self_join() -> StreamJoin:
    return StreamJoin("R", "R", "R.x1 < R.x2 AND R.id1 > 0", CountWindow(3), where="R.x1 > 0.7", event_time="ts")


def sql_join() -> StreamJoin:
    return StreamJoin.from_sql(
        "SELECT a.id, b.x * 2 AS double FROM R a LEFT JOIN S b ON a.k = b.k AND close(a.x, b.x)",
        window=CountWindow(3, per_key=True),
        functions={"close": close},
    )


def interval_join() -> StreamJoin:
    return StreamJoin(
        "R", "S", "R.ts BETWEEN S.ts - 1 AND S.ts + 2 AND R.x < S.x", event_time="ts", out_of_order={"R": 3}
    )


MAKERS = [text_join, expression_join, self_join, sql_join, interval_join]
Make = Callable[[], StreamJoin]


def collect(join: StreamJoin) -> pa.Table:
    return join.collect(dict.fromkeys(join.stream_names, ROWS))


@pytest.mark.parametrize("make", MAKERS)
def test_it_holds_what_was_given_before_and_after_use(make: Make) -> None:
    join = make()
    given = {each.name: getattr(join, each.name) for each in fields(join)}
    first = collect(join)
    join.explain(), join.plan()
    assert all(getattr(join, name) is value for name, value in given.items())
    assert collect(join).equals(first)


def test_no_argument_is_replaced_by_what_follows_from_it() -> None:
    join = self_join()
    assert (join.left, join.right, join.on) == ("R", "R", "R.x1 < R.x2 AND R.id1 > 0")
    assert join.roles == ("R1", "R2")
    assert join.stream_names == ("R",)
    assert interval_join().window is None
    assert interval_join().windows == (TimeWindow(1), TimeWindow(2))


def test_nothing_can_be_assigned() -> None:
    join = text_join()
    for each in fields(join):
        with pytest.raises(FrozenInstanceError):
            setattr(join, each.name, None)
    with pytest.raises(FrozenInstanceError):
        join.last_metrics = None  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", MAKERS)
def test_equal_arguments_make_equal_joins(make: Make) -> None:
    join = make()
    assert join == make()
    assert hash(join) == hash(make())
    assert len({make(), make(), text_join(ordering="none")}) == 2
    assert copy.copy(join) == join


def test_different_arguments_make_different_joins() -> None:
    joins = [
        *(make() for make in MAKERS),
        text_join(kind="left"),
        text_join(using=SPOJoin()),
        text_join(using=IndexJoin()),
        text_join(select=["R.id"]),
        text_join(select=["S.id"]),
        text_join(event_time="ts"),
        text_join(event_time={"R": "ts", "S": "ts"}),
        text_join(event_time={"R": "ts", "S": "x"}),
        expression_join(2),
        expression_join(1.0),
        replace(text_join(), window=CountWindow(4)),
        replace(text_join(), window=UnboundedWindow()),
    ]
    assert len(set(joins)) == len(joins)
    assert text_join() != "R.x < S.x"
    assert text_join(kind="inner") == text_join()


@pytest.mark.parametrize("make", MAKERS)
def test_a_pickled_join_is_the_same_join(make: Make) -> None:
    join = pickle.loads(pickle.dumps(make()))
    assert join == make()
    assert collect(join).equals(collect(make()))


@pytest.mark.parametrize("make", MAKERS)
def test_an_argument_can_be_replaced(make: Make) -> None:
    join = make()
    other = replace(join, using=IndexJoin("NestedLoop"), step_rows=2)
    assert other.engine == IndexJoin("NestedLoop")
    assert collect(other).equals(collect(join))
    assert replace(other, using=join.using, step_rows=join.step_rows) == join


def test_what_follows_from_an_argument_follows_from_the_one_that_replaced_it() -> None:
    assert collect(replace(sql_join(), kind="semi", select=["a.id"])).column_names == ["a.id"]
    assert collect(replace(text_join(), kind="count")).column_names[-1] == "matches"
    assert collect(replace(text_join(), left="T", on="T.x < S.x")).column_names[0] == "T.id"
    assert replace(interval_join(), on="R.ts BETWEEN S.ts - 5 AND S.ts").windows == (TimeWindow(5), TimeWindow(0))


def test_wrong_arguments_are_refused_when_they_are_given() -> None:
    with pytest.raises(JoinError, match="step_rows"):
        replace(text_join(), step_rows=0)
    with pytest.raises(JoinError, match="streams names 'R1', which is not a role of this join"):
        replace(self_join(), streams={"R1": "trips"})


def test_a_run_brings_everything_that_was_observed() -> None:
    join = StreamJoin("R", "S", "R.x < S.x", CountWindow(9), select=["R.id", "S.id"], event_time="ts", out_of_order=1)
    late = pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "k": [0, 0, 0], "ts": [5, 9, 1]})
    run = join.run({"R": late, "S": ROWS})
    assert run.result.equals(join.collect({"R": late, "S": ROWS}))
    assert run.late.select(["stream", "offset", "reason"]).to_pylist() == [
        {"stream": "R", "offset": 2, "reason": "out of order"}
    ]
    assert (run.result, run.late) == join.collect_with_late({"R": late, "S": ROWS})
    assert run.schemas == {"R": late.schema, "S": ROWS.schema}
    assert run.metrics.total("results") == run.result.num_rows
    assert "1 rows late" in str(run.explain())


def test_a_join_says_which_columns_of_a_stream_it_reads() -> None:
    schema = pa.schema([(name, pa.int64()) for name in ("ts", "a", "b", "c", "d", "unused")])
    join = StreamJoin(
        "R", "S", "R.a < S.b", CountWindow(5), kind="left", where="R.c > 3", select=["R.d"], event_time="ts"
    )
    assert set(join.needed_columns("R", schema)) == {"ts", "a", "c", "d"}
    assert set(join.needed_columns("S", schema)) == {"ts", "b"}
    itself = StreamJoin("R", "R", "R1.a < R2.b", CountWindow(5), select=[stream("R1").c + stream("R2").d])
    assert set(itself.needed_columns("R", schema)) == {"a", "b", "c", "d"}
    everything = StreamJoin("R", "S", "R.a < S.missing", CountWindow(5))
    assert everything.needed_columns("S", schema) == ("missing", *schema.names)
    assert set(join.named_columns("R") or ()) == {"ts", "a", "c", "d"}
    assert set(itself.named_columns("R") or ()) == {"a", "b", "c", "d"}
    assert everything.named_columns("S") is None
    in_sql = StreamJoin.from_sql("SELECT R1.c, R2.d FROM R R1, R R2 WHERE R1.a < R2.b", window=CountWindow(5))
    assert set(in_sql.named_columns("R") or ()) == {"a", "b", "c", "d"}


def test_a_join_of_several_streams_says_which_columns_it_reads() -> None:
    windows = CountWindow(5)
    join = MultiJoin(["a", "b", "c"], "a.k = b.k AND b.x < c.y", windows, select=["a.id", "c.id"], event_time="ts")
    named = {stream: set(join.named_columns(stream) or ()) for stream in "abc"}
    assert named == {"a": {"ts", "k", "id"}, "b": {"ts", "k", "x"}, "c": {"ts", "y", "id"}}
    some = MultiJoin({"a": "R", "b": "S", "c": "R"}, "a.k = b.k AND b.k = c.j", windows, select=["a.id", "b.*"])
    assert set(some.named_columns("R") or ()) == {"id", "k", "j"}
    assert some.named_columns("S") is None
    assert MultiJoin(["a", "b", "c"], "a.k = b.k AND b.k = c.k", windows).named_columns("a") is None
