"""Every kind of join with every window, order and engine: to the row where order is strict, else by its promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CountWindow, JoinError, StreamJoin, TimeWindow, stream
from operators.query.select_items import count
from operators.query.select_items import max as most
from operators.steady_results import conformed
from tests import oracle_terms as term
from tests.key_families import INTEGERS, NUMBERS
from tests.operators.query.spelling import join_of
from tests.operators.seeded_run import run_seeded
from tests.operators.surface_check import ENGINES, check, sampled
from tests.oracle import Aggregate, Condition, Count, Kind, Time, Unbounded, Window, assert_ordered
from tests.random_conditions import Slot, conditions
from tests.strategies import cut_table
from tests.surface import KINDS, SurfaceCase, surface_cases
from topology import LocalRuntime, Runtime

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

WINDOWS: dict[str, tuple[Window, Window]] = {
    "count": (Count(5), Count(3)),
    "count with a slide": (Count(6, 4), Count(4, 3)),
    "tumbling": (Count(4, 4), Time(6, 6)),
    "time": (Time(3), Time(2)),
    "time with a slide": (Time(6, 4), Time(5, 2)),
    "no time at all": (Time(0), Time(0)),
    "unbounded": (Unbounded(), Unbounded()),
    "unbounded on one side": (Unbounded(), Count(2)),
    "per key": (Count(2, per_key=True), Count(1, per_key=True)),
    "per key on one side": (Time(4), Count(2, 2, per_key=True)),
}
SAME = term.Compare("=", term.Column(0, "p"), term.Column(1, "p"))
LESS = term.Compare("<", term.Column(0, "p"), term.Column(1, "p"))
engines = st.sampled_from([None, *ENGINES])
orderings: st.SearchStrategy[Any] = st.sampled_from(["strict", "strict", "outer", "none", 1, 2, 5])
# Small integers in column p and times with ties, so that every window has rows to forget.
cases = surface_cases(
    families=(INTEGERS, NUMBERS), event_times=("int64",), hostile=False, with_where=False, max_rows=14
)  # fmt: skip


def conditions_for(window: str) -> st.SearchStrategy[Condition]:
    """Windows per key want an equality."""
    return st.just(SAME) if "key" in window else st.sampled_from([SAME, LESS])


def of_kind(kind: Kind) -> tuple[int, tuple[Aggregate, ...]]:
    """What joins with aggregates show."""
    if kind != "aggregate":
        return 0, ()
    return 0, (Aggregate("n", "count"), Aggregate("volume", "sum", "id"), Aggregate("most", "max", "p"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", WINDOWS)
@settings(sampled, max_examples=6)
@given(case=cases, data=st.data(), name=engines, ordering=orderings)
def test_every_kind_with_every_window(
    kind: Kind, window: str, case: SurfaceCase, data: st.DataObject, name: str | None, ordering: Any
) -> None:
    on = data.draw(conditions_for(window))
    select = None if case.select is None else [f"{case.left}.id"]
    chosen = replace(
        case, kind=kind, windows=WINDOWS[window], on=on, ordering=ordering, select=select, aggregates=of_kind(kind)
    )
    check(chosen, None if name is None else ENGINES[name](2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", WINDOWS)
@settings(sampled, max_examples=150)
@given(case=cases, data=st.data(), name=engines, ordering=orderings)
def test_every_kind_with_every_window_many_times(
    kind: Kind, window: str, case: SurfaceCase, data: st.DataObject, name: str | None, ordering: Any
) -> None:
    parts = data.draw(conditions((Slot("p", INTEGERS),)))
    on = term.And((data.draw(conditions_for(window)), parts))
    select = None if case.select is None else [f"{case.left}.id"]
    chosen = replace(
        case, kind=kind, windows=WINDOWS[window], on=on, ordering=ordering, select=select, written="Python",
        aggregates=of_kind(kind),
    )  # fmt: skip
    check(chosen, None if name is None else ENGINES[name](2))


@pytest.mark.parametrize("kind", KINDS)
@settings(sampled, max_examples=10)
@given(case=cases, name=st.sampled_from(list(ENGINES)), ordering=orderings, seed=st.integers(0, 10**6))
def test_no_timing_of_the_elements_changes_a_kind(
    kind: Kind, case: SurfaceCase, name: str, ordering: Any, seed: int
) -> None:
    select = None if case.select is None else [f"{case.left}.id"]
    chosen = replace(case, kind=kind, ordering=ordering, select=select, aggregates=of_kind(kind))
    batches = {
        stream: {source: cut_table(table, chosen.cuts[stream, source]) for source, table in of_stream.items()}
        for stream, of_stream in chosen.sources.items()
    }
    found = run_seeded(join_of(chosen, ENGINES[name](3)).topology(), batches, seed)
    expected = chosen.expected()
    schema = expected.table.schema  # a batch from before a stream has been seen cannot know its types
    actual = pa.Table.from_batches([conformed(batch, schema) for batch in found], schema)
    assert_ordered(ordering, actual, expected.table, expected.places)


# --- when unmatched rows come out -----------------------------------------------------------------


def rows(ids: list[int], times: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "ts": pa.array(times, pa.int64())})


@pytest.mark.parametrize("name", ["SPOJoin", "IndexJoin", "ScaleJoin", "SplitJoin", "PanJoin", "HandshakeJoin"])
def test_an_unmatched_row_comes_out_while_the_streams_go_on(name: str) -> None:
    join = StreamJoin("R", "S", "R.id = S.id", TimeWindow(10), kind="left", event_time="ts", using=ENGINES[name](2))
    with join.launch(LocalRuntime(), sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", rows([1, 2], [0, 1]))
        running.send("S", rows([2], [5]))
        running.send("R", rows([3], [30]))
        running.send("S", rows([4], [30]))
        found: list[dict[str, Any]] = []
        results = running.results(timeout=20)
        while len(found) < 2:
            found += next(results).to_pylist()
        assert [(row["R.id"], row["S.id"]) for row in found] == [(2, 2), (1, None)]
        running.finish("R")
        running.finish("S")
        rest = [row for batch in results for row in batch.to_pylist()]
    assert [(row["R.id"], row["S.id"]) for row in rest] == [(3, None)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", []),
        ("left", [(1, None), (2, None)]),
        ("right", []),
        ("full", [(1, None), (2, None)]),
        ("semi", []),
        ("anti", [(1,), (2,)]),
        ("count", [(1, None, 0), (2, None, 0)]),
    ],
)
def test_a_stream_that_stays_empty_leaves_the_other_unmatched(kind: Kind, expected: list[tuple[Any, ...]]) -> None:
    columns = ["R.id"] if kind in ("semi", "anti") else ["R.id", "S.id"]
    join = StreamJoin("R", "S", "R.id = S.id", CountWindow(10), kind=kind, event_time="ts", select=columns)
    tables = {"R": pa.table(rows([1, 2], [0, 1]).to_pydict()), "S": rows([], [])}
    found = join.collect(tables)
    assert list(zip(*found.to_pydict().values(), strict=True)) == expected


def test_nulls_take_the_place_of_any_type_of_column() -> None:
    left = pa.table({"k": [1, 2]})
    payload = {
        "k": pa.array([2], pa.int64()),
        "text": pa.array(["x"]),
        "nested": pa.array([[{"a": 1}]]),
        "choice": pa.array(["y"]).dictionary_encode(),
        "exact": pa.array([None], pa.decimal128(30, 2)),
        "flag": pa.array([True]),
        "raw": pa.array([b"z"], pa.binary()),
        "nothing": pa.nulls(1),
    }
    join = StreamJoin("R", "S", "R.k = S.k", CountWindow(10), kind="left")
    found = join.collect({"R": left, "S": pa.table(payload)})
    assert found["R.k"].to_pylist() == [2, 1]
    for name, column in payload.items():
        assert found[f"S.{name}"].type == column.type
        assert found[f"S.{name}"].to_pylist() == [column[0].as_py(), None]


L, M = stream("R"), stream("S")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("R.id", None),
        ("R.*", None),
        ((L.id * 2).alias("v"), None),
        ((L.id < M.id).alias("v"), None),
        (L.id.is_null().alias("v"), True),
        ((L.id.is_null() & (M.id > 0)).alias("v"), True),
        (((L.id > 0) | (M.id > 0)).alias("v"), True),
        ((~((L.id > 0) & (M.id < 0))).alias("v"), True),
        (L.id.between(0, M.id).alias("v"), None),
        ((M.id + 0).alias("v"), 7),
    ],
    ids=str,
)
def test_rows_come_out_beside_a_stream_that_has_sent_nothing(shown: Any, expected: Any) -> None:
    join = StreamJoin("R", "S", "R.id = S.id", CountWindow(1), kind="full", select=[shown])
    found = join.collect({"R": rows([], []), "S": rows([7, 7, 7], [0, 1, 2])})
    assert [column.to_pylist() for column in found.columns] == [[expected] * 3] * found.num_columns
    assert found.num_rows == 3


def test_semi_and_anti_show_columns_of_the_left_only() -> None:
    for kind in ("semi", "anti"):
        with pytest.raises(JoinError, match=r"S\.id"):
            StreamJoin("R", "S", "R.id = S.id", CountWindow(1), kind=kind, select=["R.id", "S.id"])


def run_twice(kind: Kind, runtime: Runtime) -> list[pa.Table]:
    table = pa.table({"id": range(60), "p": [n * 7 % 5 for n in range(60)]})
    windows = (CountWindow(9), CountWindow(4))
    join = StreamJoin("R", "S", "R.p < S.p", windows, kind=kind if kind != "aggregate" else "inner", step_rows=7,
                      aggregate={"n": count(), "most": most("S.id")} if kind == "aggregate" else None)  # fmt: skip
    return [join.collect({"R": table, "S": table.slice(0, 40)}, runtime) for _ in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_description_runs_any_number_of_times(kind: Kind) -> None:
    first, second = run_twice(kind, LocalRuntime())
    assert first.num_rows > 0
    assert first.equals(second)
