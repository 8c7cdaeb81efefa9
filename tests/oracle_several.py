"""The brute-force judge of joins of several streams: docs/semantics.md, Several streams, word for word.

Like `tests/oracle.py` it imports nothing of the project. Every row of the total order is the latest row of the
combinations that belong to it; every combination of live rows of the others is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from tests.oracle_order import EventTime, Late, Sources, gate, taken
from tests.oracle_windows import Window, live, unit_of

Match = Callable[[Mapping[str, Mapping[str, Any]]], bool | None]
"""From the row of each role to whether they match; None is unknown."""


@dataclass(frozen=True)
class ExpectedSeveral:
    """What a join of several streams must give: the rows in order, the event time of each, and what was late."""

    table: pa.Table
    times: list[Any]
    late: list[Late]


def oracle_several(
    sources: Sources,
    roles: Mapping[str, str],
    match: Match,
    windows: Sequence[Window],
    event_time: EventTime = None,
    select: Sequence[str] | None = None,
    out_of_order: Mapping[str, Any] | None = None,
) -> ExpectedSeveral:
    """The exact result; `roles` maps each role to its stream, `windows` are in the order of the roles."""
    streams, late = gate(sources, event_time, out_of_order or {})
    names, of = list(roles), [streams[stream] for stream in roles.values()]
    rows = [stream.values() for stream in of]
    found: list[tuple[tuple[Any, ...], tuple[int, ...], Any]] = []
    for latest, stream in enumerate(of):
        for position, (seq, time) in enumerate(zip(stream.seqs, stream.times, strict=True)):
            choices = []
            for role, other in enumerate(of):
                before = sum(each < seq for each in other.seqs)
                times = [other.own(each) for each in other.times]
                alive = live(windows[role], unit_of(other.event_time), other.own(time), times, before)
                choices.append([position] if role == latest else alive)
            for chosen in product(*choices):
                combined = {name: rows[role][chosen[role]] for role, name in enumerate(names)}
                if _meets_itself(chosen, list(roles.values())) or match(combined) is not True:
                    continue
                others = tuple(of[role].seqs[chosen[role]] for role in range(len(of)) if role != latest)
                found.append(((seq, *others, latest), chosen, time))
    found.sort(key=lambda each: each[0])
    shown = select or [
        f"{name}.{column}" for name, stream in zip(names, of, strict=True) for column in stream.table.column_names
    ]
    columns = []
    for name in shown:
        role = next(index for index, each in enumerate(names) if name.startswith(f"{each}."))
        positions = pa.array([chosen[role] for _, chosen, _ in found], pa.int64())
        columns.append(taken(of[role].table[name[len(names[role]) + 1 :]], positions))
    return ExpectedSeveral(pa.Table.from_arrays(columns, names=list(shown)), [time for _, _, time in found], late)


def _meets_itself(chosen: tuple[int, ...], streams: list[str]) -> bool:
    rows = list(zip(streams, chosen, strict=True))
    return len(set(rows)) < len(rows)
