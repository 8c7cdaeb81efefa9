"""Memory as kernels reach it beyond their arguments: loaded early, or by its address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from indexes.kernels.compiled import instruction
from indexes.kernels.interpreted import widening

LINE = 8
"""64-bit integers per cache line."""


@instruction
def prefetch(typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """Start loading array[index] into the cache. The index may be out of range: nothing is read."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, kind, view, [args[1]], wraparound=False)
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        prototype = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        begin = cgutils.get_or_insert_function(builder.module, prototype, "llvm.prefetch.p0i8")
        # To read, to be kept in all caches, data.
        builder.call(begin, [builder.bitcast(element, byte), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@prefetch.in_python
def _prefetch(array: object, index: int) -> None:
    pass


@instruction
def array_at(typing_context: Any, address: Any, size: Any, like: Any) -> Any:
    """The array of so many elements at an address, of the type of the array `like`.

    Passing a list of arrays to Numba is not cheap. A caller that has many gives their addresses in one array, and keeps
    the arrays alive meanwhile.
    """
    from numba import types
    from numba.np.arrayobj import populate_array

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.return_type
        element = context.get_data_type(kind.dtype)
        width = context.get_constant(types.intp, context.get_abi_sizeof(element))
        array = context.make_array(kind)(context, builder)
        data = builder.inttoptr(arguments[0], element.as_pointer())
        populate_array(array, data=data, shape=[arguments[1]], strides=[width], itemsize=width, meminfo=None)
        return array._getvalue()

    return types.Array(like.dtype, 1, "C")(types.intp, types.intp, like), generate


@array_at.in_python
def _array_at(address: int, size: int, like: np.ndarray) -> np.ndarray:
    memory = (ctypes.c_byte * (int(size) * like.itemsize)).from_address(int(address))
    return widening(np.frombuffer(memoryview(memory), like.dtype))
