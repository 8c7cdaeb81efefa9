"""The Ray runtime: each task is a process that Ray places and watches; rows travel over Arrow Flight."""

from __future__ import annotations

from dataclasses import dataclass

from topology.graph.graph import Topology
from topology.handle.running import MakeHandle, RunningTopology, Runtime
from topology.on_ray.running import RayTopology
from topology.tasks.inbox import DEFAULT_CAPACITY


@dataclass(frozen=True)
class RayRuntime(Runtime):
    """Runs a topology on a Ray cluster, one actor per task.

    address:         the cluster to join ("auto": the one on this machine); None: the one that this process is connected
                     to, or else a new one on this machine, which ends with the topology.
    edge_bytes:      the bytes that may wait on each edge before its sender has to wait.
    spill_directory: where rows that wait for slower sources are spilled; None: the system's temporary directory.
    plain_network:   allow a cluster of several machines; rows travel unencrypted between them.
    """

    address: str | None = None
    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None
    plain_network: bool = False

    def launch(
        self,
        topology: Topology,
        *,
        name: str | None = None,
        detached: bool = False,
        replace: bool = False,
        make_handle: MakeHandle | None = None,
    ) -> RunningTopology:
        """Start one actor per task, connect them and start the tasks."""
        return RayTopology(
            topology,
            address=self.address,
            edge_bytes=self.edge_bytes,
            spill_directory=self.spill_directory,
            plain_network=self.plain_network,
        )
