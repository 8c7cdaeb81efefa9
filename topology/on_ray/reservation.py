"""The placement group of a topology: Ray reserves the resources of all workers before any of them starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ray
from ray.util.placement_group import (
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)

from topology.on_ray.lease import Lease
from topology.on_ray.nodes import cluster_nodes
from topology.placement.cluster_node import ClusterNode
from topology.placement.fit import missing
from topology.placement.placement import Placement

LOOK_UP_SECONDS = 0.5
PENDING_SECONDS = 60.0
"""How long to wait for resources: they may be in use, or an autoscaler may be adding nodes."""

IMPOSSIBLE_SECONDS = 10.0
"""How long to wait if no node that exists could satisfy the wishes, even if it were free."""


class Reservation:
    """Reserves a bundle of resources for each worker of a placement, in its order."""

    def __init__(self, name: str, placement: Placement) -> None:
        bundles = []
        for plan in placement.workers:
            bundle: dict[str, float] = {"CPU": plan.cpus}
            if plan.memory is not None:
                bundle["memory"] = plan.memory
            bundles.append(bundle)
        selectors = [dict(plan.labels) for plan in placement.workers]
        self._placement = placement
        self.group: Any = placement_group(
            bundles,
            strategy=placement.strategy,
            name=name,
            lifetime="detached",
            bundle_label_selector=selectors if any(selectors) else None,
        )

    async def wait(self, tell: Callable[[str], None]) -> list[ClusterNode] | str:
        """Return the node of each worker, or, if there is no room for them, which resource is missing."""
        loop = asyncio.get_running_loop()
        pending = Lease(PENDING_SECONDS)
        while not await loop.run_in_executor(None, self.group.wait, LOOK_UP_SECONDS):
            nodes = await loop.run_in_executor(None, cluster_nodes)
            never = missing(self._placement, nodes)
            lacking = never or missing(self._placement, nodes, free=True) or "Ray has not reserved them yet"
            if pending.lapsed or (never and pending.silent > IMPOSSIBLE_SECONDS):
                self.release()
                return (
                    f"the cluster has no room for the workers: {lacking}: stop other topologies or jobs, add nodes, or "
                    f"ask for less with resources() or Workers(n)"
                )
            tell(f"waiting for resources: {lacking}")
        table = await loop.run_in_executor(None, placement_group_table, self.group)
        nodes = await loop.run_in_executor(None, cluster_nodes)
        by_id = {node.id: node for node in nodes}
        chosen = table["bundles_to_node_id"]
        return [by_id[chosen[index]] for index in range(len(self._placement.workers))]

    def release(self) -> None:
        """Give the resources back."""
        if ray.is_initialized():
            remove_placement_group(self.group)


def release_named(name: str) -> None:
    """Give back what somebody reserved under this name who is no more, if anything."""
    with suppress(ValueError):
        remove_placement_group(get_placement_group(name))
