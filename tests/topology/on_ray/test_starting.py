"""What is done while others start: processes wait for the workers, and workers prepare for their first rows."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray

from topology import Bolt, PassOn, RayRuntime, Task, TaskContext, TopologyBuilder
from topology.on_ray.launching import start_processes

pytestmark = pytest.mark.usefixtures("ray_cluster")


def _ticks_since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")


class Born:
    """An actor that knows when its process was started."""

    def ticks(self) -> int:
        return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])


def waited(actors: list[Any]) -> bool:
    """Make an actor; whether its process was there before."""
    asked = _ticks_since_boot()
    actors.append(ray.remote(num_cpus=0)(Born).remote())
    return bool(ray.get(actors[-1].ticks.remote()) < asked - 1)


def test_a_process_waits_for_the_first_worker() -> None:
    actors: list[Any] = []
    while waited(actors):  # uses up what other tests have left
        pass
    start_processes(1)
    deadline = time.monotonic() + 60
    while not waited(actors):
        assert time.monotonic() < deadline
    for actor in actors:
        ray.kill(actor)


@dataclass(frozen=True)
class Prepared(Bolt):
    """Leaves a file when it is prepared, and fails at that, which only its rows may report."""

    folder: str

    def prepare(self) -> None:
        Path(self.folder, str(os.getpid())).touch()
        raise ImportError("not here")

    def build(self, context: TaskContext) -> Task:
        return PassOn()


def test_a_worker_prepares_its_components_without_rows(tmp_path: Path) -> None:
    builder = TopologyBuilder("prepared")
    builder.input("in")
    builder.bolt("bolt", Prepared(str(tmp_path)), 2).shuffle_grouping("in")
    builder.sink().shuffle_grouping("bolt")
    with RayRuntime().launch(builder.build()) as running:
        bolts = {("bolt", 0), ("bolt", 1)}
        workers = {str(worker.pid) for worker in running.status().workers if bolts & set(worker.tasks)}
        deadline = time.monotonic() + 60
        while {file.name for file in tmp_path.iterdir()} != workers:
            assert time.monotonic() < deadline
            time.sleep(0.1)
