"""Programs that tests run in processes of their own, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]

LAUNCH = """
import sys, time
import pyarrow as pa
from topology import MapBatches, RayRuntime, TopologyBuilder, Workers

def doubled(rows):
    return pa.record_batch({"n": [2 * value for value in rows.column("n").to_pylist()]})

builder = TopologyBuilder("doubling")
builder.input("in")
builder.bolt("double", MapBatches(doubled)).shuffle_grouping("in")
builder.sink().shuffle_grouping("double")
address, name, detached = sys.argv[1:4]
running = RayRuntime(address, placement=Workers(2)).launch(builder.build(), name=name, detached=detached == "detached")
running.send("in", pa.record_batch({"n": [1, 2]}))
number, rows = next(running.results(numbered=True))
running.acknowledge(number + rows.num_rows - 1)
print(rows.column("n").to_pylist(), flush=True)
sys.stdin.read()
"""
"""Launches a topology, reads one result, and goes on until its standard input ends."""


@contextmanager
def program(directory: Path, text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program from a directory of its own, with the checkout on its path; it is killed at the end."""
    path = directory / "program.py"
    path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-W", "error", str(path), *arguments],
        cwd=directory, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def processes(title: str) -> dict[int, str]:
    """The processes of this machine whose title begins with `title`, by their number."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                shown = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if shown.startswith(title):
                found[int(entry.name)] = shown.strip()
    return found
