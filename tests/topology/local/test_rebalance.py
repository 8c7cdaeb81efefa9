"""Topologies in this process that go on with other tasks: results, numbers and order stay, and nobody notices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from operators import (
    CountWindow,
    HandshakeJoin,
    IndexJoin,
    JoinError,
    PanJoin,
    RunningJoin,
    ScaleJoin,
    SplitJoin,
    SPOJoin,
    StreamJoin,
)
from tests.topology.waiting import LONG, wait_for
from topology import FlightClient, LocalRuntime, StoppedError, TaskError, TopologyError

ROWS = 6_000
ROWS_SENT = 40
JOIN = StreamJoin(
    "R", "S", "abs(R.x - S.x) <= 1", CountWindow(300, slide=100), kind="left", select=["R.x", "S.x"], using=SPOJoin(1)
)
SOURCES = {"R": ["R-0"], "S": ["S-0"]}
ENGINES = [
    ScaleJoin(threads=2),
    IndexJoin(threads=2),
    PanJoin(workers=2),
    SplitJoin(cores=3, fanout=2),
    HandshakeJoin(cores=2),
    SPOJoin(elements=3, mutable="decomposed"),
]


@cache
def rows(count: int = ROWS) -> pa.Table:
    return pa.table({"x": [(i * 7919) % 500 for i in range(count)]})


@cache
def expected(count: int = ROWS) -> pa.Table:
    return JOIN.collect({"R": {"R-0": rows(count)}, "S": {"S-0": rows(count)}}).combine_chunks()


@contextmanager
def feeding(running: RunningJoin, count: int = ROWS) -> Iterator[None]:
    """Send all rows without offsets, in small batches, while the block runs."""
    failures: list[BaseException] = []

    def send() -> None:
        try:
            for start in range(0, count, ROWS_SENT):
                for stream in "RS":
                    running.send(stream, rows(count).slice(start, ROWS_SENT), source=f"{stream}-0")
            running.finish()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    thread.join()
    assert not failures


def read_on(running: RunningJoin, every: int, disturb: Iterator[None]) -> pa.Table:
    """Read all results, numbered without a gap; disturb after every so many, until there is nothing left to disturb."""
    found, end, disturb_at, more = [], 0, every, True
    for first, batch in running.results(numbered=True):
        assert first == end
        end = first + batch.num_rows
        found.append(batch)
        if end > disturb_at:
            more = next(disturb, True) is None
            disturb_at = end + every
        running.acknowledge(end - 1 - batch.num_rows // 3)
    assert not more, "not everything had its turn"
    return pa.Table.from_batches(found).combine_chunks()


def test_a_join_goes_through_all_engines_while_rows_are_sent_and_results_read(tmp_path: Path) -> None:
    with (
        JOIN.launch(LocalRuntime(state=tmp_path, edge_bytes=20_000), sources=SOURCES) as running,
        feeding(running),
    ):

        def change() -> Iterator[None]:
            for engine in ENGINES:
                running.rebalance(using=engine)
                assert running.join.engine == engine
                yield

        found = read_on(running, 2_000, change())
    assert found.equals(expected())


def test_numbers_of_elements_change_by_name(tmp_path: Path) -> None:
    with JOIN.launch(LocalRuntime(state=tmp_path), sources=SOURCES) as running, feeding(running):

        def change() -> Iterator[None]:
            for count in (2, 3, 1):
                running.rebalance(po_join=count, permutation=count)
                assert running.topology.node("po-join").parallelism == count
                yield

        found = read_on(running, 3_000, change())
    assert found.equals(expected())


def test_what_was_rebalanced_goes_on_after_a_kill(tmp_path: Path) -> None:
    killed = JOIN.launch(LocalRuntime(state=tmp_path), sources=SOURCES)
    for stream in "RS":
        killed.send(stream, rows(), source=f"{stream}-0")
    killed.rebalance(using=ScaleJoin(threads=2))
    first, batch = next(killed.results(numbered=True))
    killed.acknowledge(first + batch.num_rows - 1)  # nobody stops it: its successor fences it
    with JOIN.launch(LocalRuntime(state=tmp_path), sources=SOURCES) as running:
        running.rebalance(using=IndexJoin(threads=1))
        running.finish()
        found = list(running.results(numbered=True))
    assert found[0][0] == first + batch.num_rows
    assert pa.Table.from_batches([batch for _, batch in found]).equals(expected().slice(found[0][0]))
    with suppress(TaskError):
        killed.stop()


def test_a_sender_that_waits_for_room_goes_on_in_the_next_life(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path, edge_bytes=2_000)
    with JOIN.launch(runtime, sources=SOURCES) as running, feeding(running):
        results = running._running._group.results["results"]  # type: ignore[attr-defined]
        wait_for(lambda: not results.has_room)  # nobody reads: everything fills up
        running.rebalance(using=ScaleJoin(threads=2))
        assert read_on(running, 1, iter(())).equals(expected())


def test_late_rows_and_what_waits_at_the_gate_stay(tmp_path: Path) -> None:
    join = StreamJoin("R", "S", "R.x = S.x", CountWindow(10), event_time="t", out_of_order=2, using=SPOJoin(1))
    table = pa.table({"x": [1, 1, 1, 1, 1], "t": [5, 9, 1, 9, 2]})
    with join.launch(LocalRuntime(state=tmp_path), sources=SOURCES) as running:
        running.send("R", table, source="R-0")
        late = running.late(timeout=LONG)
        assert next(late).column("offset").to_pylist() == [2, 4]
        running.rebalance(po_join=2)
        running.send("R", pa.table({"x": [1], "t": [3]}), source="R-0")
        assert next(late).column("offset").to_pylist() == [5]
        running.send("S", pa.table({"x": [1], "t": [9]}), source="S-0")
        running.finish()
        assert sum(batch.num_rows for batch in running.results()) == 3


def test_clients_in_other_processes_keep_their_endpoint(tmp_path: Path) -> None:
    with JOIN.launch(LocalRuntime(state=tmp_path), sources=SOURCES) as running:
        clients = {stream: FlightClient(running.endpoint(stream, control=True)) for stream in "RS"}
        reader = FlightClient(running.endpoint("results")).open_reader("results", None, False)
        found = []
        for number, start in enumerate(range(0, 2_000, 500)):
            for stream, client in clients.items():
                client.send(stream, f"{stream}-0", rows(2_000).slice(start, 500).to_batches())
            running.rebalance(po_join=1 + number % 2)
        for stream, client in clients.items():
            client.finish(stream)
            client.close()
        while (given := reader.next(LONG)) is not None:
            found.append(given[1])
        reader.close()
    assert pa.Table.from_batches(found).combine_chunks().equals(expected(2_000))


def test_what_cannot_be_rebalanced_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    stateless = JOIN.launch(LocalRuntime(), sources=SOURCES)
    with stateless, pytest.raises(TopologyError, match=r"no state.*LocalRuntime\(state="):
        stateless.rebalance(po_join=2)
    with JOIN.launch(LocalRuntime(state=tmp_path), sources=SOURCES) as running:
        with pytest.raises(JoinError, match="SPOJoin has 'po-join', 'permutation'"):
            running.rebalance(gate=2)
        with pytest.raises(TopologyError, match="whole number from 1, not 0"):
            running.rebalance(po_join=0)
        with pytest.raises(JoinError, match="using must be an engine"):
            running.rebalance(using="ScaleJoin")  # type: ignore[arg-type]
        with pytest.raises(TopologyError, match="placement= needs a cluster"):
            running.rebalance(po_join=2, placement="per-task")
        other = replace(JOIN, window=CountWindow(10)).topology()
        with pytest.raises(TopologyError, match="what its results mean"):
            running._running.change(other)
        assert running.topology.node("po-join").parallelism == 1
        for stream in "RS":
            running.send(stream, rows(500), source=f"{stream}-0")
        running.finish()
        assert sum(batch.num_rows for batch in running.results()) == expected(500).num_rows
    with pytest.raises(StoppedError):
        running.rebalance(po_join=2)
