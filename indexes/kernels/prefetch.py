"""The prefetch instruction, for kernels that know early which memory they will read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from indexes.kernels.compiled import instruction

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
