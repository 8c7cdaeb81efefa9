"""How kernels are compiled: without the GIL, and kept on disk until a source they depend on changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba import njit

IMPORT = re.compile(r"^(?:from|import) ([\w.]+)", re.MULTILINE)
"""Imports at the top level, where kernels get the kernels that they call. Parsing whole files would take longer."""


@cache
def source_stamp(source: Path) -> str:
    """A digest of a source and of all it imports from its own and neighbouring packages. Cost: O(their bytes), once."""
    digest = blake2b(digest_size=16)
    for file in sorted(_with_imports(source)):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def _with_imports(source: Path) -> set[Path]:
    """The source, what it imports from files beside its package, and what those import."""
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imports(file)
    return found


@cache
def _imports(source: Path) -> tuple[Path, ...]:
    root = source.parents[1]
    while (root / "__init__.py").exists():  # a package within a package
        root = root.parent
    modules = set(IMPORT.findall(source.read_text()))
    places = [root.joinpath(*module.split(".")) for module in modules]
    files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return tuple(file for file in files if file.exists())


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use; later processes load what was compiled.

    Numba keeps machine code for as long as the file that holds the function is unchanged, but a
    kernel contains the kernels it calls, and those may live in other files: a mended bit array would
    go on being scanned by the broken code. So what is kept is marked with the sources of all files
    that the function's file imports. Numba has no public place for such a mark; a test watches over
    this one.
    """
    dispatcher = njit(nogil=True, cache=True)(function)
    kept = dispatcher._cache._cache_file
    kept._source_stamp = (kept._source_stamp, source_stamp(Path(function.__code__.co_filename)))
    return dispatcher
