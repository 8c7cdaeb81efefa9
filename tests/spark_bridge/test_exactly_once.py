"""Spark with several executors, speculation, and deaths in turn: of an executor, of the driver, of the topology."""

from __future__ import annotations

import json
import os
import random
import shutil
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


HOST_FOR_EACH_EXECUTOR = """#!/bin/bash
arguments=("$@") id=""
for at in "${!arguments[@]}"; do [ "${arguments[at]}" = --executor-id ] && id=${arguments[at + 1]}; done
for at in "${!arguments[@]}"; do
    [ -n "$id" ] && [ "${arguments[at]}" = --hostname ] && arguments[at + 1]=127.0.0.$((id % 200 + 2))
done
exec "REAL" "${arguments[@]}"
"""
"""A java for Spark. Speculative copies run on another host than the original, and a local cluster has one host only; so
each executor gets a loopback address of its own."""


def java_home(folder: Path) -> Path:
    """A JAVA_HOME with that java."""
    home = os.environ.get("JAVA_HOME")
    real = shutil.which("java", path=f"{home}/bin" if home else None)
    assert real is not None, "require_java has found it"
    java = folder / "java" / "bin" / "java"
    if not java.exists():
        java.parent.mkdir(parents=True)
        java.write_text(HOST_FOR_EACH_EXECUTOR.replace("REAL", real))
        java.chmod(0o755)
    return folder / "java"


@contextmanager
def feeding(running: RunningJoin, folder: Path, partitions: int) -> Iterator[Iterator[str]]:
    """A program that feeds the join; it is killed at the end. Gives the lines that it prints."""
    endpoints = {stream: [running.endpoint(stream).uri, str(running.endpoint(stream).token)] for stream in "RS"}
    told = {"master": "local-cluster[2,1,512]", "folder": str(folder), "partitions": partitions, "endpoints": endpoints}
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.spark_bridge.feeding_program", json.dumps(told)], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, cwd=ROOT, start_new_session=True,
        env={**os.environ, "JAVA_HOME": str(java_home(folder))},
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


def speculative_tasks(folder: Path) -> int:
    """How many copies of tasks have succeeded, as Spark's event logs tell."""
    ended = [
        json.loads(line)
        for log in (folder / "events").rglob("*")
        if log.is_file() and log.suffix != ".crc"
        for line in log.read_text().splitlines()
        if line.startswith('{"Event":"SparkListenerTaskEnd"') and line.endswith("}")  # it may be killed in a line
    ]
    return sum(task["Task Info"]["Speculative"] and task["Task End Reason"]["Reason"] == "Success" for task in ended)


@pytest.mark.spark
@pytest.mark.slow  # minutes: programs die and start again
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize(
    ("batches", "deaths"),
    [(2, ("executor",)), (6, ("driver", "executor", "topology", None))],
    ids=["short", "long"],
)
def test_whoever_dies_the_result_is_that_of_the_oracle(
    batches: int, deaths: tuple[str | None, ...], tmp_path: Path
) -> None:
    """In each life of the feeding program one part dies; in the last one everything is fed."""
    try:
        require_java()
    except SparkUnavailableError as error:
        pytest.skip(str(error))
    choose = random.Random(0)
    content = {stream: random_batches(number, batches) for number, stream in enumerate("RS")}
    for stream, tables in content.items():
        add_files(tmp_path / stream, tables)
    everything = sum(table.num_rows for tables in content.values() for table in tables)
    sources = {stream: [f"files of {stream}"] for stream in "RS"}

    def until(lines: Iterator[str], running: RunningJoin, rows: int) -> None:
        while committed(running) < rows:
            assert next(lines, None) is not None, "Spark ended before"

    for life, dies in enumerate(deaths):
        is_last = life == len(deaths) - 1
        with trips_join().launch(LocalRuntime(state=tmp_path / "state"), sources=sources) as running:
            before = committed(running)
            with feeding(running, tmp_path, partitions=choose.randrange(2, 5) if life < 2 else 1) as lines:
                while life == 0 and not running.next_offset("R", "files of R"):
                    assert next(lines, None) is not None, "Spark ended before its first micro-batch of R"
                if dies is not None:
                    until(lines, running, before + 1)
                if dies == "executor":
                    os.kill(choose.choice(executors()), signal.SIGKILL)
                if dies == "executor" or is_last:
                    until(lines, running, everything if is_last else min(everything, committed(running) + 30))
                if dies == "topology":
                    running.stop()
            if is_last:
                assert committed(running) == everything
                running.finish()
                got = plain(pa.Table.from_batches(list(running.results())))
                assert running.metrics().total("late") == 0
    given = {stream: {f"files of {stream}": as_source(tables)} for stream, tables in content.items()}
    expected = trips_join().collect(given)
    assert expected.num_rows > 20 * batches
    assert got == plain(expected)
    assert speculative_tasks(tmp_path) >= 1
