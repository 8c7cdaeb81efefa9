"""Joins of several streams give exactly what the law says, in its order, however they probe."""

from __future__ import annotations

import os
import pickle
import re
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from operators import (
    CountWindow,
    JoinError,
    MultiJoin,
    PredicateError,
    QueryError,
    StreamJoin,
    TimeWindow,
    UnboundedWindow,
    stream,
)
from operators.multi_topology import multi_topology
from operators.multiway import multi_element
from tests import oracle_terms as term
from tests.comparison import assert_same_result, assert_same_rows
from tests.key_families import FAMILIES, Family, column, fits
from tests.operators.multiway.random_several import random_case
from tests.operators.part_check import as_table, playback, run
from tests.oracle import oracle
from tests.oracle_several import oracle_several
from tests.oracle_windows import Count, Time, Unbounded
from topology import (
    Batch,
    Origin,
    Punctuation,
    RayRuntime,
    Runtime,
    SchemaError,
    TaskContext,
    TopologyBuilder,
    Workers,
)

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")


def check(seed: int, runtime: Runtime | None = None) -> None:
    case = random_case(seed)
    expected = case.expected()
    run = case.join(sql=seed % 2 == 0).run(case.sources, runtime)
    assert_same_result(run.result, expected.table)
    late = [tuple(row.values())[:3] for row in run.late.to_pylist()]
    assert sorted(late) == sorted((row.stream, row.source, row.offset) for row in expected.late)


@pytest.mark.parametrize("part", range(8))
def test_random_joins_give_what_the_law_says(part: int) -> None:
    for seed in range(part, 160, 8):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_joins_give_what_the_law_says(part: int) -> None:
    for seed in range(1000 + part, 6000, 20):
        check(seed)


@pytest.mark.parametrize("seed", range(10, 30))
def test_duckdb_finds_the_same_combinations_where_nothing_expires(seed: int) -> None:
    case = random_case(seed, most_rows=30)
    case = replace(case, out_of_order={}, select=[f"{role}.id" for role in case.roles])
    chance = np.random.default_rng(seed)
    tables = {}
    for stream_name, of_stream in case.sources.items():
        whole = pa.concat_tables(of_stream.values())
        tables[stream_name] = whole.take(chance.permutation(whole.num_rows))
    join = MultiJoin(case.roles, case.on.sql(), UnboundedWindow(), select=case.select)
    found = join.collect(dict(tables.items()))
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    apart = [
        f"{one}.id <> {other}.id"
        for number, one in enumerate(case.roles)
        for other in list(case.roles)[number + 1 :]
        if case.roles[one] == case.roles[other]
    ]
    shown = ", ".join(f'{role}.id AS "{role}.id"' for role in case.roles)
    froms = ", ".join(f"{name} AS {role}" for role, name in case.roles.items())
    where = " AND ".join([case.on.sql(), *apart])
    expected = connection.sql(f"SELECT {shown} FROM {froms} WHERE {where}").to_arrow_table()
    assert_same_rows(found, expected)


@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
def test_missing_values_of_every_type_find_each_other(family: Family) -> None:
    chance = Random(f"missing {family.name}")
    kinds = [(kind, chance.choice(family.types)) for kind in family.types]
    on = term.Not(term.Distinct(term.Column(0, "p"), term.Column(1, "p")))
    for pair in kinds:
        sources = {}
        for stream_name, kind in zip("ab", pair, strict=True):
            pool = [value for value in family.pool(kind, hostile=True) if all(fits(value, each) for each in pair)]
            values = [chance.choice([None, chance.choice(pool or family.pool(kind, hostile=True))]) for _ in range(8)]
            sources[stream_name] = {stream_name: pa.table({"id": range(8), "p": column(values, kind)})}
        shown = ["a.id", "b.id"]
        expected = oracle(sources, ("a", "a"), ("b", "b"), on, (Unbounded(), Unbounded()), None, shown).table
        join = MultiJoin(["a", "b"], "a.p IS NOT DISTINCT FROM b.p", UnboundedWindow(), select=shown)
        assert [link.null_safe for link in join.condition.links] == [True]
        assert_same_rows(join.collect(sources), expected)


def test_the_rows_of_the_others_expire_where_one_stream_has_none() -> None:
    windows = (CountWindow(10), TimeWindow(5), CountWindow(10))
    join = MultiJoin(["a", "b", "c"], ON, windows, event_time="ts", step_rows=50)
    run = join.run({"a": SOURCES["a"], "b": SOURCES["b"], "c": {}})
    assert run.result.num_rows == 0
    assert run.metrics.total("a_live") <= 10 + 50
    assert run.metrics.total("b_live") <= 50 + 50


def test_indexes_that_no_order_uses_are_dropped() -> None:
    """Keys of a and b agree rarely at first, then those of b and c: rows of b change the order of probing."""
    rare, often = np.arange(2000), np.zeros(2000, np.int64)

    def rows(first: Any, second: Any) -> pa.Table:
        return pa.table({"k": np.concatenate(first), "m": np.concatenate(second)})

    join = MultiJoin(["a", "b", "c"], "a.k = b.k AND b.m = c.m AND a.m < c.k", CountWindow(40), step_rows=20)
    element = multi_topology(join.resolved).node("multi-join").component
    task = element.build(TaskContext("multi-join", 0, 1))
    assert isinstance(task, multi_element.MultiTask)
    sent = {
        "a": rows((rare, often), (often, rare)), "b": rows((rare, often), (often, rare)),
        "c": rows((often, rare), (often, rare)),
    }  # fmt: skip
    seen: set[Any] = set()
    for at in range(0, 4000, 20):
        for place, name in enumerate("abc"):
            seqs = pa.array(range(3 * at + 20 * place, 3 * at + 20 * place + 20), pa.int64())
            step = sent[name].slice(at, 20).append_column("#time", seqs).append_column("#seq", seqs)
            task.on_batch(Batch(name, step.combine_chunks().to_batches()[0], first=at), Origin("gate", 0, 0))
        list(task.on_punctuation(Punctuation(3 * at + 59), Origin("gate", 0, 0)))
        task.check_invariants()
        seen |= task._indexes.keys()
        used = {(role, links) for role, links in task._indexes}
        orders = task.details()["orders"]
        assert len(used) <= sum(len(stages) for stages in orders.values())
    assert len(task._indexes) < len(seen)


# --- larger windows, so that indexes are chosen, expire and are probed in several orders --------------


def table(seed: int, rows: int, keys: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(rows) + 10**6 * seed,
            "k": chance.integers(0, keys, rows),
            "x": chance.random(rows).round(3),
            "ts": np.sort(chance.integers(0, rows, rows)),
        }
    )


SOURCES = {"a": {"a": table(1, 900, 60)}, "b": {"b": table(2, 900, 60)}, "c": {"c": table(3, 900, 60)}}
ON = "a.k = b.k AND b.k = c.k AND a.x < c.x"


def matches(rows: Any) -> bool:
    a, b, c = rows["a"], rows["b"], rows["c"]
    return bool(a["k"] == b["k"] and b["k"] == c["k"] and a["x"] < c["x"])


@pytest.mark.parametrize("most", [1 << 21, 50])
@pytest.mark.parametrize("step_rows", [64, 1000])
def test_windows_larger_than_a_step_and_steps_larger_than_memory(
    most: int, step_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi_element, "MOST", most)
    monkeypatch.setattr(multi_element, "PIECE_ROWS", 16)  # several threads work on a step
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    windows: dict[str, Any] = {"a": CountWindow(300), "b": TimeWindow(250, 50), "c": CountWindow(280, 7)}
    select = ["a.id", "b.id", "c.id"]
    join = MultiJoin(["a", "b", "c"], ON, windows, select=select, event_time="ts", step_rows=step_rows)
    expected = oracle_several_by_key()
    assert expected.num_rows > 3000
    assert_same_result(join.collect(SOURCES), expected)


_KNOWN: list[pa.Table] = []


STRUCTURES = {
    "SPOJoin": "TieredRuns",
    "IndexJoin": "PIMTree",
    "PanJoin": "BISort",
    "PanJoin, tables": "RaPTable",
    "PanJoin, trees": "WiBPlusTree",
    "ScaleJoin": "NestedLoop",
}


@pytest.mark.parametrize("engine", STRUCTURES)
def test_the_structure_of_every_engine_serves_any_step(engine: str) -> None:
    windows: dict[str, Any] = {"a": CountWindow(300), "b": TimeWindow(250, 50), "c": CountWindow(280, 7)}
    for number, role in enumerate("abc"):
        others = dict(zip("abc"[number + 1 :] + "abc"[:number], ("HashIndex", "auto"), strict=True))
        indexes = {role: STRUCTURES[engine], **others}
        join = MultiJoin(["a", "b", "c"], ON, windows, select=["a.id", "b.id", "c.id"], event_time="ts", index=indexes)
        run = join.run(SOURCES)
        assert_same_result(run.result, oracle_several_by_key())
        assert re.search(rf"{role} \(about [^)]* by {STRUCTURES[engine]}\)", str(run.explain()))


def oracle_several_by_key() -> pa.Table:
    """The oracle over all combinations takes long; rows of different keys never meet, and windows count all rows."""
    if not _KNOWN:
        _KNOWN.append(_by_key())
    return _KNOWN[0]


def _by_key() -> pa.Table:
    from tests.oracle_order import gate
    from tests.oracle_windows import live

    streams, _ = gate(SOURCES, "ts", {})
    windows: dict[str, Any] = {"a": Count(300), "b": Time(250, 50), "c": Count(280, 7)}
    rows = {name: stream.values() for name, stream in streams.items()}
    found: list[tuple[Any, ...]] = []
    for latest in streams:
        for position, (seq, time) in enumerate(zip(streams[latest].seqs, streams[latest].times, strict=True)):
            choices = {}
            for name, other in streams.items():
                before = int(np.searchsorted(other.seqs, seq))
                alive = live(windows[name], None, time, other.times, before)
                key = rows[latest][position]["k"]
                choices[name] = [position] if name == latest else [y for y in alive if rows[name][y]["k"] == key]
            for a in choices["a"]:
                for b in choices["b"]:
                    for c in choices["c"]:
                        if matches({"a": rows["a"][a], "b": rows["b"][b], "c": rows["c"][c]}):
                            chosen = {"a": a, "b": b, "c": c}
                            others = [streams[name].seqs[chosen[name]] for name in streams if name != latest]
                            ids = [rows[name][chosen[name]]["id"] for name in streams]
                            found.append((seq, *others, ids))
    found.sort()
    return pa.table({f"{name}.id": [each[-1][column] for each in found] for column, name in enumerate("abc")})


def test_the_order_of_probing_follows_what_links_leave_and_is_explained() -> None:
    """a and b agree in one of 5 keys, b and c in one of 400: rows of b ask c first, rows of a have no choice but b."""
    chance = np.random.default_rng(1)

    def rows(seed: int, few: int, many: int) -> pa.Table:
        return pa.table({"few": chance.integers(0, few, 3000), "many": chance.integers(0, many, 3000)})

    join = MultiJoin(["a", "b", "c"], "a.few = b.few AND b.many = c.many", CountWindow(500), select=["a.few"])
    run = join.run({"a": rows(1, 5, 2), "b": rows(2, 5, 400), "c": rows(3, 2, 400)})
    (task,) = run.metrics.of("multi-join")
    orders = {latest: [stage["stream"] for stage in stages] for latest, stages in task.details["orders"].items()}
    assert orders == {"a": ["b", "c"], "b": ["c", "a"], "c": ["b", "a"]}
    said = str(run.explain())
    assert "a row of b probes c (about 1" in said
    assert "HashIndex" in said
    assert "a.few = b.few: by keys of a and b, one value" in str(join.explain())


def test_the_handle_knows_the_streams_and_the_condition() -> None:
    join = MultiJoin(["a", "b", "c"], "a.x < b.x AND b.x < c.x", CountWindow(5), event_time="ts", select=["a.x", "c.x"])

    def rows(*times: int) -> pa.Table:
        return pa.table({"x": times, "ts": pa.array(times, pa.timestamp("s"))})

    with join.launch(sources={"a": ["a"], "b": ["b", "late"], "c": ["c"]}) as running:
        running.send("a", rows(1, 2), source="a")
        assert running.result_schema().types == [pa.null(), pa.null()]
        with pytest.raises(SchemaError, match="'a', 'b', 'c'"):
            running.pin("b", pa.schema({"x": pa.int64(), "ts": pa.timestamp("s")}))
            running.send("c", pa.table({"x": ["text"], "ts": pa.array([3], pa.timestamp("ms"))}))
        running.send("b", pa.table({"x": [3, 9], "ts": pa.array([3, None], pa.timestamp("s"))}), source="b")
        running.finish("b", "late")
        running.send("c", pa.table({"x": [4], "ts": pa.array([3500], pa.timestamp("ms"))}), source="c")
        running.finish()
        found = pa.Table.from_batches(running.results())
        late = pa.Table.from_batches(running.late(), running.late_schema())
        assert "join of a, b, c" in str(running.explain())
        with pytest.raises(JoinError, match="one element"):
            running.rebalance(multi_join=2)
    assert running.result_schema() == found.schema
    assert found.to_pydict() == {"a.x": [1, 2], "c.x": [4, 4]}
    assert late.to_pydict()["reason"] == ["no event time"]
    assert late.schema.field("event_time").type == pa.timestamp("ms")


# --- in topologies ---------------------------------------------------------------------------------


def several_in_a_row(time: str) -> tuple[TopologyBuilder, pa.Table]:
    """A join of three streams that feeds a join of two."""
    small = {name: {name: table(seed, 60, 5)} for name, seed in (("a", 4), ("b", 5), ("c", 6))}
    late_stream = table(7, 60, 5)
    builder = TopologyBuilder("several")
    for name, sources in small.items():
        builder.spout(name, playback(sources[name]))
    builder.spout("d", playback(late_stream))
    windows = (Count(12), Time(15), Count(10))
    join = MultiJoin(
        ["a", "b", "c"], ON, [CountWindow(12), TimeWindow(15), CountWindow(10)], select=["a.id", "c.x"],
        event_time="ts", step_rows=17,
    )  # fmt: skip
    builder.join("three", join, inputs={name: name for name in small}, event_time=time)
    event_times = {"m": "event_time", "d": "ts"}
    second = StreamJoin("m", "d", 'm."c.x" < d.x', TimeWindow(4), event_time=event_times, select=["m.a.id", "d.id"])
    builder.join("more", second, inputs={"m": "three", "d": "d"}, event_time=None)
    builder.sink().global_grouping("more")

    first = oracle_several(small, {"a": "a", "b": "b", "c": "c"}, matches, windows, "ts", ["a.id", "c.x", "b.ts"])
    times = first.times if time == "later" else first.table["b.ts"].to_pylist()
    middle = first.table.drop_columns("b.ts").append_column("event_time", pa.array(times, pa.int64()))
    from tests.oracle import Comparison, Linear

    on = (Comparison(Linear("c.x"), "<", Linear("x")),)
    sources = {"m": {"three": middle}, "d": {"d": late_stream}}
    expected = oracle(
        sources, ("m", "m"), ("d", "d"), on, (Time(4), Time(4)), event_times, ["m.a.id", "d.id"],
        out_of_order={"m": 10**6},
    )  # fmt: skip
    return builder, expected.table


@pytest.mark.parametrize("time", ["later", "b"])
def test_a_join_of_several_streams_feeds_a_join(time: str) -> None:
    builder, expected = several_in_a_row(time)
    assert expected.num_rows > 50
    assert_same_result(as_table(run(builder.build())["results"], expected.schema), expected)


@pytest.mark.usefixtures("ray_cluster")
def test_a_join_of_several_streams_on_ray() -> None:
    windows: dict[str, Any] = {"a": CountWindow(300), "b": TimeWindow(250, 50), "c": CountWindow(280, 7)}
    join = MultiJoin(["a", "b", "c"], ON, windows, select=["a.id", "b.id", "c.id"], event_time="ts", step_rows=500)
    assert_same_result(join.collect(SOURCES, RayRuntime(placement="per-task")), oracle_several_by_key())
    check(3, RayRuntime(placement=Workers(3)))


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("seed", range(40, 50))
def test_random_joins_of_several_streams_on_ray(seed: int) -> None:
    check(seed, RayRuntime(placement="per-task"))


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((["a"], "a.x < b.x", CountWindow(3)), "two streams or more"),
        ((["a", "b", "a"], "a.x < b.x", CountWindow(3)), "names 'a' twice"),
        ((["a", "b", "c"], "a.x < b.x", [CountWindow(3)]), "a list of 3"),
        ((["a", "b", "c"], "a.x < b.x", {"a": CountWindow(3)}), "'b' has none"),
        ((["a", "b"], "a.x < b.x", {"a": CountWindow(3), "b": CountWindow(3), "z": CountWindow(3)}), "no role 'z'"),
        ((["a", "b"], "a.x = b.x", CountWindow(3, per_key=True)), "join of two streams"),
        ((["a", "late"], "a.x < late.x", CountWindow(3)), "cannot be called 'late'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, said: str) -> None:
    with pytest.raises(JoinError, match=said):
        MultiJoin(*arguments)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("Tree", "index must be one of auto, .*; not 'Tree'"),
        ({"a": "Tree"}, "index must be one of auto, .*; not 'Tree'"),
        ({"a": "auto", "z": "PIMTree"}, "this join has no role 'z': give indexes to 'a', 'b'"),
    ],
)
def test_wrong_indexes_are_refused(index: Any, said: str) -> None:
    with pytest.raises(JoinError, match=said):
        MultiJoin(["a", "b"], "a.x < b.x", CountWindow(3), index=index)
    with pytest.raises(JoinError, match=said):
        MultiJoin.from_sql("SELECT * FROM a, b WHERE a.x < b.x WINDOW AS (ROWS 3)", index=index)


def test_columns_of_unknown_streams_are_refused() -> None:
    with pytest.raises(PredicateError, match="no stream z in this join: its sides are a and b and c"):
        MultiJoin(["a", "b", "c"], "a.x < z.x", CountWindow(3))
    with pytest.raises(PredicateError, match=r"write a\.x or b\.x or c\.x"):
        MultiJoin(["a", "b", "c"], stream("a").x < stream("z").x, CountWindow(3))
    with pytest.raises(JoinError, match=r"select: .* write a\.x or b\.x"):
        MultiJoin(["a", "b"], "a.x < b.x", CountWindow(3), select=[stream("z").x])
    with pytest.raises(JoinError, match=r"must start with 'a\.' or 'b\.'"):
        MultiJoin(["a", "b"], "a.x < b.x", CountWindow(3), select=["x"])


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM a WHERE a.x < 3 WINDOW AS (ROWS 3)", "two streams or more"),
        ("SELECT * FROM a, b, a WHERE a.x < b.x WINDOW AS (ROWS 3)", "two streams are called a"),
        ("SELECT * FROM a, b, c WINDOW AS (ROWS 3)", "no condition"),
        ("SELECT * FROM a JOIN b ON a.x < b.x LEFT JOIN c ON b.x < c.x WINDOW AS (ROWS 3)", "inner join"),
        ("SELECT COUNT(*) FROM a, b, c WHERE a.x < b.x WINDOW AS (ROWS 3)", "two streams"),
        ("SELECT * FROM a, b, c WHERE a.x < b.x WINDOW a AS (ROWS 3), b AS (ROWS 3)", "c has no window"),
        ("SELECT * FROM a, b, c WHERE a.x < b.x", "no windows"),
        ("SELECT y FROM a, b, c WHERE a.x < b.x WINDOW AS (ROWS 3)", "write a.y or b.y or c.y"),
        ("SELECT * FROM a JOIN b ON a.x = b.x JOIN c USING (k) WINDOW AS (ROWS 3)", r"write ON a\.k = c\.k or ON b\.k"),
        ("SELECT * FROM a, b, c WHERE near(a.x, b.x) WINDOW AS (ROWS 3)", r"'near': f\} to MultiJoin\.from_sql"),
    ],
)
def test_wrong_queries_are_refused(sql: str, said: str) -> None:
    with pytest.raises((QueryError, JoinError), match=said):
        MultiJoin.from_sql(sql)


def test_two_streams_are_advised_to_use_several() -> None:
    with pytest.raises(QueryError, match=r"use MultiJoin\.from_sql"):
        StreamJoin.from_sql("SELECT * FROM a, b, c WHERE a.x < b.x WINDOW AS (ROWS 3)")


def test_sql_with_join_and_cross_join() -> None:
    rows = {"a": {"x": [1, 2]}, "b": {"x": [2, 3]}, "c": {"x": [5]}}
    windows = "WINDOW a AS (ROWS 9), b AS (ROWS 9), c AS (ROWS 9)"
    sql = f"SELECT a.x, b.x, c.x FROM a JOIN b ON a.x < b.x CROSS JOIN c {windows}"
    found = MultiJoin.from_sql(sql).collect(rows)
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [(1, 2, 5), (1, 3, 5), (2, 3, 5)]


def test_types_that_do_not_fit_are_refused_before_anything_runs() -> None:
    join = MultiJoin(["a", "b", "c"], "a.x < b.x AND b.x < c.x", CountWindow(3))
    with pytest.raises(SchemaError, match="'a', 'b', 'c'"):
        join.collect({"a": {"x": [1]}, "b": {"x": [1]}, "c": {"x": ["text"]}})
    timed = MultiJoin(["a", "b", "c"], "a.x < b.x", CountWindow(3), event_time="x")
    with pytest.raises(SchemaError, match="cannot be merged"):
        timed.collect({"a": {"x": [1]}, "b": {"x": [1.5]}, "c": {"x": [1]}})
    with pytest.raises(SchemaError, match="column 'x', which the join needs, is missing"):
        join.collect({"a": {"y": [1]}, "b": {"x": [1]}, "c": {"x": [1]}})


def test_a_join_is_a_value() -> None:
    join = MultiJoin(["a", "b", "c"], ON, CountWindow(3), select=["a.id"], event_time="ts")
    assert join == MultiJoin(["a", "b", "c"], ON, CountWindow(3), select=["a.id"], event_time="ts")
    assert join != MultiJoin(["a", "b", "c"], ON, CountWindow(4), select=["a.id"], event_time="ts")
    assert pickle.loads(pickle.dumps(join)) == join
