"""Topologies on Ray that go on after any of their processes has died."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
import ray

from operators import CountWindow, RunningJoin, ScaleJoin, SPOJoin, StreamJoin
from tests.s3_server import below, s3_server
from tests.topology.on_ray.programs import processes, program
from tests.topology.waiting import repeatedly, wait_for
from topology import (
    Batch,
    Bolt,
    Emit,
    FlightClient,
    LocalRuntime,
    Origin,
    PassOn,
    RayRuntime,
    Resources,
    State,
    Task,
    TaskContext,
    TaskError,
    TopologyError,
    Workers,
    attach,
)
from topology import WorkerStatus as Worker
from topology.on_ray import runtime as ray_runtime
from topology.on_ray.lease import LeaseSeconds
from topology.on_ray.nodes import cluster_nodes

pytestmark = pytest.mark.usefixtures("ray_cluster")

ROWS = 12_000
ROWS_SENT = 100
SOURCES = {"R": ["R-0"], "S": ["S-0"]}
JOIN = StreamJoin(
    "R",
    "S",
    "abs(R.x - S.x) <= 1",
    CountWindow(300, slide=100),
    select=["R.x", "S.x"],
    using=SPOJoin(elements=1),
    step_rows=200,
)
FEW = Workers(2)
"""Where it does not matter which tasks share a process: each process takes a second to start."""

Chosen = Callable[[Worker], bool]


def rows(count: int = ROWS) -> pa.Table:
    return pa.table({"x": [(i * 7919) % 500 for i in range(count)]})


def expected(count: int = ROWS) -> pa.Table:
    return JOIN.collect({"R": {"R-0": rows(count)}, "S": {"S-0": rows(count)}}).combine_chunks()


def entry(worker: Worker) -> bool:
    return ("gate", 0) in worker.tasks


def exit_(worker: Worker) -> bool:
    return ("results", 0) in worker.tasks


def element(worker: Worker) -> bool:
    return not entry(worker) and not exit_(worker)


def process_of(running: RunningJoin, chosen: Chosen) -> int:
    return next(worker.pid for worker in running.status().workers if chosen(worker) and worker.pid)


def feed(running: RunningJoin, count: int = ROWS) -> threading.Thread:
    """Send all rows, without offsets: the handle counts them."""

    def send() -> None:
        table = rows(count)
        for start in range(0, count, ROWS_SENT):
            for stream in "RS":
                running.send(stream, table.slice(start, ROWS_SENT), source=f"{stream}-0")
        running.finish()

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def read_on(running: RunningJoin, disturb: Iterator[None]) -> tuple[pa.Table, int]:
    """Read all results while somebody disturbs after every few thousand; numbers must go on without a gap."""
    found, end = [], -1
    disturb_at = 3_000
    for first, batch in running.results(numbered=True):
        assert end in (-1, first)
        end = first + batch.num_rows
        found.append(batch)
        if end > disturb_at:
            running.acknowledge(end - 1)
            next(disturb, None)
            disturb_at = end + 6_000
    return pa.Table.from_batches(found).combine_chunks(), end


def kill(running: RunningJoin, *those: Chosen) -> Iterator[None]:
    for chosen in those:
        os.kill(process_of(running, chosen), signal.SIGKILL)
        yield


def test_any_worker_may_be_killed_in_the_middle_of_a_join(tmp_path: Path) -> None:
    with JOIN.launch(RayRuntime(state=tmp_path), sources=SOURCES, name="killed") as running:
        before = {name: running.endpoint(name) for name in ("R", "results")}
        feeding = feed(running)
        found, end = read_on(running, kill(running, entry, element, exit_))
        feeding.join()
        assert {name: running.endpoint(name) for name in before} == before
        assert FlightClient(before["R"]).next_offset("R", "R-0") == ROWS  # other programs need no new one
        status = running.status()
        assert (status.state, status.recoveries) == (State.RUNNING, 3)
    right = expected()
    assert end == right.num_rows
    assert found.equals(right)


def test_state_in_a_bucket_with_tls_and_a_worker_for_each_task() -> None:
    with s3_server() as uri:
        runtime = RayRuntime(state=below(uri, "kept"), placement="per-task", tls=True)
        assert "test:test" not in repr(runtime)
        with JOIN.launch(runtime, sources=SOURCES, name="bucket") as running:
            workers = running.status().workers
            assert next(worker.tasks for worker in workers if entry(worker)) == (("R", 0), ("S", 0), ("gate", 0))
            assert all(len(worker.tasks) == 1 for worker in workers if not entry(worker))
            feeding = feed(running, 4_000)
            found, _ = read_on(running, kill(running, entry))
            feeding.join()
            assert running.status().recoveries == 1
        assert found.equals(expected(4_000))


def test_a_frozen_worker_is_replaced_and_harms_nothing_when_it_wakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_runtime, "LEASES", LeaseSeconds(owner=10.0, worker=5.0))
    with JOIN.launch(RayRuntime(state=tmp_path, placement=FEW), sources=SOURCES, name="frozen") as running:

        def freeze() -> Iterator[None]:
            frozen = process_of(running, entry)
            os.kill(frozen, signal.SIGSTOP)
            wait_for(lambda: running.status().state is State.RECOVERING, "nobody noticed that a worker was frozen")
            with suppress(ProcessLookupError):
                os.kill(frozen, signal.SIGCONT)
            yield

        feeding = feed(running, 4_000)
        found, _ = read_on(running, freeze())
        feeding.join()
        assert running.status().recoveries >= 1
    assert found.equals(expected(4_000))


def test_the_controller_may_be_killed_too(tmp_path: Path) -> None:
    with JOIN.launch(RayRuntime(state=tmp_path, placement=FEW), sources=SOURCES, name="headless") as running:

        def behead() -> Iterator[None]:
            titles = processes("ray::headless")
            os.kill(next(pid for pid, title in titles.items() if "/controller" in title), signal.SIGKILL)
            yield

        before = running.endpoint("S")
        feeding = feed(running, 4_000)
        found, _ = read_on(running, behead())
        feeding.join()
        wait_for(lambda: running.status().state is State.RUNNING)
        assert FlightClient(before).next_offset("S", "S-0") == 4_000
        assert running.status().recoveries == 1
        running.stop()
        wait_for(lambda: not processes("ray::headless"), "a process outlived stop()")
    assert found.equals(expected(4_000))


PROGRAM = """
import sys
import pyarrow as pa
from operators import CountWindow, SPOJoin, StreamJoin
from topology import RayRuntime, Workers

address, state = sys.argv[1:]
join = StreamJoin(
    "R", "S", "abs(R.x - S.x) <= 1", CountWindow(300, slide=100), select=["R.x", "S.x"],
    using=SPOJoin(elements=1), step_rows=200,
)
rows = pa.table({"x": [(i * 7919) % 500 for i in range(4_000)]})
runtime = RayRuntime(address, state=state, placement=Workers(2))
running = join.launch(runtime, sources={"R": ["R-0"], "S": ["S-0"]}, name="relaunched")
for stream in "RS":
    running.send(stream, rows.slice(0, 2_500), source=f"{stream}-0", offset=0)
running.flush()
for first, batch in running.results(numbered=True):
    running.acknowledge(first + batch.num_rows - 1)
    print(first + batch.num_rows, flush=True)
    break
sys.stdin.read()
"""


def test_another_program_goes_on_where_a_killed_one_was(tmp_path: Path) -> None:
    address = str(ray.get_runtime_context().gcs_address)
    with program(tmp_path, PROGRAM, address, str(tmp_path / "state")) as killed:
        assert killed.stdout is not None
        acknowledged = int(killed.stdout.readline())
        killed.send_signal(signal.SIGKILL)
    runtime = RayRuntime(state=tmp_path / "state", placement=FEW)
    with JOIN.launch(runtime, sources=SOURCES, name="relaunched", replace=True) as running:
        assert running.next_offset("R", "R-0") == 2_500
        for stream in "RS":
            running.send(stream, rows(4_000), source=f"{stream}-0", offset=0)
        running.finish()
        found = list(running.results(numbered=True))
    assert found[0][0] == acknowledged > 0
    assert pa.Table.from_batches([batch for _, batch in found]).equals(expected(4_000).slice(acknowledged))


def test_a_topology_whose_state_another_one_has_taken_over_ends(tmp_path: Path) -> None:
    runtime = RayRuntime(state=tmp_path, placement=Workers(1))
    with (
        pytest.raises(TaskError, match="epoch"),
        JOIN.launch(runtime, sources=SOURCES, name="fenced") as running,
        JOIN.launch(LocalRuntime(state=tmp_path), sources=SOURCES, name="fenced") as other,
    ):
        other.send("R", rows(10), source="R-0")
        for _ in repeatedly():
            running.send("R", rows(10), source="R-0")
            running.flush()


@dataclass(frozen=True)
class Failing(Bolt):
    """In place of the collector."""

    beside = "sinks"

    def build(self, context: TaskContext) -> Task:
        return FailingTask()


class FailingTask(PassOn):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        raise ValueError("cannot stand rows")


def test_an_error_of_the_users_code_comes_back_and_ends_the_topology(tmp_path: Path) -> None:
    topology = replace(JOIN, ordering="strict").topology()
    nodes = tuple(replace(node, component=Failing()) if node.name == "collector" else node for node in topology.nodes)
    with (
        pytest.raises(TaskError, match="cannot stand rows") as error,
        RayRuntime(state=tmp_path, placement=FEW).launch(replace(topology, nodes=nodes), name="failing") as running,
    ):
        for stream in "RS":
            running.send(stream, rows(500), source=f"{stream}-0")
        running.finish()
        for _ in running.results():
            pass
    assert error.value.component == "collector"
    assert "in on_batch" in str(error.value)
    assert re.search(r"at rows 0-\d+ of R from R-0, rows 0-\d+ of S from S-0:\n", str(error.value))


def test_a_state_that_cannot_be_opened_is_refused_at_the_launch(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TopologyError, match="cannot write to the directory"):
        JOIN.launch(RayRuntime(state=tmp_path / "file"), name="refused")


def test_a_directory_of_one_machine_is_refused_on_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = cluster_nodes()
    monkeypatch.setattr(ray_runtime, "cluster_nodes", lambda: [*nodes, *nodes])
    with pytest.raises(TopologyError, match=r"directory of one machine.*s3://bucket/prefix"):
        JOIN.launch(RayRuntime(state=tmp_path), name="refused")


def test_a_join_is_rebalanced_in_the_middle_and_again_after_kills(tmp_path: Path) -> None:
    saved: list[str] = []
    with JOIN.launch(RayRuntime(state=tmp_path / "state"), sources=SOURCES, name="rebalanced") as running:

        def change() -> Iterator[None]:
            running.rebalance(po_join=2)
            saved.append(running.savepoint())
            assert len([worker for worker in running.status().workers if element(worker)]) == 4
            yield
            attached = attach("rebalanced")
            assert isinstance(attached, RunningJoin)
            with attached:
                attached.rebalance(using=ScaleJoin(threads=1), placement=Workers(2))
                assert attached.join.engine == ScaleJoin(threads=1)
            titles = processes("ray::rebalanced")
            os.kill(next(pid for pid, title in titles.items() if "/controller" in title), signal.SIGKILL)
            yield

        feeding = feed(running)
        found, _ = read_on(running, change())
        feeding.join()
        wait_for(lambda: running.status().state is State.RUNNING)
        assert len(running.status().workers) == 2
        assert running.topology.node("processing-thread").parallelism == 1
    right = expected()
    assert found.equals(right)
    with JOIN.launch(LocalRuntime(state=tmp_path / "new", savepoint=saved[0]), sources=SOURCES) as running:
        for stream in "RS":
            running.send(stream, rows(), source=f"{stream}-0", offset=0)
        running.finish()
        again = list(running.results(numbered=True))
    assert pa.Table.from_batches([batch for _, batch in again]).equals(right.slice(again[0][0]))


@pytest.mark.slow
def test_if_workers_cannot_start_the_old_layout_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JOIN.launch(RayRuntime(state=tmp_path), sources=SOURCES, name="crowded") as running:
        topology = running.topology
        many = tuple(
            replace(node, resources=Resources(cpus=1000)) if node.name == "po-join" else node for node in topology.nodes
        )
        with pytest.raises(TopologyError, match=r"cannot be rebalanced: the cluster has no room"):
            running._running.change(replace(topology, nodes=many))
        monkeypatch.setattr("topology.on_ray.running.missing", lambda placement, nodes: "")
        with pytest.raises(TopologyError, match=r"goes on as it was: the cluster has no room"):
            running._running.change(replace(topology, nodes=many))
        feeding = feed(running, 2_000)
        found = pa.Table.from_batches(running.results()).combine_chunks()
        feeding.join()
    assert found.equals(expected(2_000))
