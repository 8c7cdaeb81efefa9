"""The Ray cluster under a topology: an existing one, or a small quiet one of our own."""

from __future__ import annotations

import logging
import os
import threading

import ray

from topology.graph.errors import TopologyError

OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Rows never enter Ray's object store, so the store of our own cluster is as small as Ray allows."""


class Membership:
    """The connection of this process to a cluster, shared by all topologies that it has launched there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._ours = False

    def join(self, address: str | None) -> None:
        """Use the cluster that this process is connected to, else that at `address`, else a new one on this machine."""
        with self._lock:
            if not ray.is_initialized():
                _connect(address)
                self._ours = True
            self._users += 1

    def leave(self) -> None:
        """Stop using the cluster; disconnect with its last user, if `join` connected or started it."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._ours:
                self._ours = False
                ray.shutdown()


membership = Membership()


def require_one_machine(plain_network: bool) -> None:
    """Refuse a cluster of several machines: rows would travel between them unencrypted."""
    machines = sum(1 for node in ray.nodes() if node["Alive"])
    if machines > 1 and not plain_network:
        raise TopologyError(
            f"the Ray cluster has {machines} machines, and rows between them would travel unencrypted: use a cluster "
            f"of one machine, or set RayRuntime(plain_network=True) if everyone on their network may read the rows"
        )


def _connect(address: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None:
        ray.init(address=address, **quiet)
        return
    ray.init(
        address="local",
        num_cpus=max(2, os.cpu_count() or 1),
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES,
        **quiet,
    )
