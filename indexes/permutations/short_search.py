"""The common case of two correlated inequalities, over many blocks in one call: one search and one lookup.

Most probe rows of "less power but more cooling" match nothing in a given block. The envelope shows this as soon as the
first dimension has been searched: the smallest partner of the remaining ranks is already too large. So the second
dimension is not searched at all. From the first partner on, its keys are followed one by one while they satisfy the
interval. Where that takes too long, the kernel gives up, and the general search (`permutation_offset`) takes over.

All blocks are searched in one call, because calls are expensive: each releases the interpreter lock to other threads
and waits to get it back. Passing a list of arrays to Numba is not cheap, so each block's arrays come as addresses in a
table; the caller keeps the blocks alive meanwhile.
"""

from __future__ import annotations

import numpy as np

from indexes.kernels.bit_array import level_starts
from indexes.kernels.compiled import kernel
from indexes.kernels.memory import array_at
from indexes.permutations.row_filter import keep_between, sort_rows
from indexes.permutations.sorted_run import GROUP, search_group

STEPS_PER_PROBE = 48
"""Beyond so many keys followed per probe row, on average, the general search is cheaper."""

KEYS, SIZE, LOWEST_UNTIL, HIGHEST_UNTIL, LOWEST_FROM, HIGHEST_FROM = range(6)
PARTNER_KEYS, PARTNERS, PARTNER_ORDER, RANKS, ROWS, FIRST, WINDOWED = range(6, 13)
"""The columns of the table: addresses (0: no such array) and sizes. `RANKS` holds, by partner rank, the rank in `KEYS`;
`WINDOWED` says whether the live ranges leave out any of the block's rows."""

DONE, MORE_ROOM, TOO_LONG = range(3)


@kernel
def short_search(
    table: np.ndarray,
    state: np.ndarray,
    counts: np.ndarray,
    positions: np.ndarray,
    scratch: np.ndarray,
    words: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    partner_low: np.ndarray,
    partner_high: np.ndarray,
    greatest_low: float,
    least_high: float,
    live_start: np.ndarray,
    live_end: np.ndarray,
    ordered: bool,
) -> int:
    """Append the matches of every probe row with each block, block by block, and count them in counts[block, row].

    `state` holds the block and the probe row with which to continue, the matches so far and, on return, the room that
    is needed. Cost: O(log n) per probe row and block, and O(1) per key followed.
    """
    begin, stop = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    first, last = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    head, tail = np.empty(GROUP, partner_low.dtype), np.empty(GROUP, partner_low.dtype)
    total = state[2]
    for block in range(state[0], table.shape[0]):
        fields = table[block]
        size, partners, start = fields[SIZE], fields[PARTNERS], fields[FIRST]
        keys = array_at(fields[KEYS], size, low)
        partner_keys = array_at(fields[PARTNER_KEYS], partners, partner_low)
        lowest_until = array_at(fields[LOWEST_UNTIL], size, scratch)
        highest_until = array_at(fields[HIGHEST_UNTIL], size, scratch)
        lowest_from = array_at(fields[LOWEST_FROM], size, scratch)
        highest_from = array_at(fields[HIGHEST_FROM], size, scratch)
        partner_order = array_at(fields[PARTNER_ORDER], partners, scratch)
        ranks = array_at(fields[RANKS], partners, scratch)
        until, since, windowed = fields[LOWEST_UNTIL] != 0, fields[LOWEST_FROM] != 0, fields[WINDOWED] != 0
        level1, level2 = level_starts(fields[ROWS])
        # Intervals that are open below are followed upwards from the first partner, those open above downwards from the
        # last; so the other end of the envelope is not read.
        upwards = least_high < partner_keys[partners - 1]
        downwards = greatest_low > partner_keys[0]
        steps = STEPS_PER_PROBE * low.size + 1024
        i = state[1]
        state[1] = 0
        while i < low.size:
            group = min(GROUP, low.size - i)
            search_group(keys, low, i, group, False, begin)
            search_group(keys, high, i, group, True, stop)
            # No branch depends on the data read here, so the memory accesses of a group overlap.
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
                        state[0] = block
                        return TOO_LONG
                    if windowed and count > np.uint64(0):
                        count = keep_between(
                            scratch,
                            count,
                            min(max(live_start[i + k] - start, 0), fields[ROWS]),
                            min(max(live_end[i + k] - start, 0), fields[ROWS]),
                        )
                    if ordered and count > np.uint64(1):
                        sort_rows(scratch, count, words, level1, level2)
                    after = total + np.int64(count)
                    if after > positions.size:
                        state[0], state[1], state[2], state[3] = block, i + k, total, after
                        return MORE_ROOM
                    for j in range(np.int64(count)):
                        positions[total + j] = start + scratch[j]
                    total = after
                counts[block, i + k] = count
            i += group
    state[2] = total
    return DONE


@kernel
def by_probe_row(counts: np.ndarray, found: np.ndarray, offsets: np.ndarray, positions: np.ndarray) -> None:
    """Regroup matches that come block by block into compressed rows. Cost: O(blocks * rows + matches)."""
    blocks, rows = counts.shape
    offsets[0] = 0
    for row in range(rows):
        total = offsets[row]
        for block in range(blocks):
            total += counts[block, row]
        offsets[row + 1] = total
    place = offsets[:rows].copy()
    source = 0
    for block in range(blocks):
        for row in range(rows):
            at = place[row]
            for _ in range(counts[block, row]):
                positions[at] = found[source]
                at += 1
                source += 1
            place[row] = at
