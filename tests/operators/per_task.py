"""A runtime for tests: every task is an actor of its own on Ray, and Ray knows them all by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray
from ray.util import list_named_actors

from topology import RayRuntime, RunningTopology, Runtime, Topology


@dataclass(frozen=True)
class EachTaskAnActor(Runtime):
    """Launches on Ray with `placement="per-task"`, and looks at the actors before it returns."""

    def launch(self, topology: Topology, **options: Any) -> RunningTopology:
        running = RayRuntime(placement="per-task").launch(topology, **options)
        try:
            expected = {f"{running.name}/{component}/{task}" for component, task in topology.task_names}
            assert living_actors(running.name) == {f"{running.name}/controller", *expected}
            nodes = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
            assert {worker.node for worker in running.status().workers} <= nodes
        except BaseException:
            running.stop()
            raise
        return running


def living_actors(topology: str) -> set[str]:
    """The names of the actors of a topology. The head of the cluster lists them; Ray's dashboard is not needed."""
    named = list_named_actors(all_namespaces=True)
    names = [actor["name"] for actor in named if actor["namespace"] == "interlace"]
    return {name for name in names if name.startswith(f"{topology}/")}
