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
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite  # type: ignore[import-untyped]
from numba import __version__ as numba_version
from numba import njit
from numba.core import compiler, serialize
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock

from indexes.kernels.cache_directory import cache_directory

MOST_BYTES = 256 << 20
"""When the directory holds more, entries that were not used for longest are removed until half of it is free."""

_CHECK_BYTES = 32
_VERSIONS = (platform.python_version(), platform.python_implementation(), numba_version, llvmlite.__version__)


class MachineCode:
    """A directory of compiled kernels; any number of processes use it at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._locks: int | None = None

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
    def compiling(self, name: str) -> Iterator[None]:
        """Let one process at a time compile an entry; whoever has waited finds it on disk.

        An entry is one byte of a file; the system unlocks it if the process dies. The caller holds Numba's own lock, so
        it is the only thread of its process here. A kernel locks those that it calls, never its callers, so no two
        processes wait for each other. The file stays open: closing it would unlock all bytes.
        """
        place = int.from_bytes(blake2b(name.encode(), digest_size=7).digest())
        try:
            if self._locks is None:
                self._locks = os.open(self.directory / "locks", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, place)
        except OSError:  # a read-only directory, or a file system without locks: the work may be done twice
            yield
            return
        try:
            yield
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


class _KernelCache(NullCache):
    """The entries of one kernel, in the form that a dispatcher asks for."""

    def __init__(self, store: MachineCode, function: Callable[..., Any], stamp: str) -> None:
        code = function.__code__
        self._store = store
        self._kernel = (function.__module__, code.co_qualname, code.co_firstlineno, stamp)

    def name(self, signature: Any, context: Any) -> str:
        """The name of the entry of a signature."""
        parts = (*self._kernel, str(signature), context.codegen().magic_tuple(), _VERSIONS)
        return blake2b(repr(parts).encode(), digest_size=20).hexdigest()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        entry = self._store.load(self.name(sig, target_context))
        return None if entry is None else compiler.CompileResult._rebuild(target_context, *entry)

    def save_overload(self, sig: Any, data: Any) -> None:
        self._store.save(self.name(sig, data.target_context), data._reduce())


_stores: dict[Path, MachineCode] = {}
_opening = threading.Lock()


def cached_dispatcher(function: Callable[..., Any], stamp: str) -> Any:
    """Numba's dispatcher of a kernel, which loads from and saves to disk.

    stamp: a digest of the sources that the machine code depends on.

    Numba has no public hook for a cache of one's own; tests watch the private ones used here.
    """
    dispatcher = njit(nogil=True)(function)
    directory = cache_directory()
    if directory is None:
        return dispatcher
    with _opening:
        store = _stores.setdefault(directory, MachineCode(directory))
    dispatcher._cache = cache = _KernelCache(store, function, stamp)
    compile_one = dispatcher.compile

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock, store.compiling(cache.name(signature, dispatcher.targetctx)):
            return compile_one(signature)

    dispatcher.compile = compile_once
    return dispatcher
