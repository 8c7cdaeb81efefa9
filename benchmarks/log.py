"""A durable log beside a plain Arrow IPC stream: rows per second, with an fsync for every batch.

The rows are those of SPO-Join's query Q1. Both write batches of 10,000 to a file in the same directory and sync each
before the next. The log adds a checksum, a header that names producer, source and offset, and a look for a successor
after each sync. `threads` is the log behind its committing thread, where up to eight batches wait for their sync: what
is appended during one sync shares the next. After each run the log is read back, and every row counted.

The disk decides most of this: TMPDIR says which.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from os import fsync
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.data import datacentre_readings
from topology import GroupCommit, Log, Record, Ticket, open_store, take_over

BATCH = 10_000
REPEATS = 5
AHEAD = 8

Rows = list[pa.RecordBatch]


def run(quick: bool) -> dict[str, Any]:
    """Measure the log and its peer in turns."""
    total = 1_000_000 if quick else 10_000_000
    batches = datacentre_readings(total, 0.05, 1).to_batches(BATCH)
    rates: dict[str, list[float]] = {"log": [], "threads": [], "plain": []}
    sizes = {}
    for _ in range(REPEATS):
        for name, write in (("plain", _plain), ("log", _log), ("threads", _threads)):
            with tempfile.TemporaryDirectory() as directory:
                seconds, size = write(Path(directory), batches)
            rates[name].append(total / seconds)
            sizes[name] = size / total
    best = {name: max(each) for name, each in rates.items()}
    print(f"{total:,} rows of Q1 in batches of {BATCH:,}, an fsync for each; best of {REPEATS}, in turns")
    print(f"{'':<28}{'rows/s':>14}{'bytes/row':>12}{'ratio':>8}")
    for name, shown in (("plain", "Arrow IPC stream"), ("log", "log"), ("threads", "log, committing thread")):
        print(f"{shown:<28}{best[name]:>14,.0f}{sizes[name]:>12.3f}{best[name] / best['plain']:>8.2f}")
    return {
        "name": "log",
        "rows": [
            {
                "case": f"batch={BATCH} {name}",
                "ours": best[name],
                "peers": {"Arrow IPC stream": best["plain"]},
                "ratio": best[name] / best["plain"],
                "bytes_per_row": sizes[name],
                "peer_bytes_per_row": sizes["plain"],
            }
            for name in ("log", "threads")
        ],
    }


def _plain(directory: Path, batches: Rows) -> tuple[float, int]:
    path = directory / "stream.arrow"
    with path.open("wb", buffering=0) as file, pa.ipc.new_stream(file, batches[0].schema) as stream:
        start = time.perf_counter()
        for rows in batches:
            stream.write_batch(rows)
            fsync(file.fileno())
        seconds = time.perf_counter() - start
    return seconds, path.stat().st_size


def _log(directory: Path, batches: Rows) -> tuple[float, int]:
    with _started(directory, batches) as log:
        start = time.perf_counter()
        for record in _records(batches):
            log.append(record)
            log.commit()
        return time.perf_counter() - start, log.kept_bytes


def _threads(directory: Path, batches: Rows) -> tuple[float, int]:
    with _started(directory, batches) as log:
        committer = GroupCommit(log)
        waiting: deque[Ticket] = deque()
        start = time.perf_counter()
        for record in _records(batches):
            if len(waiting) == AHEAD:
                waiting.popleft().wait()
            waiting.append(committer.append(record))
        for ticket in waiting:
            ticket.wait()
        seconds = time.perf_counter() - start
        committer.close()
        return seconds, log.kept_bytes


@contextmanager
def _started(directory: Path, batches: Rows) -> Iterator[Log]:
    """A new log; at the end it must hold every row."""
    log = take_over(open_store(directory)).start(Record({"start": True}))
    log.commit()
    yield log
    found = sum(rows.num_rows for _, record in log.records(1) for rows in record.batches)
    assert found == sum(rows.num_rows for rows in batches), "the log holds every row"


def _records(batches: Rows) -> Iterator[Record]:
    offset = 0
    for rows in batches:
        yield Record({"producer": "benchmark", "source": "R", "offset": offset}, (rows,))
        offset += rows.num_rows
