"""A bit array of three levels, so that a scan skips empty words.

Level 0 holds the bits. Each bit of level 1 says whether a word of level 0 has any bit set, each bit of level 2
whether a word of level 1 has any. All three levels lie in one array of 64-bit words, level 0 first, so an empty
array takes one allocation and is passed as one argument. 100,000 bits need 1,563 words, 25 above them and 1 above
those: finding the next set bit reads at most five words.

    bits 3, 70, 9000   level 0: word 0 = {3}, word 1 = {6}, word 140 = {40}
                       level 1: word 0 = {0, 1}, word 2 = {12}       (140 = 2 * 64 + 12)
                       level 2: word 0 = {0, 2}
    scan of [4, 9001)  word 0 holds nothing from bit 4 on; level 1 names word 1: 70; level 1's word 0
                       holds nothing beyond, level 2 names its word 2, which names word 140: 9000.

SPO-Join (section 3.4) scans a plain bit array. Indices are unsigned, because for signed ones Numba adds a
test for Python's negative indices to every access.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from indexes.kernels.compiled import instruction, kernel

SLACK = 64
ONE = np.uint64(1)
ZERO = np.uint64(0)
SIX = np.uint64(6)
TWELVE = np.uint64(12)
LAST = np.uint64(63)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@instruction
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a word, 64 for zero: one machine instruction."""
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.uint64(types.uint64), generate


@trailing_zeros.in_python
def _trailing_zeros(word: np.uint64) -> np.uint64:
    bits = int(word)
    return np.uint64((bits & -bits).bit_length() - 1 if bits else 64)


@instruction
def count_bits(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a word: one machine instruction."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@count_bits.in_python
def _count_bits(word: np.uint64) -> np.uint64:
    return np.uint64(int(word).bit_count())


@kernel
def level_starts(bits: int) -> tuple[np.uint64, np.uint64]:
    """Where levels 1 and 2 begin."""
    words = (bits + 63) >> 6
    return np.uint64(words), np.uint64(words + ((words + 63) >> 6))


def empty_bit_array(bits: int) -> np.ndarray:
    """Cost: O(bits / 64)."""
    words = (bits + 63) >> 6
    uppers = (words + 63) >> 6
    return np.zeros(words + uppers + ((uppers + 63) >> 6), np.uint64)


@kernel
def set_bit(words: np.ndarray, level1: np.uint64, level2: np.uint64, bit: np.uint64) -> None:
    """Cost: O(1); the upper levels are touched only when a word stops being empty."""
    word = bit >> SIX
    before = words[word]
    words[word] = before | (ONE << (bit & LAST))
    if before == ZERO:
        upper = level1 + (word >> SIX)
        before = words[upper]
        words[upper] = before | (ONE << (word & LAST))
        if before == ZERO:
            words[level2 + (word >> TWELVE)] |= ONE << ((word >> SIX) & LAST)


@kernel
def clear_bit(words: np.ndarray, level1: np.uint64, level2: np.uint64, bit: np.uint64) -> None:
    """Cost: O(1); the upper levels are touched only when a word becomes empty. The bit must be set."""
    word = bit >> SIX
    after = words[word] & ~(ONE << (bit & LAST))
    words[word] = after
    if after == ZERO:
        upper = level1 + (word >> SIX)
        after = words[upper] & ~(ONE << (word & LAST))
        words[upper] = after
        if after == ZERO:
            words[level2 + (word >> TWELVE)] &= ~(ONE << ((word >> SIX) & LAST))


@kernel
def next_word(words: np.ndarray, level1: np.uint64, level2: np.uint64, word: np.uint64) -> np.uint64:
    """The first word of level 0 at or after `word` that is not empty, or ALL if there is none."""
    if word >= level1:
        return ALL
    upper = word >> SIX
    found = words[level1 + upper] & (ALL << (word & LAST))
    if found == ZERO:
        upper += ONE
        if level1 + upper >= level2:
            return ALL
        top = level2 + (upper >> SIX)
        found = words[top] & (ALL << (upper & LAST))
        while found == ZERO:
            top += ONE
            if top >= np.uint64(words.size):
                return ALL
            found = words[top]
        upper = ((top - level2) << SIX) + trailing_zeros(found)
        found = words[level1 + upper]
    return (upper << SIX) + trailing_zeros(found)


@kernel
def unpack_word(bits: np.uint64, start: np.uint64, found: np.ndarray, count: np.uint64) -> np.uint64:
    """Write `start` + index of each set bit to `found` from `count` on; return the new count.

    Four are written even if fewer bits are set, so `found` needs `SLACK` spare entries: a loop that runs 0 to 4
    times would be mispredicted once per word, at three times the cost.
    """
    after = count + count_bits(bits)
    for _ in range(4):
        found[count] = start + trailing_zeros(bits)
        bits &= bits - ONE
        count += ONE
    while bits != ZERO:
        found[count] = start + trailing_zeros(bits)
        bits &= bits - ONE
        count += ONE
    return after


@kernel
def scan_bits(
    words: np.ndarray,
    level1: np.uint64,
    level2: np.uint64,
    low: np.uint64,
    high: np.uint64,
    found: np.ndarray,
) -> np.uint64:
    """Write the set bits of [low, high), low < high, ascending to `found`; return how many.

    `found` needs `SLACK` spare entries.
    Cost: O(words that are not empty + bits found).
    """
    count = ZERO
    word = low >> SIX
    last = (high - ONE) >> SIX
    bits = words[word] & (ALL << (low & LAST))
    while True:
        if word == last:
            bits &= ALL >> (LAST - ((high - ONE) & LAST))
        if bits != ZERO:
            count = unpack_word(bits, word << SIX, found, count)
        word += ONE
        if word > last:
            return count
        bits = words[word]
        if bits == ZERO:
            word = next_word(words, level1, level2, word)
            if word > last:
                return count
            bits = words[word]


@kernel
def drain_bits(words: np.ndarray, level1: np.uint64, level2: np.uint64, found: np.ndarray) -> np.uint64:
    """Write all set bits ascending to `found`, clear them, return how many.

    Cost: O(words that are not empty + bits found).
    """
    count = ZERO
    for top in range(level2, np.uint64(words.size)):
        tops = words[top]
        words[top] = ZERO
        while tops != ZERO:
            upper = ((top - level2) << SIX) + trailing_zeros(tops)
            tops &= tops - ONE
            uppers = words[level1 + upper]
            words[level1 + upper] = ZERO
            while uppers != ZERO:
                word = (upper << SIX) + trailing_zeros(uppers)
                uppers &= uppers - ONE
                bits = words[word]
                words[word] = ZERO
                start = word << SIX
                while bits != ZERO:
                    found[count] = start + trailing_zeros(bits)
                    count += ONE
                    bits &= bits - ONE
    return count
