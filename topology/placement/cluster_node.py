"""A machine of the cluster, as placement sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ClusterNode:
    """What a node has in all, and what of it is free now.

    id:          the cluster's name for the node.
    address:     the address at which other nodes reach it.
    memory_free: bytes that no one has reserved.
    labels:      the node's labels, which the labels of `Resources` select.
    """

    id: str
    address: str
    cpus_free: float
    cpus_total: float
    memory_free: int
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.id[:8]} at {self.address}"
