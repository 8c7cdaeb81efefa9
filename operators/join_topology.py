"""Builds the topology of a resolved join: inputs, gate, a router and elements per alternative, collector, sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from operators.as_of.element import AsOfJoin, AsOfSide
from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.intake.event_time_settings import RESULTS, BoundCheck
from operators.intake.gate import Gate
from operators.intake.late_rows import LATE, LATE_STREAM
from operators.intake.retention import Retention, intake
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.streams import EXPIRED, LIMITS, PAYLOAD, answer_streams
from operators.query.as_of import AsOf
from operators.query.condition import conjunction, conjuncts
from operators.query.expressions import Expression, columns_in
from operators.query.kinds import Kind
from operators.query.predicate import Predicate
from operators.query.select_items import AggregateItem
from operators.resolved_join import ResolvedJoin
from operators.results.collector import Collector
from operators.routing.branch_builder import BranchBuilder
from operators.routing.pair_check import PairCheck
from operators.routing.payload_plan import PayloadPlan
from operators.routing.router import JoinSide, Router
from operators.routing.step_rows import is_per_key
from operators.stream_check import StreamCheck
from operators.stream_types import TypesCheck
from topology import Input, Topology, TopologyBuilder

GATE, AS_OF = "gate", "as-of"
"""The names of an as-of join's components."""


@dataclass(frozen=True)
class Within:
    """What a join needs as a part of a topology.

    check:   checks the schemas of its streams together, because no handle does.
    timed:   its results have event times.
    time_of: the side whose row gives a result its event time; None: its place.
    """

    check: Callable[[Mapping[str, pa.Schema]], None]
    timed: bool
    time_of: int | None


def join_topology(join: ResolvedJoin, within: Within | None = None) -> Topology:
    """Build the graph of a join's processing elements; `within`: as a part of another topology."""
    builder = TopologyBuilder(" join ".join(join.roles))
    _add_inputs(builder, join)
    name = GATE if join.as_of is not None else join.engines[0].engine.gate
    retention = Retention(tuple(zip(join.streams, join.windows, strict=True)), any(join.selection.kind.remembered))
    check = None if within is None else within.check
    fits = TypesCheck(join) if within is None else None
    times_of, bounds = tuple(join.event_times.items()), tuple(join.bounds.items())
    described = Gate(times_of, join.step_rows, bounds, retention, check, fits, announces=within is not None)
    gate = builder.bolt(name, described)
    for stream in join.stream_names:
        gate.global_grouping(stream)
    last = _add_search(builder, join, within) if join.as_of is None else _add_as_of(builder, join, join.as_of, within)
    builder.sink(RESULTS).global_grouping(last)
    builder.sink(LATE, aside=True).global_grouping(name, LATE_STREAM)
    return replace(builder.build(), identity=_identity(join, within), intake=intake(join.event_times, join.bounds))


def _add_as_of(builder: TopologyBuilder, join: ResolvedJoin, settings: AsOf, within: Within | None) -> str:
    """Add the element of an as-of join; return its name."""
    (branch,) = join.condition.branches
    left, right = (
        AsOfSide(
            join.streams[side],
            join.event_times[join.streams[side]] or "",
            join.condition.equal_columns(side),
            _matching(branch, side),
            join.wheres[side],
        )
        for side in (LEFT, RIGHT)
    )
    timed, time_of = (False, None) if within is None else (within.timed, within.time_of)
    element = builder.bolt(AS_OF, AsOfJoin((left, right), settings, join.selection, timed, time_of))
    for stream in join.stream_names:
        element.global_grouping(GATE, stream)
    return AS_OF


def _matching(branch: Predicate, side: int) -> Expression | None:
    """What a row must satisfy to match; what names no column is asked of the left row."""
    found = [part for part in [branch.filters[side]] if part is not None]
    if side == LEFT and branch.residual is not None:
        found += [part for part in conjuncts(branch.residual) if next(columns_in(part), None) is None]
    return conjunction(found) if found else None


def _add_search(builder: TopologyBuilder, join: ResolvedJoin, within: Within | None) -> str:
    """Add routers, elements and the collector; return the collector's name."""
    engines = [choice.engine for choice in join.engines]
    checks = tuple(PairCheck(branch) for branch in join.condition.branches)
    timed = within is not None and within.timed
    times = (join.event_times[join.streams[LEFT]], join.event_times[join.streams[RIGHT]]) if timed else None
    payload = PayloadPlan(join.selection, join.selection.kind, checks, join.wheres, times)
    answering = [_add_branch(builder, join, number, payload if number == 0 else None) for number in range(len(engines))]
    described = Collector(
        join.selection,
        join.ordering,
        checks,
        tuple(answering),
        timed=timed,
        time_of=None if within is None else within.time_of,
    )
    collector = builder.bolt(engines[0].collector, described)
    for sent in (LIMITS, *PAYLOAD):
        collector.global_grouping(ROUTER, sent.name)
    for side in (LEFT, RIGHT):
        if join.selection.kind.remembered[side] and is_per_key(join.windows[side]):
            collector.global_grouping(ROUTER, EXPIRED[side].name)
    for elements in answering:
        for element in elements:
            for answer in answer_streams(_counts(join, engines[0]), bool(_totals(join, engines[0]))):
                collector.global_grouping(element, answer.name)
    return engines[0].collector


def _identity(join: ResolvedJoin, within: Within | None) -> str:
    """What the results mean: not how they are computed, nor in what order they come."""
    parts = {
        "of": " and ".join(f"{stream} as {role}" for stream, role in zip(join.streams, join.roles, strict=True)),
        "on": str(join.condition.written),
        "where": [where for where in join.wheres if where is not None],
        "window": list(join.windows) if join.as_of is None else str(join.as_of),
        "select": list(join.selection.items or ()),
        "event time": dict(join.event_times),
        "out of order": dict(join.bounds),
        "results at": "" if within is None or not within.timed else _time_of(join, within),
    }
    return ", ".join([f"{join.kind} join", *(f"{name} {part}" for name, part in parts.items() if part)])


def _time_of(join: ResolvedJoin, within: Within) -> str:
    return "their place" if within.time_of is None else f"the time of {join.roles[within.time_of]}"


def _add_inputs(builder: TopologyBuilder, join: ResolvedJoin) -> None:
    tested = tuple((*join.tested_columns(side), *join.retained[side]) for side in (LEFT, RIGHT))
    for stream in join.stream_names:
        check: Callable[[pa.Schema], None]
        check = StreamCheck(stream, join.condition, join.selection, join.streams, tested)
        column, bound = join.event_times[stream], join.bounds.get(stream)
        if column is not None and bound is not None:
            check = BoundCheck(stream, column, bound, check)
        described = Input(
            None, column, check, disordered=bound is not None, idle_after=join.idle_after, takes_bounds=True
        )
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
    counts, totals = _counts(join, engine), _totals(join, engine)
    silent = 1 - join.selection.side if join.kind is Kind.AGGREGATE else None
    arguments = tuple(each.argument for each in totals)
    asks = counts or bool(totals)
    described = Router(sides, branch, payload, engine.split_fields, chosen, join.keys, asks, silent, arguments)
    router = builder.bolt(ROUTER + suffix, described)
    for stream in join.stream_names:
        router.global_grouping(join.engines[0].engine.gate, stream)
    # aggregates take the matches of a row in any order
    ordering = "outer" if join.kind.is_aggregate and join.ordering == "strict" else join.ordering
    plan = ElementPlan(
        branch, ordering, join.windows, join.step_rows, ROUTER + suffix, counts, totals, join.selection.side
    )
    names = engine.add_elements(BranchBuilder(builder, suffix) if suffix else builder, plan)
    return tuple(name + suffix for name in names)


def _counts(join: ResolvedJoin, engine: Engine) -> bool:
    """Elements may answer with counts if only counts are asked for and keys decide every pair."""
    return _keys_decide(join) and join.selection.only_counts and engine.can_count


def _totals(join: ResolvedJoin, engine: Engine) -> tuple[AggregateItem, ...]:
    """The aggregates that elements may answer with, if keys decide every pair."""
    if join.kind is not Kind.AGGREGATE or join.selection.only_counts or not _keys_decide(join):
        return ()
    (branch,) = join.condition.branches
    return tuple(each.item for each in join.selection.aggregated) if engine.can_total(branch) else ()


def _keys_decide(join: ResolvedJoin) -> bool:
    return len(join.condition.branches) == 1 and join.condition.branches[0].residual is None


def _side(join: ResolvedJoin, side: int, engine: Engine) -> JoinSide:
    stream, window = join.streams[side], join.windows[side]
    return JoinSide(join.roles[side], stream, join.event_times[stream], window, engine.merge_policy(window))
