"""The options of SPOJoin: each gives the results of the oracle, and the plan shows the paper's elements."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CountWindow, JoinError, RunningJoin, SPOJoin, StreamJoin, TimeWindow, UnboundedWindow
from operators.engines.shared.answering import Answering
from operators.routing.merge_policy import MergePolicy
from tests.operators.oracle_check import check, join_of
from tests.operators.per_task import EachTaskAnActor
from tests.operators.seeded_run import check_schedule
from tests.oracle import Count
from tests.strategies import JoinCase, join_cases
from topology import LocalRuntime


@st.composite
def engines(draw: st.DrawFn) -> SPOJoin:
    """Every combination of options, with segments of a few rows."""
    merging: Any = draw(st.sampled_from(["adaptive", "slide", "sub-interval"]))
    mutable: Any = draw(st.sampled_from(["fused", "decomposed"]))
    state: Any = draw(st.sampled_from(["round robin", "shared cache"]))
    immutable: Any = draw(st.sampled_from(["po-join", "css-tree", "chained"]))
    return SPOJoin(
        elements=draw(st.integers(1, 3)),
        mutable=mutable,
        merge_interval=draw(st.integers(1, 8)) if merging == "adaptive" else None,
        merging=merging,
        state=state,
        immutable=immutable,
        probe_threads=draw(st.integers(1, 3)),
        intersection=draw(st.sampled_from(["permutation", "hash set"])) if mutable == "decomposed" else "permutation",
    )


def fitted(engine: SPOJoin, case: JoinCase) -> SPOJoin:
    """The engine without `merging` where a window has no slides of counted rows, since that is refused."""
    counted = all(isinstance(window, Count) for window in case.windows)
    return engine if counted else replace(engine, merging="adaptive")


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


@pytest.mark.parametrize("options", OPTIONS[3:], ids=str)
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
    assert MergePolicy.of(TimeWindow(1000, 200), None, 4, "slide").interval is None


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
        ({"state": "redis"}, "SPOJoin: state must be 'round robin' or 'shared cache', not 'redis'"),
        ({"immutable": "tree"}, "SPOJoin: immutable must be 'po-join' or 'css-tree' or 'chained'"),
        ({"merging": "never"}, "SPOJoin: merging must be 'adaptive' or"),
        ({"merging": "slide", "merge_interval": 5}, "SPOJoin: merging='slide' fixes the interval"),
        ({"intersection": "hash set"}, "SPOJoin: intersection='hash set' belongs to the decomposed plan: add"),
        ({"logical_elements": 3}, "SPOJoin: logical_elements=3 belongs to the decomposed plan: add"),
        ({"probe_threads": 0}, "SPOJoin: probe_threads must be a whole number of 1 or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        SPOJoin(**settings)


NO_COUNTED_SLIDES = [TimeWindow(100), TimeWindow(100, 10), UnboundedWindow(), CountWindow(100, 10, per_key=True)]


@pytest.mark.parametrize("merging", ["slide", "sub-interval"])
@pytest.mark.parametrize("window", NO_COUNTED_SLIDES, ids=str)
def test_merging_by_slides_that_a_window_does_not_have_is_refused(merging: Any, window: Any) -> None:
    message = f"SPOJoin: merging='{merging}' makes segments of slides that are counted in rows, which {window} does not"
    with pytest.raises(JoinError, match=re.escape(message)):
        SPOJoin(merging=merging).merge_policy(window)
    assert SPOJoin(merge_interval=10).merge_policy(window) == MergePolicy(10)


@pytest.mark.parametrize("window", [TimeWindow(100), (CountWindow(100, 10), TimeWindow(100))], ids=str)
def test_it_is_refused_when_the_topology_is_built(window: Any) -> None:
    join = replace(q1(SPOJoin(merging="slide")), window=window)
    with pytest.raises(JoinError, match="leave merging out, set merge_interval, or use a CountWindow"):
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
