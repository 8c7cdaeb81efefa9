"""What passes between a program and the controller of its topology."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from topology.handle.endpoint import Endpoint
from topology.handle.status import State
from topology.on_ray.lease import LeaseSeconds
from topology.on_ray.worker_actor import KeptState
from topology.placement.placement import Placement
from topology.security.tls import Tls

if TYPE_CHECKING:
    from topology.graph.graph import TaskName

NAMESPACE = "interlace"
"""The Ray namespace of all controllers and workers."""


def controller_name(topology: str) -> str:
    """The name of the actor that controls a topology."""
    return f"{topology}/controller"


@dataclass(frozen=True)
class Charter:
    """Everything that a controller needs to launch its topology and to describe it to other programs.

    topology:     the description, packed by value, for programs that attach; the controller never unpacks it.
    make_handle:  what `attach` calls to make its handle, packed likewise.
    work:         for each worker of the placement its share of the topology and its settings, packed likewise.
    streams:      the names of inputs and sinks; each gets endpoints.
    owner:        the program that renews the lease; None for a detached topology.
    prepare:      called in each process before it imports anything of ours (see packages).
    runtime_env:  what Ray prepares for each process; None where nodes have all they need.
    state:        what survives its processes, so that they can be restarted; None: a failure ends the topology.
    """

    name: str
    topology: bytes = field(repr=False)
    make_handle: bytes = field(repr=False)
    inputs: tuple[str, ...]
    sinks: tuple[str, ...]
    placement: Placement
    work: tuple[bytes, ...] = field(repr=False)
    edge_bytes: int
    leases: LeaseSeconds
    encrypted: bool
    tls: Tls | None = field(repr=False)
    owner: str | None
    prepare: Callable[[], None] = field(repr=False)
    runtime_env: Mapping[str, Any] | None = None
    state: KeptState | None = None


@dataclass(frozen=True)
class Description:
    """What a program needs to hold a handle of a running topology.

    incarnation: the life of its processes that the endpoints belong to.
    durable:     whether another life follows a failure.
    """

    name: str
    topology: bytes = field(repr=False)
    make_handle: bytes = field(repr=False)
    endpoints: Mapping[tuple[str, bool], Endpoint] = field(repr=False)
    edge_bytes: int
    leases: LeaseSeconds
    detached: bool
    incarnation: int = 0
    durable: bool = False


@dataclass(frozen=True)
class Report:
    """The state of a topology as its followers see it; `version` grows with each change.

    note:        what a launch or a recovery is waiting for.
    incarnation: the life of its processes that runs, or ran last.
    """

    version: int
    state: State
    note: str = ""
    failed_task: TaskName | None = None
    error: str = ""
    incarnation: int = 0
