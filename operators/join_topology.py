"""Builds the topology of a resolved join: inputs, gate, a router and elements per alternative, collector, sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.intake.event_time_settings import RESULTS, BoundCheck
from operators.intake.gate import Gate
from operators.intake.late_rows import LATE, LATE_STREAM
from operators.intake.retention import Retention
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.streams import EXPIRED, LIMITS, PAYLOAD, answer_streams
from operators.query.kinds import Kind
from operators.resolved_join import ResolvedJoin
from operators.results.collector import Collector
from operators.routing.branch_builder import BranchBuilder
from operators.routing.pair_check import PairCheck
from operators.routing.payload_plan import PayloadPlan
from operators.routing.router import JoinSide, Router
from operators.routing.step_rows import is_per_key
from operators.stream_check import StreamCheck
from topology import Input, Topology, TopologyBuilder


def join_topology(join: ResolvedJoin) -> Topology:
    """Build the graph of a join's processing elements."""
    builder = TopologyBuilder(" join ".join(join.roles))
    engines = [choice.engine for choice in join.engines]
    _add_inputs(builder, join)
    retention = Retention(tuple(zip(join.streams, join.windows, strict=True)), any(join.selection.kind.remembered))
    gate = builder.bolt(
        engines[0].gate, Gate(tuple(join.event_times.items()), join.step_rows, tuple(join.bounds.items()), retention)
    )
    for stream in join.stream_names:
        gate.global_grouping(stream)
    checks = tuple(PairCheck(branch) for branch in join.condition.branches)
    payload = PayloadPlan(join.selection, join.selection.kind, checks, join.wheres)
    answering = [_add_branch(builder, join, number, payload if number == 0 else None) for number in range(len(engines))]
    described = Collector(join.selection, join.ordering, checks, tuple(answering))
    collector = builder.bolt(engines[0].collector, described)
    for sent in (LIMITS, *PAYLOAD):
        collector.global_grouping(ROUTER, sent.name)
    for side in (LEFT, RIGHT):
        if join.selection.kind.remembered[side] and is_per_key(join.windows[side]):
            collector.global_grouping(ROUTER, EXPIRED[side].name)
    for elements in answering:
        for element in elements:
            for answer in answer_streams(_counts(join, engines[0])):
                collector.global_grouping(element, answer.name)
    builder.sink(RESULTS).global_grouping(engines[0].collector)
    builder.sink(LATE, aside=True).global_grouping(engines[0].gate, LATE_STREAM)
    return replace(builder.build(), identity=_identity(join))


def _identity(join: ResolvedJoin) -> str:
    """What the results mean: not how they are computed, nor in what order they come."""
    parts = {
        "of": " and ".join(f"{stream} as {role}" for stream, role in zip(join.streams, join.roles, strict=True)),
        "on": str(join.condition.written),
        "where": [where for where in join.wheres if where is not None],
        "window": list(join.windows),
        "select": list(join.selection.items or ()),
        "event time": dict(join.event_times),
        "out of order": dict(join.bounds),
    }
    return ", ".join([f"{join.kind} join", *(f"{name} {part}" for name, part in parts.items() if part)])


def _add_inputs(builder: TopologyBuilder, join: ResolvedJoin) -> None:
    tested = (join.tested_columns(LEFT), join.tested_columns(RIGHT))
    for stream in join.stream_names:
        check: Callable[[pa.Schema], None]
        check = StreamCheck(stream, join.condition, join.selection, join.streams, tested)
        column, bound = join.event_times[stream], join.bounds.get(stream)
        if column is not None and bound is not None:
            check = BoundCheck(stream, column, bound, check)
        described = Input(None, column, check, disordered=bound is not None, idle_after=join.idle_after)
        builder.input(stream, described)


def _add_branch(
    builder: TopologyBuilder, join: ResolvedJoin, number: int, payload: PayloadPlan | None
) -> tuple[str, ...]:
    """Add the router and the elements of one alternative; return the elements that answer."""
    suffix = f".{number + 1}" if number else ""
    choice, branch = join.engines[number], join.condition.branches[number]
    engine = choice.engine
    sides = (_side(join, LEFT, engine), _side(join, RIGHT, engine))
    chosen = f"auto: {choice}" if join.chosen else ""
    counts = _counts(join, engine)
    described = Router(sides, branch, payload, engine.split_fields, chosen, join.keys, counts)
    router = builder.bolt(ROUTER + suffix, described)
    for stream in join.stream_names:
        router.global_grouping(join.engines[0].engine.gate, stream)
    plan = ElementPlan(branch, join.ordering, join.windows, join.step_rows, ROUTER + suffix, counts)
    names = engine.add_elements(BranchBuilder(builder, suffix) if suffix else builder, plan)
    return tuple(name + suffix for name in names)


def _counts(join: ResolvedJoin, engine: Engine) -> bool:
    """Elements may answer with counts if only counts are asked for and keys decide every pair."""
    alone = len(join.condition.branches) == 1 and join.condition.branches[0].residual is None
    return alone and join.kind is Kind.COUNT and engine.can_count


def _side(join: ResolvedJoin, side: int, engine: Engine) -> JoinSide:
    stream, window = join.streams[side], join.windows[side]
    return JoinSide(join.roles[side], stream, join.event_times[stream], window, engine.merge_policy(window))
