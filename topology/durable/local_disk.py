"""A directory of the operating system. `pyarrow.fs` cannot sync, so this uses the calls of `os`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa

from topology.durable.disk import Piece

_PIECES_AT_ONCE = 512
"""The operating system takes so many pieces in one call, at least; POSIX promises 16, Linux and macOS take 1,024."""

_OPEN_FILES = 4


class LocalDisk:
    """Keeps the files open that were written last. Not thread-safe for one file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: dict[str, int] = {}

    def create(self, name: str) -> None:
        os.close(os.open(self.directory / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def write(self, name: str, at: int, pieces: Sequence[Piece]) -> None:
        file = self._file(name)
        waiting = iter(pieces)
        while some := list(islice(waiting, _PIECES_AT_ONCE)):
            size = sum(map(len, some))
            written = os.pwritev(file, some, at)
            while written < size:  # a signal, a nearly full disk, or more than the system takes at once
                rest = memoryview(b"".join(some))[written:]
                written += os.pwrite(file, rest, at + written)
            at += size

    def sync(self, name: str) -> None:
        os.fsync(self._file(name))

    def sync_directory(self) -> None:
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def names(self) -> list[str]:
        return os.listdir(self.directory)

    def read(self, name: str) -> pa.Buffer:
        # Not a memory map: a disk that fails would end the process instead of raising an error.
        with pa.OSFile(os.fspath(self.directory / name)) as file:
            return file.read_buffer()

    def size(self, name: str) -> int:
        return (self.directory / name).stat().st_size

    def delete(self, name: str) -> None:
        file = self._open.pop(name, None)
        if file is not None:
            os.close(file)
        (self.directory / name).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        found = os.statvfs(self.directory)
        return found.f_bavail * found.f_frsize

    def close(self) -> None:
        for file in self._open.values():
            os.close(file)
        self._open.clear()

    def _file(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(self.directory / name, os.O_RDWR | os.O_CLOEXEC)
            if len(self._open) > _OPEN_FILES:
                os.close(self._open.pop(next(iter(self._open))))
        return self._open[name]
