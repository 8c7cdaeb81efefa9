"""The common case of two correlated inequalities: one search, one look, done.

Most probe rows of "less power but more cooling" match nothing in a given segment, and the envelope says so as soon as
the first dimension has been searched: the smallest partner of the remaining ranks is already too large. So the second
dimension is not searched at all. From the first partner on, its keys are followed one by one as long as they satisfy the
interval. Where that turns out to be long, the general way (`permutation_offset`) is taken instead.
"""

from __future__ import annotations

import numpy as np

from indexes.bit_array import level_starts
from indexes.compiled import kernel
from indexes.row_filter import keep_between, sort_rows
from indexes.sorted_run import GROUP, search_group

STEPS_PER_PROBE = 48
"""Mean number of keys followed per probe row beyond which the general way is cheaper."""


@kernel
def short_search(
    done: int,
    steps: int,
    offsets: np.ndarray,
    positions: np.ndarray,
    scratch: np.ndarray,
    words: np.ndarray,
    keys: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    lowest_until: np.ndarray,
    highest_until: np.ndarray,
    lowest_from: np.ndarray,
    highest_from: np.ndarray,
    partner_keys: np.ndarray,
    partner_low: np.ndarray,
    partner_high: np.ndarray,
    greatest_low: float,
    least_high: float,
    partner_order: np.ndarray,
    ranks: np.ndarray,
    rows: int,
    start: int,
    ordered: bool,
    windowed: bool,
    live_low: np.ndarray,
    live_high: np.ndarray,
) -> tuple[int, int, int]:
    """Append the matches of the probe rows from `done` on; the envelope is that of `keys`' dimension.

    `ranks[j]` is the rank in `keys`' dimension of the row that is j-th in the partner's. Returns the probe row it stopped
    at, the room needed (as `scan_permutation`), and how many of the `steps` are left: below zero, it gave up.
    Cost: O(log n) per probe row, and O(1) per key followed.
    """
    size, partners = keys.size, partner_keys.size
    level1, level2 = level_starts(rows)
    total = offsets[done]
    until, since = lowest_until.size > 0, lowest_from.size > 0
    # Intervals that are open below are followed upwards from the first partner, those open above downwards from the
    # last; the other end of the envelope then need not be read.
    upwards = least_high < partner_keys[partners - 1]
    downwards = greatest_low > partner_keys[0]
    begin, stop = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    first, last = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    head, tail = np.empty(GROUP, partner_keys.dtype), np.empty(GROUP, partner_keys.dtype)
    i = done
    while i < low.size:
        group = min(GROUP, low.size - i)
        search_group(keys, low, i, group, False, begin)
        search_group(keys, high, i, group, True, stop)
        # Three rounds without a branch on what is read: the memory accesses of a group overlap.
        for k in range(GROUP):
            first[k] = 0
            last[k] = partners - 1
        if until and upwards:
            for k in range(GROUP):
                first[k] = lowest_until[max(stop[k] - 1, 0)]
        if until and downwards:
            for k in range(GROUP):
                last[k] = highest_until[max(stop[k] - 1, 0)]
        if since and upwards:
            for k in range(GROUP):
                first[k] = max(first[k], lowest_from[min(begin[k], size - 1)])
        if since and downwards:
            for k in range(GROUP):
                last[k] = min(last[k], highest_from[min(begin[k], size - 1)])
        for k in range(GROUP):
            head[k] = partner_keys[min(first[k], partners - 1)]
            tail[k] = partner_keys[max(last[k], 0)]
        for k in range(group):
            a, least, greatest = begin[k], partner_low[i + k], partner_high[i + k]
            count = np.uint64(0)
            if a < stop[k] and first[k] <= last[k] and head[k] <= greatest and tail[k] >= least:
                width = np.uint32(stop[k] - a)
                if head[k] < least and tail[k] <= greatest:
                    at = last[k]
                    while at >= first[k] and partner_keys[at] >= least:
                        scratch[count] = partner_order[at]
                        count += np.uint64(np.uint32(ranks[at] - a) < width)
                        at -= 1
                    steps -= last[k] - at
                else:
                    at = first[k]
                    if head[k] < least:
                        above = last[k] + 1
                        while at < above:
                            middle = (at + above) >> 1
                            if partner_keys[middle] < least:
                                at = middle + 1
                            else:
                                above = middle
                        steps -= 16
                    steps += at
                    while at <= last[k] and partner_keys[at] <= greatest:
                        scratch[count] = partner_order[at]
                        count += np.uint64(np.uint32(ranks[at] - a) < width)
                        at += 1
                    steps -= at
                if steps < 0:
                    return i + k, total, steps
                if count > np.uint64(0):
                    if windowed:
                        count = keep_between(scratch, count, live_low[i + k], live_high[i + k])
                    if ordered and count > np.uint64(1):
                        sort_rows(scratch, count, words, level1, level2)
                    after = total + np.int64(count)
                    if after > positions.size:
                        return i + k, after, steps
                    for j in range(np.int64(count)):
                        positions[total + j] = start + scratch[j]
                    total = after
            offsets[i + k + 1] = total
        i += group
    return low.size, total, steps
