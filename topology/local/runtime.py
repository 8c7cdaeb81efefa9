"""The embedded runtime: a few threads in this process drive all tasks; no daemon, no port, started in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from topology.checks.quotas import Quotas
from topology.graph.errors import TopologyError
from topology.graph.graph import Topology
from topology.handle.running import MakeHandle, RunningTopology, Runtime, warn_without_sink
from topology.local.running import LocalTopology
from topology.process.hosted_task import GroupSettings
from topology.process.state import StatePlace, with_state
from topology.tasks.budget import Budget
from topology.tasks.inbox import DEFAULT_CAPACITY
from topology.tasks.task_hook import TaskHook


@dataclass(frozen=True)
class LocalRuntime(Runtime):
    """Runs a topology in this process.

    workers:         threads that drive the tasks; None: one more than there are cores, as one often waits for the GIL.
    edge_bytes:      the bytes that may wait on each edge before its sender has to wait.
    spill_directory: where rows that wait for slower sources are spilled; None: the system's temporary directory.
    quotas:          how much clients in other processes may use; None: the defaults of `Quotas`.
    state:           a directory or a URI of `pyarrow.fs` (s3://bucket/prefix) where everything is kept that must
                     survive, below the name of the topology; None: a topology ends with its process. Launched again
                     with the same state, a topology goes on where it was.
    savepoint:       what `savepoint()` of a topology returned: begin from there if nothing is kept under this name yet.
    new_query:       what is kept under this name may belong to another query: go on from its rows, with full windows,
                     and begin a new series of results. Where it belongs to this one, it goes on as always.
    budget:          what rows that wait may use in this process; None: the defaults of `Budget`.
    hooks:           called when tasks start, stop and fail; see `TaskHook`.
    """

    workers: int | None = None
    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None
    quotas: Quotas | None = None
    state: str | Path | None = None
    savepoint: str | None = None
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
        """Build all tasks and start the threads.

        detached, replace: refused. A topology in this process ends with it, and other processes do not see its name.
        """
        for option, given in (("detached", detached), ("replace", replace)):
            if given:
                raise TopologyError(
                    f"{option}=True needs a cluster: a topology in this process ends with it, and no other program "
                    f"knows its name; use RayRuntime()"
                )
        warn_without_sink(topology)
        name = name or topology.name
        place = None
        if self.state is not None:
            topology = with_state(topology)
            place = StatePlace(self.state, name, self.savepoint, self.new_query)
        elif self.savepoint is not None:
            raise TopologyError("savepoint= needs a place to go on from there: give state=, too")
        settings = GroupSettings(
            self.edge_bytes,
            self.spill_directory,
            self.workers,
            self.quotas,
            hooks=tuple(self.hooks),
            budget=self.budget or Budget(),
        )
        return LocalTopology(topology, name, settings, place)
