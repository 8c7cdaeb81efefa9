"""PanJoin against the oracle, and what is special about it: subwindows, commands, batches, records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import RaPTable
from operators import CountWindow, JoinError, StreamJoin, TimeWindow
from operators.engines.pan_join.description import PanJoin
from operators.engines.pan_join.structures import (
    BISortSubwindows,
    RaPTableSubwindows,
    Structure,
    WiBPlusTreeSubwindows,
    structure_of,
)
from operators.engines.shared.answering import Answering
from tests.operators.engines.readings import readings
from tests.operators.oracle_check import check, join_of
from tests.operators.per_task import EachTaskAnActor
from tests.operators.seeded_run import check_schedule
from tests.strategies import JoinCase, join_cases
from topology import LocalRuntime

STRUCTURES: list[Structure] = [
    "BISort",
    "RaPTable",
    "WiBPlusTree",
    BISortSubwindows(buffer=3, partitions=2),
    RaPTableSubwindows(partitions=2),
    WiBPlusTreeSubwindows(leaf_width=2, fanout=4),
]


@st.composite
def engines(draw: st.DrawFn) -> PanJoin:
    """Tiny subwindows, so that they fill up, pass from worker to worker and expire within a few rows."""
    return PanJoin(
        workers=draw(st.integers(1, 8)),
        subwindow=draw(st.none() | st.integers(1, 9)),
        structure=draw(st.sampled_from(STRUCTURES)),
        batch_rows=draw(st.none() | st.integers(1, 20)),
    )


@st.composite
def record_engines(draw: st.DrawFn) -> PanJoin:
    return PanJoin(
        workers=draw(st.integers(1, 5)),
        subwindow=draw(st.none() | st.integers(1, 9)),
        structure=draw(st.sampled_from([BISortSubwindows(), BISortSubwindows(buffer=3, partitions=2)])),
        batch_rows=draw(st.none() | st.integers(1, 20)),
        records=True,
    )


def dimensions(case: JoinCase) -> int:
    return len(join_of(case, PanJoin()).resolved.condition.branches[0].dimensions)


ONE_DIMENSION = join_cases(max_terms=1).filter(lambda case: dimensions(case) == 1)


@given(ONE_DIMENSION, record_engines(), st.integers(1, 9))
@settings(max_examples=60)
def test_records_stand_for_the_same_results(case: JoinCase, engine: PanJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(ONE_DIMENSION, record_engines(), st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=30)
def test_the_mirror_is_always_as_old_as_the_records(case: JoinCase, engine: PanJoin, step_rows: int, seed: int) -> None:
    check_schedule(case, join_of(case, engine, step_rows=step_rows), seed)


@given(join_cases(), engines(), st.integers(1, 9))
@settings(max_examples=60)
def test_results_and_their_order_are_those_of_the_oracle(case: JoinCase, engine: PanJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(max_rows=8, max_sources=2), engines(), st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=30)
def test_timing_makes_no_difference(case: JoinCase, engine: PanJoin, step_rows: int, seed: int) -> None:
    check_schedule(case, join_of(case, engine, step_rows=step_rows), seed)


@pytest.mark.slow
@given(join_cases(max_rows=60), engines(), st.integers(1, 40))
@settings(max_examples=500)
def test_many_random_joins(case: JoinCase, engine: PanJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


def join(engine: PanJoin, on: str = "abs(R.x - S.x) <= 3", window: Any = None, **options: Any) -> StreamJoin:
    window = window or CountWindow(60)
    return StreamJoin("R", "S", on, window, select=["R.id", "S.id"], event_time="ts", using=engine, **options)


@pytest.mark.parametrize("window", [CountWindow(60), TimeWindow(60)], ids=["count", "time"])
@pytest.mark.parametrize("on", ["abs(R.x - S.x) <= 3", "R.x != S.x", "R.x = S.x", "abs(R.x - S.x) < 3 AND R.id < S.id"])
def test_workers_structures_batches_and_records_make_no_difference(on: str, window: CountWindow | TimeWindow) -> None:
    tables = {"R": readings(300, 1), "S": readings(300, 2)}
    several = [PanJoin(workers, 16) for workers in (1, 2, 4, 8)]
    several += [PanJoin(3, 16, structure) for structure in STRUCTURES]
    several += [PanJoin(2, 16, batch_rows=90), PanJoin(2, 7, batch_rows=1000), PanJoin(2, 100), PanJoin()]
    if "AND" not in on:
        several += [PanJoin(workers, 16, records=True) for workers in (1, 3)]
    results = [join(engine, on, window, step_rows=40).collect(tables) for engine in several]
    assert results[0].num_rows > 300
    assert all(result.equals(results[0]) for result in results[1:])


@pytest.mark.parametrize("records", [False, True])
def test_a_row_with_very_many_matches_is_answered_in_pieces(records: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering.__init__, "__defaults__", (16,))
    rows = 90
    table = pa.table({"id": range(rows), "x": [1] * rows})
    engine = PanJoin(3, 8, records=records)
    select = ["R.id", "S.id"]
    result = StreamJoin("R", "S", "R.x = S.x", CountWindow(1000), select=select, using=engine, step_rows=30).collect(
        {"R": table, "S": table}
    )
    pairs = list(zip(result["R.id"].to_pylist(), result["S.id"].to_pylist(), strict=True))
    expected = []
    for row in range(rows):
        expected += [(row, earlier) for earlier in range(row)] + [(earlier, row) for earlier in range(row + 1)]
    assert pairs == expected


def test_the_plan_shows_the_elements_of_the_paper() -> None:
    plan = str(join(PanJoin(3, 16, records=True)).plan())
    for name in ("manager", "worker", "mirror"):
        assert f"\n  {name} " in plan
    assert "mirror" not in str(join(PanJoin()).plan())


def test_the_structure_may_be_named_or_described_or_the_class_itself() -> None:
    assert structure_of(RaPTable) == structure_of("RaPTable") == RaPTableSubwindows()
    assert structure_of(WiBPlusTreeSubwindows(leaf_width=64)) == WiBPlusTreeSubwindows(leaf_width=64)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "PanJoin: workers must be a whole number of 1 or more"),
        ({"subwindow": 2.5}, "PanJoin: subwindow must be a whole number"),
        ({"subwindow": 1 << 31}, "PanJoin: subwindow must be less than 2\\^31"),
        ({"batch_rows": True}, "PanJoin: batch_rows"),
        ({"structure": "BTree"}, "PanJoin: structure must be one of BISort, RaPTable, WiBPlusTree, or "),
        ({"structure": RaPTableSubwindows(sigma=0.5)}, "PanJoin: structure .* cannot be made: RaPTable: sigma must"),
        ({"records": True, "structure": "RaPTable"}, "PanJoin: records=True needs structure='BISort'"),
        ({"records": None}, "PanJoin: records must be True or False"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        PanJoin(**settings)


def test_records_of_several_dimensions_are_refused() -> None:
    with pytest.raises(JoinError, match="records=True is for predicates of one dimension, this has 2"):
        join(PanJoin(records=True), "R.x < S.x AND R.id < S.id").topology()


def test_the_subwindows_of_a_side_are_shared_out_evenly() -> None:
    tables = {"R": readings(1000, 1), "S": readings(1000, 2)}
    pan = join(PanJoin(4, 10), step_rows=37, window=CountWindow(200))
    with pan.launch(sources={"R": ["R"], "S": ["S"]}) as running:
        for stream, table in tables.items():
            running.send(stream, table)
            running.finish(stream)
        assert sum(batch.num_rows for batch in running.results()) > 0
        workers = [task.own for task in running.metrics().tasks if task.component == "worker"]
    assert len(workers) == 4
    # 200 rows in subwindows of 10, and one whose oldest rows only are dead
    assert all(worker["left_subwindows"] in (5, 6) for worker in workers)
    assert all(worker["left_rows"] == 10 * worker["left_subwindows"] for worker in workers)


@pytest.mark.usefixtures("ray_cluster")
def test_ray_and_the_embedded_runtime_agree_to_the_byte() -> None:
    tables = {"R": readings(600, 1), "S": readings(600, 2)}
    pan = join(PanJoin(workers=2, subwindow=32, records=True), step_rows=150)
    local = pan.collect(tables)
    assert local.num_rows > 1000
    assert pan.collect(tables, EachTaskAnActor()).combine_chunks().equals(local.combine_chunks())
