"""IndexJoin on the band join of the PIM-Tree paper: the gain from a second thread.

R and S have uniform random integer keys. The band is wide enough that a row matches two rows of the other side's
window on average. The windows are full, and micro-batches of R and S take turns.

- element: the work queue and the index-join element driven by hand, with nothing else running: insert, merge, probe.
- end to end: from batch in to result batch out on the embedded runtime. Its workers, one per core, also run the gate,
  the router and the collector; with one thread in the element these already use the other core, so a second thread
  there can only gain what they leave.
- ceiling: the processor time that each element needs per row, measured one element after the other, and the most that
  two threads can gain.

The paper (figure 12a, window 2^20, match rate 2, Xeon E5-2665 with 8 cores at 2.4 GHz): 8 threads are 4.6 times as fast
as one, 16 threads on the same cores 5.7 times. Concurrency control alone costs it 40% on one thread.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import in_blocks, run_join
from benchmarks.virtual_processors import VirtualProcessors
from indexes import Interval, Keys, Live
from operators import (
    INDEX_JOIN,
    ITEM_ROWS,
    SIDES,
    CountWindow,
    ElementRows,
    IndexJoin,
    IndexJoinElement,
    IndexSetting,
    Limits,
    StreamJoin,
    WorkQueue,
)
from topology import Batch, Emit, Origin, Punctuation, Task, TaskContext

KEYS = 1 << 30
MATCHES = 2
BATCH = 1 << 16
WANTED = 1.5
PAPER = {"threads": 8, "times": 4.6}


def run(quick: bool) -> dict[str, Any]:
    """Measure one and two threads, alone and end to end."""
    window = 1 << (16 if quick else 20)
    batch = min(BATCH, window // 4)
    blocks, repeats = (4, 2) if quick else (8, 5)
    print("the paper: 8 threads on 8 cores (Xeon E5-2665) 4.6 times as fast as 1, at window 2^20 and match rate 2")
    print(f"windows of {window:,}, {MATCHES} matches per tuple, micro-batches of {batch:,}, items of {ITEM_ROWS:,}")
    print(f"{'':>12}{'index':>10}{'1 thread, tuples/s':>20}{'2 threads':>14}{'times':>8}")
    rows = []
    for what, measure in (("element", _element), ("end to end", _end_to_end)):
        for index in ("PIMTree", "IMTree"):
            rates = {1: 0.0, 2: 0.0}
            # in turns, so that a busy moment of the machine meets both
            for _ in range(repeats):
                for threads, best in rates.items():
                    rates[threads] = max(best, measure(window, batch, blocks, index, threads))
            times = rates[2] / rates[1]
            print(f"{what:>12}{index:>10}{rates[1]:>20,.0f}{rates[2]:>14,.0f}{times:>8.2f}", flush=True)
            rows.append(
                {
                    "case": f"{what} index={index} window={window}",
                    "ours": rates[2],
                    "peers": {"1 thread": rates[1]},
                    "ratio": times,
                    "wanted": WANTED,
                    "paper": PAPER,
                }
            )
    rows += [_ceiling(window, batch, blocks, index) for index in ("PIMTree", "IMTree")]
    return {"name": "pim-band", "rows": rows}


def _ceiling(window: int, batch: int, blocks: int, index: str) -> dict[str, Any]:
    """Measure the processor time of each element per row, and the most that two threads can gain on two processors."""
    costs = _profile(window, batch, blocks, index)
    total = sum(costs.values())
    times = costs[INDEX_JOIN] / max(total / 2, costs[INDEX_JOIN] / 2)
    print(f"\n{index}: nanoseconds of a processor for a row, in each element")
    shown = ", ".join(f"{name} {cost:.0f}" for name, cost in costs.items() if cost >= 1)
    print(f"  {shown}; together {total:.0f}")
    print(f"  with a second thread at most {times:.2f} times: two processors, and all elements need them", flush=True)
    return {"case": f"ceiling index={index} window={window}", "ours": times, "peers": costs, "ratio": times}


def _profile(window: int, batch: int, blocks: int, index: str) -> dict[str, float]:
    processors = VirtualProcessors(_join(window, IndexJoin(index, 1)).topology(), 0.0)
    processors.open(["R", "S"])
    tables = _tables(window + blocks * batch)
    left, right = (in_blocks(table, batch, parity).to_batches()[0] for parity, table in enumerate(tables))
    before: dict[str, float] = {}
    for at in range(0, left.num_rows, batch):
        if at == window:
            before = processors.processor_seconds
        processors.send(0.0, [("R", left.slice(at, batch)), ("S", right.slice(at, batch))])
    after = processors.processor_seconds
    return {name: (after[name] - before[name]) / (2 * blocks * batch) * 1e9 for name in after}


def _diff(window: int) -> int:
    """Return the width of the band that gives two matches per window."""
    return max(0, (MATCHES * KEYS // window - 1) // 2)


def _end_to_end(window: int, batch: int, blocks: int, index: str, threads: int) -> float:
    measured = run_join(_join(window, IndexJoin(index, threads)), _tables(window + blocks * batch), batch, window)
    found = measured.results.num_rows / (2 * blocks * batch)
    assert 0.9 * MATCHES < found < 1.1 * MATCHES, f"{found} matches per tuple"
    return measured.rate


def _tables(rows: int) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(1)
    left, right = (pa.table({"id": np.arange(rows), "x": rng.integers(0, KEYS, rows)}) for _ in SIDES)
    return left, right


def _join(window: int, engine: IndexJoin) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        f"abs(R.x - S.x) <= {_diff(window)}",
        CountWindow(window),
        select=["R.id", "S.id"],
        event_time="block",
        using=engine,
    )


def _element(window: int, batch: int, blocks: int, index: str, threads: int) -> float:
    engine = IndexJoin(index, threads)
    setting = IndexSetting(index, ("band",), (window, window), 2 * batch)
    queue = WorkQueue((False,), engine.task_rows).build(TaskContext("work-queue"))
    element = IndexJoinElement((False,), True, setting, threads).build(TaskContext("index-join"))
    assert isinstance(queue, Task)
    assert isinstance(element, Task)
    rng = np.random.default_rng(1)
    steps = [[_rows(rng, number, side, window, batch) for side in (0, 1)] for number in range(window // batch + blocks)]
    start, found = 0.0, 0
    for number, step in enumerate(steps):
        if number == window // batch:
            start, found = time.perf_counter(), 0
        for emit in _cut(queue, number, step, window, batch):
            found += _matches(element, emit)
    seconds = time.perf_counter() - start
    rows = 2 * batch * blocks
    assert 0.9 * MATCHES < found / rows < 1.1 * MATCHES, f"{found / rows} matches per tuple"
    return rows / seconds


def _rows(rng: np.random.Generator, number: int, side: int, window: int, batch: int) -> ElementRows:
    """Micro-batch `number` of a side; the left one comes first."""
    keys = rng.integers(0, KEYS, batch)
    first = number * batch
    end = np.full(batch, first + side * batch)
    seq = 2 * first + side * batch + np.arange(batch)
    interval = Interval(keys - _diff(window), keys + _diff(window))
    return ElementRows(first, seq, (Keys(keys),), (interval,), Live(np.maximum(end - window, 0), end))


def _cut(queue: Task, number: int, step: list[ElementRows], window: int, batch: int) -> list[Emit]:
    origin = Origin("router", 0, 0)
    dead = max(0, (number + 1) * batch - window)
    list(queue.on_batch(Limits((0, 0), (dead, dead)).to_batch(), origin))
    for side, rows in enumerate(step):
        list(queue.on_batch(rows.to_batch(side), origin))
    return list(queue.on_punctuation(Punctuation(2 * (number + 1) * batch - 1, 0.0), origin))


def _matches(element: Task, emit: Emit) -> int:
    """Give a message to the element; return how many matches it answers with."""
    origin = Origin("work-queue", 0, 0)
    message = emit.message
    if isinstance(message, Batch):
        list(element.on_batch(message, origin))
        return 0
    assert isinstance(message, Punctuation)
    answers = (answer.message for answer in element.on_punctuation(message, origin))
    return sum(len(answer.rows.column(0).values) for answer in answers if isinstance(answer, Batch))
