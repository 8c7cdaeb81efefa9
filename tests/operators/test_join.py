"""StreamJoin against the oracle: every plan, every window, every cut, on the embedded runtime."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CountWindow, SPOJoin, StreamJoin
from operators.engines.shared.answering import Answering
from tests.operators.oracle_check import check, engines, inputs_of, join_of
from tests.oracle import assert_same_rows
from tests.strategies import JoinCase, join_cases
from topology import LocalRuntime


@given(join_cases(), engines(), st.integers(1, 9))
@settings(max_examples=50)
def test_results_and_their_order_are_those_of_the_oracle(case: JoinCase, engine: SPOJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(max_rows=60, max_sources=2), engines(), st.integers(1, 40))
@settings(max_examples=15)
def test_longer_streams_too(case: JoinCase, engine: SPOJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@pytest.mark.slow
@given(join_cases(max_rows=80), engines(), st.integers(1, 60))
@settings(max_examples=3000)
def test_very_many_random_joins(case: JoinCase, engine: SPOJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(), engines(), st.integers(1, 9))
@settings(max_examples=20)
def test_outer_order_keeps_the_rows_and_the_order_of_later_rows(
    case: JoinCase, engine: SPOJoin, step_rows: int
) -> None:
    join = join_of(case, engine, step_rows=step_rows, ordering="outer")
    actual = join.collect(inputs_of(case), LocalRuntime())
    expected = case.expected()
    assert_same_rows(actual, expected.table)
    start = 0
    for length in _run_lengths([probe for _, _, probe in expected.triples]):
        assert_same_rows(actual.slice(start, length), expected.table.slice(start, length))
        start += length


def _run_lengths(values: list[int]) -> list[int]:
    lengths: list[int] = []
    for index, value in enumerate(values):
        if index and value == values[index - 1]:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


@pytest.mark.parametrize("mutable", ["fused", "decomposed"])
def test_a_tuple_with_very_many_matches_is_answered_in_pieces(mutable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering.__init__, "__defaults__", (16,))
    rows = 120
    table = pa.table({"id": range(rows), "x": [1] * rows})
    join = StreamJoin(
        "R",
        "S",
        "R.x = S.x",
        CountWindow(1000),
        select=["R.id", "S.id"],
        using=SPOJoin(elements=2, mutable=mutable, merge_interval=20),  # type: ignore[arg-type]
        step_rows=30,
    )
    result = join.collect({"R": table, "S": table})
    pairs = list(zip(result["R.id"].to_pylist(), result["S.id"].to_pylist(), strict=True))
    expected = []
    for row in range(rows):
        expected += [(row, earlier) for earlier in range(row)] + [(earlier, row) for earlier in range(row + 1)]
    assert pairs == expected
