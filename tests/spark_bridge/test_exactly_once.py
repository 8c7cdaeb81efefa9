"""Spark with several executors, speculation, and deaths in turn: of an executor, of the driver, of the topology."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from operators import RunningJoin
from spark_bridge import SparkUnavailableError, require_java
from tests.spark_bridge.micro_batches import add_files, as_source, random_batches, trips_join
from tests.spark_bridge.readings import plain
from topology import LocalRuntime

ROOT = Path(__file__).parents[2]
BATCHES = 6


@contextmanager
def feeding(running: RunningJoin, folder: Path, partitions: int) -> Iterator[Iterator[str]]:
    """A program that feeds the join; it is killed at the end. Gives the lines that it prints."""
    endpoints = {stream: [running.endpoint(stream).uri, str(running.endpoint(stream).token)] for stream in "RS"}
    told = {"master": "local-cluster[2,1,512]", "folder": str(folder), "partitions": partitions, "endpoints": endpoints}
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.spark_bridge.feeding_program", json.dumps(told)], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    assert program.stdout is not None
    try:
        yield iter(program.stdout)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()


def executors() -> list[int]:
    """The processes that run tasks, of programs that this process has started."""
    parents, found = {}, []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return [pid for pid in found if is_ours(pid)]


def committed(running: RunningJoin) -> int:
    return sum(running.next_offset(stream, f"files of {stream}") for stream in "RS")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("seed", range(1))
def test_whoever_dies_the_result_is_that_of_the_oracle(seed: int, tmp_path: Path) -> None:
    try:
        require_java()
    except SparkUnavailableError as error:
        pytest.skip(str(error))
    choose = random.Random(seed)
    content = {stream: random_batches(seed + number, BATCHES) for number, stream in enumerate("RS")}
    for stream, batches in content.items():
        add_files(tmp_path / stream, batches)
    everything = sum(batch.num_rows for batches in content.values() for batch in batches)
    sources = {stream: [f"files of {stream}"] for stream in "RS"}

    def until(lines: Iterator[str], running: RunningJoin, rows: int) -> None:
        while committed(running) < rows:
            assert next(lines, None) is not None, "Spark ended before"

    for dies in ("driver", "executor", "topology", None):
        with trips_join().launch(LocalRuntime(state=tmp_path / "state"), sources=sources) as running:
            before = committed(running)
            with feeding(running, tmp_path, partitions=choose.randrange(1, 5)) as lines:
                if dies is not None:
                    until(lines, running, before + 1)
                if dies == "executor":
                    os.kill(choose.choice(executors()), signal.SIGKILL)
                if dies in ("executor", None):
                    until(lines, running, everything if dies is None else min(everything, committed(running) + 30))
                if dies == "topology":
                    running.stop()
            if dies is None:
                assert committed(running) == everything
                running.finish()
                got = plain(pa.Table.from_batches(list(running.results())))
                assert running.metrics().total("late") == 0
    given = {stream: {f"files of {stream}": as_source(batches)} for stream, batches in content.items()}
    expected = trips_join().collect(given)
    assert expected.num_rows > 100
    assert got == plain(expected)
