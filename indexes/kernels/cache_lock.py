"""One process at a time reads or writes the cached machine code of a directory."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path
from typing import Any


def locked(cache_path: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Let `method` of a Numba cache run only while its directory is locked.

    Numba numbers the files of a kernel's signatures and writes the index before the machine code. If two processes
    compile two signatures at once, both may take the same number, and the index then names the other's code. A reader
    between the two writes finds the old code of a file that has changed. Cost: one `flock` per signature and process.
    """

    def alone(*arguments: Any) -> Any:
        try:
            lock = (Path(cache_path) / "kernels.lock").open("a")
        except FileNotFoundError:  # nothing is cached yet; Numba creates the directory before it saves
            return method(*arguments)
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # closing the file unlocks it
            return method(*arguments)

    return alone
