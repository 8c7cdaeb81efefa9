"""What passes between a program and the controller of its topology."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ray.experimental import internal_kv

from topology.handle.endpoint import Endpoint, Secret
from topology.handle.status import State
from topology.on_ray.by_value import dumps, loads
from topology.on_ray.lease import LeaseSeconds
from topology.on_ray.worker_actor import KeptState
from topology.placement.placement import Placement
from topology.security.tls import Tls
from topology.security.tokens import Authority

if TYPE_CHECKING:
    from topology.graph.graph import TaskName

NAMESPACE = "interlace"
"""The Ray namespace of all controllers and workers."""


def controller_name(topology: str) -> str:
    """The name of the actor that controls a topology."""
    return f"{topology}/controller"


@dataclass(frozen=True)
class Layout:
    """How a topology is laid out over processes: what `rebalance` changes.

    topology:    the description, packed by value, for programs that attach; the controller never unpacks it.
    make_handle: what `attach` calls to make its handle, packed likewise.
    work:        for each worker of the placement its share of the topology and its settings, packed likewise.
    recipe:      the settings and the wish that it was made with, packed likewise, so that others can make the next.
    deciding:    the task whose worker keeps the state; None: nothing is kept.
    """

    topology: bytes = field(repr=False)
    make_handle: bytes = field(repr=False)
    placement: Placement
    work: tuple[bytes, ...] = field(repr=False)
    recipe: bytes = field(repr=False)
    deciding: TaskName | None


@dataclass(frozen=True)
class Access:
    """The tokens that all lives of a topology have: one for workers, and those of clients by stream and control."""

    authority: Authority
    channel: Secret
    clients: Mapping[tuple[str, bool], Secret] = field(repr=False)


@dataclass(frozen=True)
class Charter:
    """Everything that a controller needs to launch its topology and to describe it to other programs.

    launch:       a name of this launch that no other has.
    inputs, sinks: their names; each gets endpoints.
    owner:        the program that renews the lease; None for a detached topology.
    prepare:      called in each process before it imports anything of ours (see packages).
    runtime_env:  what Ray prepares for each process; None where nodes have all they need.
    state:        what survives its processes, so that they can be restarted; None: a failure ends the topology.
    """

    name: str
    launch: str
    layout: Layout
    inputs: tuple[str, ...]
    sinks: tuple[str, ...]
    access: Access
    edge_bytes: int
    leases: LeaseSeconds
    encrypted: bool
    tls: Tls | None = field(repr=False)
    owner: str | None
    prepare: Callable[[], None] = field(repr=False)
    runtime_env: Mapping[str, Any] | None = None
    state: KeptState | None = None

    def with_layout(self, layout: Layout) -> Charter:
        """The same topology, laid out in another way."""
        state = self.state
        if state is not None and layout.deciding is not None:
            state = replace(state, task=layout.deciding)
        return replace(self, layout=layout, state=state)


@dataclass(frozen=True)
class Description:
    """What a program needs to hold a handle of a running topology.

    incarnation: the life of its processes that the endpoints belong to.
    durable:     whether another life follows a failure.
    """

    name: str
    layout: Layout
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
    active:      whether it takes rows.
    """

    version: int
    state: State
    note: str = ""
    failed_task: TaskName | None = None
    error: str = ""
    incarnation: int = 0
    active: bool = True


def remember(charter: Charter) -> None:
    """Keep a charter where Ray keeps its actors, for a controller that takes the place of one that dies.

    Ray makes a new controller from what the first one was given. A layout that came later it finds here.
    """
    internal_kv._internal_kv_put(_key(charter), dumps(charter.layout), overwrite=True, namespace=NAMESPACE)


def latest(charter: Charter) -> Charter:
    """The charter with the layout that was kept last, if there is one."""
    layout = internal_kv._internal_kv_get(_key(charter), namespace=NAMESPACE)
    return charter if layout is None else charter.with_layout(loads(layout))


def note_launch(charter: Charter) -> None:
    """Note that a topology has been launched: until `forget`, a new controller starts it again."""
    internal_kv._internal_kv_put(_launch_key(charter), b"", overwrite=True, namespace=NAMESPACE)


def is_forgotten(charter: Charter) -> bool:
    """Whether somebody has begun to stop a topology: then a new controller goes on with that."""
    return internal_kv._internal_kv_get(_launch_key(charter), namespace=NAMESPACE) is None


def forget(charter: Charter) -> None:
    """Remove all that is kept of a topology; called before anything of it is stopped."""
    for key in (_launch_key(charter), _key(charter), _ports_key(charter), _activity_key(charter)):
        internal_kv._internal_kv_del(key, namespace=NAMESPACE)


def remember_ports(charter: Charter, ports: Mapping[str, int]) -> None:
    """As `remember`, for the ports of workers by their place: endpoints stay the same across lives."""
    internal_kv._internal_kv_put(_ports_key(charter), json.dumps(ports), overwrite=True, namespace=NAMESPACE)


def latest_ports(charter: Charter) -> dict[str, int]:
    """The ports that were kept last."""
    kept = internal_kv._internal_kv_get(_ports_key(charter), namespace=NAMESPACE)
    return {} if kept is None else dict(json.loads(kept))


def remember_activity(charter: Charter, active: bool) -> None:
    """As `remember`, for whether the topology takes rows."""
    internal_kv._internal_kv_put(_activity_key(charter), json.dumps(active), overwrite=True, namespace=NAMESPACE)


def latest_activity(charter: Charter) -> bool:
    """Whether the topology took rows when that was kept last."""
    kept = internal_kv._internal_kv_get(_activity_key(charter), namespace=NAMESPACE)
    return kept is None or bool(json.loads(kept))


def _activity_key(charter: Charter) -> str:
    return f"activity of {charter.name} {charter.launch}"


def _ports_key(charter: Charter) -> str:
    return f"ports of {charter.name} {charter.launch}"


def _launch_key(charter: Charter) -> str:
    return f"launch of {charter.name} {charter.launch}"


def _key(charter: Charter) -> str:
    return f"layout of {charter.name} {charter.launch}"
