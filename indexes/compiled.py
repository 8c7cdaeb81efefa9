"""How kernels are compiled: without the GIL, and kept on disk until a source of this package changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba import njit


@cache
def package_stamp(folder: Path) -> str:
    """A digest of all sources in `folder`. Cost: O(their bytes), once."""
    digest = blake2b(digest_size=16)
    for source in sorted(folder.glob("*.py")):
        content = source.read_bytes()
        digest.update(f"{source.name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use; later processes load what was compiled.

    Numba keeps machine code for as long as the file that holds the function is unchanged, but a
    kernel contains the kernels it calls, and those may live in other files: a mended bit array would
    go on being scanned by the broken code. So what is kept is marked with the sources of the whole
    package. Numba has no public place for such a mark; a test watches over this one.
    """
    dispatcher = njit(nogil=True, cache=True)(function)
    kept = dispatcher._cache._cache_file
    stamp = package_stamp(Path(function.__code__.co_filename).parent)
    kept._source_stamp = (kept._source_stamp, stamp)
    return dispatcher
