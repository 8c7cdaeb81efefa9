"""Kernels: functions that Numba compiles, without the GIL, and the machine instructions that they use.

Numba takes a third of a second and 60 MB to import. So the decorators only note the function: Numba is imported, and
the kernel loaded from disk or compiled, with the first call from Python (`dispatch`). A process whose tasks call no
kernel never imports it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, update_wrapper
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from indexes.kernels.interpreted import python_form

_CONSTANTS = (bool, int, float, str, bytes, np.generic)
_making = threading.RLock()
"""Held while a kernel or an instruction is made known to Numba, which happens once."""


def prepare_kernels() -> None:
    """Import Numba now, so that the first call of a kernel need not. Cost: O(1) after the first time."""
    import indexes.kernels.dispatch  # noqa: F401


class Kernel:
    """A function that is compiled for the types of its arguments; other kernels may call it, too.

    Numba asks an unknown object in compiled code for `_numba_type_`, and so finds the kernels that a kernel calls.

    may_interpret: whether Python may run the function until it is compiled.
    """

    def __init__(self, function: Callable[..., Any], *, may_interpret: bool = True) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._may_interpret = may_interpret
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's form of the kernel. Cost: O(1) after the first time."""
        with _making:
            if self._dispatcher is None:
                from indexes.kernels.dispatch import make_dispatcher

                self._dispatcher = make_dispatcher(self.py_func, source_stamp(self.py_func), self.python)
            return self._dispatcher

    @cached_property
    def python(self) -> Callable[..., Any] | None:
        """The function as Python runs it, called by other kernels in this form; None if Python must not."""
        return python_form(self.py_func, _form) if self._may_interpret else None

    @property
    def _numba_type_(self) -> Any:
        from numba import typeof

        return typeof(self.dispatcher)


class Instruction:
    """A function that generates LLVM code, as one of Numba's intrinsics, for kernels that call it.

    python: the same as a function of Python; None: kernels that use it are never interpreted.
    """

    def __init__(self, generator: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = generator.__name__, generator.__doc__
        self.py_func = generator
        self.python: Callable[..., Any] | None = None
        self._type: Any = None

    def in_python(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Use `function` in interpreted kernels; a decorator."""
        self.python = function
        return function

    @property
    def _numba_type_(self) -> Any:
        with _making:
            if self._type is None:
                from numba.core import types
                from numba.core.typing.templates import make_intrinsic_template

                template = make_intrinsic_template(self, self.py_func, self.py_func.__name__)
                self._type = types.Function(template)
            return self._type


def _form(value: Any) -> Any:
    return value.python if isinstance(value, Kernel | Instruction) else value


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with its first calls; later processes on this machine load the machine code from disk.

    Until then Python runs it. So its cost must not exceed the number of elements of its arguments by much.
    """
    return Kernel(function)


def compiled_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, for functions that compare all pairs of rows: the first call waits until it is compiled."""
    return Kernel(function, may_interpret=False)


def instruction(generator: Callable[..., Any]) -> Any:
    """Use `generator`, written as for Numba's `intrinsic`, in kernels. It imports what it needs of Numba itself."""
    return Instruction(generator)


_stamps: dict[str, str] = {}
"""The stamp of each file whose kernels have been used."""


def source_stamp(function: Callable[..., Any]) -> str:
    """A digest of the function's file, of the constants it imports, and of the files of the kernels it imports.

    Machine code contains the kernels that a kernel calls and the constants that it reads, which may live in other
    files: after a fix in the bit array, its callers must be compiled anew. No path and no time is part of the digest,
    so all copies of the same sources share their machine code.

    Cost: O(bytes of those files), once per file and process.
    """
    filename = function.__code__.co_filename
    if filename not in _stamps:
        digest = blake2b(Path(filename).read_bytes(), digest_size=16)
        for name, stamp in sorted(_imported(filename, function.__globals__)):
            digest.update(f"\n{name} {stamp}".encode())
        _stamps[filename] = digest.hexdigest()
    return _stamps[filename]


def _imported(filename: str, names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and stamp of every constant and of every kernel or instruction of another file among `names`."""
    for name, value in list(names.items()):
        if isinstance(value, Kernel | Instruction):
            if value.py_func.__code__.co_filename != filename:
                yield name, source_stamp(value.py_func)
        elif isinstance(value, _CONSTANTS) and not name.startswith("__"):
            yield name, repr(value)
