"""As-of joins as docs/semantics.md defines them, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tests.oracle_order import Sources, gate, taken
from tests.oracle_terms import is_absent


def oracle_as_of(
    sources: Sources,
    keys: list[tuple[str, str]],
    direction: str,
    *,
    strict: bool = False,
    tolerance: Any = None,
    inner: bool = False,
    out_of_order: Mapping[str, Any] | None = None,
    matching: tuple[str, str] | None = None,
    shown: str | None = None,
) -> pa.Table:
    """The result of joining stream L as of its time `ts` with stream R: the columns `id` of both.

    keys:     the columns of L and R that must be equal.
    matching: names of boolean columns of L and R that must be true for a match.
    shown:    a boolean column of L; rows where it is not true do not appear.
    """
    streams, _ = gate(sources, "ts", out_of_order or {})
    left, right = streams["L"], streams["R"]
    times = [time for _, time in sorted(zip(left.seqs + right.seqs, left.times + right.times, strict=True))]
    end = len(times)

    def first_after(time: Any) -> int:
        return next((seq for seq, each in enumerate(times) if each > time), end)

    of_right = list(zip(right.values(), right.seqs, right.times, range(end), strict=False))
    results: list[tuple[int, int, int, int | None]] = []
    for position, (row, seq, time) in enumerate(zip(left.values(), left.seqs, left.times, strict=True)):
        if shown is not None and row[shown] != 1:
            continue
        key = [row[column] for column, _ in keys]
        if any(map(is_absent, key)) or (matching is not None and row[matching[0]] != 1):
            results.append((first_after(time), seq, position, None))
            continue
        candidates = [
            (each_time, each_seq, number)
            for each, each_seq, each_time, number in of_right
            if [each[column] for _, column in keys] == key
            and (matching is None or each[matching[1]] == 1)
            and (tolerance is None or time - tolerance <= each_time <= time + tolerance)
        ]
        earlier = [one for one in candidates if one[0] < time or (one[0] == time and not strict)]
        later = [
            one for one in candidates if one[0] > time or (one[0] == time and not strict and direction == "forward")
        ]
        backward = max(earlier, default=None) if direction != "forward" else None
        forward = min(later, default=None) if direction != "backward" else None
        if backward is not None and (forward is None or time - backward[0] <= forward[0] - time):
            away = 0 if backward[0] == time or direction == "backward" else time - backward[0]
            results.append((first_after(time + away), seq, position, backward[2]))
        elif forward is not None:
            results.append((max(seq, forward[1]), seq, position, forward[2]))
        elif direction == "backward":
            results.append((first_after(time), seq, position, None))
        else:
            results.append((end if tolerance is None else first_after(time + tolerance), seq, position, None))
    results.sort(key=lambda result: result[:2])
    rows = [(lefts, rights) for _, _, lefts, rights in results if rights is not None or not inner]
    return pa.table(
        {
            "L.id": taken(left.table["id"], pa.array([one for one, _ in rows], pa.int64())),
            "R.id": taken(right.table["id"], pa.array([other for _, other in rows], pa.int64())),
        }
    )
