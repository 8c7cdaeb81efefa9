"""As-of joins against the oracle, in every direction, with ties, nulls, several sources and every cut into batches."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings

from operators import CountWindow, IndexJoin, JoinError, PredicateError, StreamJoin
from operators.as_of import backward, chooser, element
from operators.query.as_of import AsOf
from tests.comparison import assert_same_result
from tests.operators.as_of.as_of_cases import cases, expected, join_of
from tests.oracle_as_of import oracle_as_of
from topology import Batch, LocalRuntime, Origin, Punctuation, RayRuntime, Workers


@settings(max_examples=200)
@given(cases())
def test_results_and_their_order_are_those_of_the_law(case: dict[str, Any]) -> None:
    assert_same_result(join_of(case).collect(case["sources"]), expected(case))


@settings(max_examples=60)
@given(cases())
def test_no_cut_into_batches_changes_a_result(case: dict[str, Any]) -> None:
    """Sources take turns at random; after every step, what is certain is left out and spare payload given up."""
    chance = Random(case["seed"])
    names = {stream: list(tables) for stream, tables in case["sources"].items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(element, "SPARE_ROWS", 0)
        patch.setattr(chooser, "FEWEST", 1)
        patch.setattr(backward, "FEWEST", 1)
        with join_of(case).launch(LocalRuntime(), sources=names) as running:
            left = [(stream, source, table) for stream in "LR" for source, table in case["sources"][stream].items()]
            while left:
                stream, source, table = left.pop(chance.randrange(len(left)))
                cut = chance.randint(0, 3)
                running.send(stream, table.slice(0, cut), source)
                if table.num_rows > cut:
                    left.append((stream, source, table.slice(cut)))
            running.finish()
            found = pa.Table.from_batches(list(running.results()), running.result_schema())
    assert_same_result(found, expected(case))


def test_rows_out_of_order_take_their_place() -> None:
    left = pa.table({"id": [0, 1, 2], "ts": [5, 3, 9], "key": ["a", "a", "a"]})
    right = pa.table({"id": [0, 1, 2, 3], "ts": [4, 2, 8, 1], "key": ["a", "a", "a", "a"]})
    sources = {"L": {"L": left}, "R": {"R": right}}
    join = StreamJoin("L", "R", "L.key = R.key", kind="asof", event_time="ts", out_of_order=3, select=["L.id", "R.id"])
    wanted = oracle_as_of(sources, [("key", "key")], "backward", out_of_order={"L": 3, "R": 3})
    found, late = join.collect_with_late(sources)
    assert_same_result(found, wanted)
    assert late["offset"].to_pylist() == [3]


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("tolerance", [None, 2**62, 2**63 - 1])
def test_times_at_the_ends_of_their_range(direction: str, tolerance: int | None) -> None:
    least, greatest = -(2**63), 2**63 - 1
    left = pa.table({"id": range(5), "ts": [least, -1, 0, 1, greatest]})
    for times in ([least, greatest], [least, 1, greatest], [greatest], [least], [least + 1, greatest - 1]):
        sources = {"L": {"L": left}, "R": {"R": pa.table({"id": range(len(times)), "ts": times})}}
        join = StreamJoin(
            "L", "R", "TRUE", kind="asof", event_time="ts", direction=direction, tolerance=tolerance,  # type: ignore[arg-type]
            select=["L.id", "R.id"],
        )  # fmt: skip
        assert_same_result(join.collect(sources), oracle_as_of(sources, [], direction, tolerance=tolerance))


def test_state_stays_small_however_long_the_streams_are() -> None:
    """A hundred keys, a million rows: what is held does not grow."""
    task = element.AsOfTask(
        join_of({"direction": "backward", "strict": False, "keyed": True, "filtered": False, "tolerance": None,
                 "kind": "int", "inner": False, "seed": 8}).topology().node("as-of").component  # type: ignore[arg-type]
    )  # fmt: skip
    origin = Origin("gate", 0, 0)
    rows, chance = 50_000, np.random.default_rng(5)
    for step in range(20):
        first = 2 * rows * step
        for stream, shift in (("L", 1), ("R", 0)):
            seqs = first + 2 * np.arange(rows) + shift
            names = chance.integers(0, 100, rows).astype(str)
            batch = {"id": seqs, "ts": seqs, "key": names, "good": np.ones(rows, bool), "#seq": seqs}
            assert not list(task.on_batch(Batch(stream, pa.record_batch(batch)), origin))
        sent = list(task.on_punctuation(Punctuation(first + 2 * rows - 1), origin))
        batches = [emit.message for emit in sent if isinstance(emit.message, Batch)]
        assert sum(batch.num_rows for batch in batches) >= rows - 1
        task.check_invariants()
    metrics = task.metrics()
    assert metrics["right_live"] + metrics["left_live"] < 8 * element.SPARE_ROWS
    assert metrics["payload_bytes"] < 50_000_000


SQL = {
    "ASOF JOIN R ON L.key = R.key AND L.ts >= R.ts": ("asof inner", "backward", False),
    "ASOF LEFT JOIN R ON L.key = R.key AND L.ts > R.ts": ("asof", "backward", True),
    "ASOF JOIN R MATCH_CONDITION (L.ts <= R.ts) ON L.key = R.key": ("asof inner", "forward", False),
    "ASOF LEFT JOIN R MATCH_CONDITION (R.ts > L.ts) ON R.key = L.key": ("asof", "forward", True),
}


@pytest.mark.parametrize("text", SQL)
def test_the_same_in_sql(text: str) -> None:
    kind, direction, strict = SQL[text]
    join = StreamJoin.from_sql(f"SELECT L.id, R.id FROM L {text}", event_time="ts", tolerance="2 s")
    assert (join.resolved.kind, join.resolved.as_of) == (kind, AsOf(direction, strict, timedelta(seconds=2)))  # type: ignore[arg-type]


REFUSED: dict[str, dict[str, Any]] = {
    "needs event_time=": {"event_time": None},
    "has no window: leave it out; tolerance= bounds": {"window": CountWindow(3)},
    "has no using: leave it out": {"using": IndexJoin()},
    "takes two streams, not 'L' twice": {"right": "L", "on": "L1.key = L2.key"},
    "direction must be one of 'backward'": {"direction": "sideways"},
    "contradicts direction='forward'": {"direction": "forward", "on": "L.ts >= R.ts"},
    "takes equalities between columns of L and R": {"on": "L.x < R.x"},
    "tolerance must not be negative": {"tolerance": -1},
    "where of an as-of join may use columns of L only": {"where": "R.x > 1"},
    "belong to kind='asof'": {"kind": "left", "tolerance": 1, "window": CountWindow(3)},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused_with_a_remedy(message: str) -> None:
    given: dict[str, Any] = {
        "left": "L", "right": "R", "on": "L.key = R.key", "kind": "asof", "event_time": "ts", **REFUSED[message],
    }  # fmt: skip
    with pytest.raises((JoinError, PredicateError), match=message.replace("(", "\\(")):
        StreamJoin(**given)


def test_a_tolerance_without_a_unit_of_time_is_refused_with_the_rows() -> None:
    join = StreamJoin("L", "R", "TRUE", kind="asof", event_time="ts", tolerance="5 s")
    with pytest.raises(Exception, match="is a length of time, but event time is int64"):
        join.collect({"L": pa.table({"ts": [1]}), "R": pa.table({"ts": [1]})})


@settings(max_examples=15)
@given(cases())
def test_it_goes_on_from_its_state(case: dict[str, Any]) -> None:
    """It is launched again after every few rows, and its reader goes on behind the last number."""
    names = {stream: list(tables) for stream, tables in case["sources"].items()}
    found: list[pa.RecordBatch] = []
    with tempfile.TemporaryDirectory() as state:
        for end in (2, 5, None):
            with join_of(case).launch(LocalRuntime(state=state), sources=names) as running:
                for stream, tables in case["sources"].items():
                    for source, table in tables.items():
                        begin = running.next_offset(stream, source)
                        running.send(stream, table.slice(begin, None if end is None else max(0, end - begin)), source)
                if end is None:
                    running.finish()
                rows = sum(batch.num_rows for batch in found)
                for _, batch in running.results(timeout=None if end is None else 0.01, after=rows - 1, numbered=True):
                    found.append(batch)
                schema = running.result_schema()
    assert_same_result(pa.Table.from_batches(found, schema), expected(case))


@pytest.mark.usefixtures("ray_cluster")
def test_on_ray() -> None:
    chance = np.random.default_rng(1)
    sources = {
        stream: {
            stream: pa.table(
                {"id": range(300), "ts": np.sort(chance.integers(0, 300, 300)), "key": chance.integers(0, 5, 300)}
            )
        }
        for stream in "LR"
    }
    join = StreamJoin(
        "L", "R", "L.key = R.key", kind="asof", direction="nearest", event_time="ts", step_rows=100,
        select=["L.id", "R.id"],
    )  # fmt: skip
    found = join.collect(sources, RayRuntime(placement=Workers(2)))
    assert_same_result(found, oracle_as_of(sources, [("key", "key")], "nearest"))


@pytest.mark.usefixtures("ray_cluster")
@settings(max_examples=1, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(cases())
def test_random_joins_on_ray(case: dict[str, Any]) -> None:
    assert_same_result(join_of(case).collect(case["sources"], RayRuntime(placement="per-task")), expected(case))
