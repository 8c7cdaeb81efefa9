"""Places a topology: which tasks share a worker, and what each worker reserves.

A pure function. It starts nothing and asks nobody: the nodes come in as arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from topology.graph.errors import TopologyError
from topology.graph.graph import Topology
from topology.graph.resources import LEAST_CPUS
from topology.placement.cluster_node import ClusterNode
from topology.placement.fit import fits
from topology.placement.grouping_of_tasks import Group, counted_groups, default_groups, merged, single_groups
from topology.placement.placement import Placement, WorkerPlan, worker_names
from topology.placement.wishes import Wish, Workers


def place(
    topology: Topology,
    nodes: Sequence[ClusterNode],
    wish: Wish = "default",
    together: frozenset[str] = frozenset(),
) -> Placement:
    """Return the workers of a topology.

    "default": the inputs and what belongs beside them (a join's gate and routers) in one worker, the sinks and what
    belongs beside them (its collector) in one, every other task in a worker of its own. "per-task": a worker per task.
    `Workers(n)`: n workers, with the other tasks spread evenly.

    A worker reserves the sum of its tasks' wishes. Workers without a wish for processors reserve one each if all fit
    into what is free on the nodes; otherwise they share half of what the wishes leave, so that a laptop holds several
    topologies. Memory is reserved only where asked for. Without nodes, as before a cluster is joined, it is one each.

    together: components whose tasks share one worker, whatever the wish: where the state of a topology is kept.
    """
    note = ""
    if isinstance(wish, Workers):
        groups = default_groups(topology) if wish.count is None else counted_groups(topology, wish.count)
        strategy = wish.strategy
        if wish.count is not None and len(groups) < wish.count:
            note = f"{wish.count} workers were asked for, but the topology has only {len(groups)} tasks"
    elif wish in ("default", "per-task"):
        groups = default_groups(topology) if wish == "default" else single_groups(topology)
        strategy = Workers().strategy
    else:
        raise TopologyError(f"placement must be 'default', 'per-task' or Workers(n), not {wish!r}")
    if together and len(joined := merged(topology, groups, together)) < len(groups):
        note = note or f"{', '.join(sorted(together))} share a worker, because the state is kept there"
        groups = joined
    names = worker_names(groups)
    plans = [_wished(topology, name, group) for name, group in zip(names, groups, strict=True)]
    return Placement(_with_cpus(plans, nodes, Placement((), strategy)), strategy, note)


def _wished(topology: Topology, name: str, group: Group) -> WorkerPlan:
    """A worker with what its tasks ask for; 0 CPUs stand for no wish."""
    wishes = [topology.node(component).resources for component, _ in group]
    memory = [wish.memory for wish in wishes if wish.memory is not None]
    cpus = math.fsum(wish.cpus for wish in wishes if wish.cpus is not None)
    return WorkerPlan(name, tuple(group), cpus, sum(memory) if memory else None, wishes[0].labels)


def _with_cpus(plans: list[WorkerPlan], nodes: Sequence[ClusterNode], empty: Placement) -> tuple[WorkerPlan, ...]:
    """Give a share to each worker without a wish for processors."""
    whole = tuple(plan if plan.cpus else replace(plan, cpus=1.0) for plan in plans)
    if not nodes or fits(replace(empty, workers=whole), nodes, free=True):
        return whole
    open_plans = sum(1 for plan in plans if not plan.cpus)
    free = [node.cpus_free for node in nodes]
    pool = max(free) if empty.strategy == "STRICT_PACK" else math.fsum(free)
    left = max(0.0, pool - math.fsum(plan.cpus for plan in plans))
    share = max(LEAST_CPUS, math.floor(100 * left / 2 / max(1, open_plans)) / 100)
    return tuple(plan if plan.cpus else replace(plan, cpus=min(1.0, share)) for plan in plans)
