"""Kernels run by Python itself, with the results of their compiled form, until that exists.

A kernel's function runs with globals of its own, in which the kernels and instructions that it calls are in Python
form, too. Its scalars are NumPy's, which wrap around as compiled ones do. Where the two still differ, it is put right:

- Numba computes with signed integers of fewer than 64 bits as with int64. So arrays of them are read as `_Widening`.
- Python's own integers take the type of the other operand. So arguments and the variables of `range` get a type.
- Compiled kernels return Python's scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np

_NEW_ARRAYS = {"empty", "zeros", "ones", "full", "arange", "empty_like", "zeros_like", "full_like"}


class _Widening(np.ndarray[Any, Any]):
    """An array of narrow signed integers whose elements are read as int64."""

    def __getitem__(self, key: Any) -> Any:
        return _widened(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))


class _NumPy:
    """NumPy, except that new arrays are `_Widening` where need be."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        return (lambda *arguments: widening(found(*arguments))) if name in _NEW_ARRAYS else found


_NUMPY = _NumPy()


def widening(array: np.ndarray) -> np.ndarray:
    """The array as interpreted kernels use it. Cost: O(1)."""
    return array.view(_Widening) if array.dtype.kind == "i" and array.dtype.itemsize < 8 else array


def _widened(value: Any) -> Any:
    return np.int64(value) if isinstance(value, np.signedinteger) else value


def _typed_range(*bounds: Any) -> Iterator[Any]:
    unsigned = all(isinstance(bound, np.unsignedinteger) for bound in bounds)
    return map(np.uint64 if unsigned else np.int64, range(*map(int, bounds)))


def _taken(value: Any) -> Any:
    """An argument from Python code as a kernel takes it."""
    if isinstance(value, np.ndarray):
        return widening(value)
    if isinstance(value, tuple):
        parts = map(_taken, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is int:
        return np.int64(value)
    return np.float64(value) if type(value) is float else _widened(value)


def _returned(value: Any) -> Any:
    """A result as compiled kernels return it."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        return tuple(map(_returned, value))
    return value.item() if isinstance(value, np.generic) else value


def called_from_python(inner: Callable[..., Any]) -> Callable[..., Any]:
    """The Python form of a kernel for arguments and results of Python code."""

    def call(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return _returned(inner(*map(_taken, arguments)))

    return call


def python_form(function: Callable[..., Any], form_of: Callable[[Any], Any]) -> Callable[..., Any] | None:
    """The function with all that it uses in Python form; None if something that it uses has none.

    form_of: gives the Python form of a kernel or instruction, None if it has none, and any other value itself.
    """
    assert isinstance(function, FunctionType)
    names: dict[str, Any] = {"range": _typed_range, "__builtins__": function.__globals__["__builtins__"]}
    for name in _names(function.__code__) & function.__globals__.keys():
        value = function.__globals__[name]
        names[name] = _NUMPY if value is np else form_of(value)
        if names[name] is None and value is not None:
            return None
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


def _names(code: CodeType) -> set[str]:
    """All names that some code looks up, with those of the functions inside it."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))
