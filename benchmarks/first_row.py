"""Seconds from pressing return to the first result on standard output: `interlace sql` beside a program with DuckDB.

Both are started as processes of their own over the same files, with the same query, and write rows to a pipe. The
trips of `green_taxi_2023_01.parquet` are not in the order of their pickups, so ours sorts them first, or holds rows
back with `--out-of-order`; the sample of 2015 is CSV without a header. A run before the measured ones has compiled
the kernels. The peer joins whole tables and has no order to keep; it shows what a process that imports an engine and
reads the files takes.

The files are those of `../shared/data`; without them there is nothing to measure.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REPEATS = 5
QUICK_REPEATS = 2

GREEN = DATA / "green_taxi_2023_01.parquet"
FARTHER = (
    f"SELECT a.trip_distance, a.fare_amount, b.trip_distance, b.fare_amount FROM '{GREEN}' AS a, '{GREEN}' AS b "
    "WHERE a.trip_distance > b.trip_distance AND a.fare_amount < b.fare_amount WINDOW AS (INTERVAL '10 min')"
)
FARTHER_IN_DUCKDB = (
    f"SELECT a.trip_distance, a.fare_amount, b.trip_distance, b.fare_amount FROM '{GREEN}' AS a JOIN '{GREEN}' AS b "
    "ON a.trip_distance > b.trip_distance AND a.fare_amount < b.fare_amount "
    "AND b.lpep_pickup_datetime BETWEEN a.lpep_pickup_datetime - INTERVAL 10 MINUTE "
    "AND a.lpep_pickup_datetime + INTERVAL 10 MINUTE"
)
SAMPLE = DATA / "debs2015_taxi_sample.csv"
NEAR = (
    f"SELECT a.c0, b.c0 FROM '{SAMPLE}' AS a, '{SAMPLE}' AS b "
    "WHERE a.c6 BETWEEN b.c6 - 0.0001 AND b.c6 + 0.0001 AND a.c7 BETWEEN b.c7 - 0.0001 AND b.c7 + 0.0001 "
    "AND a.c6 <> 0 WINDOW AS (ROWS 1000)"
)
NEAR_IN_DUCKDB = (
    f"WITH t AS (SELECT *, row_number() OVER () AS n FROM read_csv('{SAMPLE}', header=false)) "
    "SELECT a.column00, b.column00 FROM t a JOIN t b ON a.column06 BETWEEN b.column06 - 0.0001 AND b.column06 + 0.0001 "
    "AND a.column07 BETWEEN b.column07 - 0.0001 AND b.column07 + 0.0001 AND a.column06 <> 0 "
    "AND a.n BETWEEN b.n - 1000 AND b.n + 1000"
)
DUCKDB = "import sys, duckdb\nprint(duckdb.execute(sys.argv[1]).fetchone(), flush=True)"


@dataclass(frozen=True)
class Case:
    """A query in both dialects, and what else ours is told."""

    name: str
    query: str
    peer_query: str
    options: tuple[str, ...] = ()

    @property
    def ours(self) -> list[str]:
        return [sys.executable, "-m", "interlace", "sql", self.query, "--json", *self.options]

    @property
    def peer(self) -> list[str]:
        return [sys.executable, "-c", DUCKDB, self.peer_query]


PICKUP = ("--event-time", "lpep_pickup_datetime")
CASES = (
    Case("green taxi, sorted first", FARTHER, FARTHER_IN_DUCKDB, PICKUP),
    Case("green taxi, --out-of-order", FARTHER, FARTHER_IN_DUCKDB, (*PICKUP, "--out-of-order", "1h")),
    Case("sample of 2015, CSV", NEAR, NEAR_IN_DUCKDB, ("--no-header",)),
)


def run(quick: bool) -> dict[str, Any]:
    """Start each a few times, in turns."""
    if not GREEN.exists():
        raise SystemExit(f"there are no recorded data in {DATA}")
    repeats = QUICK_REPEATS if quick else REPEATS
    rows = []
    print(
        f"seconds to the first row on standard output; median (least, most) of {repeats} runs, in turns, kernels warm"
    )
    for case in CASES:
        first_row(case.ours)
        ours, peers = [], []
        for _ in range(repeats):
            ours.append(first_row(case.ours))
            peers.append(first_row(case.peer))
        print(f"  {case.name:<28}ours {_shown(ours)}   DuckDB {_shown(peers)}", flush=True)
        mine, theirs = statistics.median(ours), statistics.median(peers)
        rows.append({"case": case.name, "ours": mine, "peers": {"DuckDB": theirs}, "ratio": mine / theirs, "all": ours})
    return {"name": "first-row", "rows": rows}


def first_row(command: Sequence[str]) -> float:
    """Seconds from the start of a process to its first line; it is ended then."""
    environment = {name: value for name, value in os.environ.items() if name != "INTERLACE_KERNELS"}  # as users have it
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - began
        process.terminate()
        if not line.strip():
            raise SystemExit(f"{' '.join(command[:4])} found no row: {process.stderr.read().decode()}")
    return seconds


def _shown(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):6.2f} s ({min(seconds):.2f}, {max(seconds):.2f})"
