"""Finds a topology that another program has launched."""

from __future__ import annotations

import ray

from topology.graph.errors import ConnectionLostError, UnknownTopologyError
from topology.handle.handle import Handle
from topology.handle.status import State
from topology.on_ray.by_value import loads
from topology.on_ray.charter import Description
from topology.on_ray.cluster import membership
from topology.on_ray.launching import ANSWER_SECONDS, find_controller, launch_error, running_names
from topology.on_ray.running import RayTopology


def attach(name: str, *, address: str | None = None) -> Handle:
    """Return a handle of a topology that runs on a cluster; for a join, a `RunningJoin`.

    Any number of programs may attach to a topology, feed it, see its status and stop it; its results have one reader at
    a time. Leaving a `with` block of this handle lets go of it; the topology goes on until `stop`.

    address: the cluster, as in `RayRuntime`; a new one is never started.
    """
    membership.join(address or "auto")
    try:
        controller = find_controller(name)
        if controller is None:
            known = ", ".join(f"'{each}'" for each in running_names()) or "none"
            raise UnknownTopologyError(f"no topology called '{name}' is running on this cluster; running: {known}")
        try:
            report = ray.get(controller.follow.remote(None, -1, 0.0), timeout=ANSWER_SECONDS)
            described: Description = ray.get(controller.describe.remote(), timeout=ANSWER_SECONDS)
        except ray.exceptions.RayError as error:
            raise ConnectionLostError(f"the controller of '{name}' does not answer: {error}") from None
        if report.state is State.FAILED:
            raise launch_error(report)
        running = RayTopology(loads(described.topology), described, controller, None)
    except BaseException:
        membership.leave()
        raise
    make_handle = loads(described.make_handle)
    return running if make_handle is None else make_handle(running)
