"""The Ray runtime: workers on a cluster hold the tasks; rows travel over Arrow Flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from topology.checks.quotas import Quotas
from topology.graph.errors import TopologyError
from topology.graph.graph import Topology
from topology.handle.running import MakeHandle, RunningTopology, Runtime, warn_without_sink
from topology.on_ray.by_value import dumps
from topology.on_ray.charter import Charter
from topology.on_ray.cluster import membership
from topology.on_ray.launching import (
    claim,
    end_controller,
    issue_access,
    lay_out,
    new_name,
    start_processes,
    wait_until_running,
)
from topology.on_ray.lease import LeaseSeconds
from topology.on_ray.nodes import cluster_nodes
from topology.on_ray.packages import preparation, runtime_env_for
from topology.on_ray.running import RayTopology
from topology.on_ray.worker_actor import KeptState
from topology.placement.wishes import Wish
from topology.process.hosted_task import GroupSettings
from topology.process.state import is_local_directory, with_state
from topology.security.tls import Tls
from topology.tasks.budget import Budget
from topology.tasks.inbox import DEFAULT_CAPACITY
from topology.tasks.task_hook import TaskHook

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
    savepoint:       what `savepoint()` of a topology returned: begin from there if nothing is kept under this name yet.
    new_query:       what is kept under this name may belong to another query: go on from its rows, with full windows,
                     and begin a new series of results. Where it belongs to this one, it goes on as always.
    budget:          what rows that wait may use in each worker; None: the defaults of `Budget`.
    hooks:           called when tasks start, stop and fail; see `TaskHook`.
    """

    address: str | None = None
    placement: Wish = "default"
    tls: Tls | Literal[True] | None = field(default=None, repr=False)
    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None
    quotas: Quotas | None = None
    progress: bool = True
    state: str | Path | None = field(default=None, repr=False)
    savepoint: str | None = field(default=None, repr=False)
    new_query: bool = False
    hooks: Sequence[TaskHook] = ()
    budget: Budget | None = None

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
        warn_without_sink(topology)
        if self.state is not None:
            topology = with_state(topology)
        if not (self.tls is None or self.tls is True or isinstance(self.tls, Tls)):
            raise TopologyError(
                f"tls must be None, True or Tls(...), not {self.tls!r}: nothing listens beyond one machine without TLS"
            )
        if self.savepoint is not None and self.state is None:
            raise TopologyError("savepoint= needs a place to go on from there: give state=, too")
        membership.join(self.address)
        try:
            if detached and membership.started_cluster:
                raise TopologyError(
                    "a detached topology needs a cluster that outlives this program, and this one ends with it: start "
                    "one with 'ray start --head', or name one with RayRuntime(address=...)"
                )
            owner = None if detached else new_name()
            charter = self._charter(topology, name or topology.name.replace("/", "-"), owner, make_handle)
            controller = claim(charter, name is not None or self.is_durable, replace)
            try:
                if charter.runtime_env is None:
                    start_processes(len(charter.layout.placement.workers))
                description = wait_until_running(controller, owner, self.progress)
                return RayTopology(topology, description, controller, owner)
            except BaseException:
                end_controller(controller)
                raise
        except BaseException:
            membership.leave()
            raise

    def _kept_state(self, uri: str | Path, name: str, topology: Topology, nodes: int) -> KeptState:
        place = _seen_by_workers("state", uri, nodes)
        saved = None if self.savepoint is None else _seen_by_workers("savepoint", self.savepoint, nodes)
        deciding = topology.deciding
        assert deciding is not None, "a topology with a state has a component that decides"
        return KeptState(place, name, (deciding.name, 0), saved, self.new_query)

    def _charter(self, topology: Topology, name: str, owner: str | None, make_handle: MakeHandle | None) -> Charter:
        nodes = cluster_nodes()
        state = None if self.state is None else self._kept_state(self.state, name, topology, len(nodes))
        settings = GroupSettings(
            self.edge_bytes, self.spill_directory, quotas=self.quotas, hooks=tuple(self.hooks),
            budget=self.budget or Budget(),
        )  # fmt: skip
        layout = lay_out(topology, nodes, self.placement, settings, dumps(make_handle), state is not None)
        return Charter(
            name,
            new_name(),
            layout,
            tuple(topology.inputs),
            topology.sinks,
            issue_access(topology.inputs, topology.sinks),
            self.edge_bytes,
            LEASES,
            self.tls is not None or len(nodes) > 1,
            self.tls.read() if isinstance(self.tls, Tls) else None,
            owner,
            preparation(),
            runtime_env_for(nodes) or None,
            state,
        )


def _seen_by_workers(option: str, uri: str | Path, nodes: int) -> str:
    """The place as workers name it, which have a working directory of their own."""
    if is_local_directory(uri):
        if nodes > 1:
            raise TopologyError(
                f"{option}={str(uri)!r} is a directory of one machine, but the cluster has {nodes} nodes, and any of "
                f"them may have to read it: give an object store, such as s3://bucket/prefix"
            )
        if not str(uri).startswith("file:"):
            return str(Path(uri).absolute())
    return str(uri)


def _check_name(name: str | None) -> None:
    if name is not None and (not isinstance(name, str) or not name or "/" in name):
        raise TopologyError(f"a topology's name is a text without '/', such as 'trips', not {name!r}")
