"""How a call from Python finds the form of a kernel that answers it.

A kernel is compiled for the types of its arguments. Numba finds machine code that is in memory by itself; `_Choice` is
asked when there is none. Machine code on disk is loaded. Otherwise the kernel is compiled in the background, and its
Python form answers meanwhile: much slower, but a first batch of rows takes it less time than compiling
does. Only where that is not so, the caller waits: many rows, or a kernel that has been interpreted for long enough.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numpy as np
from numba import __version__ as numba_version
from numba import njit
from numba.core import compiler
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys

from indexes.kernels.background import COMPILER
from indexes.kernels.cache_directory import cache_directory
from indexes.kernels.interpreted import called_from_python
from indexes.kernels.machine_code import MachineCode

VARIABLE = "INTERLACE_KERNELS"
"""The environment variable that forbids one of the two forms: "compiled" always waits, "interpreted"
compiles only kernels that Python must not run."""

FORMS = ("", "compiled", "interpreted")

MOST_ELEMENTS = 1 << 18
"""Arguments with more elements are not interpreted: at up to 10 us for each, compiling takes less time."""

PATIENCE_SECONDS = 2.0
"""A kernel is interpreted for so much processor time, over all calls: about what the largest takes to compile."""

_VERSIONS = (platform.python_version(), platform.python_implementation(), numba_version, llvmlite.__version__)

log = logging.getLogger("interlace")


class _Entries(NullCache):
    """The machine code of one kernel on disk, in the form that Numba asks for."""

    def __init__(self, store: MachineCode, function: Callable[..., Any], stamp: str) -> None:
        code = function.__code__
        self._store = store
        self._kernel = (function.__module__, code.co_qualname, code.co_firstlineno, stamp)

    def name(self, types: Any, context: Any) -> str:
        """The name of the entry for some types."""
        parts = (*self._kernel, str(types), context.codegen().magic_tuple(), _VERSIONS)
        return blake2b(repr(parts).encode(), digest_size=20).hexdigest()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for some types, or None.

        Numba's own cache lets the compiler learn all functions that it knows first, which takes 0.2 s. Machine code
        needs only the memory manager; the compiler learns the rest with the first kernel that is compiled here.
        """
        rtsys.initialize(target_context)
        entry = self._store.load(self.name(sig, target_context))
        return None if entry is None else compiler.CompileResult._rebuild(target_context, *entry)

    def save_overload(self, sig: Any, data: Any) -> None:
        self._store.save(self.name(sig, data.target_context), data._reduce())


class _Choice:
    """Chooses the form of one kernel that answers a call for whose types no machine code is in memory.

    python: the kernel's Python form; None if it must not be interpreted.
    """

    def __init__(
        self, dispatcher: Any, store: MachineCode, entries: _Entries, python: Callable[..., Any] | None
    ) -> None:
        self._dispatcher = dispatcher
        self._store = store
        self._entries = entries
        self._python = None if python is None else called_from_python(python)
        self._spent: dict[Any, float] = {}
        self._compile_now = dispatcher.compile
        self._compiled_for = dispatcher._compile_for_args
        dispatcher.compile = self.compile
        dispatcher._compile_for_args = self.form_for

    def compile(self, types: Any) -> Any:
        """Compile the kernel for some types, or load it; Numba's own `compile`, by one process at a time."""
        with global_compiler_lock, self._store.compiling(self._name(types)):
            return self._compile_now(types)

    def form_for(self, *arguments: Any) -> Any:
        """Return what Numba is to call with these arguments."""
        types = tuple(map(self._dispatcher.typeof_pyval, arguments))
        if self._waits(types, arguments):
            return self._compiled_for(*arguments)
        if form() != "interpreted":
            COMPILER.request((self, types), partial(self._compile_behind, types))
        return partial(self._interpret, types)

    def _waits(self, types: Any, arguments: tuple[Any, ...]) -> bool:
        """Whether to load or compile the kernel now."""
        if self._python is None or form() == "compiled" or COMPILER.failed((self, types)):
            return True
        if form() == "interpreted":
            return False
        if self._store.has(self._name(types)):
            return not COMPILER.busy  # else loading would wait for what is being compiled
        if _elements(arguments) <= MOST_ELEMENTS and self._spent.get(types, 0.0) < PATIENCE_SECONDS:
            return False
        _say_that_it_takes_time()
        return True

    def _interpret(self, types: Any, *arguments: Any) -> Any:
        assert self._python is not None
        begin = time.thread_time()
        result = self._python(*arguments)
        self._spent[types] = self._spent.get(types, 0.0) + time.thread_time() - begin
        return result

    def _compile_behind(self, types: Any) -> bool:
        """Compile in the background, unless another process is at it."""
        with global_compiler_lock, self._store.compiling(self._name(types), wait=False) as ours:
            if ours:
                self._compile_now(types)
            return ours

    def _name(self, types: Any) -> str:
        return self._entries.name(types, self._dispatcher.targetctx)


@cache
def form() -> str:
    """The form that the environment asks for; empty: both."""
    asked = os.environ.get(VARIABLE, "")
    if asked not in FORMS:
        raise ValueError(f'{VARIABLE}={asked}: set it to "compiled" or "interpreted", or unset it')
    return asked


@cache
def _say_that_it_takes_time() -> None:
    log.warning("compiling kernels, which takes some seconds, once per machine")


def _elements(values: Iterable[Any]) -> int:
    """The elements of all arrays among the arguments of a kernel."""
    count = 0
    for value in values:
        if isinstance(value, np.ndarray):
            count += value.size
        elif isinstance(value, tuple):
            count += _elements(value)
    return count


def make_dispatcher(function: Callable[..., Any], stamp: str, python: Callable[..., Any] | None) -> Any:
    """Numba's form of a kernel, with the choice among forms.

    stamp:  a digest of the sources that the machine code depends on.
    python: the kernel's Python form; None if it must not be interpreted.

    Numba has no public hooks for this; tests watch the private ones used here.
    """
    store = _store_of_this_process()
    dispatcher = njit(nogil=True)(function)
    dispatcher._cache = entries = _Entries(store, function, stamp)
    _Choice(dispatcher, store, entries, python)
    return dispatcher


@cache
def _store_of_this_process() -> MachineCode:
    # Where there is no directory, nothing is found and nothing kept.
    return MachineCode(cache_directory() or Path(os.devnull))
