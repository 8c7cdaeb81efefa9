"""Handshake join against the oracle, and what is special about it: the chain, and where rows are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CountWindow, JoinError, SPOJoin, StreamJoin, TimeWindow
from operators.engines.handshake_join.chain_core import FlowLink, MovingFlow
from operators.engines.handshake_join.description import HandshakeJoin
from operators.protocol.limits import Limits
from tests.operators.engines.readings import readings
from tests.operators.oracle_check import check, join_of
from tests.operators.per_task import EachTaskAnActor
from tests.operators.seeded_run import check_schedule
from tests.strategies import JoinCase, join_cases
from topology import Batch, LocalRuntime, Origin, Punctuation

ROUTER = Origin("router", 0, 0)


@st.composite
def engines(draw: st.DrawFn) -> HandshakeJoin:
    return HandshakeJoin(
        cores=draw(st.integers(1, 8)),
        low_latency=draw(st.booleans()),
        index=draw(st.sampled_from([None, "auto", "TieredRuns", "BPlusTree"])),
    )


@given(join_cases(), engines(), st.integers(1, 9))
@settings(max_examples=50)
def test_results_and_their_order_are_those_of_the_oracle(case: JoinCase, engine: HandshakeJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


@given(join_cases(max_rows=8, max_sources=2), engines(), st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=20)
def test_it_does_not_matter_where_the_streams_cross(
    case: JoinCase, engine: HandshakeJoin, step_rows: int, seed: int
) -> None:
    check_schedule(case, join_of(case, engine, step_rows=step_rows), seed)


@pytest.mark.slow
@given(join_cases(max_rows=60), engines(), st.integers(1, 40))
@settings(max_examples=500)
def test_many_random_joins(case: JoinCase, engine: HandshakeJoin, step_rows: int) -> None:
    check(case, engine, LocalRuntime(), step_rows)


def join(engine: HandshakeJoin, **options: Any) -> StreamJoin:
    return StreamJoin("R", "S", "R.x <= S.x", CountWindow(60), select=["R.id", "S.id"], using=engine, **options)


@pytest.mark.parametrize("low_latency", [True, False])
def test_the_streams_pass_the_cores_in_opposite_directions(low_latency: bool) -> None:
    topology = join(HandshakeJoin(cores=3, low_latency=low_latency)).topology()
    for side, along in (("left", [0, 1, 2]), ("right", [2, 1, 0])):
        before = "router"
        for number in along:
            assert topology.producers(f"{side}-flow-{number}") == (before,)
            before = f"{side}-flow-{number}"
    for number in range(3):
        core = f"handshake-core-{number}"
        assert topology.producers(core) == (f"left-flow-{number}", f"right-flow-{number}")
        assert topology.consumers(core) == ("collector",)
    assert join(HandshakeJoin()).plan()


@pytest.mark.parametrize("window", [CountWindow(50, 7), TimeWindow(60)], ids=["count", "time"])
@pytest.mark.parametrize("index", [None, "TieredRuns"])  # both keep rows for a while after they have left
def test_any_chain_gives_the_same(window: CountWindow | TimeWindow, index: str | None) -> None:
    tables = {"R": readings(300, 1), "S": readings(300, 2)}
    results = [
        StreamJoin("R", "S", "abs(R.x - S.x) <= 3", window, event_time="ts", using=engine, step_rows=40).collect(tables)
        for engine in (SPOJoin(), *(HandshakeJoin(n, low, index) for n in (1, 2, 4, 8) for low in (True, False)))
    ]
    assert results[0].num_rows > 1000
    assert all(result.equals(results[0]) for result in results[1:])


@pytest.mark.parametrize("low_latency", [True, False])
def test_rows_are_stored_once_or_at_every_core_in_turn(low_latency: bool) -> None:
    table = readings(200, 1)
    handshake = join(HandshakeJoin(cores=4, low_latency=low_latency), step_rows=10)
    with handshake.launch(sources={"R": ["R"], "S": ["S"]}) as running:
        for stream in ("R", "S"):
            running.send(stream, table)
            running.finish(stream)
        assert sum(batch.num_rows for batch in running.results()) > 0
        stored = {task.component: task.own for task in running.metrics().tasks if "core" in task.component}
    along = {
        "left": [stored[f"handshake-core-{number}"]["left_stored"] for number in range(4)],
        "right": [stored[f"handshake-core-{number}"]["right_stored"] for number in reversed(range(4))],
    }
    for entered in along.values():
        if low_latency:
            assert entered == [50] * 4
        else:  # a quarter of the window waits at each core
            assert all(200 - 16 * hops <= rows <= 200 - 15 * hops for hops, rows in enumerate(entered))


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=12),
)
def test_every_live_row_is_in_exactly_one_segment(cores: int, steps: list[tuple[int, int]]) -> None:
    """Drive the links of one flow by hand; the segments that they tell their cores must tile the live rows."""
    links = [MovingFlow(FlowLink(0, hops, cores, 1, moving=True)) for hops in range(cores)]
    arrived = dead = 0
    for seq, (rows, dying) in enumerate(steps):
        before, dead = dead, min(arrived + rows, dead + dying)
        keys = np.arange(arrived, arrived + rows)
        arrived += rows
        messages: list[Batch | Punctuation] = [Limits(live=(dead, 0)).to_batch()]
        if rows:
            messages.append(Batch("probes.left", pa.record_batch({"key0": keys}), first=arrived - rows))
        messages.append(Punctuation(seq))
        found: list[int] = []
        for hops, link in enumerate(links):
            sent: list[Batch | Punctuation] = []
            for message in messages:
                take = link.on_batch if isinstance(message, Batch) else link.on_punctuation
                held_before = [key for batch in link._held for key in batch.rows.column(0).to_pylist()]
                sent += [emit.message for emit in take(message, ROUTER)]  # type: ignore[arg-type,misc]
                link.check_invariants()
            (begin,) = next(m.labels for m in sent if isinstance(m, Batch) and m.stream == "segment.left")
            held = [key for batch in link._held for key in batch.rows.column(0).to_pylist()]
            # the last link has dropped what died in this step, which its core may still be asked for
            found += [key for key in (held if hops < cores - 1 else held_before) if key >= begin]
            messages = [m for m in sent if not (isinstance(m, Batch) and m.stream.startswith(("entering", "segment")))]
        assert [key for key in sorted(found) if key >= before] == list(range(before, arrived))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cores": -1}, "HandshakeJoin: cores must be"),
        ({"low_latency": 1}, "HandshakeJoin: low_latency must be True or False"),
        ({"index": "hash"}, "HandshakeJoin: index must be None"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        HandshakeJoin(**settings)


@pytest.mark.usefixtures("ray_cluster")
def test_ray_and_the_embedded_runtime_agree_to_the_byte() -> None:
    tables = {"R": readings(600, 1), "S": readings(600, 2)}
    handshake = join(HandshakeJoin(cores=2, low_latency=False), step_rows=150)
    local = handshake.collect(tables)
    assert local.num_rows > 1000
    assert handshake.collect(tables, EachTaskAnActor()).combine_chunks().equals(local.combine_chunks())
