"""Joins as parts of topologies with a state, on machines that crash: compared with the oracle, in order.

A bolt behind the join sees all that leaves it: rows, how they are cut, watermarks and late rows (`order_sensitive.py`).
What it emits must be the same, with the same numbers, in every life.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators import (
    CountWindow,
    Engine,
    HandshakeJoin,
    IndexJoin,
    JoinError,
    MultiJoin,
    PanJoin,
    ScaleJoin,
    SplitJoin,
    SPOJoin,
    StreamJoin,
    TimeWindow,
    UnboundedWindow,
)
from tests.comparison import assert_same_result
from tests.operators.part_check import times_by_place
from tests.oracle import Comparison, Count, Kind, Linear, Time, Unbounded, Window, oracle
from tests.topology.steps.machine import ROWS, SOURCES, Machine
from tests.topology.steps.order_sensitive import Witness
from tests.topology.waiting import LONG
from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    Emit,
    Input,
    LocalRuntime,
    MapBatches,
    Origin,
    Task,
    TaskContext,
    Topology,
    TopologyBuilder,
    TopologyError,
)
from topology.process.state import with_state
from topology.steps.sequenced import tasks_with_snapshots

pytestmark = pytest.mark.filterwarnings("ignore::operators.query.errors.UnboundedStateWarning")

WINDOWS: dict[str, tuple[Window, Any]] = {
    "count": (Count(9), CountWindow(9)),
    "sliding": (Count(12, 4), CountWindow(12, 4)),
    "time": (Time(5), TimeWindow(5)),
    "unbounded": (Unbounded(), UnboundedWindow()),
}
ON_KEY = (Comparison(Linear("key"), "<", Linear("key")),)


def whole(source: str) -> pa.RecordBatch:
    """All rows of a source; `key` is what the witness looks at."""
    chance = np.random.default_rng(int.from_bytes(source.encode()))
    ids = 1000 * (ord(source[0]) - ord("a")) + 200 * int(source[1:] or 0) + np.arange(ROWS)
    return pa.record_batch(
        {"id": ids, "key": chance.integers(0, 8, ROWS), "ts": np.sort(chance.integers(0, ROWS // 2, ROWS))}
    )


def rows(source: str, first: int, count: int) -> pa.RecordBatch:
    return whole(source).slice(first, count)


@dataclass(frozen=True)
class Numbers(Bolt):
    """Emits the number of each row that it gets, as its producer counts, under the name that the witness looks at."""

    snapshots = True

    def build(self, context: TaskContext) -> Task:
        return _NumbersTask()


class _NumbersTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        yield Emit(Batch(DEFAULT_STREAM, pa.record_batch({"key": np.arange(batch.first, batch.end)})))

    def snapshot(self) -> bytes:
        return b""

    def restore(self, snapshot: bytes) -> None:
        """Do nothing: there is no state."""


def same(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def around(join: StreamJoin | MultiJoin, timed: bool = True) -> TopologyBuilder:
    """A join of an input and of a bolt, and witnesses of all that leaves it."""
    builder = TopologyBuilder("around")
    builder.input("a", Input(event_time="ts" if timed else None))
    builder.input("b", Input(event_time="ts" if timed else None))
    builder.bolt("same", MapBatches(same)).global_grouping("b")
    builder.join("pairs", join, inputs={"R": "a", "S": "same"}, event_time="later" if timed else None)
    builder.bolt("numbers", Numbers()).global_grouping("pairs")
    builder.bolt("half", Witness(), parallelism=2).shuffle_grouping("numbers")
    builder.bolt("late", Numbers()).global_grouping("pairs", "late")
    builder.bolt("last", Witness()).global_grouping("numbers").global_grouping("half").global_grouping("late")
    builder.sink("results").global_grouping("pairs")
    builder.sink("seen").global_grouping("last")
    return builder


def sources() -> dict[str, dict[str, pa.Table]]:
    return {
        "R": {source: pa.table(whole(source)) for stream, source in SOURCES if stream == "a"},
        "S": {"same": pa.table(whole("b0"))},
    }


def expected(kind: Kind, window: Window, select: list[str], timed: bool) -> pa.Table:
    time = "ts" if timed else None
    found = oracle(sources(), ("R", "R"), ("S", "S"), ON_KEY, (window, window), time, select, kind)
    if not timed:
        return found.table
    by_place = times_by_place(sources(), time, {})
    return found.table.append_column("event_time", pa.array([by_place[place] for place in found.places], pa.int64()))


def read(got: Mapping[int, tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    """The results of a sink, which have numbers without gaps."""
    assert sorted(got) == list(range(len(got)))
    columns = zip(*(got[number] for number in sorted(got)), strict=True)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)


def survived(seed: int, join: StreamJoin | MultiJoin, timed: bool = True) -> Machine:
    machine = Machine(seed, around(join, timed).build(), rows)
    machine.segment_bytes = 200
    machine.run(crashes=12, rate=0.006)
    assert machine.lives > 3
    return machine


CASES: list[tuple[Kind, str, Engine, bool]] = [
    ("left", "count", SPOJoin(elements=2, merge_interval=5), True),
    ("inner", "sliding", PanJoin(workers=2, subwindow=3), True),
    ("anti", "time", IndexJoin(threads=2), True),
    ("full", "sliding", IndexJoin(threads=2), True),
    ("inner", "time", SplitJoin(cores=2), True),
    ("inner", "count", SPOJoin(elements=2, merge_interval=5), False),
]
SLOW = (PanJoin, SplitJoin)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow) if isinstance(case[2], SLOW) else case for case in CASES],
    ids=str,
)
def test_results_of_a_part_are_those_of_the_law_after_any_crash(case: tuple[Kind, str, Engine, bool]) -> None:
    kind, window, engine, timed = case
    select = ["R.id"] if kind == "anti" else ["R.id", "S.id"]
    law, used = WINDOWS[window]
    join = StreamJoin(
        "R", "S", "R.key < S.key", used, kind=kind, event_time="ts" if timed else None, select=select, using=engine,
        step_rows=7,
    )  # fmt: skip
    machine = survived(30 + CASES.index(case), join, timed)
    wanted = expected(kind, law, select, timed)
    assert_same_result(read(machine.got["results"], wanted.schema), wanted)
    assert machine.later_starts


@pytest.mark.parametrize("window", ["count", "unbounded"])
def test_joins_of_several_streams_survive(window: str) -> None:
    """With windows that bound what they need, lives begin with snapshots; otherwise all is repeated."""
    used = WINDOWS[window][1]
    join = MultiJoin(["R", "S"], "R.key < S.key AND R.id % 4 = 0", used, event_time="ts", select=["R.id", "S.id"])
    machine = survived(2, join)
    law = WINDOWS[window][0]
    wanted = expected("inner", law, ["R.id", "S.id"], timed=True)
    found = read(machine.got["results"], wanted.schema)
    fourth = pc.equal(pc.bit_wise_and(wanted["R.id"], 3), 0)
    assert_same_result(found, wanted.filter(fourth))
    assert (machine.later_starts > 1) == (window == "count")


def test_as_of_joins_survive() -> None:
    join = StreamJoin("R", "S", "R.key = S.key AND R.ts >= S.ts", kind="asof", event_time="ts", select=["R.id", "S.id"])
    machine = survived(2, join)
    assert machine.later_starts == 0
    alone = join.collect(sources())
    got = read(machine.got["results"], alone.schema.append(pa.field("event_time", pa.int64())))
    assert_same_result(got.drop_columns("event_time"), alone)


def test_a_join_feeds_a_join_and_both_survive() -> None:
    """A row that leaves the first join at other places, or that is numbered otherwise, would change the second one."""
    window = CountWindow(6)
    one = StreamJoin("R", "S", "R.key < S.key", window, kind="left", event_time="ts", select=["R.id", "R.key"])
    times = {"P": "event_time", "Q": "ts"}
    two = StreamJoin("P", "Q", 'P."R.key" = Q.key', window, event_time=times, using=IndexJoin(threads=1), step_rows=11)
    builder = around(one)
    builder.join("both", two, inputs={"P": "pairs", "Q": "same"})
    builder.sink("both results").global_grouping("both")
    machine = Machine(8, builder.build(), rows)
    machine.segment_bytes = 200
    machine.run(crashes=12, rate=0.004)
    assert machine.later_starts > 1
    pairs = oracle(sources(), ("R", "R"), ("S", "S"), ON_KEY, (Count(6), Count(6)), "ts", ["R.id", "R.key"], "left")
    places = times_by_place(sources(), "ts", {})
    timed = pairs.table.append_column("event_time", pa.array([places[place] for place in pairs.places], pa.int64()))
    on = (Comparison(Linear("R.key"), "=", Linear("key")),)
    fed = {"P": {"pairs": timed}, "Q": {"same": pa.table(whole("b0"))}}
    far = {"P": 10**6}
    found = oracle(fed, ("P", "P"), ("Q", "Q"), on, (Count(6), Count(6)), times, out_of_order=far)
    places = times_by_place(fed, times, far)
    wanted = found.table.append_column("event_time", pa.array([places[place] for place in found.places], pa.int64()))
    assert_same_result(read(machine.got["both results"], wanted.schema), wanted)


KINDS: list[Kind] = ["inner", "left", "right", "full", "semi", "anti"]
ENGINES: list[Engine] = [
    SPOJoin(elements=2, merge_interval=5),
    PanJoin(workers=2, subwindow=3),
    IndexJoin(threads=2),
    SplitJoin(cores=2),
    ScaleJoin(threads=2),
    HandshakeJoin(cores=2),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_parts_of_all_kinds_windows_and_engines_survive(seed: int) -> None:
    chance = Random(seed)
    kind, window, engine = chance.choice(KINDS), chance.choice(sorted(WINDOWS)), chance.choice(ENGINES)
    timed = window == "time" or chance.random() < 0.7
    select = {"semi": ["R.id"], "anti": ["R.id"]}.get(kind, ["R.id", "S.id"])
    law, used = WINDOWS[window]
    join = StreamJoin(
        "R", "S", "R.key < S.key", used, kind=kind, event_time="ts" if timed else None, select=select, using=engine,
        step_rows=chance.choice([3, 7, 40, 1000]),
    )  # fmt: skip
    machine = Machine(seed, around(join, timed).build(), rows)
    machine.segment_bytes = chance.choice([200, 2_000])
    machine.run(crashes=chance.randint(3, 15), rate=chance.choice([0.003, 0.006, 0.02]))
    wanted = expected(kind, law, select, timed)
    assert_same_result(read(machine.got["results"], wanted.schema), wanted)


# --- with threads ------------------------------------------------------------------------------------


def test_results_come_when_the_rows_of_one_stream_have_ended(tmp_path: Path) -> None:
    """A bolt before the join learns that its input has ended, and so does the join: it need not wait for the others."""
    join = StreamJoin("R", "S", "R.key < S.key", CountWindow(9), event_time="ts", select=["R.id", "S.id"])
    with LocalRuntime(state=tmp_path).launch(around(join).build()) as running:
        running.open("a", "a0")
        running.open("b", "b0")
        running.send("b", pa.table({"id": [7], "key": [7], "ts": [1]}), source="b0")
        running.finish("b")
        running.send("a", pa.table({"id": [1, 2], "key": [1, 2], "ts": [2, 3]}), source="a0")
        found = next(iter(running.results("results", timeout=LONG)))
        assert found.column("R.id").to_pylist() == [1, 2]


def test_a_new_life_goes_on_with_full_windows_and_another_engine(tmp_path: Path) -> None:
    given = sources()
    found: list[dict[str, object]] = []
    for life, engine in enumerate((SPOJoin(), IndexJoin(threads=2), PanJoin())):
        select = ["R.id", "S.id"]
        join = StreamJoin("R", "S", "R.key < S.key", CountWindow(9), event_time="ts", select=select, using=engine)
        with LocalRuntime(state=tmp_path).launch(around(join).build()) as running:
            running.open("a", "a0", "a1")
            running.open("b", "b0")
            part = slice(50 * life, 50 * life + 50)
            for stream, of in (("R", "a"), ("S", "b")):
                for source, table in given[stream].items():
                    name = "b0" if of == "b" else source
                    running.send(of, table[part], source=name, offset=part.start)
            if life == 2:
                running.finish()
            for first, batch in running.results("results", numbered=True, timeout=LONG if life == 2 else 0.5):
                assert first == len(found)
                found += batch.to_pylist()
                running.acknowledge(len(found) - 1, "results")
    wanted = expected("inner", Count(9), ["R.id", "S.id"], timed=True)
    assert found == wanted.to_pylist()


def test_a_join_among_bolts_goes_on_with_another_engine_while_it_runs(tmp_path: Path) -> None:
    """Results that nobody has acknowledged come again, with the same numbers; the reader sees them once."""

    def with_engine(engine: Engine, key: str = "R.id") -> Topology:
        select = [key, "S.id"]
        join = StreamJoin("R", "S", "R.key < S.key", CountWindow(9), event_time="ts", select=select, using=engine)
        return around(join).build()

    given = sources()
    with LocalRuntime(state=tmp_path).launch(with_engine(SPOJoin())) as running:
        running.open("a", "a0", "a1")
        running.open("b", "b0")
        for life, engine in enumerate((PanJoin(workers=2), IndexJoin(threads=2), ScaleJoin(threads=2))):
            part = slice(50 * life, 50 * life + 50)
            for stream, of in (("R", "a"), ("S", "b")):
                for source, table in given[stream].items():
                    running.send(of, table[part], source="b0" if of == "b" else source)
            running.change(with_engine(engine))
        with pytest.raises(TopologyError, match="other components keep their tasks"):
            running.rebalance(same=2)
        with pytest.raises(TopologyError, match="other components keep their tasks"):
            running.change(with_engine(SPOJoin(), key="R.ts"))
        running.finish()
        found = [row for rows in running.results("results", timeout=LONG) for row in rows.to_pylist()]
    assert found == expected("inner", Count(9), ["R.id", "S.id"], timed=True).to_pylist()


def test_results_in_no_order_are_refused_with_what_to_do() -> None:
    join = StreamJoin("R", "S", "R.key < S.key", CountWindow(9), ordering="none")
    with pytest.raises(JoinError, match="leave ordering='none' out of the join"):
        with_state(around(join).build())


def test_the_plan_says_which_joins_have_no_snapshots() -> None:
    for window, says in ((CountWindow(9), False), (CountWindow(9, per_key=True), True)):
        join = StreamJoin("R", "S", "R.key = S.key", window, event_time="ts")
        topology = with_state(around(join).build())
        assert ("the log is kept whole" in topology.plan().logical()) == says
        assert (tasks_with_snapshots(topology) is None) == says


def test_a_join_whose_results_mean_something_else_is_another_topology() -> None:
    said = set()
    for on, time in (("R.key < S.key", "later"), ("R.key < S.key", "R"), ("R.key <= S.key", "later")):
        builder = TopologyBuilder("pairs")
        builder.input("a")
        builder.input("b")
        join = StreamJoin("R", "S", on, CountWindow(9), event_time="ts")
        builder.join("pairs", join, inputs={"R": "a", "S": "b"}, event_time=time)
        builder.sink().global_grouping("pairs")
        said.add(with_state(builder.build()).identity)
    assert len(said) == 3
