"""Spouts over sources keep a state: what was fetched is not fetched again, and results go on as if nothing had been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.topology.waiting import LONG
from topology import (
    LocalRuntime,
    RunningTopology,
    Source,
    Spout,
    SpoutTask,
    TaskContext,
    TaskError,
    Topology,
    TopologyBuilder,
    TopologyError,
    Tumbling,
    UnknownInputError,
    bolt,
    from_source,
)

PARTS, ROWS = 3, 400


@dataclass(frozen=True)
class Files(Source):
    """Partitions of numbers. It fails once so many rows of a partition were asked for; None: never."""

    log: str
    fails_at: int | None = None

    def partitions(self) -> Sequence[str]:
        return [f"part-{number}" for number in range(PARTS)]

    def read(self, partition: str, offset: int) -> Iterator[Any]:
        with open(self.log, "a") as log:
            log.write(f"{partition} {offset}\n")
        number = int(partition[-1])
        for first in range(offset, ROWS, 7):
            if self.fails_at is not None and first >= self.fails_at:
                raise OSError("the source is away")
            rows = range(first, min(ROWS, first + 7))
            yield {"time": list(rows), "x": [PARTS * row + number for row in rows]}


@bolt
class Total:
    """Adds up, so that a row that is lost or comes twice shows in every later one."""

    def __init__(self) -> None:
        self.sum = 0

    def execute(self, rows: pa.RecordBatch) -> dict[str, list[int]]:
        found = []
        for x in rows["x"].to_pylist():
            self.sum += x
            found.append(self.sum)
        return {"x": rows["x"].to_pylist(), "sum": found}


def totals(source: Source, readers: int = 2) -> Topology:
    builder = TopologyBuilder("totals")
    builder.spout("files", from_source(source), parallelism=readers)
    builder.bolt("total", Total).global_grouping("files")
    builder.sink().global_grouping("total")
    return builder.build()


def read(running: RunningTopology, found: dict[int, tuple[int, int]], timeout: float | None = None) -> None:
    for first, batch in running.results(numbered=True, timeout=timeout):
        for number, row in enumerate(batch.to_pylist(), first):
            assert found.setdefault(number, (row["x"], row["sum"])) == (row["x"], row["sum"])
        running.acknowledge(first + batch.num_rows - 1)


def end(running: RunningTopology, found: dict[int, tuple[int, int]]) -> None:
    with running:
        read(running, found)


def judge(found: dict[int, tuple[int, int]]) -> None:
    assert sorted(found) == list(range(PARTS * ROWS))
    assert sorted(x for x, _ in found.values()) == list(range(PARTS * ROWS))
    assert found[PARTS * ROWS - 1][1] == sum(range(PARTS * ROWS))


def test_a_source_that_failed_is_read_on_behind_what_is_in_the_journal(tmp_path: Path) -> None:
    log, runtime = tmp_path / "log", LocalRuntime(state=tmp_path / "state")
    found: dict[int, tuple[int, int]] = {}
    for fails_at in (100, 250):
        with pytest.raises(TaskError, match=r"files.*the source is away"):
            end(runtime.launch(totals(Files(str(log), fails_at))), found)
    with runtime.launch(totals(Files(str(log)))) as running:
        read(running, found)
    judge(found)
    offsets = [int(line.split()[1]) for line in log.read_text().splitlines()]
    assert sum(offset >= 100 for offset in offsets) >= 2, "it has gone on, and not begun again"
    reads = len(offsets)
    with runtime.launch(totals(Files(str(log)))) as running:  # all is here: nothing is read any more
        read(running, found, timeout=LONG)
    assert len(log.read_text().splitlines()) == reads


PROGRAM = """
    import sys
    from tests.topology.spouts.test_fetching import Files, totals
    from topology import LocalRuntime

    with LocalRuntime(state=sys.argv[1]).launch(totals(Files(sys.argv[2]))) as running:
        for first, batch in running.results(numbered=True):
            for number, row in enumerate(batch.to_pylist(), first):
                print(number, row["x"], row["sum"], flush=True)
            running.acknowledge(first + batch.num_rows // 2 - 1)
"""


def test_a_program_that_is_killed_goes_on_with_its_source(tmp_path: Path) -> None:
    program, log = tmp_path / "program.py", tmp_path / "log"
    program.write_text(textwrap.dedent(PROGRAM))
    found: dict[int, tuple[int, int]] = {}
    for kill_after in (50, 400, None):
        died = subprocess.Popen(
            [sys.executable, str(program), str(tmp_path / "state"), str(log)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )  # fmt: skip
        assert died.stdout is not None
        for count, line in enumerate(died.stdout):
            if count == kill_after:
                died.kill()
            if line.endswith("\n"):
                number, x, total = map(int, line.split())
                assert found.setdefault(number, (x, total)) == (x, total)
        died.stdout.close()
        assert died.wait() == (0 if kill_after is None else -signal.SIGKILL)
    judge(found)


@bolt(window=Tumbling("time", 50))
def largest(window: Any, rows: pa.RecordBatch) -> dict[str, int]:
    return {"start": window.start, "rows": rows.num_rows}


def test_windows_close_by_the_event_time_of_a_source(tmp_path: Path) -> None:
    builder = TopologyBuilder("windows")
    builder.spout("files", from_source(Files(str(tmp_path / "log")), event_time="time"), parallelism=2)
    builder.bolt("largest", largest).global_grouping("files")
    builder.sink().global_grouping("largest")
    builder.sink("late", aside=True).global_grouping("largest", "late")
    with LocalRuntime(state=tmp_path / "state").launch(builder.build()) as running:
        rows = [row for batch in running.results("results") for row in batch.to_pylist()]
        assert not list(running.results("late"))
    assert rows[-1] == {"start": ROWS - 50, "rows": 50 * PARTS}


def test_programs_cannot_send_to_what_the_topology_fetches(tmp_path: Path) -> None:
    with LocalRuntime(state=tmp_path / "state").launch(totals(Files(str(tmp_path / "log")))) as running:
        with pytest.raises(UnknownInputError, match="no input stream 'files'"):
            running.send("files", pa.table({"x": [1]}))
        assert "fetches from Files" in str(running.topology.plan())


class Own(Spout):
    def build(self, context: TaskContext) -> SpoutTask:
        raise NotImplementedError


def test_a_spout_without_offsets_is_refused(tmp_path: Path) -> None:
    builder = TopologyBuilder("own")
    builder.spout("own", Own())
    builder.sink().global_grouping("own")
    with pytest.raises(TopologyError, match=r"'own' is a spout of its own kind.*from_source"):
        LocalRuntime(state=tmp_path).launch(builder.build())
