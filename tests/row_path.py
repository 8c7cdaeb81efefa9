"""Traces one batch of rows through an embedded join: which files of the project it passes, stage by stage.

A stage is `send`, then each component that the rows reach, in the order of the plan, then `read`. A file belongs to
the first stage that calls it. The join has answered other rows before the trace begins, because starting tasks and
choosing an index are not part of a row's path. One worker thread drives all tasks and nothing else is sent meanwhile,
so every run gives the same trace.

Numba reports a kernel that Python code calls to the profiler like a Python function. It does not report kernels that
are called by other kernels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import pyarrow as pa

import interlace as il

ROOT = Path(__file__).parent.parent
PACKAGES = ("interlace", "topology", "operators", "indexes")
QUIET_SECONDS = 0.5
TURN = ("topology/process/task_threads.py", "advance")
"""The method with which a worker thread gives a task its turn."""


class Recorder:
    """A profiler that notes for each stage the files whose functions it calls, in the order of their first calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.files: dict[str, list[str]] = {}
        self._recording = False
        self._stages: dict[int, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        self.calls += 1
        if not self._recording or frame.f_code.co_name == "<module>":
            return
        file = os.path.relpath(frame.f_code.co_filename, ROOT)
        if file.split("/")[0] not in PACKAGES:
            return
        if (file, frame.f_code.co_name) == TURN:
            component = frame.f_locals["self"].name.partition("[")[0]
            self.begin(component)
        files = self.files.setdefault(self._stages[threading.get_ident()], [])
        if file not in files:
            files.append(file)

    def begin(self, stage: str) -> None:
        """Begin a stage in this thread; the first one begins the recording."""
        self._stages[threading.get_ident()] = stage
        self._recording = True

    def wait_until_quiet(self) -> None:
        """Return when no thread has called anything for a while."""
        before = -1
        while before != self.calls:
            before = self.calls
            time.sleep(QUIET_SECONDS)


def readings(*times: int) -> pa.RecordBatch:
    """Rows at these event times; cooling follows power, so that few rows match."""
    power = [float(each * 37 % 701) for each in times]
    cool = [each + 3 * (time % 2) for time, each in zip(times, power, strict=True)]
    return pa.record_batch({"id": times, "ts": times, "power": power, "cool": cool})


def trace() -> list[tuple[str, str]]:
    """(stage, file) for each file, in the order in which one batch of rows reaches them."""
    join = il.StreamJoin(
        "R",
        "S",
        "R.power < S.power AND R.cool > S.cool",
        il.CountWindow(1_000_000, slide=100_000),
        select=["R.id", "S.id"],
        event_time="ts",
    )
    recorder = Recorder()
    threading.setprofile(recorder)
    with join.launch(il.LocalRuntime(workers=1)) as running:
        running.send("R", readings(*range(2_000)))
        results = running.results()
        for first in (0, 500):  # the second part is merged with the first
            running.send("S", readings(*range(first, first + 500)))
            next(results)
        recorder.wait_until_quiet()
        sys.setprofile(recorder)
        recorder.begin("send")
        running.send("S", readings(*range(1_000, 1_400)))
        recorder.wait_until_quiet()
        recorder.begin("read")
        next(results)
        sys.setprofile(None)
        # The output `late` is told how far time has come, but no row of this batch goes there.
        stages = ["send", *(node.name for node in running.topology.nodes if node.name != "late"), "read"]
    threading.setprofile(None)
    first_stage: dict[str, str] = {}
    for stage in stages:
        for file in recorder.files.get(stage, []):
            first_stage.setdefault(file, stage)
    return [(stage, file) for file, stage in first_stage.items()]


def trace_in_a_new_process() -> list[tuple[str, str]]:
    """The trace in a process without threads of other tests."""
    finished = subprocess.run(
        [sys.executable, "-m", "tests.row_path"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return [(stage, file) for stage, file in json.loads(finished.stdout)]


if __name__ == "__main__":
    print(json.dumps(trace(), indent=1))
