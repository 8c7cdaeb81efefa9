"""Builds the topology of a join of several streams: inputs, gate, one element, sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from operators.intake.event_time_settings import RESULTS, BoundCheck
from operators.intake.gate import Gate
from operators.intake.late_rows import LATE, LATE_STREAM
from operators.intake.retention import Retention, intake
from operators.multiway.multi_element import MultiElement
from operators.resolved_multi_join import ResolvedMultiJoin, RoleCheck
from topology import Input, Topology, TopologyBuilder

GATE = "gate"
ELEMENT = "multi-join"


@dataclass(frozen=True)
class Part:
    """What a join needs as a part of a topology: whether its results have event times, and the role they are of."""

    timed: bool
    time_of: int | None


def multi_topology(join: ResolvedMultiJoin, part: Part | None = None) -> Topology:
    """Build the graph; `part`: as a part of another topology."""
    builder = TopologyBuilder(" join ".join(join.roles))
    for stream in join.stream_names:
        check: Callable[[pa.Schema], None] = RoleCheck(join, stream)
        column, bound = join.event_times[stream], join.bounds.get(stream)
        if column is not None and bound is not None:
            check = BoundCheck(stream, column, bound, check)
        described = Input(
            None, column, check, disordered=bound is not None, idle_after=join.idle_after, takes_bounds=True
        )
        builder.input(stream, described)
    retention = Retention(tuple(zip(join.streams, join.windows, strict=True)))
    times_of, bounds = tuple(join.event_times.items()), tuple(join.bounds.items())
    gate = builder.bolt(GATE, Gate(times_of, join.step_rows, bounds, retention, join.check, join.check))
    for stream in join.stream_names:
        gate.global_grouping(stream)
    element = MultiElement(
        join.condition,
        join.streams,
        join.windows,
        tuple(join.event_times[stream] for stream in join.streams),
        join.selection,
        part is not None and part.timed,
        None if part is None else part.time_of,
        join.indexes,
    )
    joining = builder.bolt(ELEMENT, element)
    for stream in join.stream_names:
        joining.global_grouping(GATE, stream)
    builder.sink(RESULTS).global_grouping(ELEMENT)
    builder.sink(LATE, aside=True).global_grouping(GATE, LATE_STREAM)
    return replace(builder.build(), identity=_identity(join, part), intake=intake(join.event_times, join.bounds))


def _identity(join: ResolvedMultiJoin, part: Part | None) -> str:
    """What the results mean: not how they are computed."""
    parts = {
        "of": " and ".join(f"{stream} as {role}" for stream, role in zip(join.streams, join.roles, strict=True)),
        "on": str(join.condition.written),
        "windows": list(join.windows),
        "select": list(join.selection.items),
        "event time": dict(join.event_times),
        "out of order": dict(join.bounds),
        "results at": "" if part is None or not part.timed else _time_of(join, part),
    }
    return ", ".join(["join of several", *(f"{name} {part}" for name, part in parts.items() if part)])


def _time_of(join: ResolvedMultiJoin, part: Part) -> str:
    return "their place" if part.time_of is None else f"the time of {join.roles[part.time_of]}"
