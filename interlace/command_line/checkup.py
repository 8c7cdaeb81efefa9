"""What `interlace doctor` looks at: each check is a function that returns what it found, and how to mend it."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

LEAST_PYTHON = (3, 11)
RAY_PORT = 6379
LOW_DISK = 2 << 30
LOW_MEMORY = 1 << 30

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Found:
    """The outcome of a check.

    state:  "missing": something is not there that not everybody needs; "broken": nothing works before it is mended.
    text:   what was found.
    remedy: what to do; empty if all is well.
    """

    name: str
    state: State
    text: str
    remedy: str = ""


def python() -> Found:
    """The version of Python."""
    shown = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < LEAST_PYTHON:
        return Found("Python", "broken", shown, "install Python 3.11 or newer")
    return Found("Python", "ok", shown)


def packages() -> Found:
    """The packages that Interlace asks for, and their versions."""
    from packaging.requirements import Requirement

    wrong = []
    try:
        wanted = [Requirement(line) for line in requires("interlace") or ()]
    except PackageNotFoundError:
        return Found("packages", "missing", "Interlace is not installed, only its sources are here", "pip install .")
    needed = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    for requirement in needed:
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            wrong.append(f"{requirement.name} {found} is not {requirement.specifier}")
    if wrong:
        return Found("packages", "broken", "; ".join(wrong), "pip install --upgrade interlace")
    shown = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "numpy", "numba"))
    return Found("packages", "ok", f"all {len(needed)}, with {shown}")


def kernels() -> Found:
    """Whether kernels compile and run here, and how many are compiled already."""
    import numpy as np

    from indexes import cache_directory, sorted_with_order

    try:
        directory = cache_directory()
        keys, _ = sorted_with_order(np.array([3, 1, 2], np.int64))
        if keys.tolist() != [1, 2, 3]:
            return Found(
                "kernels", "broken", "a compiled kernel gives wrong answers", "remove Numba and install it again"
            )
    except Exception as error:
        return Found("kernels", "broken", f"{type(error).__name__}: {error}", "install Numba again: pip install numba")
    if directory is None:
        return Found(
            "kernels",
            "missing",
            "compiled anew in every process: no directory for them belongs to this user alone",
            "set INTERLACE_KERNEL_CACHE to a directory that only you can write to",
        )
    compiled = sum(1 for entry in directory.iterdir() if entry.is_file())
    text = f"{compiled} compiled in {directory}"
    if not os.access(directory, os.W_OK):
        return Found("kernels", "missing", f"{text}, which is read-only", "kernels that are not there compile anew")
    return Found("kernels", "ok", text if compiled else f"none compiled yet; they will be kept in {directory}")


def temporary_files() -> Found:
    """Whether rows can be spilled to disk, and how many."""
    directory = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=directory):
            free = shutil.disk_usage(directory).free
    except OSError as error:
        return Found(
            "disk", "broken", f"{directory}: {error.strerror}", "set TMPDIR to a directory that you can write to"
        )
    text = f"{_gib(free)} free in {directory}"
    if free < LOW_DISK:
        return Found("disk", "missing", text, "rows that wait are spilled there: make room, or set TMPDIR")
    return Found("disk", "ok", text)


def memory() -> Found:
    """The memory that is free."""
    free = _free_memory()
    if free is None:
        return Found("memory", "ok", "unknown on this system")
    if free < LOW_MEMORY:
        return Found("memory", "missing", f"{_gib(free)} free", "windows live in memory: end other programs")
    return Found("memory", "ok", f"{_gib(free)} free, {os.cpu_count()} processors")


def loopback() -> Found:
    """Whether processes of this machine can reach each other."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        remedy = "clusters and Spark need it: look at the firewall of this machine"
        return Found("network", "missing", f"nothing can listen on 127.0.0.1 ({error})", remedy)
    return Found("network", "ok", "processes reach each other on 127.0.0.1")


def ray() -> Found:
    """Whether Ray can be imported, and whether a cluster runs."""
    try:
        from topology import RayRuntime  # noqa: F401  imports Ray
    except Exception as error:
        remedy = "clusters need it: pip install 'ray>=2.55'"
        return Found("Ray", "missing", f"{type(error).__name__}: {error}", remedy)
    named = os.environ.get("RAY_ADDRESS", "")
    address = cluster_here() if named in ("", "auto", "local") else named
    if address is None:
        return Found("Ray", "ok", f"{version('ray')}; no cluster runs here ('ray start --head' starts one)")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    place = (host, int(port)) if host and port.isdigit() else (address, RAY_PORT)
    try:
        socket.create_connection(place, timeout=2).close()
    except OSError as error:
        remedy = "start it with 'ray start --head', or change RAY_ADDRESS"
        return Found("Ray", "missing", f"{version('ray')}; no cluster answers at {address} ({error})", remedy)
    return Found("Ray", "ok", f"{version('ray')}; a cluster answers at {address}")


def spark() -> Found:
    """Whether Spark and its Java are there."""
    from spark_bridge import SparkUnavailableError, require_java

    try:
        shown = version("pyspark")
    except PackageNotFoundError:
        return Found("Spark", "missing", "PySpark is missing", "feeding from Spark needs it: pip install 'pyspark>=4'")
    try:
        return Found("Spark", "ok", f"{shown}, Java {require_java()}")
    except SparkUnavailableError as error:
        text, _, remedy = str(error).partition(". ")
        return Found("Spark", "missing", f"{shown}, but {text}", remedy or "install Java 17 or newer")


CHECKS: tuple[Callable[[], Found], ...] = (python, packages, kernels, temporary_files, memory, loopback, ray, spark)


def _free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else int(found.split()[1]) * 1024


def cluster_here() -> str | None:
    """The cluster that Ray has noted on this machine."""
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    try:
        return note.read_text().strip() or None
    except OSError:
        return None


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
