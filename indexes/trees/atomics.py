"""Atomic operations on elements of int64 arrays, and a spin lock built from them, for kernels.

Kernels run without the GIL, so two threads may use the same arrays at once. Numba cannot express memory order
between CPU threads; LLVM can, and these intrinsics expose it. A `load` sees everything written before the `store`
that it reads from; the holder of a lock sees everything that earlier holders wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from indexes.kernels.compiled import instruction, kernel

SPINS = 64
"""Reads of a taken lock before the thread yields its core: the lock's holder may be waiting for one."""


def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    from numba.core import cgutils

    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, kind, array, [args[1]], wraparound=False)


def _signature(array: Any, *values: Any) -> Any:
    from numba import types

    if not (isinstance(array, types.Array) and array.ndim == 1 and array.dtype == types.int64):
        raise TypeError(f"atomics work on int64 arrays of one axis, not {array}")
    return types.int64(array, types.intp, *(types.int64 for _ in values))


@instruction
def exchange(typing: Any, array: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """Put `value` at array[index] and return the old value; no later access moves before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("xchg", _element(context, builder, signature, args), args[2], "acquire")

    return _signature(array, value), generate


@instruction
def fetch_add(typing: Any, array: Any, index: Any, amount: Any) -> tuple[Any, Callable[..., Any]]:
    """Add to array[index] and return the old value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _element(context, builder, signature, args), args[2], "acq_rel")

    return _signature(array, amount), generate


@instruction
def load(typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of array[index]; no later read moves before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, args), "acquire", 8)

    return _signature(array), generate


@instruction
def store(typing: Any, array: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """Put `value` at array[index]; no earlier access moves after it. Returns the value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _element(context, builder, signature, args), "release", 8)
        return args[2]

    return _signature(array, value), generate


@instruction
def yield_core(typing: Any) -> tuple[Any, Callable[..., Any]]:
    """Let another thread run on this core."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        prototype = ir.FunctionType(ir.IntType(32), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, prototype, "sched_yield"), [])

    return types.int32(), generate


@kernel
def acquire(locks: np.ndarray, index: int) -> None:
    """Wait until locks[index] is free (0) and take it."""
    looks = 0
    while exchange(locks, index, 1) != 0:
        while load(locks, index) != 0:
            looks += 1
            if looks >= SPINS:
                looks = 0
                yield_core()


@kernel
def release(locks: np.ndarray, index: int) -> None:
    """Free a lock that this thread holds."""
    store(locks, index, 0)
