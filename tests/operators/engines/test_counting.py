"""A count join: elements that can count do not list matches, and the numbers are those of the matches."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import (
    CountWindow,
    Engine,
    HandshakeJoin,
    IndexJoin,
    PanJoin,
    ScaleJoin,
    SplitJoin,
    SPOJoin,
    StreamJoin,
)
from tests.operators.oracle_check import join_of
from tests.operators.seeded_run import run_seeded
from tests.strategies import JoinCase, join_cases
from topology import Batch
from topology.graph.messages import Message

ENGINES: dict[str, Callable[[int], Engine]] = {
    "SPOJoin": lambda cores: SPOJoin(elements=cores, merge_interval=3),
    "SPOJoin, chained": lambda cores: SPOJoin(elements=cores, merge_interval=3, immutable="chained"),
    "IndexJoin": lambda cores: IndexJoin(threads=cores),
    "IndexJoin, chosen": lambda cores: IndexJoin(threads=1, index="auto"),
    "IndexJoin, divided": lambda cores: IndexJoin("auto", 1, partitions=1 + cores, rows_per_map=4),
    "ScaleJoin": lambda cores: ScaleJoin(threads=cores),
    "ScaleJoin, grid": lambda cores: ScaleJoin(threads=cores, index="GridIndex"),
    "SplitJoin": lambda cores: SplitJoin(cores=cores, fanout=2),
    "HandshakeJoin": lambda cores: HandshakeJoin(cores=cores),
    "HandshakeJoin, original": lambda cores: HandshakeJoin(cores=cores, low_latency=False, index="RangeTreeWindow"),
}


def streams_sent(join: StreamJoin, batches: dict[str, dict[str, list[pa.RecordBatch]]], seed: int = 0) -> set[str]:
    sent: set[str] = set()

    def note(component: str, message: Message) -> bool:
        if isinstance(message, Batch):
            sent.add(message.stream.partition(".")[0])
        return False

    run_seeded(join.topology(), batches, seed, lost=note)
    return sent


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=15, deadline=None)
@given(case=join_cases(max_rows=12), cores=st.sampled_from([1, 2, 3]), step_rows=st.integers(1, 9), seed=st.integers(0))
def test_counts_are_those_of_the_matches(name: str, case: JoinCase, cores: int, step_rows: int, seed: int) -> None:
    engine = ENGINES[name](cores)
    assert engine.can_count
    counted = join_of(case, engine, step_rows=step_rows, kind="count")
    batches = run_seeded(counted.topology(), case.batches(), seed)
    expected = [seq for _, _, seq in case.expected().triples]
    matches = [count for batch in batches for count in batch.column("matches").to_pylist()]
    roles = 2 if len(counted.stream_names) == 1 else 1
    by_seq = [sum(matches[at : at + roles]) for at in range(0, len(matches), roles)]
    assert by_seq == [expected.count(seq) for seq in range(len(by_seq))]


def rows(*keys: object) -> list[pa.RecordBatch]:
    return [pa.record_batch({"id": pa.array(range(len(keys))), "k": pa.array(keys)})]


@pytest.mark.parametrize("name", ENGINES)
def test_matches_are_listed_only_where_keys_leave_something_open(name: str) -> None:
    def sent(on: str, *keys: object) -> set[str]:
        join = StreamJoin("R", "S", on, CountWindow(9), kind="count", using=ENGINES[name](2), step_rows=2)
        return streams_sent(join, {"R": {"r": rows(*keys)}, "S": {"s": rows(*keys)}})

    assert "counts" in sent("R.k < S.k", 1, 2, 3, 4, 5, 6)
    assert "counts" not in sent("R.k < S.k", "a", "b", "c", "d", "e", "f")
    assert "counts" not in sent("R.k < S.k AND R.k * R.k < S.k", 1, 2, 3, 4, 5, 6)


def test_engines_say_whether_they_count() -> None:
    assert not PanJoin().can_count
    assert not SPOJoin(mutable="decomposed").can_count
