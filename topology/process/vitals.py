"""How much memory and disk a process uses, and how much is left to it."""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

from topology.handle.status import Vitals

_GROUP = Path("/sys/fs/cgroup")


def read_vitals(spill_directory: str | None = None) -> Vitals:
    """Look at this process and its machine; what cannot be found out is 0."""
    return Vitals(_own_memory(), _free_memory(), _free_disk(spill_directory or tempfile.gettempdir()))


def _own_memory() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most so far, in KiB or, on macOS, in bytes
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _free_memory() -> int:
    """What the machine has, or what the limit of the container leaves, if that is less."""
    free = 0
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
        limit = (_GROUP / "memory.max").read_text().strip()
        if limit != "max":
            free = min(free, max(0, int(limit) - int((_GROUP / "memory.current").read_text())))
    except (OSError, KeyError, ValueError):
        pass
    return free


def _free_disk(directory: str) -> int:
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return 0
