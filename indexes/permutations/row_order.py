"""Sort one probe row's matches by position, with the method that suits their number."""

from __future__ import annotations

import numpy as np

from indexes.kernels.bit_array import ONE, SIX, SLACK, ZERO
from indexes.kernels.compiled import kernel
from indexes.permutations.row_filter import sort_rows

BUCKETS = 2048
"""Most buckets of one pass: their counters stay in the first-level cache."""

FULL_BUCKET = 24
"""Up to so many rows of a bucket, insertion sort is cheap."""

FEW = 24, 1000
"""More rows than the first number, and up to the second, are sorted by buckets and insertion."""

MANY_WORDS = 4096
"""A bit array of more words no longer stays in the first-level cache, and other methods are faster."""


def order_room(rows: int) -> int:
    """Length of the array that sorting up to `rows` rows needs."""
    return 2 * (rows + SLACK) + 2 * BUCKETS


@kernel
def order_rows(scratch: np.ndarray, count: np.uint64, words: np.ndarray, level1: np.uint64, level2: np.uint64) -> None:
    """Sort the distinct rows at the head of `scratch`, whose length is `order_room`, ascending, in place.

    `words` is an empty bit array with a bit for each possible row, and stays empty. In nanoseconds per row, out of a
    million possible rows: 60 rows 4.5 (by bits: 6.5), 300 rows 5.5 (12), 5,600 rows 4.4 (6 to 12), 30,000 rows by bits
    3.2. Cost: O(count), or O(count + n / 64) where that is less.
    """
    few, more = FEW
    if level1 >= np.uint64(MANY_WORDS) and count > np.uint64(few):
        half = (scratch.size - 2 * BUCKETS) >> 1
        spare, counters = scratch[half : 2 * half], scratch[2 * half :]
        if count <= np.uint64(more) and _by_buckets(scratch, count, spare, counters):
            return
        digit = (_bit_length(level1 - ONE) + SIX + ONE) >> ONE
        if count < (level1 << ONE) and (count >> digit) > ZERO and (ONE << digit) <= np.uint64(BUCKETS):
            _by_digits(scratch, count, spare, counters, digit)
            return
    sort_rows(scratch, count, words, level1, level2)


@kernel
def _bit_length(number: np.uint64) -> np.uint64:
    length = ZERO
    while (number >> length) > ZERO:
        length += ONE
    return length


@kernel
def _by_buckets(rows: np.ndarray, count: np.uint64, spare: np.ndarray, counters: np.ndarray) -> bool:
    """Sort into about as many buckets as rows, then by insertion. False, with nothing done, if a bucket is too full."""
    least = rows[0]
    greatest = rows[0]
    for i in range(count):
        least = min(least, rows[i])
        greatest = max(greatest, rows[i])
    wanted = _bit_length(count)
    bits = _bit_length(np.uint64(greatest - least))
    shift = bits - min(bits, wanted)
    buckets = ONE << wanted
    for bucket in range(buckets):
        counters[bucket] = 0
    for i in range(count):
        counters[np.uint64(rows[i] - least) >> shift] += 1
    before = 0
    fullest = 0
    for bucket in range(buckets):
        held = counters[bucket]
        counters[bucket] = before
        before += held
        fullest = max(fullest, held)
    if fullest > FULL_BUCKET:
        return False
    for i in range(count):
        bucket = np.uint64(rows[i] - least) >> shift
        place = counters[bucket]
        counters[bucket] = place + 1
        spare[np.uint64(place)] = rows[i]
    for i in range(np.int64(count)):
        row = spare[i]
        j = i - 1
        while j >= 0 and rows[j] > row:
            rows[j + 1] = rows[j]
            j -= 1
        rows[j + 1] = row
    return True


@kernel
def _by_digits(rows: np.ndarray, count: np.uint64, spare: np.ndarray, counters: np.ndarray, digit: np.uint64) -> None:
    """Sort by the lower digit, then stably by the upper one: two passes of a radix sort."""
    radix = ONE << digit
    low = radix - ONE
    for bucket in range(radix + radix):
        counters[bucket] = 0
    for i in range(count):
        row = np.uint64(rows[i])
        counters[row & low] += 1
        counters[radix + (row >> digit)] += 1
    before_low = 0
    before_high = 0
    for bucket in range(radix):
        held = counters[bucket]
        counters[bucket] = before_low
        before_low += held
        held = counters[radix + bucket]
        counters[radix + bucket] = before_high
        before_high += held
    for i in range(count):
        row = rows[i]
        chosen = np.uint64(row) & low
        place = counters[chosen]
        counters[chosen] = place + 1
        spare[np.uint64(place)] = row
    for i in range(count):
        row = spare[i]
        chosen = radix + (np.uint64(row) >> digit)
        place = counters[chosen]
        counters[chosen] = place + 1
        rows[np.uint64(place)] = row
