"""The cost of each kind, ordering and type, beside an inner join in outer order on float64.

Two streams take turns in micro-batches; each row has about 300 matches in the other side's window. A run is measured
from the first micro-batch after the windows are full to the last result read. The runs are compared before figures are
printed: counts add up to the pairs of the inner join, semi and anti divide the left rows, a left join adds the
unmatched, and every type finds the pairs that float64 finds. `benchmarks.aggregates` measures aggregates on the same
rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import in_blocks
from operators import Aggregate, CountWindow, Ordering, RunningJoin, StreamJoin

MATCHES = 300
SPACE = 1 << 31
BATCH = 10_000
Convert = Callable[[np.ndarray], pa.Array]

BAND = "abs(R.x - S.x) <= {width}"
RANGE = "S.x BETWEEN R.low AND R.high"
EQUALITY = "R.k = S.k"

KINDS = ["inner", "left", "right", "full", "semi", "anti", "count"]
ORDERINGS: list[Ordering | int] = ["outer", "strict", 1000, "none"]
TYPES: dict[str, Convert] = {
    "float64": lambda x: pa.array(x.astype(np.float64)),
    "float32": lambda x: pa.array(x.astype(np.float32)),
    "int64": pa.array,
    "int32": lambda x: pa.array(x.astype(np.int32)),
    "timestamp": lambda x: pa.array(x).cast(pa.timestamp("ms")),
    "decimal(12, 2)": lambda x: pa.array(x).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 2)).cast(
        pa.decimal128(12, 2)
    ),
    "decimal(38, 2)": lambda x: pa.array(x).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 2)),
    "string": lambda x: pa.array(np.char.zfill(x.astype(str), 10)),
    "binary": lambda x: pa.array(np.char.zfill(x.astype(str), 10)).cast(pa.binary()),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """Tuples of both sides per second, and the results: how many, and the sum of their `matches` where counted.

    processor: processor time of all threads of this process for the measured rows, in seconds.
    """

    rate: float
    processor: float
    results: int
    matches: int
    counted: np.ndarray


def run(quick: bool) -> dict[str, Any]:
    """Measure kinds, orderings and types."""
    window = 20_000 if quick else 100_000
    measured = 20_000 if quick else 200_000
    repeats = 1 if quick else 2
    size = Size(window, measured, repeats)
    rows: list[dict[str, Any]] = []
    print(f"windows of {window:,} rows, micro-batches of {BATCH:,}, about {MATCHES} matches a row; best of {repeats}")
    _kinds(size, rows)
    _types(size, rows)
    return {"name": "kinds", "rows": rows}


@dataclass(frozen=True)
class Size:
    """The size of a run."""

    window: int
    measured: int
    repeats: int

    @property
    def prefill(self) -> int:
        """Rows of each side before the measurement begins."""
        return -(-self.window // BATCH) * BATCH

    def numbers(self, seed: int) -> np.ndarray:
        """Uniform numbers."""
        return np.random.default_rng(seed).integers(0, SPACE, self.prefill + self.measured)


def _kinds(size: Size, rows: list[dict[str, Any]]) -> None:
    width = MATCHES * SPACE // (2 * size.window)
    tables = tuple(pa.table({"id": np.arange(len(x)), "x": x.astype(np.float64)}) for x in map(size.numbers, (1, 2)))
    on = BAND.format(width=width)
    runs = {kind: best_run(size, tables, on, kind=kind) for kind in KINDS}
    left = tables[0].num_rows
    pairs = runs["inner"].results
    assert runs["count"].matches == pairs, "the counts add up to the pairs"
    assert runs["semi"].results + runs["anti"].results == left, "semi and anti divide the left rows"
    assert runs["left"].results == pairs + runs["anti"].results, "the left join adds the unmatched rows"
    _report("kind", runs, runs["inner"], rows)
    ordered = {str(each): best_run(size, tables, on, ordering=each) for each in ORDERINGS}
    assert len({each.results for each in ordered.values()}) == 1, "the ordering changes no result"
    _report("ordering", ordered, ordered["outer"], rows)


def _types(size: Size, rows: list[dict[str, Any]]) -> None:
    half = MATCHES * SPACE // (2 * size.window)
    left, right = size.numbers(1), size.numbers(2)
    for name, on, columns in (
        ("range", RANGE, ({"low": np.maximum(left - half, 0), "high": left + half}, {"x": right})),
        ("equality", EQUALITY, ({"k": left % (size.window // MATCHES)}, {"k": right % (size.window // MATCHES)})),
    ):
        runs: dict[str, Run] = {}
        for kind, convert in TYPES.items():
            if kind in ("int32", "float32") and name == "range":
                continue  # the numbers do not fit
            tables = tuple(
                pa.table({"id": np.arange(len(left))} | {each: convert(values) for each, values in side.items()})
                for side in columns
            )
            runs[kind] = best_run(size, tables, on)
            assert runs[kind].results == runs["float64"].results, f"{kind} finds the pairs that float64 finds"
        _report(name, runs, runs["float64"], rows)


def _report(what: str, runs: dict[str, Run], base: Run, rows: list[dict[str, Any]]) -> None:
    for name, each in runs.items():
        print(f"{what:<10}{name:<16}{each.rate:>12,.0f} tuples/s {each.rate / base.rate:>6.2f}", flush=True)
        rows.append({"case": f"{what} {name}", "ours": each.rate, "ratio": each.rate / base.rate, "peers": {}})


def best_run(
    size: Size,
    tables: tuple[pa.Table, ...],
    on: str,
    kind: str = "inner",
    ordering: Any = "outer",
    aggregate: dict[str, Aggregate] | None = None,
) -> Run:
    shown = ["R.id"] if kind in ("semi", "anti") or aggregate else ["R.id", "S.id"]
    join = StreamJoin(
        "R", "S", on, CountWindow(size.window),
        kind=kind, select=shown, event_time="block", ordering=ordering, step_rows=2 * BATCH,
        aggregate=aggregate,
    )  # fmt: skip
    runs = [_run(join, size, tables) for _ in range(size.repeats)]
    return max(runs, key=lambda each: each.rate)


def _run(join: StreamJoin, size: Size, tables: tuple[pa.Table, ...]) -> Run:
    left, right = (in_blocks(table, BATCH, parity).to_batches()[0] for parity, table in enumerate(tables))
    with join.launch(sources={"R": ["R"], "S": ["S"]}) as running:
        counted = _Counted(running)
        reader = threading.Thread(target=counted.read, daemon=True)
        reader.start()
        _send(running, left, right, 0, size.prefill)
        while running.metrics().total("answered", join.engine.collector) < 2 * size.prefill - BATCH:
            time.sleep(0.005)  # the last micro-batch passes the gate when the next one comes
        start, worked = time.perf_counter(), time.process_time()
        _send(running, left, right, size.prefill, left.num_rows)
        running.finish()
        reader.join()
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
    counts = np.concatenate([*counted.counts, []])
    return Run(2 * size.measured / seconds, worked, counted.results, counted.matches, counts)


@dataclass
class _Counted:
    """Reads results as they come and counts them."""

    running: RunningJoin
    results: int = field(default=0, init=False)
    matches: int = field(default=0, init=False)
    counts: list[np.ndarray] = field(default_factory=list, init=False)

    def read(self) -> None:
        for batch in self.running.results():
            self.results += batch.num_rows
            if "matches" in batch.schema.names:
                self.counts.append(batch.column("matches").to_numpy())
                self.matches += int(self.counts[-1].sum())


def _send(running: RunningJoin, left: pa.RecordBatch, right: pa.RecordBatch, start: int, stop: int) -> None:
    for at in range(start, stop, BATCH):
        running.send("R", left.slice(at, min(BATCH, stop - at)))
        running.send("S", right.slice(at, min(BATCH, stop - at)))
