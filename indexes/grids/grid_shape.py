"""How a grid over two dimensions is cut into cells, and when another shape is better."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indexes.grids.grid_cells import FULL, LINE
from indexes.grids.rank_codes import CODES

BITS = 15
"""Bits of a code."""

CELL, CHAINED, ROW = 25.0, 80.0, 1.0
"""Approximate nanoseconds, among a million rows: to read a prefetched cell, to read a full line behind it, and to
compare with a row."""

LIKE = 1.3
"""A shape is not replaced while it costs at most so many times the least cost."""

ROWS_TO_A_CELL = 2
"""At least so many rows per cell, on average, so that cells take no more memory than rows."""


@dataclass(frozen=True)
class GridShape:
    """Cells of 2^shift codes in each of the two dimensions; the cells of a strip, along the first, are neighbours.

    With shifts (13, 14), four cells by two, the codes (10000, 20000) belong to cell 1 of strip 1: number 1 * 4 + 1.
    """

    shifts: tuple[int, int]

    @property
    def strip_bits(self) -> int:
        """A strip has 2^strip_bits cells."""
        return BITS - self.shifts[0]

    @property
    def cells(self) -> int:
        return 1 << 2 * BITS - sum(self.shifts)

    def cost(self, rows: int, widths: np.ndarray) -> float:
        """Nanoseconds to answer a probe row, on average over `widths`: [dimension, probe row], in codes."""
        return float(_costs(rows, widths)[self.shifts])


def best_shape(rows: int, widths: np.ndarray) -> GridShape:
    """The shape that answers probe rows of these widths at the least cost. Cost: O(256 * probe rows)."""
    costs = _costs(rows, widths)
    bits = np.add.outer(np.arange(BITS + 1), np.arange(BITS + 1))
    costs[(1 << (2 * BITS - bits)) > most_cells(rows)] = np.inf
    first, second = np.unravel_index(int(np.argmin(costs)), costs.shape)
    return GridShape((int(first), int(second)))


def most_cells(rows: int) -> int:
    """Most cells of a grid of so many rows."""
    return max(16, rows // ROWS_TO_A_CELL)


def _costs(rows: int, widths: np.ndarray) -> np.ndarray:
    """The cost of each shape, by the shifts of both dimensions."""
    sizes = 1 << np.arange(BITS + 1)
    met = [np.minimum(width[None, :] / sizes[:, None] + 1, (CODES / sizes)[:, None]) for width in widths]
    held = rows * np.multiply.outer(sizes, sizes) / float(CODES) ** 2
    # Rows in full lines behind the cell: nearly none with two rows a cell, a fifth with four, three fifths with eight.
    chained = held * held / (FULL * (held + LINE))
    cell = CELL + CHAINED * chained + ROW * held
    return cell * (met[0][:, None, :] * met[1][None, :, :]).mean(axis=2)
