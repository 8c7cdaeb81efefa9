"""Who outlives whom: detached topologies, programs that are killed, names that are taken, programs that attach."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import ray

from tests.topology.on_ray.programs import LAUNCH, processes, program
from tests.topology.waiting import LONG, wait_for
from topology import (
    MapBatches,
    NameTakenError,
    RayRuntime,
    State,
    StoppedError,
    TaskError,
    Topology,
    TopologyBuilder,
    TopologyError,
    UnknownTopologyError,
    Workers,
    attach,
)
from topology.on_ray import runtime as ray_runtime
from topology.on_ray.cluster import Membership
from topology.on_ray.lease import LeaseSeconds

pytestmark = pytest.mark.usefixtures("ray_cluster")


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return numbers(*[2 * value for value in rows.column("n").to_pylist()])


def doubling(name: str = "doubling") -> Topology:
    builder = TopologyBuilder(name)
    builder.input("in")
    builder.bolt("double", MapBatches(doubled)).shuffle_grouping("in")
    builder.sink().shuffle_grouping("double")
    return builder.build()


@pytest.fixture
def address() -> str:
    return str(ray.get_runtime_context().gcs_address)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A name for one test; whatever runs under it is stopped at the end."""
    name = request.node.name.removeprefix("test_")[:40]
    yield name
    try:
        attach(name).stop()
    except UnknownTopologyError:
        pass
    wait_for(lambda: not processes(f"ray::{name}"), "a process outlived its test")


# detached topologies


def test_detached_outlives_its_program_and_others_attach(tmp_path: Path, address: str, name: str) -> None:
    with program(tmp_path, LAUNCH, address, name, "detached") as launcher:
        assert launcher.stdout is not None
        assert launcher.stdin is not None
        assert launcher.stdout.readline() == "[2, 4]\n"
        launcher.stdin.close()
        assert launcher.wait(LONG) == 0
    workers = processes(f"ray::{name}")
    with attach(name) as running:
        assert running.name == name
        running.send("in", numbers(5))
        number, rows = next(running.results(timeout=LONG, numbered=True))
        assert (number, rows.column("n").to_pylist()) == (2, [10])
        running.acknowledge(2)
        assert running.schema("in") == numbers().schema
        status = running.status()
        assert (status.state, status.detached) == (State.RUNNING, True)
        assert sorted(task for worker in status.workers for task in worker.tasks) == [
            ("double", 0), ("in", 0), ("results", 0),
        ]  # fmt: skip
        assert {worker.pid for worker in status.workers} <= set(workers)
    assert processes(f"ray::{name}").keys() == workers.keys(), "letting go of a handle ended the topology"
    with attach(name) as running:
        running.send("in", numbers(6, 7))
        running.finish()
        assert [value for rows in running.results() for value in rows.column("n").to_pylist()] == [12, 14]
        running.stop()
    wait_for(lambda: not processes(f"ray::{name}"), "a process outlived stop()")
    with pytest.raises(UnknownTopologyError, match=f"no topology called '{name}' is running"):
        attach(name)


def test_detached_needs_a_cluster_that_outlives_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Membership, "started_cluster", True)
    with pytest.raises(TopologyError, match="start one with 'ray start --head'"):
        RayRuntime().launch(doubling(), detached=True)


# names


def test_a_name_is_taken_as_long_as_its_topology_runs(name: str) -> None:
    with RayRuntime(placement=Workers(1)).launch(doubling(), name=name) as first:
        before = processes(f"ray::{name}")
        with pytest.raises(NameTakenError, match=rf"use attach\('{name}'\).*replace=True"):
            RayRuntime(placement=Workers(1)).launch(doubling(), name=name)
        assert processes(f"ray::{name}").keys() == before.keys()
        with RayRuntime(placement=Workers(1)).launch(doubling(), name=name, replace=True) as second:
            assert not before.keys() & processes(f"ray::{name}").keys()
            with pytest.raises(StoppedError, match="another program has stopped the topology"):
                for _ in range(10_000):
                    first.send("in", numbers(1))
                    next(first.results(timeout=0.01), None)
            second.send("in", numbers(3))
            assert next(second.results(timeout=LONG)).column("n").to_pylist() == [6]


def test_topologies_without_a_chosen_name_get_numbers() -> None:
    runtime = RayRuntime(placement=Workers(1))
    with runtime.launch(doubling("twin")) as first, runtime.launch(doubling("twin")) as second:
        assert (first.name, second.name) == ("twin", "twin-2")


@pytest.mark.parametrize("wrong", ["", "a/b", 7])
def test_a_name_without_sense_is_refused(wrong: object) -> None:
    with pytest.raises(TopologyError, match="a topology's name is a text without '/'"):
        RayRuntime().launch(doubling(), name=wrong)  # type: ignore[arg-type]


# orphans


def test_nothing_is_left_of_a_program_that_was_killed(tmp_path: Path, address: str, name: str) -> None:
    with program(tmp_path, LAUNCH, address, name, "owned") as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "[2, 4]\n"
        assert processes(f"ray::{name}")
        launcher.send_signal(signal.SIGKILL)
    wait_for(lambda: not processes(f"ray::{name}"), "a process outlived the program that launched it")
    with pytest.raises(UnknownTopologyError):
        attach(name)


def test_workers_end_when_their_controller_is_killed(name: str) -> None:
    running = RayRuntime(placement=Workers(2)).launch(doubling(), name=name)
    controller = next(pid for pid, title in processes(f"ray::{name}").items() if "/controller" in title)
    os.kill(controller, signal.SIGKILL)
    wait_for(lambda: not processes(f"ray::{name}"), "a worker outlived its controller")
    with pytest.raises(StoppedError, match=r"the controller of .* has died"):
        for _ in range(10_000):
            running.send("in", numbers(1))
    running.stop()


# frozen and dead


def test_a_frozen_worker_is_noticed_and_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(ray_runtime, "LEASES", LeaseSeconds(owner=10.0, worker=6.0))
    with RayRuntime(placement=Workers(2)).launch(doubling(), name=name) as running:
        frozen = next(worker for worker in running.status().workers if ("results", 0) in worker.tasks)
        os.kill(frozen.pid, signal.SIGSTOP)
        expected = rf"on node {frozen.node}: no sign of life for \d+ seconds; process {frozen.pid} is frozen"
        with pytest.raises(TaskError, match=expected) as error:
            for _ in running.results(timeout=LONG):
                pass
        assert (error.value.component, error.value.task) == frozen.tasks[0]
    wait_for(lambda: not processes(f"ray::{name}"), "a frozen worker was left")


def test_resources_that_nobody_has_are_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from topology.on_ray import reservation

    builder = TopologyBuilder("greedy")
    builder.input("in")
    builder.bolt("double", MapBatches(doubled)).resources(cpus=1000).shuffle_grouping("in")
    builder.sink().shuffle_grouping("double")
    with pytest.raises(TopologyError, match=r"no room for the workers: worker 'double/0' needs 1000 CPUs"):
        RayRuntime().launch(builder.build(), name=name)
    assert reservation.IMPOSSIBLE_SECONDS < LONG
