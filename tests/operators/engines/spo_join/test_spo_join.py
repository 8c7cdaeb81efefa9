"""The options of SPOJoin: each gives the results of the oracle, and the plan shows the paper's elements."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import SortedRun
from operators import CountWindow, JoinError, RunningJoin, SPOJoin, StreamJoin, TimeWindow, UnboundedWindow
from operators.engines.shared.answering import Answering
from operators.engines.spo_join.po_join_element import POJoinElement
from operators.engines.spo_join.segments import segment_batch
from operators.engines.spo_join.streams import STATE
from operators.protocol.limits import Limits
from operators.protocol.merge_order import Merge
from operators.protocol.sides import LEFT
from operators.routing.merge_policy import MergePolicy, MergeSchedule
from tests.operators.oracle_check import check, join_of
from tests.operators.per_task import EachTaskAnActor
from tests.operators.seeded_run import check_schedule
from tests.oracle import Count, Time
from tests.strategies import JoinCase, join_cases
from topology import Batch, LocalRuntime, Origin, Punctuation, Task, TaskContext


@st.composite
def engines(draw: st.DrawFn) -> SPOJoin:
    """Every combination of options, with segments of a few rows."""
    merging: Any = draw(st.sampled_from(["adaptive", "slide", "sub-interval"]))
    mutable: Any = draw(st.sampled_from(["fused", "decomposed"]))
    state: Any = draw(st.sampled_from(["replacement", "round robin", "shared cache"]))
    immutable: Any = draw(st.sampled_from(["po-join", "css-tree", "chained"]))
    return SPOJoin(
        elements=draw(st.integers(1, 3)),
        mutable=mutable,
        merge_interval=draw(st.integers(1, 8)) if merging == "adaptive" else None,
        merging=merging,
        state=state,
        state_interval=draw(st.none() | st.integers(1, 3)) if state == "shared cache" else None,
        immutable=immutable,
        probe_threads=draw(st.integers(1, 3)),
        intersection=draw(st.sampled_from(INTERSECTIONS)) if mutable == "decomposed" else "permutation",
    )


INTERSECTIONS: tuple[Any, ...] = ("permutation", "bit array", "bit array", "hash set")


def fitted(engine: SPOJoin, case: JoinCase) -> SPOJoin:
    """The engine without `merging` where a window has no slides, since that is refused."""
    sliding = all(isinstance(each, Count) or (isinstance(each, Time) and each.slide) for each in case.windows)
    return engine if sliding else replace(engine, merging="adaptive")


@given(join_cases(), engines(), st.integers(1, 9))
@settings(max_examples=60)
def test_results_and_their_order_are_those_of_the_oracle(case: JoinCase, engine: SPOJoin, step_rows: int) -> None:
    check(case, fitted(engine, case), LocalRuntime(), step_rows)


@given(join_cases(max_rows=60, max_sources=2), engines(), st.integers(1, 20))
@settings(max_examples=25)
def test_longer_streams_too(case: JoinCase, engine: SPOJoin, step_rows: int) -> None:
    check(case, fitted(engine, case), LocalRuntime(), step_rows)


@given(join_cases(max_rows=20, max_sources=2), engines(), st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=25)
def test_timing_makes_no_difference(case: JoinCase, engine: SPOJoin, step_rows: int, seed: int) -> None:
    """The cache may be read long before or long after the steps that it tells of."""
    check_schedule(case, join_of(case, fitted(engine, case), step_rows=step_rows), seed)


@pytest.mark.slow
@given(join_cases(max_rows=80), engines(), st.integers(1, 60))
@settings(max_examples=2000)
def test_very_many_random_joins(case: JoinCase, engine: SPOJoin, step_rows: int) -> None:
    check(case, fitted(engine, case), LocalRuntime(), step_rows)


def readings(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    power = rng.integers(0, 1000, rows)
    return pa.table({"id": np.arange(rows), "power": power, "cool": power + rng.integers(0, 40, rows)})


TABLES = {"R": readings(3000, 1), "S": readings(3000, 2)}


def q1(engine: SPOJoin, **options: Any) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        "R.power < S.power AND R.cool > S.cool",
        CountWindow(800, 100),
        select=["R.id", "S.id"],
        using=engine,
        step_rows=150,
        **options,
    )


OPTIONS: list[dict[str, Any]] = [
    {"merging": "slide"},
    {"merging": "sub-interval"},
    {"state": "shared cache"},
    {"immutable": "css-tree"},
    {"immutable": "chained", "state": "shared cache"},
    {"probe_threads": 3},
    {"mutable": "decomposed", "immutable": "css-tree", "probe_threads": 2},
    {"mutable": "decomposed", "intersection": "hash set"},
    {"mutable": "decomposed", "intersection": "bit array"},
    {"state": "replacement"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_gives_the_same_and_lets_dead_segments_go(options: dict[str, Any]) -> None:
    expected = q1(SPOJoin(elements=1)).collect(TABLES)
    assert expected.num_rows > 10_000
    interval = None if "merging" in options else 50
    join = q1(SPOJoin(elements=2, merge_interval=interval, **options))
    with join.launch(sources={"R": ["R"], "S": ["S"]}) as running:
        found = results_of(running)
        kept = running.metrics().total("segment_rows", join.engine.immutable)  # type: ignore[attr-defined]
    assert found.equals(expected.combine_chunks())
    # both windows, and what came in between two moments of letting go
    assert 800 < kept < 2 * (800 + 100 + 8 * 150)


def results_of(running: RunningJoin) -> pa.Table:
    for stream, table in TABLES.items():
        running.send(stream, table)
    running.finish()
    return pa.Table.from_batches(list(running.results())).combine_chunks()


@pytest.mark.parametrize("options", OPTIONS[3:-1], ids=str)
def test_a_tuple_with_very_many_matches_is_answered_in_pieces(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answering.__init__, "__defaults__", (16,))
    rows = 120
    table = pa.table({"id": range(rows), "x": [1] * rows})
    engine = SPOJoin(elements=1, merge_interval=10, **options)
    join = StreamJoin("R", "S", "R.x = S.x", CountWindow(1000), select=["R.id", "S.id"], using=engine, step_rows=30)
    result = join.collect({"R": table, "S": table})
    pairs = list(zip(result["R.id"].to_pylist(), result["S.id"].to_pylist(), strict=True))
    expected = []
    for row in range(rows):
        expected += [(row, earlier) for earlier in range(row)] + [(earlier, row) for earlier in range(row + 1)]
    assert pairs == expected


def test_a_slide_is_a_segment_or_as_many_as_there_are_elements() -> None:
    assert MergePolicy.of(CountWindow(1000, 200), None, 4, "slide").interval == 200
    assert MergePolicy.of(CountWindow(1000, 200), None, 4, "sub-interval").interval == 50
    assert MergePolicy.of(CountWindow(1000, 7), None, 4, "sub-interval").interval == 2
    assert MergePolicy.of(TimeWindow(1000, 200), None, 4, "slide") == MergePolicy(None, slide=200)
    assert MergePolicy.of(TimeWindow(1000, 200), None, 4, "sub-interval") == MergePolicy(None, slide=200, parts=4)
    assert MergePolicy.of(TimeWindow("10 min"), "1 min", 4) == MergePolicy(None, slide="1 min")


@pytest.mark.parametrize(
    ("times", "unit", "policy", "segments"),
    [
        ([0, 5, 9, 10, 10, 25, 31], pa.int64(), MergePolicy(None, slide=10), [(0, 3), (3, 5), (5, 6)]),
        ([0, 5, 9, 10, 10, 25, 31], pa.int64(), MergePolicy(None, slide=10, parts=2), [(0, 1), (1, 3), (3, 5), (5, 6)]),
        ([-12, -1, 0, 3, 11], pa.int64(), MergePolicy(None, slide=10), [(0, 1), (1, 2), (2, 4)]),
        ([0.5, 0.9, 1.0, 2.5, np.inf], pa.float64(), MergePolicy(None, slide=1.0), [(0, 2), (2, 3), (3, 4)]),
        ([0, 59, 60, 119, 500], pa.timestamp("s"), MergePolicy(None, slide="1 min"), [(0, 2), (2, 4)]),
        ([7, 7, 7], pa.int64(), MergePolicy(None, slide=1, parts=3), []),
    ],
)
@pytest.mark.parametrize("step", [1, 2, 100])
def test_a_segment_of_time_ends_where_the_next_begins(
    times: list[float], unit: pa.DataType, policy: MergePolicy, segments: list[tuple[int, int]], step: int
) -> None:
    schedule, column = MergeSchedule(policy), np.array(times)
    found = []
    for first in range(0, len(times), step):
        schedule.note(first, column[first : first + step], (unit, 1))
        found += schedule.due(min(first + step, len(times)), 0)
    assert [(first, end) for _, first, end in found] == segments
    assert [number for number, _, _ in found] == list(range(len(segments)))


def test_slides_of_time_are_merged_one_by_one() -> None:
    """24 slides of 125 ms come to an end in 3,000 rows; each side has as many segments, or twice as many."""
    tables = {name: table.append_column("ts", times(table.num_rows)) for name, table in TABLES.items()}
    join = replace(q1(SPOJoin(elements=2)), window=TimeWindow("800 ms", "125 ms"), event_time="ts")
    expected = join.collect(tables)
    assert expected.num_rows > 10_000
    for options, segments in (
        ({"merging": "slide"}, 2 * 23),
        ({"merging": "sub-interval"}, 2 * 47),
        ({"merge_interval": "250 ms"}, 2 * 11),
    ):
        run = replace(join, using=SPOJoin(elements=2, **options)).run(tables)  # type: ignore[arg-type]
        assert run.result.equals(expected)
        assert run.metrics.total("segments_built", "permutation") == segments


def times(rows: int) -> pa.Array:
    return pa.array(range(rows), pa.timestamp("ms"))


def test_each_strategy_lets_go_of_a_segment_when_it_is_told() -> None:
    """Element 0 of 2 holds segments 0 and 2; the first has expired. It hears of 3, of the cache, and of 4."""
    held: dict[str, list[int]] = {}
    for state in ("replacement", "round robin", "shared cache"):
        element = POJoinElement((False,), True, state=state)
        task = element.build(TaskContext("po-join", 0, 2, ORIGINS))
        for segment in (0, 2):
            order = Merge(LEFT, segment, 10 * segment, 10 * segment + 10)
            run = SortedRun(np.arange(10), np.arange(10), 10)
            feed(task, segment_batch(order, [run], (0, 0), None))
            feed(task, order.to_batch())
        held[state] = []
        for message in (
            Limits(live=(15, 0)).to_batch(),
            Punctuation(5),
            Merge(LEFT, 3, 30, 40).to_batch(),
            replace(Limits(live=(15, 0)).to_batch(), stream=STATE.name),
            Punctuation(6),
            Merge(LEFT, 4, 40, 50).to_batch(),
        ):
            feed(task, message)
            held[state].append(int(task.metrics()["segments"]))
    assert held == {
        "replacement": [2, 2, 2, 2, 2, 1],
        "round robin": [2, 2, 1, 1, 1, 1],
        "shared cache": [2, 2, 2, 2, 1, 1],
    }


ORIGINS = (Origin("router", 0, 0), Origin("permutation", 0, 1))


def feed(task: Task, message: Batch | Punctuation) -> None:
    take = task.on_batch if isinstance(message, Batch) else task.on_punctuation
    list(take(message, ORIGINS[0]))  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["permutation", "bit array", "hash set"])
def test_predicates_are_intersected_as_asked_for(way: Any) -> None:
    metrics = q1(SPOJoin(mutable="decomposed", intersection=way)).run(TABLES).metrics.of("logical-and")
    made = {name for task in metrics for name in task.own if name.startswith("intersections:")}
    assert made == {f"intersections:{way}"}


def test_the_cache_is_read_at_its_interval() -> None:
    told = []
    for interval in (None, 1, 3):
        join = q1(SPOJoin(elements=1, merge_interval=50, state="shared cache", state_interval=interval))
        assert f"read every {interval or 4} steps" in str(join.plan())
        metrics = join.run(TABLES).metrics.of("state-cache")[0]
        told.append(metrics.batches_out / metrics.batches_in)
    assert told == pytest.approx([1 / 4, 1, 1 / 3], abs=0.05)


def test_the_plan_shows_the_elements_of_the_paper() -> None:
    join = q1(SPOJoin(elements=2, state="shared cache", probe_threads=2))
    assert components(join) >= {"mutable", "permutation", "po-join", "state-cache"}
    plan = str(join.plan())
    assert "TieredRuns: " in plan
    assert "state: shared cache, 2 threads" in plan
    join = q1(SPOJoin(mutable="decomposed", immutable="chained", intersection="hash set"))
    assert components(join) >= {"predicate-0", "predicate-1", "logical-and", "merge", "chained"}
    plan = str(join.plan())
    assert "state: round robin" in plan
    assert "intersection by hash set" in plan
    assert "css-tree" in components(q1(SPOJoin(immutable="css-tree")))


def components(join: StreamJoin) -> set[str]:
    return {node.name for node in join.topology().nodes}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"state": "redis"}, "SPOJoin: state must be 'replacement' or 'round robin' or 'shared cache', not 'redis'"),
        ({"immutable": "tree"}, "SPOJoin: immutable must be 'po-join' or 'css-tree' or 'chained'"),
        ({"merging": "never"}, "SPOJoin: merging must be 'adaptive' or"),
        ({"merging": "slide", "merge_interval": 5}, "SPOJoin: merging='slide' fixes the interval"),
        ({"intersection": "hash set"}, "SPOJoin: intersection='hash set' belongs to the decomposed plan: add"),
        ({"logical_elements": 3}, "SPOJoin: logical_elements=3 belongs to the decomposed plan: add"),
        ({"state_interval": 3}, "SPOJoin: state_interval belongs to the cache: add state='shared cache'"),
        ({"state": "shared cache", "state_interval": 0}, "SPOJoin: state_interval must be a whole number of 1 or more"),
        ({"merge_interval": "soon"}, "SPOJoin: merge_interval: "),
        ({"merge_interval": timedelta(0)}, "SPOJoin: merge_interval must be more than"),
        ({"probe_threads": 0}, "SPOJoin: probe_threads must be a whole number of 1 or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        SPOJoin(**settings)


NO_SLIDES = [TimeWindow(100), UnboundedWindow(), CountWindow(100, 10, per_key=True)]


@pytest.mark.parametrize("merging", ["slide", "sub-interval"])
@pytest.mark.parametrize("window", NO_SLIDES, ids=str)
def test_merging_by_slides_that_a_window_does_not_have_is_refused(merging: Any, window: Any) -> None:
    message = f"SPOJoin: merging='{merging}' makes segments of slides, and {window} has none that hold for all keys"
    with pytest.raises(JoinError, match=re.escape(message)):
        SPOJoin(merging=merging).merge_policy(window)
    assert SPOJoin(merge_interval=10).merge_policy(window) == MergePolicy(10)
    with pytest.raises(
        JoinError, match="merge_interval='1 min' is a time, and "
    ):
        SPOJoin(merge_interval="1 min").merge_policy(window)


@pytest.mark.parametrize("window", [TimeWindow(100), (CountWindow(100, 10), TimeWindow(100))], ids=str)
def test_it_is_refused_when_the_topology_is_built(window: Any) -> None:
    join = replace(q1(SPOJoin(merging="slide")), window=window)
    with pytest.raises(JoinError, match="leave merging out, set merge_interval, or use a TimeWindow with a slide"):
        join.topology()


@pytest.mark.usefixtures("ray_cluster")
def test_every_element_of_the_paper_is_an_actor_of_its_own_on_ray() -> None:
    join = q1(SPOJoin(elements=2, merge_interval=60, mutable="decomposed"))
    found = {component.rstrip("0123456789-") for component, _ in join.topology().task_names}
    assert {"router", "predicate", "logical-and", "permutation", "po-join"} <= found
    assert join.collect(TABLES, EachTaskAnActor()).combine_chunks().equals(join.collect(TABLES).combine_chunks())


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_ray_and_the_embedded_runtime_agree_to_the_byte() -> None:
    engine = SPOJoin(elements=1, merge_interval=60, immutable="css-tree", state="shared cache", probe_threads=2)
    expected = q1(replace(engine, immutable="po-join")).collect(TABLES)
    assert q1(engine).collect(TABLES, EachTaskAnActor()).combine_chunks().equals(expected.combine_chunks())
