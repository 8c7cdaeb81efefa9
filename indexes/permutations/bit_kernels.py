"""The two ways through a permutation: scan along it, or walk it with a bit array (IE-Join); and counting by a scan.

All kernels take rank ranges of the two indexed dimensions per probe row. They write a probe row's candidates to a
scratch array, let `row_filter` reduce and `row_order` sort them, and append the rest to the matches. The caller
provides all memory, fresh for each call, because several threads may probe a segment at once. It comes from NumPy,
which requests huge pages where Numba does not.
"""

from __future__ import annotations

import numpy as np

from indexes.kernels.bit_array import clear_bit, level_starts, scan_bits, set_bit
from indexes.kernels.compiled import kernel
from indexes.permutations.row_filter import keep_between, keep_ranked
from indexes.permutations.row_order import order_rows

ALL_LIVE, SOME_LIVE, NONE_LIVE = 0, 1, 2


@kernel
def live_rows(start: np.ndarray, end: np.ndarray, base: int, rows: int, low: np.ndarray, high: np.ndarray) -> int:
    """Write live positions as row ranges [low, high) of a block whose first position is `base`.

    Returns whether the ranges hold all, some or no rows.
    """
    every = True
    none = True
    for i in range(start.size):
        a = min(max(start[i] - base, 0), rows) if start[i] > base else 0
        b = min(end[i] - base, rows) if end[i] > base else 0
        low[i] = a
        high[i] = b
        every &= a == 0 and b == rows
        none &= a >= b
    return NONE_LIVE if none else (ALL_LIVE if every else SOME_LIVE)


@kernel
def survey(a: np.ndarray, b: np.ndarray) -> tuple[int, int, int, int, int]:
    """The total width of the ranges, the least and greatest a, the least and greatest b."""
    width = 0
    least_a = 2**31
    greatest_a = 0
    least_b = 2**31
    greatest_b = 0
    for i in range(a.size):
        width += b[i] - a[i]
        least_a = min(least_a, a[i])
        greatest_a = max(greatest_a, a[i])
        least_b = min(least_b, b[i])
        greatest_b = max(greatest_b, b[i])
    return width, least_a, greatest_a, least_b, greatest_b


@kernel
def count_in_scan(
    partner: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    partner_a: np.ndarray,
    partner_b: np.ndarray,
    samples: int,
) -> np.int64:
    """Matches of `samples` evenly spaced probe rows, from which the choice of strategy estimates."""
    total = np.int64(0)
    for sample in range(samples):
        i = sample * a.size // samples
        low = partner_a[i]
        width = np.uint32(partner_b[i] - low)
        for j in range(np.uint64(a[i]), np.uint64(max(a[i], b[i]))):
            total += np.int64(np.uint32(partner[j] - low) < width)
    return total


@kernel
def count_scanned(
    order: np.ndarray,
    partner: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    partner_a: np.ndarray,
    partner_b: np.ndarray,
    windowed: bool,
    live_low: np.ndarray,
    live_high: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Per probe row, the number of live rows of ranks [a, b) whose partner is in [partner_a, partner_b).

    Cost: O(sum of widths), about 0.3 ns each.
    """
    for i in range(a.size):
        low = partner_a[i]
        width = np.uint32(max(partner_b[i] - low, 0))
        begin, end = np.uint64(a[i]), np.uint64(max(a[i], b[i]))
        total = np.int64(0)
        if windowed:
            first = live_low[i]
            live = np.uint32(max(live_high[i] - first, 0))
            for j in range(begin, end):
                inside = np.uint32(partner[j] - low) < width
                total += np.int64(inside & (np.uint32(order[j] - first) < live))
        else:
            for j in range(begin, end):
                total += np.int64(np.uint32(partner[j] - low) < width)
        counts[i] = total


@kernel
def _count_rows(
    ranks: np.ndarray, other_ranks: np.ndarray, begin: int, end: int, a: int, b: int, other_a: int, other_b: int
) -> np.int64:
    """How many of the rows [begin, end) have ranks in both ranges. Cost: O(rows)."""
    width, other_width = np.uint32(max(b - a, 0)), np.uint32(max(other_b - other_a, 0))
    total = np.int64(0)
    for row in range(np.uint64(begin), np.uint64(end)):
        inside = np.uint32(ranks[row] - a) < width
        other_inside = np.uint32(other_ranks[row] - other_a) < other_width
        total += np.int64(inside & other_inside)
    return total


@kernel
def count_live(
    counts: np.ndarray,
    ranks: np.ndarray,
    other_ranks: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    other_a: np.ndarray,
    other_b: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Turn the counts over all rows of a block into counts over the live rows, by reading the live or the dead ones.

    Cost: O(the lesser of live and dead rows) per probe row, about 0.3 ns each.
    """
    rows = ranks.size
    for i in range(counts.size):
        live = max(high[i] - low[i], 0)
        if live == rows or counts[i] == 0:
            continue
        bounds = (a[i], b[i], other_a[i], other_b[i])
        if live + live <= rows:
            counts[i] = _count_rows(ranks, other_ranks, low[i], low[i] + live, *bounds)
        else:
            counts[i] -= _count_rows(ranks, other_ranks, 0, low[i], *bounds)
            counts[i] -= _count_rows(ranks, other_ranks, high[i], rows, *bounds)


@kernel
def walk_length(order: np.ndarray, a: np.ndarray, b: np.ndarray) -> int:
    """How many ranks the bit array's range [A, B) moves over when probe rows are taken in `order`."""
    at_a = 0
    at_b = 0
    length = 0
    for k in range(order.size):
        i = order[k]
        if a[i] < b[i]:
            if at_a == at_b:
                at_a = at_b = a[i]
            length += abs(a[i] - at_a) + abs(b[i] - at_b)
            at_a = a[i]
            at_b = b[i]
    return length


@kernel
def settle(
    rows: np.ndarray,
    count: np.uint64,
    i: int,
    windowed: bool,
    live_low: np.ndarray,
    live_high: np.ndarray,
    ranks: np.ndarray,
    other_dimensions: np.ndarray,
    other_a: np.ndarray,
    other_b: np.ndarray,
    other_negated: np.ndarray,
    ordered: bool,
    words: np.ndarray,
    level1: np.uint64,
    level2: np.uint64,
) -> np.uint64:
    """Filter probe row i's candidates by live range and other dimensions, and sort them."""
    if windowed:
        count = keep_between(rows, count, live_low[i], live_high[i])
    for k in range(other_negated.size):
        if count > np.uint64(0):
            count = keep_ranked(rows, count, ranks[other_dimensions[k]], other_a[k, i], other_b[k, i], other_negated[k])
    if ordered and count > np.uint64(1):
        order_rows(rows, count, words, level1, level2)
    return count


@kernel
def scan_permutation(
    done: int,
    offsets: np.ndarray,
    positions: np.ndarray,
    scratch: np.ndarray,
    words: np.ndarray,
    order: np.ndarray,
    partner: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    partner_a: np.ndarray,
    partner_b: np.ndarray,
    rows: int,
    start: int,
    ordered: bool,
    windowed: bool,
    live_low: np.ndarray,
    live_high: np.ndarray,
    ranks: np.ndarray,
    other_dimensions: np.ndarray,
    other_a: np.ndarray,
    other_b: np.ndarray,
    other_negated: np.ndarray,
) -> tuple[int, int]:
    """Per probe row, the rows of ranks [a, b) whose partner is in [partner_a, partner_b).

    Without a partner array (its size is 0) all rows of [a, b) are candidates. The kernel begins at probe row `done` and
    stops before the first one whose matches do not fit into `positions`. It returns that row (or the number of probe
    rows) and the room needed to go on.
    Cost: O(sum of widths), about 0.6 ns each. There is no branch on a partner. Testing 16 partners at a time for any
    match, and only then each of them, gains a sixth where few match and loses a third elsewhere.
    """
    paired = partner.size > 0
    level1, level2 = level_starts(rows)
    total = offsets[done]
    for i in range(done, a.size):
        begin = np.uint64(a[i])
        stop = np.uint64(b[i])
        if begin < stop and not (windowed and live_low[i] >= live_high[i]):
            count = np.uint64(0)
            if paired:
                low = partner_a[i]
                width = np.uint32(max(partner_b[i] - low, 0))
                for j in range(begin, stop):
                    scratch[count] = order[j]
                    count += np.uint64(np.uint32(partner[j] - low) < width)
            else:
                for j in range(begin, stop):
                    scratch[j - begin] = order[j]
                count = stop - begin
            if count > np.uint64(0):
                count = settle(
                    scratch, count, i, windowed, live_low, live_high, ranks, other_dimensions,
                    other_a, other_b, other_negated, ordered, words, level1, level2,
                )  # fmt: skip
                after = total + np.int64(count)
                if after > positions.size:
                    return i, after
                for k in range(np.int64(count)):
                    positions[total + k] = start + scratch[k]
                total = after
        offsets[i + 1] = total
    return a.size, total


@kernel
def walk_permutation(
    done: int,
    total: np.int64,
    begins: np.ndarray,
    counts: np.ndarray,
    found: np.ndarray,
    scratch: np.ndarray,
    words: np.ndarray,
    bits: np.ndarray,
    sequence: np.ndarray,
    partner: np.ndarray,
    partner_order: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    partner_a: np.ndarray,
    partner_b: np.ndarray,
    rows: int,
    ordered: bool,
    windowed: bool,
    live_low: np.ndarray,
    live_high: np.ndarray,
    ranks: np.ndarray,
    other_dimensions: np.ndarray,
    other_a: np.ndarray,
    other_b: np.ndarray,
    other_negated: np.ndarray,
) -> tuple[int, np.int64, np.int64]:
    """The same matches by a bit array over partner ranks (IE-Join; SPO-Join section 3.4).

    The set bits are always the partners of the ranks [at_a, at_b). Probe rows are taken in `sequence`. For each one the
    range moves to its [a, b), growing before it shrinks, so that it is correct for any sequence and cheap for a sorted
    one; the bits of [partner_a, partner_b) are then the candidates. Probe row i's matching rows end up in
    found[begins[i]:][:counts[i]]. The kernel begins at place `done` of the sequence, with `total` found and `bits`
    empty, and stops as `scan_permutation` does. It returns the place, the number found and the room needed to go on.
    Cost: O(length of the walk + words that are not empty + candidates).
    """
    level1, level2 = level_starts(partner_order.size)
    row_level1, row_level2 = level_starts(rows)
    at_a = 0
    at_b = 0
    for step in range(done, a.size):
        i = sequence[step]
        if a[i] >= b[i] or partner_a[i] >= partner_b[i] or (windowed and live_low[i] >= live_high[i]):
            continue
        if at_a == at_b:
            at_a = at_b = a[i]
        while at_b < b[i]:
            if partner[at_b] >= 0:
                set_bit(bits, level1, level2, np.uint64(partner[at_b]))
            at_b += 1
        while at_a > a[i]:
            at_a -= 1
            if partner[at_a] >= 0:
                set_bit(bits, level1, level2, np.uint64(partner[at_a]))
        while at_b > b[i]:
            at_b -= 1
            if partner[at_b] >= 0:
                clear_bit(bits, level1, level2, np.uint64(partner[at_b]))
        while at_a < a[i]:
            if partner[at_a] >= 0:
                clear_bit(bits, level1, level2, np.uint64(partner[at_a]))
            at_a += 1
        count = scan_bits(bits, level1, level2, np.uint64(partner_a[i]), np.uint64(partner_b[i]), scratch)
        if count > np.uint64(0):
            for k in range(count):
                scratch[k] = partner_order[np.uint64(scratch[k])]
            count = settle(
                scratch, count, i, windowed, live_low, live_high, ranks, other_dimensions,
                other_a, other_b, other_negated, ordered, words, row_level1, row_level2,
            )  # fmt: skip
            after = total + np.int64(count)
            if after > found.size:
                return step, total, after
            for k in range(np.int64(count)):
                found[total + k] = scratch[k]
            begins[i] = total
            counts[i] = np.int64(count)
            total = after
    return a.size, total, total


@kernel
def gather(begins: np.ndarray, offsets: np.ndarray, found: np.ndarray, start: int, positions: np.ndarray) -> None:
    """Reorder the matches of a walk by probe row. Cost: O(probes + matches)."""
    for i in range(begins.size):
        begin = begins[i]
        shift = offsets[i]
        for k in range(offsets[i + 1] - shift):
            positions[shift + k] = start + found[begin + k]
