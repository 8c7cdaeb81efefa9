"""A join anywhere in a topology: fed by inputs, spouts, bolts and joins, its results a stream with event time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import CountWindow, Engine, IndexJoin, JoinError, SPOJoin, StreamJoin, TimeWindow, UnboundedWindow
from tests.comparison import assert_same_result
from tests.operators.part_check import as_table, playback, run, times_by_place
from tests.operators.query.spelling import join_of
from tests.operators.surface_check import ENGINES, cores, late_rows, sampled
from tests.oracle import Comparison, Count, Kind, Linear, Time, Unbounded, Window, assert_ordered, oracle
from tests.oracle_order import PER_SECOND, Late, finest
from tests.oracle_terms import is_absent
from tests.surface import SurfaceCase, surface_cases
from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    Emit,
    Input,
    LocalRuntime,
    MapBatches,
    Origin,
    RayRuntime,
    Task,
    TaskContext,
    TaskError,
    Topology,
    TopologyBuilder,
    Watermark,
)
from topology import (
    Time as EventTime,
)

pytestmark = pytest.mark.filterwarnings("ignore::operators.query.errors.UnboundedStateWarning")


def with_components_as_sources(case: SurfaceCase) -> SurfaceCase:
    """The same case, with the names that sources have in a topology where each is a spout of its own."""
    return replace(
        case,
        sources={
            stream: {f"{stream} {name}": table for name, table in of_stream.items()}
            for stream, of_stream in case.sources.items()
        },
        cuts={(stream, f"{stream} {name}"): cut for (stream, name), cut in case.cuts.items()},
    )


def topology_of(case: SurfaceCase, join: StreamJoin, inputs: bool) -> Topology:
    """Spouts or inputs for all sources, the join, sinks for its results and for late rows."""
    builder = TopologyBuilder("in the middle")
    fed: dict[str, Any] = {}
    for stream, of_stream in case.inputs().items():
        if inputs:
            builder.input(f"{stream} rows")
            fed[stream] = (f"{stream} rows", DEFAULT_STREAM)
            continue
        for source, batches in of_stream.items():
            builder.spout(source, playback(batches))
        fed[stream] = list(of_stream)
    builder.join("pairs", join, inputs=fed)
    builder.sink("results").global_grouping("pairs")
    builder.sink("late").global_grouping("pairs", "late")
    return builder.build()


@sampled
@given(surface_cases(), st.sampled_from(sorted(ENGINES)), cores, st.booleans())
def test_a_join_in_a_topology_gives_what_the_law_says(
    case: SurfaceCase, engine: str, threads: int, inputs: bool
) -> None:
    case = case if inputs else with_components_as_sources(case)
    expected = case.expected()
    topology = topology_of(case, join_of(case, ENGINES[engine](threads)), inputs)
    sent = {f"{stream} rows": sources for stream, sources in case.inputs().items()} if inputs else None
    found = run(topology, sent=sent)

    times = times_by_place(case.sources, case.event_time, case.out_of_order)
    results = as_table(found["results"], expected.table.schema.append(pa.field("event_time", pa.int64())))
    assert_ordered(case.ordering, results.drop_columns("event_time"), expected.table, expected.places)
    shown = results["event_time"]
    shown = shown.cast(pa.int64()) if pa.types.is_temporal(shown.type) else shown
    if case.ordering in ("strict", "outer"):
        assert shown.to_pylist() == [times[place] for place in expected.places]
    by_unit = {batch.schema: [each for each in found["late"] if each.schema == batch.schema] for batch in found["late"]}
    late = [row for batches in by_unit.values() for row in late_rows(pa.Table.from_batches(batches))]
    assert sorted(late, key=lambda row: row[:3]) == [
        (row.stream, row.source, row.offset, in_its_own_unit(case, row), row.reason)
        for row in sorted(expected.late, key=lambda row: (row.stream, row.source, row.offset))
    ]


def in_its_own_unit(case: SurfaceCase, row: Late) -> Any:
    """The event time of a late row as it was sent."""
    if is_absent(row.time):
        return None
    kinds = {
        stream: next(iter(of_stream.values())).schema.field(case.event_time or "").type
        for stream, of_stream in case.sources.items()
    }
    most = finest(list(kinds.values()))
    return row.time * PER_SECOND[kinds[row.stream].unit] // most if most else row.time


def test_late_rows_of_a_part_show_their_time_as_it_was_sent() -> None:
    bounds = {"R": "1 s", "S": "1 ms"}
    join = StreamJoin("R", "S", "R.id = S.id", UnboundedWindow(), event_time="ts", out_of_order=bounds)
    builder = TopologyBuilder("units")
    for name in "RS":
        builder.input(f"{name} rows", Input(event_time="ts", out_of_order=1))
    builder.join("pairs", join, inputs={name: f"{name} rows" for name in "RS"})
    builder.sink("results").global_grouping("pairs")
    builder.sink("late").global_grouping("pairs", "late")
    sent = {
        f"{name} rows": {name: pa.table({"id": [1, 2, 3], "ts": pa.array([9, 1, 9], pa.timestamp(unit))})}
        for name, unit in (("R", "s"), ("S", "ms"))
    }
    late = {batch["stream"][0].as_py(): batch for batch in run(builder.build(), sent=sent)["late"]}
    for name, unit in (("R", "s"), ("S", "ms")):
        assert late[name]["event_time"].type == pa.timestamp(unit)
        assert late[name]["event_time"].cast(pa.int64()).to_pylist() == [1]


# --- joins that feed joins -----------------------------------------------------------------------


def numbers(seed: int, rows: int, span: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "id": pa.array(1000 * seed + np.arange(rows)),
            "a": chance.integers(0, 6, rows),
            "ts": np.sort(chance.integers(0, span, rows)),
        }
    )


FIRST = {"R": {"quotes": numbers(1, 40, 30)}, "S": {"trades/0": numbers(2, 25, 30), "trades/1": numbers(3, 25, 30)}}
T = numbers(4, 40, 34)
ON_A = (Comparison(Linear("a"), "<", Linear("a")),)
WINDOWS: dict[str, tuple[Window, Any]] = {
    "count": (Count(6), CountWindow(6)),
    "time": (Time(4), TimeWindow(4)),
    "sliding": (Time(6, 2), TimeWindow(6, 2)),
    "unbounded": (Unbounded(), UnboundedWindow()),
}


def twice(
    kind: Kind, time: str, window: tuple[Window, Any], second: tuple[Window, Any], engine: Engine, **options: Any
) -> tuple[Topology, pa.Table]:
    """Two joins in a row as a topology, and what the oracle makes of them."""
    builder = TopologyBuilder("twice")
    builder.spout("quotes", playback(FIRST["R"]["quotes"]))
    builder.spout("trades", playback(*FIRST["S"].values(), rows=3), parallelism=2)
    builder.spout("t", playback(T, rows=11))
    one = StreamJoin(
        "R", "S", "R.a < S.a", window[1], kind=kind, select=["R.id", "R.a"], event_time="ts", using=engine,
        step_rows=13, **options,
    )  # fmt: skip
    builder.join("pairs", one, inputs={"R": "quotes", "S": "trades"}, event_time=time)
    other = StreamJoin(
        "P", "T", 'P."R.a" >= T.a', second[1], event_time={"P": "event_time", "T": "ts"}, using=engine, step_rows=9
    )
    builder.join("both", other, inputs={"P": ("pairs", "results"), "T": "t"})
    builder.sink().global_grouping("both")

    first = oracle(FIRST, ("R", "R"), ("S", "S"), ON_A, (window[0], window[0]), "ts", ["R.id", "R.a"], kind)
    by_place = times_by_place(FIRST, "ts", {})
    times = [by_place[place] for place in first.places]
    if time == "R":
        times = [first.ordered["R"]["ts"][left].as_py() for left, _, _ in first.triples]
    pairs = first.table.append_column("event_time", pa.array(times, pa.int64()))
    sources = {"P": {"pairs": pairs}, "T": {"t": T}}
    on = (Comparison(Linear("R.a"), ">=", Linear("a")),)
    event_times, far = {"P": "event_time", "T": "ts"}, {"P": 10**6}
    windows = (second[0], second[0])
    expected = oracle(sources, ("P", "P"), ("T", "T"), on, windows, event_times, out_of_order=far)
    by_place = times_by_place(sources, event_times, far)
    times = [by_place[place] for place in expected.places]
    return builder.build(), expected.table.append_column("event_time", pa.array(times, pa.int64()))


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("time", ["later", "R"])
@pytest.mark.parametrize("window", ["count", "sliding"])
def test_a_join_feeds_a_join(kind: Kind, time: str, window: str) -> None:
    topology, expected = twice(kind, time, WINDOWS[window], WINDOWS["time"], SPOJoin(elements=2, merge_interval=5))
    assert expected.num_rows > 20
    assert_same_result(as_table(run(topology)["results"], expected.schema), expected)


@pytest.mark.parametrize("first", sorted(WINDOWS))
def test_windows_of_two_joins_in_a_row(first: str) -> None:
    topology, expected = twice("inner", "later", WINDOWS[first], WINDOWS["count"], IndexJoin(threads=2))
    assert_same_result(as_table(run(topology)["results"], expected.schema), expected)


@pytest.mark.parametrize("ordering", ["none", 3])
def test_a_join_in_no_order_feeds_a_join_without_losing_rows(ordering: Any) -> None:
    """Ties are then in any order, so only the number of results is a function of the input."""
    topology, expected = twice(
        "inner", "later", WINDOWS["time"], WINDOWS["unbounded"], SPOJoin(elements=3), ordering=ordering
    )
    assert as_table(run(topology)["results"], expected.schema).num_rows == expected.num_rows


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("placement", ["default", pytest.param("per-task", marks=pytest.mark.slow)])
def test_joins_in_a_row_on_ray(placement: Any) -> None:
    topology, expected = twice("left", "later", WINDOWS["count"], WINDOWS["time"], IndexJoin(threads=1))
    found = run(topology, RayRuntime(placement=placement))
    assert_same_result(as_table(found["results"], expected.schema), expected)


# --- watermarks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Witness(Bolt):
    """Fails at a row that is earlier than a watermark before it; emits the watermarks and the rows in between."""

    def build(self, context: TaskContext) -> Task:
        return _WitnessTask()


class _WitnessTask(Task):
    merges_watermarks = False

    def __init__(self) -> None:
        self._promised: EventTime | None = None
        self._rows = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        for time in batch.rows["event_time"].to_pylist():
            assert self._promised is None or time >= self._promised, (time, self._promised)
        self._rows += batch.num_rows
        return ()

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        assert origin.component == "pairs"
        assert watermark.time is not None
        assert not watermark.source
        assert self._promised is None or watermark.time > self._promised
        self._promised = watermark.time
        rows, self._rows = self._rows, 0
        yield Emit(Batch(DEFAULT_STREAM, pa.record_batch({"promised": [watermark.time], "rows": [rows]})))


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("time", ["later", "R"])
@pytest.mark.parametrize("window", sorted(WINDOWS))
def test_no_result_is_earlier_than_a_watermark_before_it(kind: Kind, time: str, window: str) -> None:
    builder = TopologyBuilder("watched")
    builder.spout("quotes", playback(FIRST["R"]["quotes"]))
    builder.spout("trades", playback(*FIRST["S"].values()), parallelism=2)
    join = StreamJoin("R", "S", "R.a < S.a", WINDOWS[window][1], kind=kind, event_time="ts", step_rows=5)
    builder.join("pairs", join, inputs={"R": "quotes", "S": "trades"}, event_time=time)
    builder.bolt("witness", Witness()).global_grouping("pairs")
    builder.sink().global_grouping("witness")
    promised = pa.Table.from_batches(run(builder.build())["results"])["promised"].to_pylist()
    kept_for_ever = window == "unbounded" and time == "R"
    last = max(table["ts"][-1].as_py() for sources in FIRST.values() for table in sources.values())
    assert promised[-1] == (FIRST["R"]["quotes"]["ts"][0].as_py() if kept_for_ever else promised[-1])
    assert kept_for_ever or promised[-1] > last / 2


# --- bolts around joins ----------------------------------------------------------------------------


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.concat_batches([rows.slice(row, 1) for row in range(rows.num_rows) for _ in range(2)])


def test_bolts_stand_before_and_after_a_join() -> None:
    builder = TopologyBuilder("around")
    builder.input("quotes", Input(event_time="ts"))
    builder.spout("trades", playback(FIRST["S"]["trades/0"]))
    builder.bolt("twice", MapBatches(doubled)).global_grouping("quotes")
    join = StreamJoin("R", "S", "R.a < S.a", CountWindow(8), select=["R.id", "S.id"], event_time="ts")
    builder.join("pairs", join, inputs={"R": "twice", "S": "trades"}, event_time=None)
    builder.bolt("again", MapBatches(doubled)).shuffle_grouping("pairs")
    builder.sink().global_grouping("again")
    quotes, trades = FIRST["R"]["quotes"], FIRST["S"]["trades/0"]
    found = run(builder.build(), sent={"quotes": {"any": quotes}})
    repeated = quotes.take(pa.array(np.repeat(np.arange(quotes.num_rows), 2)))
    sources = {"R": {"twice": repeated}, "S": {"trades": trades}}
    expected = oracle(sources, ("R", "R"), ("S", "S"), ON_A, (Count(8), Count(8)), "ts", ["R.id", "S.id"]).table
    expected = expected.take(pa.array(np.repeat(np.arange(expected.num_rows), 2)))
    assert_same_result(as_table(found["results"], expected.schema), expected)


def test_an_input_and_a_spout_may_feed_one_stream() -> None:
    """The join waits for the first source of the input, although the other has sent everything long before."""
    quotes, trades = FIRST["R"]["quotes"], FIRST["S"]["trades/0"]
    builder = TopologyBuilder("mixed")
    builder.input("sent", Input(event_time="ts"))
    builder.spout("played", playback(quotes))
    builder.spout("trades", playback(trades))
    join = StreamJoin("R", "S", "R.a < S.a", TimeWindow(3), select=["R.id", "S.id"], event_time="ts")
    builder.join("pairs", join, inputs={"R": ["played", "sent"], "S": "trades"}, event_time=None)
    builder.sink().global_grouping("pairs")
    extra = FIRST["S"]["trades/1"]
    sources = {"R": {"played": quotes, "sent/x": extra}, "S": {"trades": trades}}
    with LocalRuntime().launch(builder.build()) as running:
        while running.metrics().total("waiting_rows") < quotes.num_rows + trades.num_rows:
            assert not list(running.results(timeout=0.05))
        running.send("sent", extra, source="x")
        running.finish()
        found = list(running.results(timeout=120))
    expected = oracle(sources, ("R", "R"), ("S", "S"), ON_A, (Time(3), Time(3)), "ts", ["R.id", "S.id"]).table
    assert_same_result(as_table(found, expected.schema), expected)


# --- mistakes --------------------------------------------------------------------------------------

JOIN = StreamJoin("R", "S", "R.a < S.a", CountWindow(8), event_time="ts")


@pytest.mark.parametrize(
    ("join", "time", "said"),
    [
        (replace(JOIN, idle_after=3), "later", r"Input\(idle_after="),
        (JOIN, "ts", "must be 'later', 'R', 'S' or None"),
        (replace(JOIN, kind="right"), "R", "use 'later' or 'S'"),
        (replace(JOIN, kind="full"), "S", "use 'later'"),
        (replace(JOIN, kind="count"), "R", "use 'later'"),
        (replace(JOIN, kind="anti"), "S", "use 'later'"),
    ],
)
def test_what_has_no_meaning_in_a_topology_is_refused(join: StreamJoin, time: str, said: str) -> None:
    with pytest.raises(JoinError, match=said):
        TopologyBuilder().join("pairs", join, inputs={"R": "r", "S": "s"}, event_time=time)


def test_a_selected_column_must_not_be_called_event_time() -> None:
    from operators import stream

    join = replace(JOIN, select=[stream("R").ts.alias("event_time")])
    with pytest.raises(JoinError, match="another name"):
        TopologyBuilder().join("pairs", join, inputs={"R": "r", "S": "s"})
    TopologyBuilder().join("pairs", join, inputs={"R": "r", "S": "s"}, event_time=None)


def failing(spout: pa.Table, join: StreamJoin = JOIN) -> str:
    builder = TopologyBuilder("failing")
    builder.spout("quotes", playback(spout))
    builder.spout("trades", playback(FIRST["S"]["trades/0"]))
    builder.join("pairs", join, inputs={"R": "quotes", "S": "trades"})
    builder.sink().global_grouping("pairs")
    with pytest.raises(TaskError) as caught:
        run(builder.build())
    return str(caught.value)


def test_rows_of_a_bolt_that_go_backwards_are_refused_by_name() -> None:
    said = failing(FIRST["R"]["quotes"].take([3, 2, 1, 0, 39]))
    assert "pairs/R" in said
    assert "source 'quotes'" in said
    assert "out_of_order=" in said


def test_types_that_do_not_fit_are_refused_by_name() -> None:
    said = failing(FIRST["R"]["quotes"].set_column(2, "ts", pa.array(np.arange(40) * 0.5)))
    assert "pairs/gate" in said
    assert "event times of different types" in said
    said = failing(FIRST["R"]["quotes"].drop_columns("a"))
    assert "pairs/R" in said
    assert "column 'a', which the join needs, is missing" in said
