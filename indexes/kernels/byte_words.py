"""Byte strings as words of eight bytes: their order, and a 64-bit key that keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import instruction, kernel


def leading_words(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The first eight bytes of each string ``data[offsets[i] : offsets[i + 1]]`` as an int64 that keeps their order.

    The number never falls as the string rises, so an index over these numbers finds every match, and strings that
    share a number are settled by `order_of_bytes`.

        value      "apple"           "apples and pears"  "apples"          "pear"
        in hex     6170706c65000000  6170706c65732061    6170706c65730000  7065617200000000, minus 2^63

    Cost: O(strings).
    """
    words = np.empty(len(offsets) - 1, np.int64)
    _leading_words(frozen(data, np.uint8), frozen(offsets, np.int64), words)
    return words


@kernel
def _leading_words(data: np.ndarray, offsets: np.ndarray, words: np.ndarray) -> None:
    for row in range(words.size):
        number = np.uint64(0)
        begin = offsets[row]
        length = offsets[row + 1] - begin
        for i in range(8):
            byte = np.uint64(data[begin + i]) if i < length else np.uint64(0)
            number = (number << np.uint64(8)) | byte
        words[row] = np.int64(number ^ (np.uint64(1) << np.uint64(63)))


@instruction
def load_word(typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """The bytes array[index : index + 8], which must exist, as a number with the first byte highest."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, kind, view, [args[1]], wraparound=False)
        word = ir.IntType(64)
        loaded = builder.load(builder.bitcast(element, word.as_pointer()))
        loaded.align = 1
        return builder.bswap(loaded)  # memory is little-endian wherever Arrow's wheels run

    return types.uint64(array, types.intp), generate


@load_word.in_python
def _load_word(array: np.ndarray, index: int) -> np.uint64:
    return np.uint64(int.from_bytes(array[index : index + 8].tobytes(), "big"))


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
        # The last eight bytes overlap words that are equal, so comparing them compares the rest.
        x, y = load_word(a, a_begin + common - 8), load_word(b, b_begin + common - 8)
        if x != y:
            return -1 if x < y else 1
    else:
        while byte < common:
            if a[a_begin + byte] != b[b_begin + byte]:
                return -1 if a[a_begin + byte] < b[b_begin + byte] else 1
            byte += 1
    return 0 if a_size == b_size else (-1 if a_size < b_size else 1)
