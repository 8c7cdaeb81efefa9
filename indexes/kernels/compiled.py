"""Compile kernels: without the GIL, cached on disk until a source file they depend on changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from indexes.kernels.cache_lock import locked

_CONSTANTS = (bool, int, float, str, bytes, np.generic)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use; later processes load the cached machine code.

    Numba reuses machine code while the function's own file is unchanged. But a kernel also contains the kernels it
    calls and the constants it reads, which may live in other files: after a fix in the bit array, its callers would
    still run the old code. So `source_stamp` becomes part of the cache entry's key. Numba has no public hook for
    this; a test watches the private one used here.
    """
    dispatcher = njit(nogil=True, cache=True)(function)
    entry = dispatcher._cache._cache_file
    entry._source_stamp = (entry._source_stamp, source_stamp(function))
    entry.save, entry.load = locked(entry._cache_path, entry.save), locked(entry._cache_path, entry.load)
    return dispatcher


_stamps: dict[str, str] = {}
"""The stamp of each file that has defined a kernel."""


def source_stamp(function: Callable[..., Any]) -> str:
    """A digest of the function's file, of the constants it imports, and of the files of the kernels it imports.

    Imports stand at the top of a file, so they exist when its first kernel is decorated. Cost: O(bytes of those
    files), once per file and process.
    """
    filename = function.__code__.co_filename
    if filename not in _stamps:
        digest = blake2b(Path(filename).read_bytes(), digest_size=16)
        for name, stamp in sorted(_imported(filename, function.__globals__)):
            digest.update(f"\n{name} {stamp}".encode())
        _stamps[filename] = digest.hexdigest()
    return _stamps[filename]


def _imported(filename: str, names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and stamp of every constant and of every kernel or intrinsic of another file among `names`."""
    for name, value in list(names.items()):
        source = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        if source is not None and source.__code__.co_filename != filename:
            yield name, source_stamp(source)
        elif isinstance(value, _CONSTANTS) and not name.startswith("__"):
            yield name, repr(value)
