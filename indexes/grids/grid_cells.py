"""The cells of a grid: append rows, visit a rectangle of cells, list their rows.

A cell is a cache line: a head and up to seven rows in the order of their positions. A row is one number: its position,
counted from a base, and its two codes. When a cell is full, expired rows make room. If there are none, the line moves
to the log of full lines, and the head remembers its place there. The log is a ring that is freed from its oldest line
on; a chain ends where a link points before the oldest line held.

    head = (1 + place of the cell's last full line in the log) * 8 + rows here       no line: place -1
    row  = 0, position - base: 31 bits | 0, code: 15 bits | 0, code: 15 bits         no row: 2^31 - 1, 0, 0

The bits before the three fields are guards. If set, they keep a subtraction of all three fields at once from borrowing
across fields, and show afterwards which field was smaller: two subtractions compare a row with both ends of three
ranges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes.grids.rank_codes import CODES, RankCodes, high_code, low_code, rank_code
from indexes.kernels.compiled import kernel
from indexes.kernels.memory import prefetch
from indexes.one_key.candidates import Probe, passes

LINE, FULL = 8, 7
"""Numbers per cell, and rows per cell."""

MOST = (1 << 31) - 1
"""Most positions that can be counted from a base."""

GUARDS = -(1 << 63) | 1 << 31 | 1 << 15

CODE = CODES - 1

FIELD = (1 << 16) - 1

NO_ROW = MOST << 32
"""Marks an empty place: a position beyond the end of any range."""

DECIDED = CODES
"""Instead of a code, if rows with that code need no comparison of keys."""

GROUP = 32
"""Rows whose cells are prefetched together."""

AHEAD = 4
"""Probe rows whose cells are prefetched before they are read."""


class Cells(NamedTuple):
    """The form that kernels take: the cells, behind them the log, line by line, and how codes map to a cell.

    Cells and log share one array, because a view of a row is a counted reference, for which threads would contend.
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

    Returns (number of rows, new end), or (the row to continue with, new end) if the log has no room.
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
                        lines[line + row] = NO_ROW
                    end += 1
                    head = end * LINE
                    rows = 0
                else:
                    for row in range(1, LINE):
                        lines[line + row] = lines[line + row + dead] if row <= rows else NO_ROW
                    head -= dead
            lines[line + 1 + rows] = entries[i]
            lines[line] = head + 1
    return positions.size, end


@kernel
def free_lines(cells: Cells, oldest: int, end: int, below: int) -> int:
    """The first place of the log in [oldest, end) whose last row has not expired. Cost: O(lines freed)."""
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
    live_start: np.ndarray,
    live_end: np.ndarray,
    corners: np.ndarray,
    asked: np.ndarray,
) -> None:
    """Encode each probe row's rectangle like a row of the grid, and find the cell where it begins.

    asked[row] holds: the least position and codes; the greatest ones with the guards, or 0 if no position is live; and
    once more the least and the greatest codes, with DECIDED instead of each code whose rows all lie inside, so that
    their keys need no comparison. `lows` and `highs` belong to the two dimensions; a `whole` one spans all codes.
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
        some = live_end[i] > live_start[i]
        asked[i, 0] = (live_start[i] - cells.base) << 32 | low << 16 | other_low
        asked[i, 1] = ((live_end[i] - 1 - cells.base) << 32 | high << 16 | other_high | GUARDS) * some
        asked[i, 2] = (DECIDED if least else low) << 16 | (DECIDED if other_least else other_low)
        asked[i, 3] = (DECIDED if greatest else high) << 16 | (DECIDED if other_greatest else other_high)


@kernel
def _corners(low: int, high: int, cells: Cells) -> tuple[int, int, int, int]:
    """The first and last column, the first and last strip of a rectangle."""
    columns = ((low >> 16) & CODE) >> cells.first_shift, ((high >> 16) & CODE) >> cells.first_shift
    return columns[0], columns[1], (low & CODE) >> cells.second_shift, (high & CODE) >> cells.second_shift


@kernel
def _undecided(entry: int, low: int, high: int) -> bool:
    """Whether a row has a code that requires comparing keys."""
    code, other = (entry >> 16) & CODE, entry & CODE
    return (code == low >> 16) | (code == high >> 16) | (other == low & FIELD) | (other == high & FIELD)


@kernel
def visit_cells(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    probe: Probe,
    cells: Cells,
    asked: np.ndarray,
    oldest: int,
    settle: bool,
) -> tuple[int, int, int]:
    """Visit the rectangles of the probe rows; see `candidates.Visit`.

    Rows that their codes do not decide are settled by their keys; with `settle`, because of other conditions, all rows
    are. The seven places of a line are compared without a branch, empty ones included: each is written as a candidate
    before the outcome is known, and candidates are settled when the rectangle is done. Where there may not be enough
    room for that, `_visit_with_care` takes over.
    """
    lines, base = cells.lines, cells.base
    log, mask = cells.log, cells.mask
    row_of, corners = probe.row, probe.low
    flat = asked.reshape(asked.size)
    bands = row_of.size
    next_strip = LINE << cells.strip_bits
    room = positions.size - LINE
    for b in range(band, bands):
        if b + AHEAD < bands:
            prefetch(flat, row_of[b + AHEAD] * 4)
            corner = corners[b + AHEAD] * LINE
            for _ in range(2):
                prefetch(lines, corner)
                prefetch(lines, corner + LINE)
                corner += next_strip
        row = row_of[b]
        low, high = asked[row, 0], asked[row, 1]
        at = np.uint64(used)
        crowded: bool = used > room
        if high:
            first_column, last_column, first_strip, last_strip = _corners(low, high, cells)
            for strip in range(first_strip, last_strip + 1):
                begin = (strip << cells.strip_bits) + first_column
                for number in range(begin, begin + last_column - first_column + 1):
                    line = np.uint64(number * LINE)
                    while not crowded:
                        for i in range(1, LINE):
                            entry = lines[line + np.uint64(i)]
                            positions[at] = entry
                            at += np.uint64(((entry | GUARDS) - low) & (high - entry) & GUARDS == GUARDS)
                        crowded = int(at) > room
                        place = (lines[line] >> 3) - 1
                        if place < oldest:
                            break
                        line = np.uint64(log + (place & mask) * LINE)
                        # Older lines have only older rows, and none of these is live.
                        if lines[line + np.uint64(FULL)] >> 32 < low >> 32:
                            break
        if crowded:
            needed = _visit_with_care(used, positions, row, probe, cells, asked, oldest, settle)
            if needed > positions.size:
                return b, used, needed
            used = needed
        else:
            least, greatest = asked[row, 2], asked[row, 3]
            for i in range(used, int(at)):
                entry = positions[i]
                if not (settle | _undecided(entry, least, greatest)) or passes(probe, row, base + (entry >> 32)):
                    positions[used] = base + (entry >> 32)
                    used += 1
        ends[b] = used
    return bands, used, used


@kernel
def _visit_with_care(
    used: int,
    positions: np.ndarray,
    row: int,
    probe: Probe,
    cells: Cells,
    asked: np.ndarray,
    oldest: int,
    settle: bool,
) -> int:
    """As `visit_cells` for one probe row, but writes only matches, and only counts those without room."""
    lines = cells.lines
    low, high, least, greatest = asked[row]
    first_column, last_column, first_strip, last_strip = _corners(low, high, cells)
    for strip in range(first_strip, last_strip + 1):
        for column in range(first_column, last_column + 1):
            line = ((strip << cells.strip_bits) + column) * LINE
            while True:
                for i in range(line + 1, line + LINE):
                    entry = lines[i]
                    if ((entry | GUARDS) - low) & (high - entry) & GUARDS == GUARDS:
                        position = cells.base + (entry >> 32)
                        if not (settle | _undecided(entry, least, greatest)) or passes(probe, row, position):
                            if used < positions.size:
                                positions[used] = position
                            used += 1
                place = (lines[line] >> 3) - 1
                if place < oldest:
                    break
                line = cells.log + (place & cells.mask) * LINE
    return used


@kernel
def mark_held(cells: Cells, oldest: int, below: int, held: np.ndarray) -> None:
    """Set held[position - below] for every row that has not expired. Cost: O(cells + rows)."""
    lines, log, mask = cells.lines, cells.log, cells.mask
    for number in range(log // LINE):
        line = number * LINE
        while True:
            for i in range(line + 1, line + 1 + (lines[line] & FULL)):
                position = cells.base + (lines[i] >> 32)
                if position >= below:
                    assert not held[position - below], "no row is stored twice"
                    held[position - below] = True
            place = (lines[line] >> 3) - 1
            if place < oldest:
                break
            line = log + (place & mask) * LINE
