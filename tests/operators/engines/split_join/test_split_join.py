"""SplitJoin against the oracle, and what is special about it: its trees, its shares, the loss of a core."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CountWindow, JoinError, StreamJoin, TimeWindow
from operators.engines.shared.answering import Answering
from operators.engines.split_join.description import SplitJoin
from operators.engines.split_join.distribution_tree import parent, tree_levels
from operators.engines.split_join.join_core import JoinCore
from tests.operators.engines.readings import readings
from tests.operators.oracle_check import check, join_of
from tests.operators.per_task import EachTaskAnActor
from tests.operators.seeded_run import check_schedule, run_seeded
from tests.oracle import Comparison, Count, Linear, oracle
from tests.strategies import JoinCase, join_cases
from topology import Batch, LocalRuntime, Punctuation
from topology.graph.messages import Message

CORES = [1, 2, 3, 4, 5, 7, 8, 12, 16]


@st.composite
def engines(draw: st.DrawFn) -> SplitJoin:
    return SplitJoin(
        cores=draw(st.sampled_from(CORES)),
        fanout=draw(st.integers(2, 5)),
        index=draw(st.sampled_from([None, "auto", "TieredRuns", "BPlusTree"])),
    )


@given(join_cases(), engines(), st.integers(1, 9))
@settings(max_examples=40)
def test_results_and_their_order_are_those_of_the_oracle(case: JoinCase, engine: SplitJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(max_rows=8, max_sources=2), engines(), st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=15)
def test_timing_makes_no_difference(case: JoinCase, engine: SplitJoin, step_rows: int, seed: int) -> None:
    check_schedule(case, join_of(case, engine, step_rows=step_rows), seed)


@pytest.mark.slow
@given(join_cases(max_rows=60), engines(), st.integers(1, 40))
@settings(max_examples=500)
def test_many_random_joins(case: JoinCase, engine: SplitJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@pytest.mark.parametrize("window", [CountWindow(50), TimeWindow(60)], ids=["passive expiry", "active expiry"])
def test_any_number_of_cores_gives_the_same(window: CountWindow | TimeWindow) -> None:
    tables = {"R": readings(300, 1), "S": readings(300, 2)}
    results = [
        StreamJoin("R", "S", "abs(R.x - S.x) <= 3", window, event_time="ts", using=engine, step_rows=40).collect(tables)
        for engine in (SplitJoin(1), SplitJoin(2), SplitJoin(4), SplitJoin(8, fanout=2), SplitJoin(11, fanout=3))
    ]
    assert results[0].num_rows > 1000
    assert all(result.equals(results[0]) for result in results[1:])


def test_a_row_with_very_many_matches_passes_the_tree_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering.__init__, "__defaults__", (16,))
    rows = 120
    table = pa.table({"id": range(rows), "x": [1] * rows})
    join = StreamJoin(
        "R", "S", "R.x = S.x", CountWindow(1000), select=["R.id", "S.id"], using=SplitJoin(5, fanout=2), step_rows=30
    )
    result = join.collect({"R": table, "S": table})
    pairs = list(zip(result["R.id"].to_pylist(), result["S.id"].to_pylist(), strict=True))
    expected = []
    for row in range(rows):
        expected += [(row, earlier) for earlier in range(row)] + [(earlier, row) for earlier in range(row + 1)]
    assert pairs == expected


@pytest.mark.parametrize("fanout", [2, 3, 4, 16])
@pytest.mark.parametrize("cores", range(1, 17))
def test_the_trees_use_their_fanout_before_they_grow_in_depth(cores: int, fanout: int) -> None:
    levels = tree_levels(cores, fanout)
    assert len(levels) == max(1, math.ceil(math.log(cores, fanout) - 1e-9))
    for parents, children in zip(levels, [*levels[1:], cores], strict=True):
        served = [parent(child, children, parents) for child in range(children)]
        counts = [served.count(number) for number in range(parents)]
        assert served == sorted(served)
        assert min(counts) >= 1
        assert max(counts) <= fanout
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("cores", CORES)
def test_one_path_leads_to_each_core_and_one_from_it(cores: int) -> None:
    topology = join(SplitJoin(cores=cores, fanout=2)).topology()
    for number in range(cores):
        down = path(topology.producers, f"join-core-{number}", "router")
        assert [name.rsplit("-")[0] for name in down] == ["distribution"] * len(tree_levels(cores, 2))
        up = path(topology.consumers, f"join-core-{number}", "combiner")
        assert [name.rsplit("-")[0] for name in up] == ["merger"] * len(tree_levels(cores, 2))


def path(neighbours: Any, start: str, stop: str) -> list[str]:
    """The components between two, where each has one neighbour in that direction."""
    found: list[str] = []
    (at,) = neighbours(start)
    while at != stop:
        found.append(at)
        (at,) = neighbours(at)
    return found


def join(engine: SplitJoin, **options: Any) -> StreamJoin:
    return StreamJoin("R", "S", "R.x <= S.x", CountWindow(30), select=["R.id", "S.id"], using=engine, **options)


def test_the_plan_shows_the_elements_of_the_paper() -> None:
    plan = str(join(SplitJoin(cores=6, fanout=3)).plan())
    for name in ("distribution-1", "distribution-2-1", "join-core-5", "merger-2-0", "merger-1", "combiner"):
        assert f"  {name} [" in plan
    assert join(SplitJoin()).plan()


def test_storing_is_shared_out_evenly_without_a_coordinator() -> None:
    tables = {"R": readings(1000, 1), "S": readings(503, 2)}
    running = join(SplitJoin(cores=6), step_rows=37).launch(sources={"R": ["R"], "S": ["S"]})
    with running:
        for stream, table in tables.items():
            running.send(stream, table)
            running.finish(stream)
        assert sum(batch.num_rows for batch in running.results()) > 0
        cores = [task.own for task in running.metrics().tasks if task.component.startswith("join-core")]
    assert sorted(core["left_stored"] for core in cores) == [166] * 2 + [167] * 4
    assert sorted(core["right_stored"] for core in cores) == [83] + [84] * 5


def test_the_loss_of_a_core_costs_its_share_of_the_window_and_nothing_else() -> None:
    """The core punctuates but its answers are lost: pairs whose earlier row it stored are missing, all others there."""
    tables = {"R": {"R": readings(80, 1)}, "S": {"S": readings(80, 2)}}
    cores, lost = 5, 3

    def is_lost(component: str, message: Message) -> bool:
        return component == f"join-core-{lost}" and isinstance(message, Batch)

    topology = join(SplitJoin(cores=cores, fanout=2), step_rows=7, ordering="none").topology()
    assert isinstance(topology.node(f"join-core-{lost}").component, JoinCore)
    batches = {stream: {name: table.to_batches() for name, table in of.items()} for stream, of in tables.items()}
    found = pa.Table.from_batches(run_seeded(topology, batches, seed=1, lost=is_lost))
    expected = oracle(
        tables,
        ("R", "R"),
        ("S", "S"),
        [Comparison(Linear("x"), "<=", Linear("x"))],
        (Count(30), Count(30)),
        select=["R.id", "S.id"],
    )
    # ids are positions; in the total order R's row i comes just before S's row i
    kept = [(left, right) for left, right, _ in expected.triples if min_stored(left, right) % cores != lost]
    assert 0 < len(kept) < len(expected.triples)
    assert sorted(zip(found["R.id"].to_pylist(), found["S.id"].to_pylist(), strict=True)) == sorted(kept)


def min_stored(left: int, right: int) -> int:
    """The position of the earlier row of a pair."""
    return left if left <= right else right


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cores": 0}, "SplitJoin: cores must be a whole number of 1 or more"),
        ({"cores": True}, "SplitJoin: cores"),
        ({"fanout": 1}, "SplitJoin: fanout must be a whole number of 2 or more"),
        ({"index": "Btree"}, "SplitJoin: index must be None for the nested loop, or one of auto, "),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        SplitJoin(**settings)


def test_punctuation_comes_once_for_each_step_whatever_the_cores() -> None:
    topology = join(SplitJoin(cores=4, fanout=2), step_rows=10).topology()
    seen: list[int] = []

    def note(component: str, message: Message) -> bool:
        if component == "combiner" and isinstance(message, Punctuation):
            seen.append(message.seq)
        return False

    table = readings(35, 1).to_batches()
    run_seeded(topology, {"R": {"R": table}, "S": {"S": table}}, 3, note)
    assert seen[-1] == 69
    assert seen == sorted(set(seen))


@pytest.mark.usefixtures("ray_cluster")
def test_ray_and_the_embedded_runtime_agree_to_the_byte() -> None:
    tables = {"R": readings(600, 1), "S": readings(600, 2)}
    split = join(SplitJoin(cores=3, fanout=2, index="TieredRuns"), step_rows=150)
    local = split.collect(tables)
    assert local.num_rows > 1000
    assert split.collect(tables, EachTaskAnActor()).combine_chunks().equals(local.combine_chunks())
