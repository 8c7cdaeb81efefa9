"""What `interlace doctor` looks at before a cluster: ports, the address, shared memory and the directory of Ray."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

from interlace.command_line.checkup import Found, cluster_here

RAY_PORT = 6379
PAGE_PORT = 8266
SHARED_MEMORY = Path("/dev/shm")
LEAST_SHARED_MEMORY = 1 << 30
LONGEST_FOLDER = 60
"""Ray makes sockets below its directory; their whole path must stay under 107 characters."""


def ports() -> Found:
    """Whether the ports that Ray and the page use by default are free."""
    here = cluster_here()
    own = {int(here.rpartition(":")[2])} if here and here.rpartition(":")[2].isdigit() else set()
    shown, remedies = [], []
    for port, remedy in (
        (RAY_PORT, "start Ray on another one: ray start --head --port=6380"),
        (PAGE_PORT, "serve the page on another one: interlace ui --port 0"),
    ):
        if port in own:
            shown.append(f"{port} is that of the cluster here")
        elif _is_free(port):
            shown.append(f"{port} is free")
        else:
            shown.append(f"{port} is taken")
            remedies.append(remedy)
    return Found("ports", "missing" if remedies else "ok", ", ".join(shown), "; ".join(remedies))


def address() -> Found:
    """The address by which other machines would reach this one."""
    found = _own_address()
    if found is None:
        remedy = "a cluster of several machines needs a network; on this one, all works over loopback"
        return Found("address", "missing", "this machine has no address but loopback", remedy)
    try:
        socket.create_server((found, 0)).close()
    except OSError as error:
        remedy = "name one of its own: ray start --node-ip-address=ADDRESS"
        return Found("address", "missing", f"nothing can listen on {found} ({error.strerror})", remedy)
    return Found("address", "ok", f"other machines reach this one as {found}")


def shared_memory() -> Found:
    """Whether Ray finds shared memory for its objects."""
    if not sys.platform.startswith("linux"):
        return Found("shm", "ok", "Ray keeps objects in files here")
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError as error:
        return Found(
            "shm", "missing", f"{SHARED_MEMORY}: {error.strerror}", "Ray keeps its objects there: mount a tmpfs"
        )
    text = f"{free / (1 << 30):.1f} GiB free in {SHARED_MEMORY}"
    if not os.access(SHARED_MEMORY, os.W_OK):
        return Found("shm", "missing", f"{SHARED_MEMORY} is read-only", "Ray keeps its objects there: let users write")
    if free < LEAST_SHARED_MEMORY:
        return Found("shm", "missing", text, "Ray would use the disk: make room, or run containers with --shm-size=2g")
    return Found("shm", "ok", text)


def ray_files() -> Found:
    """Whether Ray can write its sockets and logs."""
    folder = Path(os.environ.get("RAY_TMPDIR", "/tmp"))
    place = folder / "ray" if (folder / "ray").is_dir() else folder
    if not os.access(place, os.W_OK | os.X_OK):
        remedy = "set RAY_TMPDIR to a directory that you can write to"
        return Found("Ray files", "missing", f"{place} cannot be written to, or is not there", remedy)
    if len(str(folder)) > LONGEST_FOLDER:
        remedy = "set RAY_TMPDIR to a short path: sockets below it may have 107 characters"
        return Found("Ray files", "missing", f"the path {folder} is long", remedy)
    return Found("Ray files", "ok", f"{place} can be written to")


CLUSTER_CHECKS = (ports, address, shared_memory, ray_files)


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _own_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        found = str(probe.getsockname()[0])
    return None if found.startswith("127.") else found
