"""Topologies on Ray that take no rows for a while, and whose controller dies at a bad moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
import ray

from operators import CountWindow, IndexJoin, RunningJoin, StreamJoin
from tests.topology.on_ray.programs import processes
from tests.topology.waiting import LONG, SHORT, wait_for
from topology import RayRuntime, State, Status, StoppedError, Workers, attach, topology_status
from topology.on_ray.launching import find_controller

pytestmark = pytest.mark.usefixtures("ray_cluster")

JOIN = StreamJoin("R", "S", "R.x = S.x", CountWindow(100), select=["R.x"], using=IndexJoin())
NAME = "pausing"


def kill(chosen: Callable[[str], bool]) -> None:
    titles = processes(f"ray::{NAME}")
    os.kill(next(pid for pid, title in titles.items() if chosen(title)), signal.SIGKILL)


def is_controller(title: str) -> bool:
    return "/controller" in title


def after(recoveries: int) -> Status:
    """The status when it has recovered so often, since its controller began."""

    def has_recovered() -> bool:
        with suppress(Exception):
            status = topology_status(NAME)
            return status.state is State.RUNNING and status.recoveries == recoveries
        return False

    wait_for(has_recovered, "it did not recover")
    return topology_status(NAME)


def test_it_takes_no_rows_whichever_process_dies_and_ends_though_its_controller_dies_while_it_stops(
    tmp_path: Path,
) -> None:
    runtime = RayRuntime(state=tmp_path, placement=Workers(1))
    running = JOIN.launch(runtime, sources={"R": ["R-0"], "S": ["S-0"]}, name=NAME)
    try:
        running.send("R", {"x": [1, 2, 3]}, source="R-0")
        running.flush()
        with attach(NAME) as other:
            other.deactivate()
        assert not running.status().active
        sending = threading.Thread(target=send_and_flush, args=(running,), daemon=True)
        sending.start()
        kill(lambda title: not is_controller(title))
        assert not after(recoveries=1).active
        kill(is_controller)
        assert not after(recoveries=1).active
        sending.join(SHORT)
        assert sending.is_alive()
        running.activate()
        sending.join(LONG)
        assert not sending.is_alive()
        running.finish()
        assert pa.Table.from_batches(running.results(timeout=LONG)).to_pylist() == [{"R.x": 2}]
        kill_controller_while_it_stops()
    finally:
        with suppress(StoppedError):  # somebody else has stopped it
            running.stop()


def kill_controller_while_it_stops() -> None:
    worker = next(pid for pid, title in processes(f"ray::{NAME}").items() if not is_controller(title))
    os.kill(worker, signal.SIGSTOP)  # so that stopping takes its time
    try:
        controller = find_controller(NAME)
        assert controller is not None
        controller.stop.remote()
        wait_for(lambda: ray.get(controller.status.remote()).state is State.STOPPED)
        kill(is_controller)
    finally:
        os.kill(worker, signal.SIGCONT)
    wait_for(lambda: find_controller(NAME) is None, "the topology began again, or its controller stayed")
    wait_for(lambda: not processes(f"ray::{NAME}"), "a process outlived stop()")


def send_and_flush(running: RunningJoin) -> None:
    running.send("S", {"x": [2]}, source="S-0")
    running.flush()
