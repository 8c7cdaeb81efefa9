"""Finds topologies that other programs have launched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray

from topology.graph.errors import ConnectionLostError, UnknownTopologyError
from topology.handle.handle import Handle
from topology.handle.log_lines import LogLine
from topology.handle.status import State, Status
from topology.on_ray.by_value import loads
from topology.on_ray.charter import Description
from topology.on_ray.cluster import membership
from topology.on_ray.launching import ANSWER_SECONDS, end_controller, find_controller, launch_error, running_names
from topology.on_ray.running import RayTopology


def attach(name: str, *, address: str | None = None) -> Handle:
    """Return a handle of a topology that runs on a cluster; for a join, a `RunningJoin`.

    Any number of programs may attach to a topology, feed it, see its status and stop it; its results have one reader at
    a time. Leaving a `with` block of this handle lets go of it; the topology goes on until `stop`.

    address: the cluster, as in `RayRuntime`; a new one is never started.
    """
    membership.join(address or "auto")
    try:
        controller = _require_controller(name)
        try:
            report = ray.get(controller.follow.remote(None, -1, 0.0), timeout=ANSWER_SECONDS)
            described: Description = ray.get(controller.describe.remote(), timeout=ANSWER_SECONDS)
        except ray.exceptions.RayError as error:
            raise ConnectionLostError(f"the controller of '{name}' does not answer: {error}") from None
        if report.state is State.FAILED:
            raise launch_error(report)
        running = RayTopology(loads(described.layout.topology), described, controller, None)
    except BaseException:
        membership.leave()
        raise
    make_handle = loads(described.layout.make_handle)
    return running if make_handle is None else make_handle(running)


def topologies(*, address: str | None = None) -> tuple[Status, ...]:
    """Return the status of every topology on a cluster, by name; one that has failed is there until it is stopped.

    address: as in `attach`.
    """
    with joined_cluster(address):
        asked = {}
        for name in running_names():
            controller = find_controller(name)
            if controller is not None:  # it may have ended meanwhile
                asked[name] = controller.status.remote()
        return tuple(status for name, answer in asked.items() if (status := _status(name, answer)) is not None)


def topology_status(name: str, *, address: str | None = None) -> Status:
    """Return the status of one topology, also of one that has failed; raises an `UnknownTopologyError` without it."""
    with joined_cluster(address):
        found = _status(name, _require_controller(name).status.remote())
        if found is None:
            raise UnknownTopologyError(f"the topology '{name}' has just ended")
        return found


def stop_topology(name: str, *, address: str | None = None) -> None:
    """Stop a topology, also one that has failed or does not answer; raises an `UnknownTopologyError` without it."""
    with joined_cluster(address):
        end_controller(_require_controller(name))


def topology_logs(name: str, after: int = -1, *, address: str | None = None) -> tuple[LogLine, ...]:
    """Return what a topology has logged and printed after a line, also of one that has failed; see `Handle.logs`."""
    with joined_cluster(address):
        try:
            lines: tuple[LogLine, ...] = ray.get(_require_controller(name).logs.remote(after), timeout=ANSWER_SECONDS)
        except ray.exceptions.RayError as error:
            raise ConnectionLostError(f"the controller of '{name}' does not answer: {error}") from None
        return lines


@contextmanager
def joined_cluster(address: str | None = None) -> Iterator[None]:
    """Stay connected to a cluster, so that several calls need not connect anew; `address` as in `attach`."""
    membership.join(address or "auto")
    try:
        yield
    finally:
        membership.leave()


def _require_controller(name: str) -> Any:
    controller = find_controller(name)
    if controller is None:
        known = ", ".join(f"'{each}'" for each in running_names()) or "none"
        raise UnknownTopologyError(f"no topology called '{name}' is running on this cluster; running: {known}")
    return controller


def _status(name: str, answer: Any) -> Status | None:
    """The answer of a controller; None if it has ended."""
    try:
        status: Status = ray.get(answer, timeout=ANSWER_SECONDS)
        return status
    except ray.exceptions.GetTimeoutError:
        return Status(name, State.FAILED, (), f"its controller has not answered for {ANSWER_SECONDS:.0f} seconds")
    except ray.exceptions.RayError:
        return None
