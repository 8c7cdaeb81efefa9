"""A grid over two dimensions of a window, for two ranges at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from indexes.grids.grid_cells import (
    CODE,
    LINE,
    MOST,
    NO_ROW,
    Cells,
    append_rows,
    encode_probes,
    free_lines,
    mark_held,
    visit_cells,
)
from indexes.grids.grid_shape import BITS, LIKE, GridShape, best_shape, most_cells
from indexes.grids.rank_codes import CODES, count_codes, rank_codes
from indexes.kernels.columns import Interval, Keys, Live, Matches, frozen
from indexes.kernels.ordered_integers import ordered_integers
from indexes.kernels.radix_sort import sorted_with_order
from indexes.kernels.row_columns import RowColumns
from indexes.kernels.whole_numbers import check_whole_number
from indexes.kernels.window_index import WindowIndex
from indexes.one_key.candidates import Probe, collect, live_of

SAMPLED_ROWS, SAMPLED_PROBES = 4096, 128
"""Codes are made from a sample of rows, the grid's shape from a sample of rows and one of probe rows."""

EXPECTED_WIDTH = CODES // 512
"""Assumed width of an interval, in codes, until one has been seen."""

CROWDED = 2.0
"""A grid is rebuilt when it is so many times as crowded, in either dimension, as when it was made."""

TOLD_APART = 8
"""Leading bits of a code that tell a sample's columns apart when crowding is measured."""

FIRST_LOOK = 4096
"""A grid is reviewed first after so many rows, and later whenever a quarter of the window has been replaced."""


class GridIndex(WindowIndex):
    """Rows in the cells of a grid over two dimensions; a probe visits the cells that its rectangle touches.

    None of the papers has a structure for two bands: they index one attribute and filter by the other, or match the
    sorted runs of both. A grid finds the rows near a point in a few cache lines, whatever the window's size. Its
    columns and strips do not have equal widths but equally many rows (`rank_codes`), and their number follows the
    intervals of the probe rows (`grid_shape`). Both are reviewed whenever a quarter of the window has been replaced; if
    keys drift or intervals change, a new grid is made. Each row is stored with its codes, so most rows are accepted or
    rejected without reading their keys. Keys settle the others, so codes never affect a result (`grid_cells`). Probe
    rows are answered in the order of their cells.

    With more than two dimensions, the two that leave the fewest rows are gridded and the others filter. With one, the
    grid is a row of cells. Negated dimensions, half-lines and intervals of any width are answered by visiting all cells
    that they touch.

        sample x: 10 20 30 40   y: 5 6 7 8, two cells by two: columns below and from 30, strips below and from 7
        rows (10, 8) (40, 5) (20, 6)         cells   2: (10, 8)   3: -
                                                     0: (20, 6)   1: (40, 5)
        probe x [15, 25], y [5, 6]           cell 0: (20, 6) at position 2

    Cost: insert O(1), about 50 ns a row; probe O(cells + rows in them), about 200 ns for 4 matches among a million
    rows; a new grid O(rows), at most once for a quarter of the rows. Memory: 16 to 40 bytes a row for cells, and 8
    to 16 for each dimension. At most 2^31 rows.
    """

    def __init__(
        self, dimensions: int = 2, *, window: int = 1, first_position: int = 0, first_look: int = FIRST_LOOK
    ) -> None:
        """`window`: the rows for which the grid is made, until there are more."""
        for name, value in (("dimensions", dimensions), ("window", window), ("first_look", first_look)):
            check_whole_number("GridIndex", name, value)
        self.dimensions = dimensions
        self._window = window
        self._first_look = first_look
        self._next = self._below = self._looked = first_position
        self._rows = RowColumns(dimensions)
        self._asked: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._sampling = True
        self._sample = frozen(np.empty((dimensions, 0), np.int64))
        self._axes = self._selective()
        self._codes = rank_codes(self._sample[0]), rank_codes(self._sample[0])
        self._shape = GridShape((BITS, BITS))
        self._crowding_made = [1.0, 1.0]
        self._cells = _empty_cells(self._shape, 1, first_position)
        self._oldest = self._end = 0

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(rows)."""
        if len(keys) != self.dimensions:
            raise ValueError(f"GridIndex: made for {self.dimensions} dimensions, but got {len(keys)} key columns")
        rows, first = len(keys[0]), self._next
        if not rows:
            return
        if first + rows - self._below > MOST:
            raise ValueError(f"GridIndex: a window of {first + rows - self._below:,} rows exceeds 2^31 - 1")
        columns = [ordered_integers(column.values) for column in keys]
        self._rows.append(first, columns, self._below)
        masks = [column.valid for column in keys if column.valid is not None]
        chosen = np.flatnonzero(np.logical_and.reduce(masks)) if masks else None
        if chosen is not None:
            columns = [column[chosen] for column in columns]
        positions = np.arange(first, first + rows) if chosen is None else chosen + first
        self._next += rows
        # Positions are stored relative to a base, which moves when they would not fit.
        worn = self._next - self._cells.base > MOST
        if worn or self._next - self._looked >= max(self._first_look, (self._next - self._below) // 4):
            self._look(positions, worn)
        self._append(frozen(columns[self._axes[0]]), frozen(columns[self._axes[1]]), frozen(positions))

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: O(n log n) to sort the probe rows by cell, O(cells + rows) for the cells that each touches."""
        assert len(intervals) == self.dimensions, "one interval per dimension"
        probes = len(live)
        if not probes:
            return Matches.empty(0)
        lows = frozen(np.stack([ordered_integers(one.low) for one in intervals]))
        highs = frozen(np.stack([ordered_integers(one.high) for one in intervals]))
        negated = frozen(np.array([one.negated for one in intervals]))
        if self._sampling:
            some = slice(None, None, -(-probes // SAMPLED_PROBES))
            self._asked = lows[:, some].copy(), highs[:, some].copy(), negated
            self._sampling = False
        on_axes = list(self._axes)
        whole = negated[on_axes]
        start, end = live_of(live, self._below)
        corners, asked = self._encode(lows[on_axes], highs[on_axes], whole, start, frozen(np.minimum(end, self._next)))
        some_keys = np.logical_or(lows <= highs, negated[:, None]).all(axis=0)
        corners, order = sorted_with_order(corners)
        if not some_keys.all():
            kept = some_keys[order]
            corners, order = frozen(corners[kept]), frozen(order[kept])
        if not len(order):
            return Matches.empty(probes)
        rows = self._rows.values
        probe = Probe(order, corners, corners, start, end, rows.shape[1] - 1, frozen(rows), lows, highs, negated)
        settle = bool(whole.any()) or self.dimensions > 2
        cells, oldest = self._cells, self._oldest

        def visit(
            band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
        ) -> tuple[int, int, int]:
            visited: tuple[int, int, int] = visit_cells(
                band, used, positions, ends, probe, cells, asked, oldest, settle
            )
            return visited

        return collect([visit], probe, probes, limit, ordered)

    def expire(self, below: int) -> None:
        """Cost: O(1) amortised; a row is removed when its cell needs the room."""
        if below > self._below:
            self._below = min(below, self._next)
            self._oldest = free_lines(self._cells, self._oldest, self._end, self._below)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: O(rows log rows)."""
        return {
            "about": np.array([self.dimensions, self._window, self._first_look, self._below, self._next], np.int64),
            "positions": self._held(),
            "rows": self._rows.at(np.arange(self._below, self._next)),
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: O(rows); the grid is rebuilt."""
        dimensions, window, first_look, below, following = (int(number) for number in snapshot["about"])
        index = cls(dimensions, window=window, first_position=below, first_look=first_look)
        index._next = index._looked = following
        if following > below:
            index._rows.append(below, list(snapshot["rows"]), below)
            index._make(snapshot["positions"], np.empty(0, np.int64))
        return index

    @property
    def nbytes(self) -> int:
        asked = 0 if self._asked is None else sum(array.nbytes for array in self._asked)
        codes = sum(array.nbytes for code in self._codes for array in code)
        return self._cells.lines.nbytes + self._rows.nbytes + self._sample.nbytes + asked + codes

    def check_invariants(self) -> None:
        # Positions lie between the expired ones and the next; the log's length, a power of two, holds all full lines.
        assert self._below <= self._next
        assert 0 <= self._end - self._oldest <= self._cells.mask + 1 == 1 << self._cells.mask.bit_length()
        # No row is stored twice.
        self._held()
        lines = self._cells.lines.reshape(-1, LINE)
        cells = self._shape.cells
        # The log lies behind the cells.
        assert self._cells.log == cells * LINE
        assert len(lines) == cells + self._cells.mask + 1
        # Full lines are full.
        places = cells + (np.arange(self._oldest, self._end) & self._cells.mask)
        assert ((lines[places, 0] & 7) == 7).all()
        for cell in range(cells):
            rows, others = np.split(lines[cell, 1:], [lines[cell, 0] & 7])
            # Empty places are marked.
            assert (others == NO_ROW).all()
            # Rows of a cell ascend by position, and their codes belong to the cell.
            assert (np.diff(rows >> 32) > 0).all()
            first, second = (rows >> 16) & CODE, rows & CODE
            shifts = self._shape.shifts
            assert (((second >> shifts[1]) << self._shape.strip_bits) + (first >> shifts[0]) == cell).all()

    def _held(self) -> np.ndarray:
        """The positions of the rows that can match, ascending."""
        held = np.zeros(self._next - self._below, np.bool_)
        mark_held(self._cells, self._oldest, self._below, held)
        return np.flatnonzero(held) + self._below

    def _append(self, first_keys: np.ndarray, second_keys: np.ndarray, positions: np.ndarray) -> None:
        start = 0
        while True:
            start, end = append_rows(
                self._cells, self._end, start, *self._codes, first_keys, second_keys, positions, self._below,
                self._oldest,
            )  # fmt: skip
            self._end = int(end)
            if start == len(positions):
                return
            old = self._cells
            self._cells = _empty_cells(self._shape, 2 * (old.mask + 1), old.base)
            lines = old.log // LINE
            fresh, before = self._cells.lines.reshape(-1, LINE), old.lines.reshape(-1, LINE)
            fresh[:lines] = before[:lines]
            places = np.arange(self._oldest, self._end)
            fresh[lines + (places & self._cells.mask)] = before[lines + (places & old.mask)]

    def _look(self, fresh: np.ndarray, worn: bool) -> None:
        """Make a new grid if keys, intervals or the number of rows have changed; `fresh` positions come next."""
        self._looked = self._next
        rows = max(self._window, self._next - self._below)
        widths = self._widths()
        unfit = self._shape.cost(rows, widths) > LIKE * best_shape(rows, widths).cost(rows, widths)
        crowded = [now > CROWDED * then for now, then in zip(self._crowding(), self._crowding_made, strict=True)]
        first = not self._sample.shape[1] and len(fresh)
        if first or any(crowded) or unfit or worn or self._shape.cells > 4 * most_cells(rows):
            newest = self._sampled(fresh)
            moving = [crowded[i] and self._sample.shape[1] and newest.shape[1] for i in (0, 1)]
            ends = [(self._sample[d], newest[d]) for d in self._axes]
            falling = [moving[i] and _upper(ends[i][1]) < _lower(ends[i][0]) for i in (0, 1)]
            rising = [moving[i] and _lower(ends[i][1]) > _upper(ends[i][0]) for i in (0, 1)]
            self._make(self._held(), fresh, falling, rising)
        self._sampling = True

    def _crowding(self) -> list[float]:
        """For each axis, how many rows share a row's column on average, relative to even columns."""
        positions = np.arange(self._below, self._next, max(1, (self._next - self._below) // SAMPLED_ROWS))
        keys = self._rows.at(positions)
        crowding = []
        for axis, codes, shift in zip(self._axes, self._codes, self._shape.shifts, strict=True):
            # No more columns than a sample can tell apart.
            shift = max(shift, BITS - TOLD_APART)
            counts = np.zeros(CODES >> shift, np.int64)
            count_codes(frozen(keys[axis]), shift, codes, counts)
            crowding.append(float(np.square(counts).sum()) * len(counts) / max(1, len(positions)) ** 2)
        return crowding

    def _make(
        self,
        held: np.ndarray,
        fresh: np.ndarray,
        falling: Sequence[bool] = (False, False),
        rising: Sequence[bool] = (False, False),
    ) -> None:
        """Make a new grid of the rows at `held`, suited for those at `fresh` as well."""
        self._sample = self._sampled(np.concatenate([held, fresh]))
        self._axes = self._selective()
        first, second = (
            rank_codes(self._sample[axis], falling=falling[i], rising=rising[i]) for i, axis in enumerate(self._axes)
        )
        self._codes = (first, second)
        self._shape = best_shape(max(self._window, len(held) + len(fresh)), self._widths())
        self._cells = _empty_cells(self._shape, 1, self._below)
        self._oldest = self._end = 0
        keys = self._rows.at(held)
        self._append(frozen(keys[self._axes[0]]), frozen(keys[self._axes[1]]), frozen(held))
        self._crowding_made = self._crowding()

    def _sampled(self, positions: np.ndarray) -> np.ndarray:
        """Keys of some of the rows at these positions, sorted by dimension."""
        some = positions[:: max(1, -(-len(positions) // SAMPLED_ROWS))]
        return frozen(np.sort(self._rows.at(some), axis=1))

    def _selective(self) -> tuple[int, int]:
        """The two dimensions whose intervals hold the fewest rows of the sample."""
        if self.dimensions <= 2 or self._asked is None:
            return (0, min(1, self.dimensions - 1))
        lows, highs, negated = self._asked
        shares = []
        for column, low, high, inverse in zip(self._sample, lows, highs, negated, strict=True):
            inside = np.searchsorted(column, high, "right") - np.searchsorted(column, low, "left")
            share = float(np.maximum(inside, 0).mean()) / max(1, len(column))
            shares.append(1.0 if inverse else share)
        first, second = sorted(range(self.dimensions), key=lambda d: shares[d])[:2]
        return first, second

    def _widths(self) -> np.ndarray:
        """How many codes the latest intervals span, [axis, probe row]."""
        if self._asked is None:
            return np.full((2, 1), EXPECTED_WIDTH)
        lows, highs, negated = (array[list(self._axes)] for array in self._asked)
        somewhere = frozen(np.full(lows.shape[1], self._cells.base))
        _, asked = self._encode(lows, highs, negated, somewhere, frozen(somewhere + 1))
        least, greatest = ([column >> 16 & CODE, column & CODE] for column in (asked[:, 0], asked[:, 1]))
        return np.maximum(np.stack(greatest) - np.stack(least), 0)

    def _encode(
        self, lows: np.ndarray, highs: np.ndarray, whole: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The cells where the probe rows' rectangles begin, and the rectangles in the form that kernels take."""
        corners, asked = np.empty(lows.shape[1], np.int64), np.empty((lows.shape[1], 4), np.int64)
        encode_probes(
            self._cells, *self._codes, frozen(lows), frozen(highs), frozen(whole), start, end, corners, asked
        )  # fmt: skip
        return corners, frozen(asked)


def _empty_cells(shape: GridShape, lines: int, base: int) -> Cells:
    """Cells without rows, and a log for `lines` full lines."""
    room = np.empty((shape.cells + lines) * LINE, np.int64)
    room[: shape.cells * LINE].reshape(-1, LINE)[:, 1:] = NO_ROW
    room[: shape.cells * LINE : LINE] = 0
    return Cells(room, shape.cells * LINE, lines - 1, base, shape.strip_bits, *shape.shifts)


def _lower(sample: np.ndarray) -> int:
    """The lower quartile of a sorted sample."""
    return int(sample[len(sample) // 4])


def _upper(sample: np.ndarray) -> int:
    """The upper quartile of a sorted sample."""
    return int(sample[-1 - len(sample) // 4])
