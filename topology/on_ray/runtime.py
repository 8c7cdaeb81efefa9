"""The Ray runtime: workers on a cluster hold the tasks; rows travel over Arrow Flight."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from topology.checks.quotas import Quotas
from topology.graph.errors import TopologyError
from topology.graph.graph import Topology
from topology.graph.share import share
from topology.handle.running import MakeHandle, RunningTopology, Runtime
from topology.on_ray.by_value import dumps
from topology.on_ray.charter import Charter
from topology.on_ray.cluster import membership
from topology.on_ray.launching import claim, end_controller, new_owner, start_processes, wait_until_running
from topology.on_ray.lease import LeaseSeconds
from topology.on_ray.nodes import cluster_nodes
from topology.on_ray.packages import preparation, runtime_env_for
from topology.on_ray.running import RayTopology
from topology.on_ray.worker_actor import KeptState
from topology.placement.place import place
from topology.placement.wishes import Wish
from topology.process.state import check_state, is_local_directory
from topology.process.task_group import GroupSettings
from topology.security.tls import Tls
from topology.tasks.inbox import DEFAULT_CAPACITY

LEASES = LeaseSeconds()


@dataclass(frozen=True)
class RayRuntime(Runtime):
    """Runs a topology on a Ray cluster, in workers that hold one or more tasks each.

    address:         the cluster to join: "host:port", "auto" for the one on this machine, "local" for a new one. None:
                     the one that this process is connected to, else what RAY_ADDRESS names, else the one on this
                     machine, else a new one, which ends with the program.
    placement:       "default": inputs, gate and router in one worker, collector and sinks in one, every other task in a
                     worker of its own; "per-task": a worker per task; `Workers(n)`: n workers.
    tls:             None: listen on loopback only, without encryption, if the cluster has one node; on the nodes'
                     addresses, with TLS, if it has several. True: the latter in any case. `Tls(...)`: as True, with
                     certificates of your own.
    edge_bytes:      the bytes that may wait on each edge before its sender has to wait.
    spill_directory: where rows that wait for slower sources are spilled; None: the system's temporary directory.
    quotas:          how much clients may use; None: the defaults of `Quotas`.
    progress:        show on a terminal what a launch waits for.
    state:           a URI of `pyarrow.fs` (s3://bucket/prefix), or, on one node, a directory, where everything is kept
                     that must survive, below the name of the topology. When a process dies, the topology starts again
                     from there and goes on by itself; launched again with the same state, it goes on, too. None: the
                     first failure ends it.
    """

    address: str | None = None
    placement: Wish = "default"
    tls: Tls | Literal[True] | None = field(default=None, repr=False)
    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None
    quotas: Quotas | None = None
    progress: bool = True
    state: str | Path | None = field(default=None, repr=False)

    @property
    def is_durable(self) -> bool:
        return self.state is not None

    def launch(
        self,
        topology: Topology,
        *,
        name: str | None = None,
        detached: bool = False,
        replace: bool = False,
        make_handle: MakeHandle | None = None,
    ) -> RunningTopology:
        """Start the controller and the workers, connect them and start the tasks."""
        _check_name(name)
        if not (self.tls is None or self.tls is True or isinstance(self.tls, Tls)):
            raise TopologyError(
                f"tls must be None, True or Tls(...), not {self.tls!r}: nothing listens beyond one machine without TLS"
            )
        membership.join(self.address)
        try:
            if detached and membership.started_cluster:
                raise TopologyError(
                    "a detached topology needs a cluster that outlives this program, and this one ends with it: start "
                    "one with 'ray start --head', or name one with RayRuntime(address=...)"
                )
            owner = None if detached else new_owner()
            charter = self._charter(topology, name or topology.name.replace("/", "-"), owner, make_handle)
            controller = claim(charter, name is not None or self.is_durable, replace)
            try:
                if charter.runtime_env is None:
                    start_processes(len(charter.placement.workers))
                description = wait_until_running(controller, owner, self.progress)
                return RayTopology(topology, description, controller, owner)
            except BaseException:
                end_controller(controller)
                raise
        except BaseException:
            membership.leave()
            raise

    def _charter(self, topology: Topology, name: str, owner: str | None, make_handle: MakeHandle | None) -> Charter:
        nodes = cluster_nodes()
        state = None if self.state is None else _kept_state(self.state, name, topology, len(nodes))
        together = frozenset() if state is None else frozenset([*topology.inputs, state.task[0]])
        placement = place(topology, nodes, self.placement, together)
        settings = GroupSettings(self.edge_bytes, self.spill_directory, quotas=self.quotas)
        return Charter(
            name,
            dumps(topology),
            dumps(make_handle),
            tuple(topology.inputs),
            topology.sinks,
            placement,
            tuple(dumps((share(topology, plan.tasks), settings)) for plan in placement.workers),
            self.edge_bytes,
            LEASES,
            self.tls is not None or len(nodes) > 1,
            self.tls.read() if isinstance(self.tls, Tls) else None,
            owner,
            preparation(),
            runtime_env_for(nodes) or None,
            state,
        )


def _kept_state(uri: str | Path, name: str, topology: Topology, nodes: int) -> KeptState:
    if is_local_directory(uri):
        if nodes > 1:
            raise TopologyError(
                f"state={str(uri)!r} is a directory of one machine, but the cluster has {nodes} nodes, and any of them "
                f"may have to read it: give an object store, such as s3://bucket/prefix"
            )
        if not str(uri).startswith("file:"):
            uri = Path(uri).absolute()  # workers have a working directory of their own
    return KeptState(str(uri), name, (check_state(topology).name, 0))


def _check_name(name: str | None) -> None:
    if name is not None and (not isinstance(name, str) or not name or "/" in name):
        raise TopologyError(f"a topology's name is a text without '/', such as 'trips', not {name!r}")
