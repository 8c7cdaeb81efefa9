"""Joins clusters one after the other and prints what came of it: `python joining_program.py '[{...}, ...]'`.

Each attempt is a JSON object: the `address`, if one is given; the `settings` of the environment; `serving`, what this
program itself serves in place of a cluster; `cluster_runs`, versions that the cluster is made to claim.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

import ray
from ray._common.usage import usage_constants
from ray._private.ray_constants import KV_NAMESPACE_CLUSTER
from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled, without types

from topology import ClusterError
from topology.on_ray.cluster import membership
from topology.on_ray.cluster_probe import check_token


def serve(kind: str) -> str:
    """Serve something that is no Ray cluster; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    held = []

    def answer() -> None:
        while True:
            connection, _ = listening.accept()
            held.append(connection)
            if kind == "http":
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()
    return f"127.0.0.1:{listening.getsockname()[1]}"


def claim(address: str, versions: dict[str, str]) -> None:
    """Change the versions that a cluster says it runs."""
    check_token(address)  # makes Ray read the settings again
    head = GcsClient(address=address)
    place = {"namespace": KV_NAMESPACE_CLUSTER}
    metadata = json.loads(head.internal_kv_get(usage_constants.CLUSTER_METADATA_KEY, **place))
    text = json.dumps({**metadata, **versions}).encode()
    head.internal_kv_put(usage_constants.CLUSTER_METADATA_KEY, text, overwrite=True, **place)


def attempt(
    address: str | None = None,
    settings: dict[str, str] | None = None,
    serving: str | None = None,
    cluster_runs: dict[str, str] | None = None,
) -> dict[str, object]:
    """Join and leave a cluster; which one it was, or what was wrong, and after how many seconds."""
    before = dict(os.environ)
    os.environ.update(settings or {})
    if address is not None and cluster_runs is not None:
        claim(address, cluster_runs)
    began = time.monotonic()
    try:
        membership.join(serve(serving) if serving else address)
        seconds = time.monotonic() - began
        joined = ray.get_runtime_context().gcs_address
        nodes = len(ray.nodes())
        membership.leave()
        return {"joined": joined, "nodes": nodes, "connected": ray.is_initialized(), "seconds": seconds}
    except ClusterError as error:
        return {"error": str(error), "connected": ray.is_initialized(), "seconds": time.monotonic() - began}
    finally:
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    for case in json.loads(sys.argv[1]):
        print(json.dumps(attempt(**case)), flush=True)
