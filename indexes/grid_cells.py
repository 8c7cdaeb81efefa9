"""The cells of a grid: appending rows to them, visiting a rectangle of them, listing what they hold.

A cell is a cache line: a head and up to seven rows in the order of their positions. A row is one number: its position,
counted from a base, and its two codes. When a cell is full, expired rows make room; if there are none, the line goes to
the log of full lines, and the head keeps its place there. The log is a ring that is freed from its oldest line on: a
chain ends where it leads to before what is held.

    head = (1 + place of the cell's last full line in the log) * 8 + rows here       no line: place -1
    row  = 0, position - base: 31 bits | 0, code: 15 bits | 0, code: 15 bits

The bits before the three fields are guards. Set, they keep a subtraction of all three at once from borrowing across
fields, and tell afterwards which of them was smaller: two subtractions compare a row with both ends of three ranges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.candidates import Probe, passes
from indexes.compiled import kernel
from indexes.prefetch import prefetch
from indexes.rank_codes import CODES, RankCodes, high_code, low_code, rank_code

LINE, FULL = 8, 7
"""Numbers of a cell, and rows of one."""

MOST = 1 << 31
"""Positions that can be counted from a base."""

GUARDS = -(1 << 63) | 1 << 31 | 1 << 15

CODE = CODES - 1

FIELD = (1 << 16) - 1

DECIDED = CODES
"""In place of a code that no row needs to be compared with."""

GROUP = 32
"""Rows whose cells are fetched together."""

AHEAD = 6
"""Probe rows whose cells are fetched before they are read."""


class Cells(NamedTuple):
    """What the kernels take: the cells and behind them the log, line by line, and how codes lead to a cell.

    Both are in one array, since a view of a row is a counted reference, which threads would contend for.
    """

    lines: np.ndarray  # cell c from c * LINE on; place p of the log from log + (p & mask) * LINE on
    log: int
    mask: int
    base: int
    strip_bits: int
    first_shift: int
    second_shift: int


@kernel
def append_rows(
    cells: Cells,
    end: int,
    start: int,
    first_codes: RankCodes,
    second_codes: RankCodes,
    first_keys: np.ndarray,
    second_keys: np.ndarray,
    positions: np.ndarray,
    below: int,
    oldest: int,
) -> tuple[int, int]:
    """Add the rows from number `start` on, positions ascending; the log holds the places [oldest, end).

    Returns (number of rows, new end); where the log has no room, the row to go on with instead.
    """
    lines, base = cells.lines, cells.base
    a, b, c, d = first_codes
    e, f, g, h = second_codes
    entries = np.empty(GROUP, np.int64)
    numbers = np.empty(GROUP, np.int64)
    for begin in range(start, positions.size, GROUP):
        group = min(GROUP, positions.size - begin)
        for i in range(group):
            code = rank_code(first_keys[begin + i], a, b, c, d)
            other = rank_code(second_keys[begin + i], e, f, g, h)
            number = ((other >> cells.second_shift) << cells.strip_bits) + (code >> cells.first_shift)
            numbers[i] = number
            entries[i] = (positions[begin + i] - base) << 32 | code << 16 | other
            prefetch(lines, number * LINE)
        for i in range(group):
            line = numbers[i] * LINE
            head = lines[line]
            rows = head & FULL
            if rows == FULL:
                dead = 0
                while dead < FULL and lines[line + 1 + dead] >> 32 < below - base:
                    dead += 1
                rows -= dead
                if dead == 0:
                    if end - oldest > cells.mask:
                        return begin + i, end
                    place = cells.log + (end & cells.mask) * LINE
                    for row in range(LINE):
                        lines[place + row] = lines[line + row]
                    end += 1
                    head = end * LINE
                    rows = 0
                else:
                    for row in range(1, 1 + rows):
                        lines[line + row] = lines[line + row + dead]
                    head -= dead
            lines[line + 1 + rows] = entries[i]
            lines[line] = head + 1
    return positions.size, end


@kernel
def free_lines(cells: Cells, oldest: int, end: int, below: int) -> int:
    """The first place of the log in [oldest, end) whose last row is not expired. Cost: O(lines freed)."""
    lines, log, mask = cells.lines, cells.log, cells.mask
    while oldest < end and lines[log + (oldest & mask) * LINE + FULL] >> 32 < below - cells.base:
        oldest += 1
    return oldest


@kernel
def encode_probes(
    cells: Cells,
    first_codes: RankCodes,
    second_codes: RankCodes,
    lows: np.ndarray,
    highs: np.ndarray,
    whole: np.ndarray,
    corners: np.ndarray,
    ranges: np.ndarray,
) -> None:
    """The least and the greatest codes of each probe row, as in a row of the grid, and the cell where they begin.

    `ranges` gets a row of least and one of greatest codes, and again both, as far as a row of that code needs to be
    settled: DECIDED in place of the others. `lows` and `highs` are of the two dimensions; a dimension that is `whole`
    has the range of all codes.
    """
    a, b, c, d = first_codes
    e, f, g, h = second_codes
    for i in range(corners.size):
        low, high, other_low, other_high = 0, CODE, 0, CODE
        least = greatest = other_least = other_greatest = True
        if not whole[0]:
            low, least = low_code(lows[0, i], a, b, c, d)
            high, greatest = high_code(highs[0, i], a, b, c, d)
        if not whole[1]:
            other_low, other_least = low_code(lows[1, i], e, f, g, h)
            other_high, other_greatest = high_code(highs[1, i], e, f, g, h)
        corners[i] = ((other_low >> cells.second_shift) << cells.strip_bits) + (low >> cells.first_shift)
        ranges[0, i] = low << 16 | other_low
        ranges[1, i] = high << 16 | other_high
        ranges[2, i] = (DECIDED if least else low) << 16 | (DECIDED if other_least else other_low)
        ranges[3, i] = (DECIDED if greatest else high) << 16 | (DECIDED if other_greatest else other_high)


@kernel
def visit_cells(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    probe: Probe,
    cells: Cells,
    ranges: np.ndarray,
    oldest: int,
    newest: int,
    settle: bool,
) -> tuple[int, int, int]:
    """What the probe rows meet in their rectangles, see `candidates.Visit`; `newest` is the next row's position.

    Rows whose codes leave it open are settled by their keys; all of them where other conditions `settle`. A candidate
    is written before it is known to be one, so the last place of `positions` is never counted as room.
    """
    lines, log, mask, base = cells.lines, cells.log, cells.mask, cells.base
    row_of, live_first, live_end, corners = probe.row, probe.first, probe.end, probe.low
    bands = row_of.size
    next_strip = LINE << cells.strip_bits
    room = positions.size - 1
    for b in range(band, bands):
        if b + AHEAD < bands:
            corner = corners[b + AHEAD] * LINE
            for _ in range(2):
                prefetch(lines, corner)
                prefetch(lines, corner + LINE)
                corner += next_strip
        row = row_of[b]
        least, greatest = ranges[0, row], ranges[1, row]
        since, until = live_first[row] - base, min(live_end[row], newest) - base
        needed = used
        if until > since:
            low = since << 32 | least
            high = (until - 1) << 32 | greatest | GUARDS
            first_cell, last_cell = least >> 16 >> cells.first_shift, greatest >> 16 >> cells.first_shift
            first_strip, last_strip = (least & CODE) >> cells.second_shift, (greatest & CODE) >> cells.second_shift
            for strip in range(first_strip, last_strip + 1):
                begin = (strip << cells.strip_bits) + first_cell
                for number in range(begin, begin + last_cell - first_cell + 1):
                    line = number * LINE
                    while True:
                        head = lines[line]
                        # Written past the room, candidates are only counted.
                        step = 1 if needed + FULL <= room else 0
                        at = needed if step else room
                        for i in range(line + 1, line + 1 + (head & FULL)):
                            entry = lines[i]
                            inside = ((entry | GUARDS) - low) & (high - entry) & GUARDS == GUARDS
                            positions[at] = entry
                            at += step * inside
                            needed += inside
                        place = (head >> 3) - 1
                        if place < oldest:
                            break
                        line = log + (place & mask) * LINE
                        # Older lines have older rows only, and none of these is live.
                        if lines[line + FULL] >> 32 < since:
                            break
            if needed > room - FULL:
                return b, used, needed + LINE
            kept = used
            low, high = ranges[2, row], ranges[3, row]
            for i in range(used, needed):
                entry = positions[i]
                position = base + (entry >> 32)
                code, other = (entry >> 16) & CODE, entry & CODE
                undecided = (code == low >> 16) | (code == high >> 16)
                undecided |= (other == low & FIELD) | (other == high & FIELD)
                if not (settle | undecided) or passes(probe, row, position):
                    positions[kept] = position
                    kept += 1
            used = kept
        ends[b] = used
    return bands, used, used


@kernel
def held_positions(cells: Cells, oldest: int, below: int, found: np.ndarray) -> int:
    """Write the positions of all rows that have not expired, in any order; returns their number."""
    lines, log, mask = cells.lines, cells.log, cells.mask
    count = 0
    for number in range(log // LINE):
        line = number * LINE
        while True:
            for i in range(line + 1, line + 1 + (lines[line] & FULL)):
                position = cells.base + (lines[i] >> 32)
                if position >= below:
                    found[count] = position
                    count += 1
            place = (lines[line] >> 3) - 1
            if place < oldest:
                break
            line = log + (place & mask) * LINE
    return count
