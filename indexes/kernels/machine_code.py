"""Machine code on disk: a kernel is compiled once per machine and user, and shared by all processes.

Numba's own cache lies beside the source, and its entries hold the path and the time of the source file. A cluster
unpacks the code anew for every job, so each would compile everything again. Here the name of a file is a digest of all
that its machine code depends on: the sources, the types, the versions of Python, Numba and LLVM, and the processor.
So an entry never changes, any copy of the same sources finds it, and old ones are simply not asked for any more.

A process that misses an entry locks it while it compiles. Others that need the same one wait for it and then load it.
"""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

from numba.core import serialize

MOST_BYTES = 256 << 20
"""When the directory holds more, entries that were not used for longest are removed until half of it is free."""

_CHECK_BYTES = 32


class MachineCode:
    """A directory of compiled kernels; any number of processes use it at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._locks: int | None = None

    def has(self, name: str) -> bool:
        """Whether there is an entry of that name. Cost: O(1)."""
        return (self.directory / name).exists()

    def load(self, name: str) -> Any:
        """The entry of that name, or None if there is none or it is damaged. Cost: O(bytes)."""
        path = self.directory / name
        try:
            content = path.read_bytes()
        except OSError:
            return None
        check, data = content[:_CHECK_BYTES], content[_CHECK_BYTES:]
        if blake2b(data, digest_size=_CHECK_BYTES).digest() != check:
            return None
        with suppress(OSError):
            os.utime(path)  # it is in use; see `_remove_oldest`
        return pickle.loads(data)  # noqa: S301  only this user can write here

    def save(self, name: str, entry: Any) -> None:
        """Add an entry, whole or not at all; a disk that is full or read-only only costs the next process time."""
        data = serialize.dumps(entry)
        unfinished = self.directory / f"{name}.{uuid4().hex}"
        try:
            unfinished.write_bytes(blake2b(data, digest_size=_CHECK_BYTES).digest() + data)
            unfinished.replace(self.directory / name)
            self._remove_oldest()
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    @contextmanager
    def compiling(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        """Let one process at a time compile an entry; whoever has waited finds it on disk.

        Yields whether it is this one, which it always is after waiting.

        An entry is one byte of a file; the system unlocks it if the process dies. The caller holds Numba's own lock, so
        it is the only thread of its process here. A kernel locks those that it calls, never its callers, so no two
        processes wait for each other. The file stays open: closing it would unlock all bytes.
        """
        place = int.from_bytes(blake2b(name.encode(), digest_size=7).digest())
        try:
            if self._locks is None:
                self._locks = os.open(self.directory / "locks", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.lockf(self._locks, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a read-only directory, or a file system without locks: the work may be done twice
            yield True
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, place)

    def _remove_oldest(self) -> None:
        entries = [(file.stat(), file) for file in self.directory.iterdir() if file.name != "locks"]
        size = sum(status.st_size for status, _ in entries)
        if size <= MOST_BYTES:
            return
        for status, file in sorted(entries, key=lambda entry: entry[0].st_mtime):
            file.unlink(missing_ok=True)
            size -= status.st_size
            if size <= MOST_BYTES // 2:
                return
