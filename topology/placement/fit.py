"""Whether the workers of a placement fit on the nodes, and if not, what is missing.

The cluster decides where each worker goes. Here the same question is answered well enough for a message: workers are
tried in order of their size, each on the fullest node that still has room for it (best fit decreasing), which finds a
place for all of them except in contrived cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from topology.graph.resources import bytes_text, labels_match, labels_text
from topology.placement.cluster_node import ClusterNode
from topology.placement.placement import Placement, WorkerPlan

_ROUNDING = 1e-9


def fits(placement: Placement, nodes: Sequence[ClusterNode], *, free: bool) -> bool:
    """Whether all workers fit into what is free now, or into what the nodes have in all."""
    if placement.strategy == "STRICT_PACK":
        return any(_fit_on([node], placement, free) for node in nodes)
    return _fit_on(nodes, placement, free)


def missing(placement: Placement, nodes: Sequence[ClusterNode], *, free: bool = False) -> str | None:
    """Say which resource is missing for which worker, and what there is; None if the nodes have all that is asked for.

    free: judge by the processors that are free now instead of by all that the nodes have.
    """
    if not nodes:
        return "the cluster has no nodes"
    for worker in placement.workers:
        found = _missing_for(worker, nodes, free)
        if found is not None:
            return found
    if placement.strategy == "STRICT_SPREAD" and len(placement.workers) > len(nodes):
        return (
            f"STRICT_SPREAD needs a node for each of {len(placement.workers)} workers, but the cluster has "
            f"{_count(len(nodes), 'node')}"
        )
    if fits(placement, nodes, free=free):
        return None
    asked = math.fsum(worker.cpus for worker in placement.workers)
    largest = max(placement.workers, key=lambda worker: worker.cpus)
    where = {"STRICT_PACK": " on one node", "STRICT_SPREAD": " on nodes of their own"}.get(placement.strategy, "")
    memory = sum(worker.memory or 0 for worker in placement.workers)
    needs = f"{asked:g} CPUs" + (f" and {bytes_text(memory)} of memory" if memory else "")
    return (
        f"{_count(len(placement.workers), 'worker')} together need {needs}{where} (worker '{largest.name}' alone "
        f"{largest.cpus:g} CPUs), but the cluster has {_state(nodes, free)}"
    )


def _missing_for(worker: WorkerPlan, nodes: Sequence[ClusterNode], free: bool) -> str | None:
    """What one worker lacks, even if it were the only one."""
    who = f"worker '{worker.name}'"
    suitable = [node for node in nodes if labels_match(worker.labels, node.labels)]
    if not suitable:
        keys = set(worker.labels)
        known = sorted({labels_text({key: node.labels[key]}) for node in nodes for key in keys & set(node.labels)})
        there = f"there are {', '.join(known)}" if known else f"no node has a label {' or '.join(sorted(keys))}"
        return f"{who} needs a node with {labels_text(worker.labels)}, but {there}"
    of_these = f" of those with {labels_text(worker.labels)}" if worker.labels else ""
    most = max(_cpus(node, free) for node in suitable)
    if worker.cpus > most + _ROUNDING:
        return (
            f"{who} needs {worker.cpus:g} CPUs on one node, but no node{of_these} has more than {most:g}"
            f"{' free' if free else ''}; the cluster has {_state(nodes, free)}"
        )
    memory = max(node.memory_free for node in suitable)
    if worker.memory is not None and worker.memory > memory:
        return (
            f"{who} needs {bytes_text(worker.memory)} of memory on one node, but no node{of_these} has more than "
            f"{bytes_text(memory)} free"
        )
    if not any(_has_room(worker, _cpus(node, free), node.memory_free) for node in suitable):
        return (
            f"{who} needs {worker.cpus:g} CPUs and {bytes_text(worker.memory or 0)} of memory on one node, but no "
            f"node{of_these} has both; the cluster has {_state(nodes, free)}"
        )
    return None


def _fit_on(nodes: Sequence[ClusterNode], placement: Placement, free: bool) -> bool:
    room = [[_cpus(node, free), float(node.memory_free)] for node in nodes]
    taken: set[int] = set()
    # Workers that few nodes suit come first: others must not take their only node.
    suits = {
        worker.name: sum(labels_match(worker.labels, node.labels) for node in nodes) for worker in placement.workers
    }
    for worker in sorted(placement.workers, key=lambda w: (suits[w.name], -w.cpus, -(w.memory or 0), w.name)):
        possible = [
            index
            for index, node in enumerate(nodes)
            if labels_match(worker.labels, node.labels)
            and _has_room(worker, *room[index])
            and not (placement.strategy == "STRICT_SPREAD" and index in taken)
        ]
        if not possible:
            return False
        best = min(possible, key=lambda index: room[index])
        taken.add(best)
        room[best][0] -= worker.cpus
        room[best][1] -= worker.memory or 0
    return True


def _has_room(worker: WorkerPlan, cpus: float, memory: float) -> bool:
    return worker.cpus <= cpus + _ROUNDING and (worker.memory or 0) <= memory


def _cpus(node: ClusterNode, free: bool) -> float:
    return node.cpus_free if free else node.cpus_total


def _state(nodes: Sequence[ClusterNode], free: bool) -> str:
    """What the nodes have, the largest first; at most four are listed."""
    listed = [
        f"{_cpus(node, free):g} ({node})" for node in sorted(nodes, key=lambda node: (-_cpus(node, free), node.id))
    ]
    more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    total = math.fsum(_cpus(node, free) for node in nodes)
    return f"{total:g}{' free' if free else ''} CPUs on {_count(len(nodes), 'node')}: {', '.join(listed[:4])}{more}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
