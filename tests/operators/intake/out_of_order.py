"""Sources out of order, for tests of whole joins: rows, what the definition keeps of them, what it calls late."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from operators import CountWindow, StreamJoin, TimeWindow

Sources = dict[str, dict[str, pa.Table]]


class Judged(NamedTuple):
    """The rows of one source: those that take part, and (offset, reason) of those that do not."""

    kept: list[tuple[Any, int]]
    late: list[tuple[int, str]]


def judge(times: list[Any], bound: Any) -> Judged:
    kept: list[tuple[Any, int]] = []
    late: list[tuple[int, str]] = []
    greatest: Any = None
    for offset, time in enumerate(times):
        if time is None or time != time:
            late.append((offset, "no event time"))
            continue
        # whole times are exact whatever the bound; Python would round them beside a float
        exact = bound if isinstance(time, float) else Fraction(bound)
        if greatest is not None and time < greatest - exact:
            late.append((offset, "out of order"))
        else:
            kept.append((time, offset))
        greatest = time if greatest is None else max(greatest, time)
    return Judged(kept, late)


def readings(seed: int, rows: int = 900) -> pa.Table:
    """Times that jump backwards, often by more than 20, with many ties; some are missing."""
    rng = np.random.default_rng(seed)
    times = np.maximum(0, np.arange(rows) // 3 - rng.integers(0, 2, rows) * rng.integers(0, 40, rows))
    power = rng.integers(0, 200, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "power": power,
            "cool": power + rng.normal(0, 3, rows).round(1),
            "ts": pa.array(times, mask=rng.random(rows) < 0.01),
        }
    )


def sources(rows: int = 900, each: int = 3) -> Sources:
    return {
        stream: {f"{stream}-{k}": readings(10 * k + seed, rows) for k in range(each)}
        for seed, stream in enumerate("RS")
    }


def in_order(given: Sources, bound: Any) -> Sources:
    """The rows that take part, each source sorted by (time, offset): what an in-order join must be given."""
    kept: Sources = {}
    for stream, tables in given.items():
        for name, table in tables.items():
            offsets = [offset for _, offset in sorted(judge(table["ts"].to_pylist(), bound).kept)]
            kept.setdefault(stream, {})[name] = table.take(pa.array(offsets, pa.int64()))
    return kept


def late_rows(given: Sources, bound: Any) -> dict[tuple[str, str], list[tuple[int, Any, str]]]:
    """(offset, event time, reason) of the rows that do not take part, by stream and source."""
    return {
        (stream, name): [
            (offset, table["ts"][offset].as_py(), reason)
            for offset, reason in judge(table["ts"].to_pylist(), bound).late
        ]
        for stream, tables in given.items()
        for name, table in tables.items()
    }


def reported(late: pa.Table) -> dict[tuple[str, str], list[tuple[int, Any, str]]]:
    """The output `late` by stream and source, in its order."""
    found: dict[tuple[str, str], list[tuple[int, Any, str]]] = {}
    for row in late.to_pylist():
        found.setdefault((row["stream"], row["source"]), []).append((row["offset"], row["event_time"], row["reason"]))
    return found


BOUND = 20
SOURCES = sources()
JOIN = StreamJoin(
    "R",
    "S",
    "R.power < S.power AND R.cool > S.cool",
    (CountWindow(300, 20), TimeWindow(50)),
    select=["R.id", "S.id", "R.ts", "S.ts"],
    event_time="ts",
    out_of_order=BOUND,
    step_rows=100,
)
NAMES = {stream: list(tables) for stream, tables in SOURCES.items()}
