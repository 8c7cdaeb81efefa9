"""The Ray cluster under a topology: the one that Ray itself would join, or a small quiet one of our own."""

from __future__ import annotations

import logging
import os
import socket
import threading

import ray
from ray._private import services
from ray._raylet import AuthenticationTokenLoader  # type: ignore[attr-defined]  # compiled, without types
from ray.util import client

from topology.graph.errors import ClusterError
from topology.on_ray.cluster_probe import probe, split

OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Rows never enter Ray's object store, so the store of our own cluster is as small as Ray allows."""

NO_CLIENT = (
    "rows travel over Arrow Flight between the program and the nodes, and such a program is on none of them. Run it on "
    "the cluster with `ray job submit --address=http://<head>:8265 -- python program.py`, or on a machine where "
    "`ray start --address=<head>:6379` has been run, with RayRuntime(address='auto')"
)
QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}


class Membership:
    """The connection of this process to a cluster, shared by all topologies that it has launched there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._ours = False
        self._own_cluster = False

    def join(self, address: str | None) -> None:
        """Connect this process to a cluster, unless it is connected already.

        None: the cluster of RAY_ADDRESS, else one that runs on this machine, else a new one of our own.
        "auto": as None, but never a new one. "local": always a new one. "host:port": the cluster whose head is there.
        Raises a `ClusterError` that says what to do, within 15 s, and changes nothing.
        """
        with self._lock:
            if ray.is_initialized():
                self._check_connection(address)
            else:
                self._own_cluster = _connect(address)
                self._ours = True
            self._users += 1

    def leave(self) -> None:
        """Stop using the cluster; disconnect with its last user, if `join` connected or started it."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._ours:
                self._ours = self._own_cluster = False
                ray.shutdown()

    @property
    def started_cluster(self) -> bool:
        """Whether this process has started the cluster, which then ends with it."""
        node = ray._private.worker._global_node
        return node is not None and bool(node.is_head())

    def _check_connection(self, address: str | None) -> None:
        """Raise an error if this process is connected to another cluster than the one it asks for."""
        if client.ray.is_connected():
            raise ClusterError("this process is connected by Ray Client: " + NO_CLIENT)
        if address is None or address == "auto" or (address == "local" and self._ours and self._own_cluster):
            return
        joined = ray.get_runtime_context().gcs_address
        if address == "local" or not _same(_checked(address), joined):
            raise ClusterError(
                f"RayRuntime(address={address!r}): this process is connected to the Ray cluster at {joined} already; "
                f"call ray.shutdown() first, or leave the address out to use that cluster"
            )


membership = Membership()


def find(address: str | None) -> str | None:
    """The `host:port` of the cluster that Ray itself would join, or None if it would start one."""
    wanted = (os.environ.get("RAY_ADDRESS") or address) if address in (None, "auto") else address
    if wanted not in (None, "auto"):
        return None if wanted == "local" else _checked(wanted)
    services.find_gcs_addresses.cache_clear()
    try:
        found: str | None = services.canonicalize_bootstrap_address(wanted)
    except ConnectionError:
        raise ClusterError(
            "no Ray cluster runs on this machine: start one with `ray start --head`, name one with "
            "RayRuntime(address='host:port') or RAY_ADDRESS, or leave the address out to get a small one of its own"
        ) from None
    loader = AuthenticationTokenLoader.instance()
    if found is not None and "RAY_AUTH_MODE" not in os.environ and loader.has_token(ignore_auth_mode=True):
        os.environ["RAY_AUTH_MODE"] = "token"  # as Ray does for a cluster that it finds by itself
    return found


def _connect(address: str | None) -> bool:
    """Connect this process; whether a new cluster was started for it."""
    found = find(address)
    if found is not None and address is None and not os.environ.get("RAY_ADDRESS") and not _listens(found):
        found = None  # the mark of a cluster that has ended without `ray stop`
    if found is not None:
        probe(found)
    try:
        if found is None:
            ray.init(
                address="local",
                num_cpus=max(2, os.cpu_count() or 1),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                **QUIET,
            )
        else:
            ray.init(address=found, **QUIET)
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:
        ray.shutdown()
        place = "a Ray cluster of its own could not be started" if found is None else f"could not join {found}"
        raise ClusterError(f"{place}: {error}") from error
    return found is None


def _checked(address: str) -> str:
    """The address as `host:port`."""
    if address.startswith("ray://"):
        raise ClusterError(f"a topology cannot run through Ray Client ({address}): " + NO_CLIENT)
    if "://" in address:
        raise ClusterError(
            f"{address} is a web address, as `ray job submit` wants it: a program joins a cluster at host:port, where "
            f"the port is 6379 unless given; RAY_ADDRESS and RayRuntime(address=...) are read alike"
        )
    host, port = split(address)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listens(address: str) -> bool:
    try:
        socket.create_connection(split(address), timeout=1).close()
    except OSError:
        return False
    return True


def _same(one: str, other: str) -> bool:
    """Whether two addresses are one: a host may have a name and several numbers."""
    places = []
    for address in (one, other):
        host, port = split(services.canonicalize_bootstrap_address(address))
        try:
            places.append({(found[4][0], port) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)})
        except OSError:
            places.append({(host, port)})
    return bool(places[0] & places[1])
