"""IndexJoin against the oracle, its plan, its order of results, and that no thread is left over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import CATALOGUE, Matches
from indexes.trees import pim_tree
from indexes.trees.breadth_first_tree import BreadthFirstTree
from operators import ConfiguredIndex, CountWindow, JoinError, PIMTree, ScaleJoin, StreamJoin, TimeWindow
from operators.engines.index_join.description import IndexJoin
from operators.engines.shared.answering import Answering
from tests.operators.oracle_check import check, join_of
from tests.operators.per_task import EachTaskAnActor
from tests.operators.seeded_run import check_schedule, run_seeded
from tests.strategies import JoinCase, join_cases
from topology import Batch, LocalRuntime, Punctuation, TaskError
from topology.graph.messages import Message

INDEXES: tuple[str | ConfiguredIndex, ...] = (
    PIMTree(insertion_depth=1, blocking=True),
    ConfiguredIndex("PIMTree", {"merge_ratio": 0.25, "at_once": 0}),
    "auto",
    "TieredRuns",
    ConfiguredIndex("IMTree", {"merge_ratio": 0.5}),
    "BPlusTree",
)


@st.composite
def engines(draw: st.DrawFn) -> IndexJoin:
    """Tiny work items, so that a few rows make several of them."""
    return IndexJoin(draw(st.sampled_from(INDEXES)), draw(st.integers(1, 4)), draw(st.integers(1, 7)))


@given(join_cases(), engines(), st.integers(1, 20))
@settings(max_examples=50)
def test_results_and_their_order_are_those_of_the_oracle(case: JoinCase, engine: IndexJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(max_rows=60, max_sources=2), engines(), st.integers(1, 60))
@settings(max_examples=25)
def test_longer_streams_too(case: JoinCase, engine: IndexJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(max_rows=8, max_sources=2), engines(), st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=15)
def test_timing_makes_no_difference(case: JoinCase, engine: IndexJoin, step_rows: int, seed: int) -> None:
    check_schedule(case, join_of(case, engine, step_rows=step_rows), seed)


@pytest.mark.slow
@given(join_cases(max_rows=80), engines(), st.integers(1, 60))
@settings(max_examples=2000)
def test_very_many_random_joins(case: JoinCase, engine: IndexJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


def readings(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"x": rng.integers(0, 5_000, rows), "y": rng.integers(0, 40, rows)}
    return pa.table({"id": np.arange(rows), **columns, "ts": np.sort(rng.integers(0, rows, rows))})


def band(engine: IndexJoin, **options: Any) -> StreamJoin:
    settings: dict[str, Any] = {"window": CountWindow(2000), "select": ["R.id", "S.id"], "event_time": "ts"}
    return StreamJoin("R", "S", "abs(R.x - S.x) <= 3", using=engine, **{**settings, **options})


TABLES = {"R": readings(20_000, 1), "S": readings(20_000, 2)}


@pytest.mark.parametrize("window", [CountWindow(2000), TimeWindow(2500)], ids=["count", "time"])
def test_any_number_of_threads_gives_the_same_while_the_trees_merge(window: CountWindow | TimeWindow) -> None:
    """A window of 2000 rows merges every 125: hundreds of merges while the threads insert."""
    expected = band(IndexJoin("BPlusTree", threads=1), window=window).collect(TABLES)
    assert expected.num_rows > 20_000
    for threads, item_rows, step_rows in ((1, 8192, 1 << 17), (2, 64, 3000), (3, 500, 5000), (8, 10, 900)):
        engine = IndexJoin("PIMTree", threads, item_rows)
        found = band(engine, window=window, step_rows=step_rows).collect(TABLES)
        assert found.combine_chunks().equals(expected.combine_chunks()), engine


@pytest.mark.parametrize("index", sorted(CATALOGUE))
def test_any_index_may_be_probed_by_several_threads(index: str) -> None:
    tables = {name: table.slice(0, 1500) for name, table in TABLES.items()}
    on = "R.y = S.y AND abs(R.x - S.x) <= 900"
    join = replace(band(IndexJoin("LinearScan", 1), window=CountWindow(300)), on=on)
    expected = join.collect(tables)
    assert expected.num_rows > 1000
    found = replace(join, using=IndexJoin(index, 3, 40), step_rows=400).collect(tables)
    assert found.combine_chunks().equals(expected.combine_chunks())


@pytest.mark.parametrize("threads", [1, 3])
def test_a_row_with_very_many_matches_is_answered_in_pieces(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering.__init__, "__defaults__", (16,))
    rows = 120
    table = pa.table({"id": range(rows), "x": [1] * rows})
    engine = IndexJoin(threads=threads, task_rows=20)
    join = StreamJoin("R", "S", "R.x = S.x", CountWindow(1000), select=["R.id", "S.id"], using=engine, step_rows=70)
    held: list[int] = []
    monkeypatch.setattr("operators.engines.shared.answering.matches_batch", noting(held))
    result = join.collect({"R": table, "S": table})
    pairs = list(zip(result["R.id"].to_pylist(), result["S.id"].to_pylist(), strict=True))
    expected = []
    for row in range(rows):
        expected += [(row, earlier) for earlier in range(row)] + [(earlier, row) for earlier in range(row + 1)]
    assert pairs == expected
    assert max(held) <= rows, "more than one row's matches at once, although each row has more than 16"


def noting(held: list[int]) -> Any:
    from operators.protocol.answers import matches_batch

    def note(side: int, first: int, matches: Matches, rows: np.ndarray | None) -> Batch:
        held.append(len(matches.positions))
        return matches_batch(side, first, matches, rows)

    return note


def test_the_plan_shows_the_elements_of_the_paper() -> None:
    plan = str(band(IndexJoin(threads=2, task_rows=64)).plan())
    for name in ("work-queue", "index-join"):
        assert f"  {name} [" in plan
    assert "work items of 64 rows" in plan
    assert "2 threads; PIMTree: as asked for" in plan
    assert "a range of one key" in str(band(IndexJoin("auto")).plan()), "the choice is shown with its reason"
    assert band(IndexJoin()).plan()


def test_results_leave_item_by_item_in_order() -> None:
    punctuations: list[int] = []

    def note(component: str, message: Message) -> bool:
        if component == "index-join" and isinstance(message, Punctuation):
            punctuations.append(message.seq)
        return False

    join = band(IndexJoin(threads=3, task_rows=25), step_rows=100)
    tables = {name: {name: table.slice(0, 200).to_batches()} for name, table in TABLES.items()}
    run_seeded(join.topology(), tables, 1, note)
    assert punctuations == sorted(set(punctuations))
    assert len(punctuations) >= 400 // 25
    assert punctuations[-1] == 399


def test_results_come_while_the_trees_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge is held until the results of the rows after the one that began it have been read."""
    held, let_go = threading.Event(), threading.Event()
    merged = BreadthFirstTree.merged

    def hold(*arguments: Any) -> BreadthFirstTree:
        held.set()
        assert let_go.wait(20), "the join waits for the merge"
        return merged(*arguments)

    monkeypatch.setattr(BreadthFirstTree, "merged", hold)
    index = ConfiguredIndex("PIMTree", {"merge_ratio": 0.05, "at_once": 0})  # 100 rows begin a merge
    tables = {name: table.slice(0, 300) for name, table in TABLES.items()}
    expected = band(IndexJoin("LinearScan"), event_time=None).collect(tables)
    before = band(IndexJoin("LinearScan"), event_time=None).collect({n: t.slice(0, 170) for n, t in tables.items()})
    found: list[pa.RecordBatch] = []
    with band(IndexJoin(index, threads=2), event_time=None, step_rows=60).launch() as running:
        results = running.results()
        for first, rows in ((0, 90), (90, 30), (120, 60)):
            for stream, table in tables.items():
                running.send(stream, table.slice(first, rows))
        while sum(batch.num_rows for batch in found) < before.num_rows:
            found.append(next(results))
        assert held.wait(20)
        assert not let_go.is_set()
        let_go.set()
        for stream, table in tables.items():
            running.send(stream, table.slice(180))
        running.finish()
        found += results
        own = running.metrics().of("index-join")[0].own
    assert pa.Table.from_batches(found).combine_chunks().equals(expected.combine_chunks())
    assert own["merges"] >= 2
    assert own["probes_beside_merge"] >= 1


def test_a_configured_index_is_the_one_that_is_made() -> None:
    """Twice the ratio, half of the merges; an index that is only named has other arguments."""
    merges = []
    for index in (PIMTree(merge_ratio=1 / 16, blocking=True), PIMTree(merge_ratio=1 / 8, task_size=100, threads=1)):
        engine = IndexJoin(index)
        run = band(engine, step_rows=100).run({name: table.slice(0, 5000) for name, table in TABLES.items()})
        merges.append(run.metrics.of("index-join")[0].own["merges"])
    assert (engine.task_rows, engine.threads) == (100, 1)
    assert merges[0] > 1.5 * merges[1] > 30
    assert "PIMTree(merge_ratio=0.125)" in str(band(engine).plan())


def threads_left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("interlace-work")]


def test_no_thread_is_left_when_a_join_is_stopped_on_the_way() -> None:
    running = band(IndexJoin(threads=4, task_rows=50), step_rows=1000).launch(sources={"R": ["R"], "S": ["S"]})
    for stream, table in TABLES.items():
        running.send(stream, table.slice(0, 5000))
    running.stop()
    assert threads_left() == []


def test_no_thread_is_left_when_a_thread_fails_and_its_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: pim_tree.PIMTree, *arguments: object, **options: object) -> Matches:
        raise RuntimeError("planted")

    monkeypatch.setattr(pim_tree.PIMTree, "probe_within", fail)
    with pytest.raises(TaskError, match="planted"):
        band(IndexJoin(threads=4, task_rows=50)).collect(TABLES)
    assert threads_left() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threads": 0}, "IndexJoin: threads must be a whole number of 1 or more"),
        ({"threads": True}, "IndexJoin: threads"),
        ({"task_rows": 0}, "IndexJoin: task_rows must be a whole number of 1 or more"),
        ({"task_rows": None}, "IndexJoin: task_rows"),
        ({"index": "Btree"}, "IndexJoin: index must be one of auto, "),
        ({"index": PIMTree(threads=2), "threads": 3}, "IndexJoin: threads=3 and 2 in PIMTree: give it once"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        IndexJoin(**settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PIMTree(merge_ratio=2), r"PIMTree cannot be made .*merge_ratio must lie in \(0, 1\], not 2"),
        (lambda: PIMTree("1"), "merge_ratio must lie in"),  # type: ignore[arg-type]
        (lambda: PIMTree(insertion_depth=-1), "insertion_depth must be a whole number of 0 or more"),
        (lambda: PIMTree(blocking=1), "PIMTree: blocking must be True or False"),  # type: ignore[arg-type]
        (lambda: PIMTree(task_size=0), "PIMTree: task_size must be a whole number"),
        (lambda: ConfiguredIndex("Btree"), "ConfiguredIndex: no index is called 'Btree'; choose one of"),
        (lambda: ConfiguredIndex("IMTree", {"window": 9}), "IMTree: window follows from the join: leave it out"),
        (lambda: ConfiguredIndex("IMTree", {"ratio": 9}), "IMTree cannot be made with .*'ratio'"),
        (lambda: ScaleJoin(index=PIMTree(threads=2)), "ScaleJoin: PIMTree brings settings of IndexJoin along"),
    ],
)
def test_indexes_that_cannot_be_made_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        make()


@pytest.mark.usefixtures("ray_cluster")
def test_ray_and_the_embedded_runtime_agree_to_the_byte() -> None:
    join = band(IndexJoin(threads=2, task_rows=300), step_rows=2000)
    tables = {name: table.slice(0, 6000) for name, table in TABLES.items()}
    local = join.collect(tables)
    assert local.num_rows > 5000
    assert join.collect(tables, EachTaskAnActor()).combine_chunks().equals(local.combine_chunks())
