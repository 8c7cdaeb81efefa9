"""Keys as 15-bit codes that follow their distribution: each stretch of codes has equally many rows of a sample.

A code never falls as the key rises. So the keys of an interval have codes between those of its ends, and a key whose
code lies strictly between them is inside. Only for codes equal to one of the ends must the keys be compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import GREATEST, LEAST

CODES = 1 << 15

SEGMENTS = 256
"""Stretches of keys, a power of two; within one, codes rise in proportion to the key."""

HEADROOM = 2
"""One code in so many is reserved for keys beyond a drifting sample."""


class RankCodes(NamedTuple):
    """Where each stretch of keys begins, its first and last code, and the codes per unit of the key.

    Unused stretches begin at the greatest key.
    """

    starts: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    scales: np.ndarray


def rank_codes(sample: np.ndarray, *, falling: bool = False, rising: bool = False) -> RankCodes:
    """Codes for keys like those of a sorted sample of up to 16,384 keys. Any sample gives correct codes, even none.

    If falling or rising, half of the codes goes to keys below or above the sample, as far beyond as it is wide.
    Cost: O(SEGMENTS).

        sample 10 20 30 1000      codes 1 8192 16384 24575      15 -> 4096     9 -> 0     2000 -> 24575
    """
    starts = np.full(SEGMENTS, GREATEST, np.int64)
    firsts = np.full(SEGMENTS, CODES - 1, np.int64)
    lasts = np.full(SEGMENTS, CODES - 1, np.int64)
    scales = np.zeros(SEGMENTS, np.float64)
    starts[0], firsts[0] = LEAST, 0
    room = CODES // HEADROOM // (1 + (falling and rising))
    low = room if falling else 1
    high = CODES - room if rising else CODES - 1
    if len(sample):
        cuts = np.unique(sample[np.linspace(0, len(sample) - 1, SEGMENTS - 4).astype(np.int64)])
        ranks = np.searchsorted(sample, cuts)
        codes = low + ranks * (high - low) // len(sample)
        if falling:
            below = _beyond(cuts[0], sample[-1])
            cuts, codes = np.append(below, cuts), np.append(1, codes)
        if rising:
            above = _beyond(cuts[-1], sample[0])
            cuts, codes = np.append(cuts, above), np.append(codes, CODES - 1)
        cuts, some = np.unique(cuts, return_index=True)
        codes = codes[some][cuts > LEAST]
        cuts = cuts[cuts > LEAST]
        used = slice(1, 1 + len(cuts))
        starts[used], firsts[used] = cuts, codes
        lasts[: len(cuts)] = np.maximum(firsts[1 : 1 + len(cuts)] - 1, firsts[: len(cuts)])
        spans = (cuts[1:].view(np.uint64) - cuts[:-1].view(np.uint64)).astype(np.float64)
        # A stretch that spans more than half of all integers has one code: differences within it would overflow.
        inner = slice(1, len(cuts))
        scales[inner] = np.where(spans < 2.0**63, (lasts[inner] - firsts[inner] + 1) / spans, 0.0)
    return RankCodes(frozen(starts), frozen(firsts), frozen(lasts), frozen(scales))


def _beyond(end: np.int64, other: np.int64) -> int:
    """The key as far beyond one end of a sample as the other end is before it."""
    return min(max(2 * int(end) - int(other), LEAST), GREATEST)


@kernel
def _segment(key: int, starts: np.ndarray) -> np.uint64:
    segment = np.uint64(0)
    step = np.uint64(SEGMENTS >> 1)
    while step:
        segment += step * np.uint64(starts[segment + step] <= key)
        step >>= np.uint64(1)
    return segment


@kernel
def _within(
    key: int, segment: np.uint64, starts: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, scales: np.ndarray
) -> int:
    """The code of a key that lies in the segment."""
    code = firsts[segment] + np.int64(np.float64(key - starts[segment]) * scales[segment])
    return min(code, lasts[segment])


@kernel
def rank_code(key: int, starts: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, scales: np.ndarray) -> int:
    """The code of one key. Fields are passed one by one: a tuple's are counted references. Cost: O(log SEGMENTS)."""
    return _within(key, _segment(key, starts), starts, firsts, lasts, scales)


@kernel
def count_codes(keys: np.ndarray, shift: int, codes: RankCodes, counts: np.ndarray) -> None:
    """Count how many keys have each code, shifted right by `shift`."""
    starts, firsts, lasts, scales = codes
    for i in range(keys.size):
        counts[rank_code(keys[i], starts, firsts, lasts, scales) >> shift] += 1


@kernel
def low_code(
    key: int, starts: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, scales: np.ndarray
) -> tuple[int, bool]:
    """The code of an interval's low end, and whether it is the least key of that code: then all of them are inside."""
    segment = _segment(key, starts)
    code = _within(key, segment, starts, firsts, lasts, scales)
    before = segment - np.uint64(segment > 0)
    first = (key == starts[segment]) & ((segment == 0) | (lasts[before] < code))
    return code, first | (key > starts[segment]) & (_within(key - 1, segment, starts, firsts, lasts, scales) < code)


@kernel
def high_code(
    key: int, starts: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, scales: np.ndarray
) -> tuple[int, bool]:
    """The code of an interval's high end, and whether it is the greatest key of that code."""
    segment = _segment(key, starts)
    code = _within(key, segment, starts, firsts, lasts, scales)
    following = segment + np.uint64(segment < SEGMENTS - 1)
    last = (starts[following] == key + 1) & (firsts[following] > code)
    return code, last | (key < GREATEST) & (_within(key + 1, segment, starts, firsts, lasts, scales) > code)
