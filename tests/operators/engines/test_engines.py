"""All engines give the results of the oracle, in its order, with any number of elements; so they agree pairwise."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import (
    ConfiguredIndex,
    CountWindow,
    Engine,
    HandshakeJoin,
    IndexJoin,
    PanJoin,
    PIMTree,
    ScaleJoin,
    SplitJoin,
    SPOJoin,
    StreamJoin,
)
from tests.operators.oracle_check import check
from tests.operators.sent_readings import ROWS, SOURCES, TABLES, WINDOWS, content, join_with, results_of_senders
from tests.strategies import JoinCase, join_cases
from topology import LocalRuntime

ENGINES: dict[str, Callable[[int], Engine]] = {
    "SPOJoin": lambda cores: SPOJoin(elements=cores),
    "SPOJoin, decomposed": lambda cores: SPOJoin(elements=cores, mutable="decomposed", merge_interval=3),
    "ScaleJoin": lambda cores: ScaleJoin(threads=cores),
    "ScaleJoin, indexed": lambda cores: ScaleJoin(threads=cores, index="auto"),
    "SplitJoin": lambda cores: SplitJoin(cores=cores),
    "SplitJoin, indexed": lambda cores: SplitJoin(cores=cores, index=ConfiguredIndex("IB-chain", {"chain_length": 3})),
    "PanJoin": lambda cores: PanJoin(workers=cores),
    "PanJoin, RaP-Table": lambda cores: PanJoin(workers=cores, structure="RaPTable", subwindow=3),
    "PanJoin, WiB+-Tree": lambda cores: PanJoin(workers=cores, structure="WiBPlusTree", subwindow=5),
    "IndexJoin": lambda cores: IndexJoin(PIMTree(merge_ratio=0.5, threads=cores)),
    "IndexJoin, chosen": lambda cores: IndexJoin(threads=1, index="auto"),
    "HandshakeJoin": lambda cores: HandshakeJoin(cores=cores),
    "HandshakeJoin, original": lambda cores: HandshakeJoin(cores=cores, low_latency=False),
}

ELEMENTS = {
    "SPOJoin": ["router", "mutable", "permutation", "po-join"],
    "SPOJoin, decomposed": ["router", "predicate-0", "predicate-1", "logical-and", "permutation", "po-join"],
    "ScaleJoin": ["input-scale-gate", "processing-thread", "output-scale-gate"],
    "SplitJoin": ["distribution-1", "join-core", "merger-1", "combiner"],
    "PanJoin": ["manager", "worker"],
    "IndexJoin": ["work-queue", "index-join"],
    "HandshakeJoin": ["handshake-core"],
}


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=15, deadline=None)
@given(case=join_cases(), cores=st.sampled_from([1, 2, 4]), step_rows=st.integers(1, 9))
def test_results_and_their_order_are_those_of_the_oracle(name: str, case: JoinCase, cores: int, step_rows: int) -> None:
    check(case, ENGINES[name](cores), LocalRuntime(), step_rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=400, deadline=None)
@given(case=join_cases(max_rows=80), cores=st.integers(1, 8), step_rows=st.integers(1, 60))
def test_very_many_random_joins(name: str, case: JoinCase, cores: int, step_rows: int) -> None:
    check(case, ENGINES[name](cores), LocalRuntime(), step_rows)


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [400, pytest.param(ROWS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_engine_gives_the_same_bytes_at_every_size(window: object, rows: int) -> None:
    """With so many rows of each source; at either size rows expire from both windows."""
    rng = random.Random(7)
    sources = {stream: {name: table.slice(0, rows) for name, table in each.items()} for stream, each in SOURCES.items()}
    expected = content(join_with(window, SPOJoin(), 1 << 17).collect(sources))
    for name, engine in ENGINES.items():
        for cores in (rng.choice([1, 2]), 8):
            found = join_with(window, engine(cores), rng.choice([37, 500, 1 << 17])).collect(sources)
            assert content(found) == expected, f"{name} with {cores} elements"


def test_no_timing_cut_interleaving_or_parallelism_changes_a_byte() -> None:
    expected = content(join_with(WINDOWS[0], SPOJoin(), 1 << 17).collect(SOURCES))
    for seed in range(20):
        chance = random.Random(seed)
        name = chance.choice(list(ENGINES))
        engine = ENGINES[name](chance.choice([1, 2, 3, 5]))
        join = join_with(WINDOWS[0], engine, chance.choice([37, 200, 5000]))
        assert content(results_of_senders(join, seed)) == expected, f"seed {seed}: {engine}"


@pytest.mark.parametrize("name", ELEMENTS)
def test_the_plan_shows_the_elements_that_the_paper_names(name: str) -> None:
    plan = str(join_with(CountWindow(100), ENGINES[name](4), 100).plan())
    for element in ELEMENTS[name]:
        assert f"  {element}" in plan, f"{element} in\n{plan}"


@pytest.mark.parametrize("engine", [SPOJoin(), ScaleJoin(), SplitJoin(), PanJoin(), IndexJoin(), HandshakeJoin()])
def test_every_engine_works_without_arguments(engine: Engine) -> None:
    tables = {stream: table.slice(0, 200) for stream, table in TABLES.items()}
    on = "abs(R.power - S.power) <= 2"
    first = StreamJoin("R", "S", on, CountWindow(50), using=engine).collect(tables)
    second = StreamJoin("R", "S", on, CountWindow(50)).collect(tables)
    assert first.num_rows > 0
    assert content(first) == content(second)
