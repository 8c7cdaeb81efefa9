"""The Ray runtime: every task a process, placed and watched by Ray, rows between them over Arrow Flight."""

from __future__ import annotations

from dataclasses import dataclass

from topology.graph.graph import Topology
from topology.handle.running import RunningTopology, Runtime
from topology.on_ray.running import RayTopology
from topology.tasks.inbox import DEFAULT_CAPACITY


@dataclass(frozen=True)
class RayRuntime(Runtime):
    """Runs a topology on a Ray cluster, one actor per task.

    address:         the cluster to join ("auto": the one on this machine); None: the one this process is connected to,
                     or else a new one on this machine, which ends with the topology.
    edge_bytes:      how many bytes may wait on each edge before its sender waits.
    spill_directory: where rows that wait for slower sources go when memory is short; None: the system's choice.
    plain_network:   allow a cluster of several machines, between which rows travel unencrypted.
    """

    address: str | None = None
    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None
    plain_network: bool = False

    def launch(self, topology: Topology) -> RunningTopology:
        """Start one actor per task, connect them and begin."""
        return RayTopology(
            topology,
            address=self.address,
            edge_bytes=self.edge_bytes,
            spill_directory=self.spill_directory,
            plain_network=self.plain_network,
        )
