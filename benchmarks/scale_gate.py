"""ScaleGate: rows per second merged from 1 to 64 sources, in batches, with one reader and with two.

Every source sends rows of the paper's R tuples, reduced to columns of fixed width (event time, a whole number and a
float), whose times are drawn at random: neighbours in the merged order nearly always come from different sources, the
hardest case for merging. The sources take turns, batch by batch, and whenever all have sent one, readers take what is
ready. A figure covers adding, merging, gathering the payload and reading, in one thread.

The paper (ScaleJoin, figure 7a) reports 150,000 tuples/s on 16 cores at 2.0 GHz; its public Java code, one thread per
source, reaches 4 million from 2 sources and 8 million from 8 on the reference machine with 2 cores.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from operators import ScaleGate, SourceName

PAPER = 150_000
PUBLIC = {2: 4_000_000, 8: 8_000_000}
SOURCES = (1, 2, 8, 64)
BATCHES = (1_000, 10_000, 65_536)
REPEATS = 5

Batches = dict[SourceName, list[pa.RecordBatch]]


def run(quick: bool) -> dict[str, Any]:
    """Measure all numbers of sources, batch sizes and readers."""
    total = 1 << (20 if quick else 22)
    rows = []
    print("rows/s; the paper's ScaleGate: 150,000 (16 cores, 2.0 GHz); public Java: 4M from 2 sources, 8M from 8")
    print(f"{'sources':>8}{'batch':>8}{'1 reader':>14}{'2 readers':>14}{'public Java':>14}{'ratio':>8}")
    for sources in SOURCES:
        for batch in BATCHES:
            batches = source_batches(sources, batch, max(total, 2 * sources * batch))
            rates = [max(merge_rate(batches, readers) for _ in range(REPEATS)) for readers in (1, 2)]
            peer = PUBLIC.get(sources)
            shown = f"{peer:>14,}{rates[0] / peer:>8.1f}" if peer else ""
            print(f"{sources:>8}{batch:>8,}{rates[0]:>14,.0f}{rates[1]:>14,.0f}{shown}", flush=True)
            rows.append(
                {
                    "case": f"sources={sources} batch={batch}",
                    "ours": rates[0],
                    "two_readers": rates[1],
                    "peers": {"paper": PAPER} | ({"public Java": peer} if peer else {}),
                    "ratio": rates[0] / (peer or PAPER),
                }
            )
    return {"name": "scale-gate", "rows": rows}


def source_batches(sources: int, batch: int, total: int) -> Batches:
    rng = np.random.default_rng(sources)
    made: Batches = {}
    rows = -(-total // (sources * batch)) * batch
    for source in range(sources):
        columns = {
            "ts": np.sort(rng.integers(0, total, rows)),
            "x": rng.integers(1, 10_001, rows).astype(np.int32),
            "y": rng.uniform(1, 10_000, rows).astype(np.float32),
        }
        whole = pa.record_batch(columns)
        made[SourceName(f"source-{source}")] = [whole.slice(at, batch) for at in range(0, rows, batch)]
    return made


def merge_rate(batches: Batches, readers: int) -> float:
    """Rows per second; checks the order and that nothing is lost."""
    gate = ScaleGate(readers)
    timed = {source: [(rows, rows.column("ts").to_numpy()) for rows in each] for source, each in batches.items()}
    read = [0] * readers
    last = -1
    start = time.perf_counter()
    for source in timed:
        gate.open(source)
    for turn in range(len(next(iter(timed.values())))):
        for source, each in timed.items():
            gate.add(source, *each[turn])
        last = _read(gate, read, last)
    gate.end(timed)
    _read(gate, read, last)
    seconds = time.perf_counter() - start
    total = sum(rows.num_rows for each in batches.values() for rows in each)
    assert read == [total] * readers, "every reader gets every row"
    return total / seconds


def _read(gate: ScaleGate, read: list[int], last: int) -> int:
    for reader in range(len(read)):
        while (step := gate.next_ready(reader)) is not None:
            read[reader] += step.end - step.first
            if reader == 0:
                times = step.streams[""].rows.column("ts")
                assert last <= times[0].as_py(), "the order is that of time"
                last = times[-1].as_py()
    return last
