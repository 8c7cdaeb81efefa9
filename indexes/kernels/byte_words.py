"""Eight bytes at a time: comparing byte strings by words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from indexes.kernels.compiled import kernel


@intrinsic
def load_word(typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """The bytes array[index : index + 8], all of which exist, as a number with the first byte highest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, kind, view, [args[1]], wraparound=False)
        word = ir.IntType(64)
        loaded = builder.load(builder.bitcast(element, word.as_pointer()))
        loaded.align = 1
        return builder.bswap(loaded)  # memory is little-endian wherever Arrow's wheels run

    return types.uint64(array, types.intp), generate


@kernel
def order_of_bytes(a: np.ndarray, a_begin: int, a_size: int, b: np.ndarray, b_begin: int, b_size: int) -> int:
    """-1, 0 or 1 as the first byte string is less than, equal to or greater than the second.

    "interlace" and "interval", by words of eight:    "interlac" < "interval"    so -1
    "interlaces" and "interlaced": "interlac" = "interlac", then the last eight, "terlaces" > "terlaced"    so 1
    """
    common = min(a_size, b_size)
    byte = 0
    while byte + 8 <= common:
        x, y = load_word(a, a_begin + byte), load_word(b, b_begin + byte)
        if x != y:
            return -1 if x < y else 1
        byte += 8
    if byte < common and common >= 8:
        # What the last eight bytes share with the words before is equal, so they decide as the rest does.
        x, y = load_word(a, a_begin + common - 8), load_word(b, b_begin + common - 8)
        if x != y:
            return -1 if x < y else 1
    else:
        while byte < common:
            if a[a_begin + byte] != b[b_begin + byte]:
                return -1 if a[a_begin + byte] < b[b_begin + byte] else 1
            byte += 1
    return 0 if a_size == b_size else (-1 if a_size < b_size else 1)
