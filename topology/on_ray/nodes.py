"""What Ray knows of the cluster that this process is connected to: its nodes, and the job of this process."""

from __future__ import annotations

import ray
from ray._private.state import available_resources_per_node, jobs

from topology.placement.cluster_node import ClusterNode


def job_is_dead() -> bool:
    """Whether the program that this process works for has ended, as far as Ray knows."""
    job = ray.get_runtime_context().get_job_id()
    return any(entry["JobID"] == job and entry["IsDead"] for entry in jobs())


def cluster_nodes() -> list[ClusterNode]:
    """Return the nodes that are alive, with what is free on each."""
    free = available_resources_per_node()
    nodes = []
    for node in ray.nodes():
        if node["Alive"]:
            left, total = free.get(node["NodeID"], {}), node["Resources"]
            nodes.append(
                ClusterNode(
                    node["NodeID"],
                    node["NodeManagerAddress"],
                    float(left.get("CPU", 0.0)),
                    float(total.get("CPU", 0.0)),
                    int(left.get("memory", 0)),
                    dict(node.get("Labels") or {}),
                )
            )
    return nodes
