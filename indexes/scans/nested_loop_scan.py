"""The inner loops of the nested loop join: eight probe rows in one pass over a block's codes.

A row is a candidate of a probe row if both of its codes lie in the probe row's code ranges:
(code - start) mod 2^16 <= width. Then saturating subtraction of the width leaves 0. So the least of these remainders
over a block shows whether it holds any candidate, without a branch or a store: two subtractions per dimension, an "or"
and a minimum, on as many rows as a register holds. Blocks that hold a candidate are searched again, for the probe rows
concerned only.
"""

from __future__ import annotations

import numpy as np

from indexes.kernels.compiled import compiled_kernel, kernel
from indexes.scans.code_frame import NOWHERE, encode_bounds

GROUP = 8
"""Probe rows of one pass: their remainders stay in registers."""

PIECE = 128
"""Rows of a block that are searched one by one if they hold a candidate."""

FINISHED, TOO_MANY, NO_ROOM = 0, 1, 2

_ALL = np.uint16(65535)


@kernel
def beyond(code: np.uint16, start: np.uint16, width: np.uint16) -> np.uint16:
    """How far a code lies beyond a range; 0 inside."""
    return np.uint16(max(np.uint16(code - start), width) - width)


@kernel
def holders(
    first_codes: np.ndarray,
    second_codes: np.ndarray,
    rows: np.uint64,
    ranges: np.ndarray,
    g: np.uint64,
) -> np.uint64:
    """Which of the eight probe rows from `g` on have a candidate among the rows, as bits. Cost: O(8 * rows)."""
    a, b, c, d = ranges[0], ranges[1], ranges[2], ranges[3]
    one = np.uint64(1)
    g1, g2, g3 = g + one, g + np.uint64(2), g + np.uint64(3)
    g4, g5, g6, g7 = g + np.uint64(4), g + np.uint64(5), g + np.uint64(6), g + np.uint64(7)
    a0, a1, a2, a3, a4, a5, a6, a7 = a[g], a[g1], a[g2], a[g3], a[g4], a[g5], a[g6], a[g7]
    b0, b1, b2, b3, b4, b5, b6, b7 = b[g], b[g1], b[g2], b[g3], b[g4], b[g5], b[g6], b[g7]
    c0, c1, c2, c3, c4, c5, c6, c7 = c[g], c[g1], c[g2], c[g3], c[g4], c[g5], c[g6], c[g7]
    d0, d1, d2, d3, d4, d5, d6, d7 = d[g], d[g1], d[g2], d[g3], d[g4], d[g5], d[g6], d[g7]
    r0 = r1 = r2 = r3 = r4 = r5 = r6 = r7 = _ALL
    for row in range(rows):
        x = first_codes[row]
        y = second_codes[row]
        r0 = min(r0, np.uint16(beyond(x, a0, b0) | beyond(y, c0, d0)))
        r1 = min(r1, np.uint16(beyond(x, a1, b1) | beyond(y, c1, d1)))
        r2 = min(r2, np.uint16(beyond(x, a2, b2) | beyond(y, c2, d2)))
        r3 = min(r3, np.uint16(beyond(x, a3, b3) | beyond(y, c3, d3)))
        r4 = min(r4, np.uint16(beyond(x, a4, b4) | beyond(y, c4, d4)))
        r5 = min(r5, np.uint16(beyond(x, a5, b5) | beyond(y, c5, d5)))
        r6 = min(r6, np.uint16(beyond(x, a6, b6) | beyond(y, c6, d6)))
        r7 = min(r7, np.uint16(beyond(x, a7, b7) | beyond(y, c7, d7)))
    low = np.uint64(r0 == 0) | np.uint64(r1 == 0) << one | np.uint64(r2 == 0) << np.uint64(2)
    middle = np.uint64(r3 == 0) << np.uint64(3) | np.uint64(r4 == 0) << np.uint64(4)
    high = np.uint64(r5 == 0) << np.uint64(5) | np.uint64(r6 == 0) << np.uint64(6) | np.uint64(r7 == 0) << np.uint64(7)
    return low | middle | high


@kernel
def holds(
    first_codes: np.ndarray,
    second_codes: np.ndarray,
    begin: np.uint64,
    end: np.uint64,
    a: np.uint16,
    b: np.uint16,
    c: np.uint16,
    d: np.uint16,
) -> bool:
    """Whether one probe row has a candidate among the rows [begin, end). Cost: O(rows)."""
    least = _ALL
    for row in range(begin, end):
        least = min(least, np.uint16(beyond(first_codes[row], a, b) | beyond(second_codes[row], c, d)))
    return least == 0


@compiled_kernel
def scan_blocks(
    codes: np.ndarray,
    keys: np.ndarray,
    valid: np.ndarray,
    frames: np.ndarray,
    coded: np.ndarray,
    end_row: int,
    low_numbers: np.ndarray,
    high_numbers: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    negated: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    limit: int,
    ranges: np.ndarray,
    state: np.ndarray,
    found_probes: np.ndarray,
    found_rows: np.ndarray,
) -> int:
    """Append the matches of all probe rows with the blocks from number state[0] on, where probe row state[1] is next.

    Matches are ordered by block, then by group, probe row and row, so each probe row's ascend. `state` holds the next
    block, the next probe row, the end of the blocks and the matches found. On NO_ROOM, make more room and call again.
    Cost: O(probes * rows), about 0.04 ns each, and O(PIECE) per candidate.
    """
    dimensions, slots, block_rows = keys.shape
    probes = start.size
    room = found_rows.size - GROUP * block_rows
    d0, d1 = coded[0], coded[1]
    while state[0] < state[2]:
        block = state[0]
        slot = block & (slots - 1)
        base = block * block_rows
        rows = min(block_rows, end_row - base)
        for k in range(2):
            d = coded[k]
            encode_bounds(
                low_numbers[d], high_numbers[d], negated[d], frames[slot, d, 0], frames[slot, d, 1],
                ranges[2 * k], ranges[2 * k + 1],
            )  # fmt: skip
        for i in range(probes):
            if start[i] >= base + rows or end[i] <= base or start[i] >= end[i]:
                ranges[0, i] = np.uint16(NOWHERE)
                ranges[1, i] = np.uint16(0)
        first_codes, second_codes = codes[d0, slot], codes[d1, slot]
        while state[1] < probes:
            if state[3] > limit:
                return TOO_MANY
            if state[3] > room:
                return NO_ROOM
            g = state[1]
            size = min(GROUP, probes - g)
            met = 0
            for i in range(g, g + size):
                met += ranges[0, i] != NOWHERE
            held = np.uint64(0)
            if met > GROUP // 4:
                held = holders(first_codes, second_codes, np.uint64(rows), ranges, np.uint64(g))
            elif met:
                held = np.uint64(255)  # a pass for eight is not worth it for one or two probe rows
            for i in range(size):
                if held >> np.uint64(i) & np.uint64(1) and ranges[0, g + i] != NOWHERE:
                    p = g + i
                    a, b, c, d = ranges[0, p], ranges[1, p], ranges[2, p], ranges[3, p]
                    for begin in range(np.uint64(0), np.uint64(rows), np.uint64(PIECE)):
                        stop = min(begin + np.uint64(PIECE), np.uint64(rows))
                        if not holds(first_codes, second_codes, begin, stop, a, b, c, d):
                            continue
                        for row in range(begin, stop):
                            if beyond(first_codes[row], a, b) | beyond(second_codes[row], c, d):
                                continue
                            at = base + np.int64(row)
                            same = valid[slot, row] and start[p] <= at and at < end[p]
                            for k in range(dimensions):
                                key = keys[k, slot, row]
                                same &= (low[k, p] <= key and key <= high[k, p]) != negated[k]
                            if same:
                                found_probes[state[3]] = p
                                found_rows[state[3]] = at
                                state[3] += 1
            state[1] += size
        state[0] += 1
        state[1] = 0
    return TOO_MANY if state[3] > limit else FINISHED


@kernel
def by_probe_row(
    found_probes: np.ndarray, found_rows: np.ndarray, origin: int, offsets: np.ndarray, positions: np.ndarray
) -> None:
    """Group matches by probe row, each row's in the order found. Cost: O(probes + matches)."""
    offsets[:] = 0
    for i in range(found_probes.size):
        offsets[found_probes[i] + 1] += 1
    total = 0
    for p in range(offsets.size):
        total += offsets[p]
        offsets[p] = total
    # Each row's begin moves to its end, which is the next row's begin; afterwards all move back by one row.
    for i in range(found_probes.size):
        p = found_probes[i]
        positions[offsets[p]] = origin + found_rows[i]
        offsets[p] += 1
    for p in range(offsets.size - 1, 0, -1):
        offsets[p] = offsets[p - 1]
    offsets[0] = 0
