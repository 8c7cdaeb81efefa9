"""A runtime for tests: every task is an actor of its own on Ray, and Ray's state API sees them all by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray
from ray.util.state import list_actors

from topology import RayRuntime, RunningTopology, Runtime, Topology

MOST_ACTORS = 1000


@dataclass(frozen=True)
class EachTaskAnActor(Runtime):
    """Launches on Ray with `placement="per-task"`, and reads the actors before it returns."""

    def launch(self, topology: Topology, **options: Any) -> RunningTopology:
        running = RayRuntime(placement="per-task").launch(topology, **options)
        try:
            expected = {f"{running.name}/{component}/{task}" for component, task in topology.task_names}
            assert living_actors(running.name).keys() == {f"{running.name}/controller", *expected}
            nodes = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
            assert set(living_actors(running.name).values()) <= nodes
        except BaseException:
            running.stop()
            raise
        return running


def living_actors(topology: str) -> dict[str, str]:
    """The actors of a topology, by name, and the node of each."""
    filters = [("ray_namespace", "=", "interlace"), ("state", "=", "ALIVE")]
    address = ray.get_runtime_context().gcs_address
    actors = list_actors(address, filters=filters, limit=MOST_ACTORS)
    return {actor.name: actor.node_id for actor in actors if actor.name.startswith(f"{topology}/")}
