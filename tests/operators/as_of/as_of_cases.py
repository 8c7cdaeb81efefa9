"""Random as-of joins of two small streams, and what the oracle says of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from operators import StreamJoin
from tests.oracle_as_of import oracle_as_of

KINDS = {
    "int": pa.int64(),
    "float": pa.float64(),
    "timestamp": pa.timestamp("ms"),
    "mixed": pa.timestamp("s"),  # and milliseconds for R
}
SPREAD = {"int": 1, "float": 0.3, "timestamp": 1, "mixed": 1}


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Two streams of a few rows, each in one or two sources, with times and keys that often agree."""
    kind = draw(st.sampled_from(list(KINDS)))
    times = st.integers(0, draw(st.sampled_from([3, 12, 40])))
    keys = st.sampled_from([None, "a", "a", "b"])
    ticks = draw(st.sampled_from([0, 0, 2, 5]))
    bounds = {stream: ticks * _tick(kind, stream) for stream in "LR"} if ticks else {}
    sources: dict[str, dict[str, pa.Table]] = {}
    for stream in "LR":
        sources[stream] = {}
        for source in draw(st.sampled_from([["s"], ["s", "t"]])):
            rows = draw(st.lists(st.tuples(times, keys, st.booleans()), max_size=12))
            if not bounds:
                rows.sort(key=lambda row: row[0])
            sources[stream][source] = pa.table(
                {
                    "id": pa.array(range(len(rows)), pa.int64()),
                    "ts": _times(kind, stream, [time for time, _, _ in rows]),
                    "key": pa.array([key for _, key, _ in rows], pa.string()),
                    "good": pa.array([good for _, _, good in rows], pa.bool_()),
                }
            )
    return {
        "sources": sources,
        "kind": kind,
        "out_of_order": bounds,
        "direction": draw(st.sampled_from(["backward", "forward", "nearest"])),
        "strict": draw(st.booleans()),
        "tolerance": draw(st.sampled_from([None, 0, 1, 5])),
        "inner": draw(st.booleans()),
        "keyed": draw(st.booleans()),
        "filtered": draw(st.booleans()),
        "seed": draw(st.integers(0, 1000)),
    }


def _tick(kind: str, stream: str) -> int | float:
    return 250 if (kind, stream) == ("mixed", "R") else SPREAD[kind]


def _times(kind: str, stream: str, ticks: list[int]) -> pa.Array:
    type_ = pa.timestamp("ms") if (kind, stream) == ("mixed", "R") else KINDS[kind]
    return pa.array([tick * _tick(kind, stream) for tick in ticks]).cast(type_)


def join_of(case: dict[str, Any]) -> StreamJoin:
    direction, strict = case["direction"], case["strict"] and case["direction"] != "nearest"
    parts = ["L.key = R.key"] if case["keyed"] else []
    if case["filtered"]:
        parts += ["L.good", "R.good"]
    if strict:
        parts.append("L.ts > R.ts" if direction == "backward" else "R.ts > L.ts")
    tolerance = case["tolerance"]
    if tolerance is not None and case["kind"] in ("timestamp", "mixed"):
        tolerance = timedelta(milliseconds=tolerance * (250 if case["kind"] == "mixed" else 1))
    return StreamJoin(
        "L", "R", " AND ".join(parts) or "TRUE", kind="asof inner" if case["inner"] else "asof", event_time="ts",
        direction=None if strict else direction, tolerance=tolerance, select=["L.id", "R.id"],
        where="L.good OR L.ts IS NULL" if case["filtered"] and case["seed"] % 2 else None,
        step_rows=1 + case["seed"] % 9, out_of_order=case.get("out_of_order") or None,
    )  # fmt: skip


def expected(case: dict[str, Any]) -> pa.Table:
    return oracle_as_of(
        case["sources"],
        [("key", "key")] if case["keyed"] else [],
        case["direction"],
        strict=case["strict"] and case["direction"] != "nearest",
        tolerance=None if case["tolerance"] is None else case["tolerance"] * (250 if case["kind"] == "mixed" else 1),
        inner=case["inner"],
        out_of_order=case.get("out_of_order"),
        matching=("good", "good") if case["filtered"] else None,
        shown="good" if case["filtered"] and case["seed"] % 2 else None,
    )
