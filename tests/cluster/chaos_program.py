"""The program that chaos lets loose on: a join under load, with a state, on Ray or embedded.

`python chaos_program.py ray|local STATE FOLDER` launches the join, or goes on where a killed program was. It sends for
ever, and writes each result with its number to the file `results`, before it acknowledges it. The file `sent` says how
many rows of each stream it has sent. A file `pause` holds the seconds to wait after each batch of results. When there
is a file `stop`, it ends both streams at the same place, which it writes to the file `end`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa

import interlace as il
from topology.on_ray import runtime as ray_runtime
from topology.on_ray.lease import LeaseSeconds

JOIN = il.StreamJoin(
    "R", "S", "abs(R.x - S.x) <= 1", il.CountWindow(300, slide=100), select=["R.x", "S.x", "R.n", "S.n"],
    using=il.SPOJoin(elements=2), step_rows=200,
)  # fmt: skip
ROWS_SENT = 100
AHEAD = 10_000
"""On Ray it sends at most so many rows of a stream for which no result has come: otherwise the time that the backlog
takes would be most of a pause after a fault."""

LINES_BYTES = 1 << 20
"""More than a batch of results takes in the file."""

LEASES = LeaseSeconds(owner=10.0, worker=8.0)
"""Shorter than usual: a process that is frozen is noticed sooner."""


def rows(first: int, count: int) -> pa.Table:
    """Some rows of either stream; the same offset is always the same row."""
    numbers = range(first, first + count)
    return pa.table({"x": [(n * 7919) % 500 for n in numbers], "n": numbers})


def main(where: str, state: str, folder: Path) -> None:
    ray_runtime.LEASES = LEASES
    runtime = il.RayRuntime(address="auto", state=state) if where == "ray" else il.LocalRuntime(state=state)
    sources = {stream: [f"{stream}-0"] for stream in "RS"}
    with JOIN.launch(runtime, sources=sources, name="chaos", replace=where == "ray") as running:
        print("launched", flush=True)
        ahead = AHEAD if where == "ray" else None
        threading.Thread(target=_feed, args=(running, folder, ahead), daemon=True).start()
        with (folder / "results").open("a+") as file:
            for first, batch in running.results(after=_last(file.fileno()), numbered=True):
                file.write(json.dumps([first, *(column.to_pylist() for column in batch.columns)]) + "\n")
                file.flush()
                running.acknowledge(first + batch.num_rows - 1)
                _pause(folder)
    print("done", flush=True)


def check(folder: Path) -> int:
    """Compare all results, and their numbers, with those of a run without faults; return how many there are."""
    end = int((folder / "end").read_text())
    right = JOIN.collect({"R": {"R-0": rows(0, end)}, "S": {"S-0": rows(0, end)}}).combine_chunks()
    found: list[list[int]] = [[] for _ in right.schema]
    for line in (folder / "results").read_text().splitlines():
        first, *columns = json.loads(line)
        assert first == len(found[0]), f"result {first} follows {len(found[0]) - 1}"
        for column, values in zip(found, columns, strict=True):
            column += values
    assert pa.table(found, right.schema).equals(right), "the results differ from those without faults"
    return len(found[0])


def latest(folder: Path) -> int:
    """The number of the last row that has had a result; -1: none has."""
    place = folder / "results"
    if not place.exists():
        return -1
    with place.open("rb") as file:
        file.seek(max(0, place.stat().st_size - LINES_BYTES))
        lines = file.read().split(b"\n")[:-1]
    for line in reversed(lines):
        if line.startswith(b"[") and line.endswith(b"]]"):
            _, _, _, left, right = json.loads(line)
            return max(*left, *right)
    return -1


def sent(folder: Path) -> int:
    """How many rows of a stream the program has sent, at most, when it last said so."""
    place = folder / "sent"
    return int(place.read_text()) if place.exists() else 0


def _pause(folder: Path) -> None:
    """Wait as long as the file says; it may change meanwhile."""
    began = time.monotonic()
    while (place := folder / "pause").exists() and time.monotonic() - began < float(place.read_text() or 0):
        time.sleep(0.05)


def _feed(running: il.RunningJoin, folder: Path, ahead: int | None) -> None:
    at = {stream: running.next_offset(stream, f"{stream}-0") for stream in "RS"}
    end: int | None = None
    while end is None or min(at.values()) < end:
        if end is None and (folder / "stop").exists():
            end = _agreed_end(folder, max(at.values()) + ROWS_SENT)
        if ahead is not None and end is None and min(at.values()) > latest(folder) + ahead:
            time.sleep(0.01)
            continue
        stream = min(at, key=lambda name: at[name])
        count = ROWS_SENT if end is None else min(ROWS_SENT, end - at[stream])
        at[stream] = running.send(stream, rows(at[stream], count), source=f"{stream}-0", offset=at[stream])
        _write(folder / "sent", max(at.values()))
    running.finish()


def _agreed_end(folder: Path, end: int) -> int:
    """Where the streams end: as a program before this one has written, or here."""
    place = folder / "end"
    if not place.exists():
        _write(place, end)
    return int(place.read_text())


def _write(place: Path, number: int) -> None:
    """Write a number to a file so that nobody sees half of it."""
    draft = place.with_suffix(".draft")
    draft.write_text(str(number))
    draft.rename(place)


def _last(file: int) -> int:
    """The number of the last result that was written whole; a line that was torn by a kill is cut off."""
    content = os.pread(file, os.fstat(file).st_size, 0)
    whole = content.rfind(b"\n") + 1
    os.ftruncate(file, whole)
    if not whole:
        return -1
    first, left, *_ = json.loads(content[:whole].splitlines()[-1])
    return int(first) + len(left) - 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
